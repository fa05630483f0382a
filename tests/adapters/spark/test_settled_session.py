"""A session that keeps settings of others, which change results, is refused."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import SparkSession

from backfill_assets.adapters.runtime.session_settings import REQUIRED
from backfill_assets.adapters.spark.session import _runs_here, _settled, in_process
from backfill_assets.errors import DeclarationError, EnvironmentSetupError


class Stubborn(dict[str, str]):
    """The settings of a session, some of which stay as they are."""

    kept: tuple[str, ...] = ()

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 # Spark's name
        return dict(self)

    def set(self, name: str, value: str) -> None:
        if name not in self.kept:
            self[name] = value

    def unset(self, name: str) -> None:
        if name not in self.kept:
            self.pop(name, None)


def settled(settings: Stubborn, **config: str) -> Any:
    session: Any = SimpleNamespace(conf=settings)
    given = {name.replace("_", "."): value for name, value in config.items()}
    return _settled(session, given, settings.getAll, lambda: settings.getAll, "this Spark")


class _Gone:
    """What a process knows of a Spark whose JVM does not answer any more."""

    @property
    def _jsc(self) -> Any:
        raise ConnectionRefusedError


def test_a_spark_that_has_died_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", _Gone())
    monkeypatch.setattr(SparkContext, "_gateway", object())
    monkeypatch.setattr(SparkContext, "_jvm", object())
    monkeypatch.setattr(SparkSession, "_instantiatedSession", object())
    assert not _runs_here()
    assert (SparkContext._active_spark_context, SparkContext._gateway, SparkContext._jvm) == (None, None, None)
    assert SparkSession._instantiatedSession is None


def test_what_others_have_set_is_changed() -> None:
    settings = Stubborn({**REQUIRED, "spark.sql.ansi.enabled": "false"})
    assert settled(settings).conf["spark.sql.ansi.enabled"] == "true"


def test_what_cannot_be_changed_is_refused_with_all_names() -> None:
    settings = Stubborn({"spark.sql.ansi.enabled": "false"})
    settings.kept = ("spark.sql.ansi.enabled",)
    with pytest.raises(EnvironmentSetupError) as refused:
        settled(settings)
    assert {"spark.sql.ansi.enabled", *REQUIRED} == set(refused.value.facts["settings"])
    assert "this Spark was started with settings that change results" in str(refused.value)
    assert "spark.sql.ansi.enabled: expected true, found false" in str(refused.value)


class Strict(Stubborn):
    """Settings of a Spark that looks at what it is given."""

    def set(self, name: str, value: str) -> None:
        if value == "ten":
            raise AnalysisException(message=f"'{name}' should be a size, but was {value}")
        super().set(name, value)


def test_a_value_that_spark_refuses_is_told_as_one_of_config() -> None:
    with pytest.raises(
        DeclarationError, match=r"config sets spark\.sql\.limit to 'ten', which Spark refuses"
    ) as refused:
        settled(Strict(REQUIRED), spark_sql_limit="ten")
    assert "should be a size" in refused.value.message
    assert refused.value.facts["argument"] == "config"
    assert settled(Strict(REQUIRED), spark_sql_limit="10").conf["spark.sql.limit"] == "10"


def test_a_value_with_which_spark_does_not_start_is_told_as_one_of_config(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(conf: dict[str, str]) -> None:
        said = f"The value {conf['spark.sql.limit']!r} in the config is invalid.\n\nJVM stacktrace:\nmuch more"
        raise IllegalArgumentException(message=said)

    monkeypatch.setattr("backfill_assets.adapters.spark.session._start", start)
    monkeypatch.setattr("backfill_assets.adapters.spark.session._runs_here", lambda: False)
    with pytest.raises(DeclarationError, match="The value 'ten' in the config is invalid") as refused:
        in_process({"spark.sql.limit": "ten"}, {})
    assert "much more" not in refused.value.message


def test_a_process_that_has_used_a_server_has_no_spark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(EnvironmentSetupError, match="cannot have a Spark of its own any more"):
        in_process({}, {})


def test_a_setting_that_spark_does_not_let_go_is_named() -> None:
    class Refusing(Stubborn):
        def unset(self, name: str) -> None:
            raise PySparkException(f"{name} is of another kind")

    settings = Refusing({**REQUIRED, "spark.sql.another.setting": "x"})
    with pytest.raises(EnvironmentSetupError, match=r"spark.sql.another.setting: expected its default, found x"):
        settled(settings)
