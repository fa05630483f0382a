"""A real project as Dagster sees it: its definitions, an instance, and runs of its jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.defs.assets import OP_NAME
from backfill_assets.defs.definitions import definitions_at
from tests.support.project import Project
from tests.support.settings import SPARK

__all__ = ["DagsterProject"]


@dataclass
class DagsterProject:
    """The definitions of a project's declared tables, and an instance to run them in."""

    project: Project
    instance: dg.DagsterInstance

    def definitions(self, *, servers: str | None = None) -> dg.Definitions:
        """What a code location would load; `servers` may be the address of a broker that is down."""
        kafka = KafkaConnector(bootstrap_servers=servers or self.project.servers, connect_seconds=3.0)
        declared = tuple(self.project.declared.values())
        resources = {
            "backfill_kafka": kafka,
            "backfill_spark": SparkResource(root=str(self.project.root), config=SPARK),
        }
        return definitions_at(self.project.root, declared, resources=resources)

    def run(
        self, job: str, *, select: Sequence[str] = (), ops: Mapping[str, Any] | None = None, **arguments: Any
    ) -> dg.ExecuteInProcessResult:
        """One in-process run of a job, of only some tables if they are named, with this op config."""
        keys = [self.project.declared[name].key for name in select]
        return (
            self
            .definitions()
            .resolve_job_def(job)
            .execute_in_process(
                instance=self.instance,
                raise_on_error=False,
                asset_selection=keys or None,
                run_config={"ops": dict(ops or {})},
                **arguments,
            )
        )

    def refresh(self, *names: str, **config: Any) -> dg.ExecuteInProcessResult:
        """One run that refreshes tables."""
        return self.run("backfill_tables", select=names, ops={OP_NAME: {"config": config}})

    def control(self, verb: str, view: str, **config: Any) -> dg.ExecuteInProcessResult:
        """One run of a control job."""
        return self.run(f"backfill_{verb}", ops={f"{verb}_table": {"config": {"view": view, **config}}})


def materialized(result: dg.ExecuteInProcessResult, name: str) -> dict[str, Any] | None:
    """The metadata of the only materialization of a table; None if there is none."""
    found = [
        event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.path[-1] == name
    ]
    assert len(found) < 2
    return {key: value.value for key, value in found[0].metadata.items()} if found else None


def observed(result: dg.ExecuteInProcessResult, name: str) -> list[dict[str, Any]]:
    """The metadata of each observation of a table."""
    return [
        {key: value.value for key, value in event.asset_observation_data.asset_observation.metadata.items()}
        for event in result.get_asset_observation_events()
        if event.asset_key is not None and event.asset_key.path[-1] == name
    ]


def failure(result: dg.ExecuteInProcessResult) -> str:
    """The error message of the failed step."""
    (event,) = [each for each in result.all_events if each.is_step_failure]
    data = event.step_failure_data
    meant = data.user_failure_data
    return str(meant.description if meant and meant.description else data.error_display_string)


def passed(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """The outcome of each check of a run, as `<table>:<check>`."""
    return {
        f"{each.asset_key.path[-1]}:{each.check_name}": each.passed for each in result.get_asset_check_evaluations()
    }
