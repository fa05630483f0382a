"""A session is told how to reach the warehouse's store, and refused with the reason if it does not reach that one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import AnalysisException

from backfill_assets.adapters.spark.reach import reaching
from backfill_assets.adapters.storage.put_if_absent import MARKER
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import EnvironmentSetupError

TOLD = {"fs.s3a.endpoint": "https://e", "fs.s3a.access.key": "an-id", "fs.s3a.secret.key": "a-secret"}


class OnS3(Warehouse):
    """A folder of which Spark is told what it is told of a store."""

    @property
    def spark_settings(self) -> dict[str, str]:
        return TOLD


@dataclass
class Session:
    """What a session sees of the store: lines, or an error."""

    seen: list[str] | Exception
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def conf(self) -> Any:
        return self

    @property
    def read(self) -> Any:
        return self

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def text(self, _address: str) -> Any:
        return self

    def collect(self) -> list[dict[str, str]]:
        if isinstance(self.seen, Exception):
            raise self.seen
        return [{"value": line} for line in self.seen]


NOT_THERE = AnalysisException(message="no such path", errorClass="PATH_NOT_FOUND")


def reached(tmp_path: Path, seen: list[str] | Exception, marker: bytes | None = b"mine\n") -> Session:
    """A session of which it was seen to that it reaches the store."""
    warehouse, session = OnS3(uri=str(tmp_path)), Session(seen)
    if marker is not None:
        warehouse.objects("").put(MARKER, marker)
    given: Any = session
    assert id(reaching(given, warehouse)) == id(session)
    return session


def test_a_session_that_sees_what_this_process_wrote_is_used_with_its_settings(tmp_path: Path) -> None:
    assert reached(tmp_path, ["mine"]).settings == TOLD


def test_before_anything_was_written_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert reached(tmp_path, NOT_THERE, marker=None).settings == TOLD


@pytest.mark.parametrize("seen", [["another's"], [], NOT_THERE], ids=["other", "empty", "missing"])
def test_a_store_of_the_same_name_that_is_another_is_refused(tmp_path: Path, seen: list[str] | Exception) -> None:
    with pytest.raises(EnvironmentSetupError, match="Spark reaches another store than this process"):
        reached(tmp_path, seen)


def test_a_missing_connector_is_told_with_where_its_modules_are_named(tmp_path: Path) -> None:
    missing = RuntimeError("java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")
    with pytest.raises(EnvironmentSetupError, match="Spark has no connector") as found:
        reached(tmp_path, missing)
    assert "ivy-s3a.xml" in found.value.hint


def test_whatever_else_a_connector_says_is_told_without_keys(tmp_path: Path) -> None:
    said = RuntimeError("Forbidden: the key an-id with a-secret has no rights")
    with pytest.raises(EnvironmentSetupError, match="Forbidden: the key … with … has no rights") as found:
        reached(tmp_path, said)
    assert found.value.__cause__ is None


def test_a_local_warehouse_asks_nothing_of_a_session(tmp_path: Path) -> None:
    session = Session(RuntimeError("asked"))
    given: Any = session
    assert id(reaching(given, Warehouse(uri=str(tmp_path)))) == id(session)
    assert session.settings == {}
