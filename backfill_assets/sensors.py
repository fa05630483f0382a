"""Sensors: new data on Kafka, and runs that died. Both are shipped stopped.

A tick never starts Spark and keeps no memory: what it asks for is derived from the tables, the leases and the runs of
the moment, so a lost cursor or a restarted daemon changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from backfill_assets.assets import RESOURCE_KEYS, in_order, report_dead_run, workspace_of
from backfill_assets.backfill.epoch import Look
from backfill_assets.checks import CHEAP_TAG
from backfill_assets.errors import BackfillError
from backfill_assets.jobs import TABLES_JOB
from backfill_assets.model import KafkaSource, MaterializedView
from backfill_assets.workspace import Declared, Workspace

__all__ = ["build_sensors"]

TABLE_TAG = "backfill.table"
TRANSITION_TAG = "backfill/transition"
BACKOFF_SECONDS = (0, 30, 60, 120, 300, 600)
"""How long a table whose runs failed is left alone, by the number of failures at the same epoch."""

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_FAILED = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def build_sensors(declared: Mapping[str, Declared]) -> list[dg.SensorDefinition]:
    """The sensors of one code location."""
    return [_new_kafka_data(declared), _reap_dead_runs(declared)]


@dataclass(frozen=True)
class _Tick:
    """What one tick sees; decides for one table after the other. A string is the reason for asking for nothing."""

    workspace: Workspace
    instance: dg.DagsterInstance

    def source(self, source: KafkaSource) -> dg.RunRequest | str:
        """A run of a source that has new records, together with its live views that are behind."""
        seen = self._ready(source)
        if isinstance(seen, str):
            return seen
        waiting = self._lag(source, seen)
        if not waiting:
            return "up to date"
        views = [
            view
            for view in self.workspace.declared.values()
            if isinstance(view, MaterializedView)
            and source in view.upstreams
            and not isinstance(look := self._ready(view), str)
            and look.record is not None
            and look.record.live
        ]
        return self._request([source, *views], seen)

    def view(self, view: MaterializedView) -> dg.RunRequest | str:
        """A run of its own for a view that is still backfilling, or that is live and behind its sources' tables."""
        seen = self._ready(view)
        if isinstance(seen, str):
            return seen
        live = seen.record is not None and seen.record.live
        if live and not self._lag(view, seen):
            return "up to date"
        return self._request([view], seen)

    def _ready(self, table: Declared) -> Look | str:
        look = self.workspace.table(table).output.look()
        if not look.exists:
            return "not created yet; materialize it once"
        controls = self.workspace.state.controls(table.target)
        if controls.paused or controls.rows_per_second == 0:
            return "paused"
        lease = self.workspace.state.leases().get(table.target)
        if lease is not None and lease.alive(datetime.now(UTC)):
            return f"run {lease.run_id} is at work on it"
        tags = {f"{TABLE_TAG}/{table.name}": "true"}
        if self.instance.get_runs_count(dg.RunsFilter(tags=tags, statuses=_UNFINISHED)):
            return "a run of it is queued"
        return look

    def _lag(self, table: Declared, look: Look) -> int:
        assert look.record is not None
        return sum(self.workspace.table(table).parts.decider.lag(look.record.position).values())

    def _request(self, tables: list[Declared], look: Look) -> dg.RunRequest | str:
        assert look.record is not None
        transition = f"{look.record.target}@{look.record.incarnation}:{look.record.epoch}"
        failed = self.instance.get_run_records(
            dg.RunsFilter(tags={TRANSITION_TAG: transition}, statuses=_FAILED), limit=len(BACKOFF_SECONDS)
        )
        if failed:
            ended = failed[0].end_time or failed[0].update_timestamp.timestamp()
            wait = ended + BACKOFF_SECONDS[min(len(failed), len(BACKOFF_SECONDS) - 1)] - datetime.now(UTC).timestamp()
            if wait > 0:
                return f"its last {len(failed)} runs failed; the next one is asked for in {wait:.0f} s"
        return dg.RunRequest(
            run_key=f"{transition}:{look.version}:{len(failed)}",
            asset_selection=[each.key for each in tables],
            tags={
                CHEAP_TAG: "since_last_pass",
                TRANSITION_TAG: transition,
                **{f"{TABLE_TAG}/{each.name}": "true" for each in tables},
            },
        )


def _new_kafka_data(declared: Mapping[str, Declared]) -> dg.SensorDefinition:
    @dg.sensor(
        name="new_kafka_data",
        job_name=TABLES_JOB,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=RESOURCE_KEYS,
        description="Refreshes sources that have new records on Kafka, with their live views; a view that is still "
        "backfilling gets a run of its own.",
    )
    def new_kafka_data(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        tick = _Tick(workspace_of(context.resources, declared), context.instance)
        requests: list[dg.RunRequest] = []
        reasons: list[str] = []
        taken: set[dg.AssetKey] = set()
        for table in in_order(declared.values()):
            if table.key in taken:
                continue
            found = _decide(tick, table)
            if isinstance(found, str):
                reasons.append(f"{table.name}: {found}")
            else:
                requests.append(found)
                taken.update(found.asset_selection or ())
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SensorResult(skip_reason="; ".join(reasons) or "nothing is declared")

    return new_kafka_data


def _decide(tick: _Tick, table: Declared) -> dg.RunRequest | str:
    try:
        return tick.source(table) if isinstance(table, KafkaSource) else tick.view(table)
    except BackfillError as error:
        return f"[{error.code}] {error.message}"


def _reap_dead_runs(declared: Mapping[str, Declared]) -> dg.SensorDefinition:
    @dg.sensor(
        name="reap_dead_runs",
        job_name=TABLES_JOB,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=RESOURCE_KEYS,
        description="Reports runs as failed whose process is gone: they hold a lease of this warehouse that nobody renews.",
    )
    def reap_dead_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        state = workspace_of(context.resources, declared).state
        now = datetime.now(UTC)
        targets = {each.target for each in declared.values()}
        reaped = [
            lease.run_id
            for lease in state.leases().values()
            if lease.target in targets
            and lease.held
            and not lease.alive(now)
            and report_dead_run(
                context.instance, lease.run_id, f"its lease of {lease.target} ended at {lease.renewed_at}"
            )
        ]
        return dg.SensorResult(
            skip_reason=f"reported {len(reaped)} dead runs as failed: {reaped}" if reaped else "no dead runs"
        )

    return reap_dead_runs
