"""Dagster stores and shows the configuration of resources: no secret comes there."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from backfill_assets import KafkaConnector, SparkResource, StateStore, build_definitions, delta_table, materialized_view
from backfill_assets.errors import DeclarationError
from resources import resources_for

VIEW = materialized_view("copied", query="SELECT id FROM raw", upstreams=[delta_table("raw", path="lake/raw")])
SECRET = "not-to-be-shown"


def defined(**resources: Any) -> dg.Definitions:
    return build_definitions(VIEW, resources={f"backfill_{name}": each for name, each in resources.items()})


def shown(definitions: dg.Definitions) -> str:
    """What Dagster stores of the resources for its UI, and of each job as what a run is given."""
    repository = definitions.get_repository_def()
    schemas = {name: each.config_schema for name, each in repository.get_top_level_resources().items()}
    resources = {name: each.default_value for name, each in schemas.items() if each.default_provided}
    jobs = [str(job.get_job_snapshot()) for job in repository.get_all_jobs()]
    return f"{resources} {jobs}"


@pytest.mark.parametrize(
    ("name", "resource", "named"),
    [
        (
            "state",
            StateStore(warehouse="s3://l/w", storage={"provider": "s3", "secret_access_key": SECRET}),
            "StateStore",
        ),
        (
            "state",
            StateStore(warehouse="az://l/w", storage={"provider": "azure", "sas_key": SECRET}),
            "storage sas_key",
        ),
        ("kafka", KafkaConnector(client_config={"sasl.password": SECRET}), "KafkaConnector sasl.password"),
        ("spark", SparkResource(remote=f"sc://spark:1/;token={SECRET}"), "SparkResource remote"),
        (
            "spark",
            SparkResource(config={"spark.hadoop.fs.s3a.secret.key": SECRET}),
            r"SparkResource config spark\.hadoop\.fs\.s3a\.secret\.key",
        ),
        (
            "spark",
            SparkResource(config={"spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net": SECRET}),
            "SparkResource config",
        ),
        (
            "state",
            StateStore(warehouse="s3://l/w", storage={"provider": "s3", "proxy_url": f"http://me:{SECRET}@proxy"}),
            "StateStore storage proxy_url",
        ),
        ("state", StateStore(warehouse=f"s3://me:{SECRET}@l/w"), "StateStore warehouse"),
    ],
)
def test_a_secret_that_is_written_into_a_resource_is_refused_by_name(name: str, resource: Any, named: str) -> None:
    with pytest.raises(DeclarationError, match=named) as found:
        defined(**{name: resource})
    assert "env:NAME" in found.value.hint
    assert SECRET not in str(found.value)
    assert SECRET not in repr(resource) or named == "StateStore warehouse"


@pytest.mark.parametrize("given", ["env:A_SECRET", dg.EnvVar("A_SECRET")], ids=["named", "of Dagster"])
def test_variables_are_shown_by_their_names(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", SECRET)
    storage = {"provider": "s3", "region": "eu-central-1", "access_key_id": "env:AN_ID", "secret_access_key": given}
    kafka = KafkaConnector(client_config={"sasl.password": given})
    found = shown(defined(state=StateStore(warehouse="s3://l/w", storage=storage), kafka=kafka))
    assert "A_SECRET" in found
    assert "eu-central-1" in found
    assert SECRET not in found


def test_a_cluster_shows_no_token_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", "s3://lake/warehouse")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "broker:9093")
    monkeypatch.setenv("SPARK_REMOTE", f"sc://spark:15002/;use_ssl=true;token={SECRET}")
    given = resources_for(Path("/project"), "cluster")
    found = shown(build_definitions(VIEW, resources=given))
    assert "s3://lake/warehouse" in found
    assert SECRET not in found
    assert SECRET in given["backfill_spark"]._remote().full
