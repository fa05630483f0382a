"""The deployment's own resources: chosen by name, and a cluster says what it lacks. Its settings of Dagster."""

from pathlib import Path

import pytest

from backfill_assets import KafkaConnector, SparkResource, StateStore
from backfill_assets.adapters.spark.session import Remote
from backfill_assets.cli.local_project import dagster_home
from backfill_assets.errors import EnvironmentSetupError
from resources import resources_for

PROJECT = Path("/project")
CLUSTER = {
    "BACKFILL_WAREHOUSE": "s3://bucket/warehouse",
    "KAFKA_BOOTSTRAP_SERVERS": "broker:9093",
    "SPARK_REMOTE": "sc://spark:15002/;use_ssl=true;token=a-token-of-spark",
}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*CLUSTER, "BACKFILL_ENVIRONMENT", "KAFKA_USERNAME"):
        monkeypatch.delenv(name, raising=False)


def test_one_machine_is_the_environment_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resources_for(PROJECT)
    assert {name: type(each) for name, each in found.items()} == {
        "backfill_state": StateStore,
        "backfill_kafka": KafkaConnector,
        "backfill_spark": SparkResource,
    }
    assert found["backfill_spark"].remote is None
    assert {each.root for each in found.values()} == {str(PROJECT)}
    monkeypatch.setenv("BACKFILL_ENVIRONMENT", "elsewhere")
    with pytest.raises(EnvironmentSetupError, match=r"no environment 'elsewhere': expected one of local, cluster"):
        resources_for(PROJECT)


@pytest.mark.parametrize("missing", CLUSTER)
def test_a_cluster_needs_all_of_its_variables(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name, value in CLUSTER.items():
        monkeypatch.setenv(name, value)
    found = resources_for(PROJECT, "cluster")
    assert found["backfill_state"].warehouse == CLUSTER["BACKFILL_WAREHOUSE"]
    assert found["backfill_spark"]._remote() == Remote(url=CLUSTER["SPARK_REMOTE"])
    assert (found["backfill_kafka"].bootstrap_servers, found["backfill_kafka"].client_config) == ("broker:9093", {})
    monkeypatch.setenv("KAFKA_USERNAME", "user")
    assert resources_for(PROJECT, "cluster")["backfill_kafka"].client_config["sasl.password"] == "env:KAFKA_PASSWORD"
    monkeypatch.delenv(missing)
    with pytest.raises(EnvironmentSetupError, match=f"{missing} is not set"):
        resources_for(PROJECT, "cluster")


def test_dagster_finds_its_settings_in_its_home_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "restored afterwards")
    monkeypatch.delenv("DAGSTER_HOME")
    root = Path(__file__).parent.parent
    assert (dagster_home(root) / "dagster.yaml").is_file()
    assert not (root / "dagster.yaml").exists(), "`dagster dev` would warn that it does not read this file"


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a file, and no folder")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "a" / "home"))
    with pytest.raises(EnvironmentSetupError, match=r"a/home, cannot be created: .*Not a directory") as found:
        dagster_home(tmp_path)
    assert "set DAGSTER_HOME" in found.value.hint
