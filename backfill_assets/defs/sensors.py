"""Sensors: new data on Kafka, new versions of Delta tables, and runs that died. All are stopped by default.

A tick never starts Spark and has no state: it decides from the present tables, leases and runs, so a lost cursor or a
restarted daemon changes nothing. For each table it only finds out whether something waits. If an earlier tick had no time
for all tables, the cursor names the table to begin with.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg

from backfill_assets.adapters.state.state_store import Lease
from backfill_assets.adapters.storage.store_errors import mask
from backfill_assets.app.wiring.sources import Sources
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.ports import Controls, TopicState
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.declare.model import Declared, KafkaSource, MaterializedView
from backfill_assets.defs.assets import RESOURCE_KEYS, in_order, workspace_of
from backfill_assets.defs.checks import CHEAP_TAG
from backfill_assets.defs.dead_runs import UNFINISHED, report_dead_runs
from backfill_assets.defs.jobs import TABLES_JOB
from backfill_assets.errors import BackfillError

__all__ = ["build_sensors"]

TABLE_TAG = "backfill.table"
TRANSITION_TAG = "backfill/transition"
BACKOFF_SECONDS = (0, 30, 60, 120, 300, 600)
"""How long a table is not refreshed again, by the number of its runs that did not get beyond the same epoch."""

TICK_SECONDS = 20.0
"""A tick begins no further table after this time; Dagster ends a tick after a minute."""

_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def build_sensors(declared: Mapping[str, Declared]) -> list[dg.SensorDefinition]:
    """The sensors of one code location."""
    over_tables = {each.name for each in declared.values() if isinstance(each, MaterializedView) and each.tables}
    return [
        _new_data(
            "new_kafka_data",
            "Refreshes sources that have new records on Kafka, with their live views; a view that is still backfilling gets "
            "a run of its own.",
            declared,
            serves=declared.keys() - over_tables,
        ),
        _new_data(
            "new_delta_data",
            "Refreshes views over Delta tables and other views that have new versions, each in a run of its own. A view over "
            "a view waits until that one is live.",
            declared,
            serves=over_tables,
        ),
        _reap_dead_runs(declared),
    ]


def _new_data(
    name: str, description: str, declared: Mapping[str, Declared], *, serves: Collection[str]
) -> dg.SensorDefinition:
    """A sensor that requests the runs that some of the declared tables need, or says for each why it needs none."""

    @dg.sensor(
        name=name,
        job_name=TABLES_JOB,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=RESOURCE_KEYS,
        description=description,
    )
    def new_data(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        given = workspace_of(context.resources, declared)
        seen = _TickWorkspace(declared=declared, store=given.store, kafka=given.kafka, spark=given.spark)
        tick = _Tick(seen, context.instance)
        requests: list[dg.RunRequest] = []
        reasons: list[str] = []
        taken: set[dg.AssetKey] = set()
        deadline = time.monotonic() + TICK_SECONDS
        tables = in_order(table for table in declared.values() if table.name in serves)
        turns = _in_turn(tables, first=context.cursor)
        for table in turns:
            if table.key not in taken:
                found = tick.decide(table, taken)
                if isinstance(found, str):
                    reasons.append(f"{table.name}: {found}")
                else:
                    requests.append(found)
                    taken.update(found.asset_selection or ())
            if time.monotonic() > deadline:
                break
        following = next(turns, None)
        cursor = next((table.name for table in (following, *tables) if table is not None), None)
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        if following is not None:
            reasons.append(f"{following.name} and what comes after it are for the next tick")
        return dg.SensorResult(skip_reason="; ".join(reasons) or "no such table is declared", cursor=cursor)

    return new_data


def _in_turn(tables: Sequence[Declared], *, first: str | None) -> Iterator[Declared]:
    """All tables once, beginning with the one that an earlier tick did not reach."""
    names = [table.name for table in tables]
    at = names.index(first) if first in names else 0
    yield from (*tables[at:], *tables[:at])


def _reap_dead_runs(declared: Mapping[str, Declared]) -> dg.SensorDefinition:
    @dg.sensor(
        name="reap_dead_runs",
        job_name=TABLES_JOB,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=RESOURCE_KEYS,
        description="Reports runs as failed whose process is gone: they hold a lease of this warehouse that nobody "
        "renews. Without it such runs stay `started` until the next refresh of the same table.",
    )
    def reap_dead_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        workspace = workspace_of(context.resources, declared)
        workspace.prepare_to_read()
        reported = report_dead_runs(context.instance, workspace.state, {each.target for each in declared.values()})
        found = f"reported {len(reported)} dead runs as failed: {', '.join(reported)}" if reported else "no dead runs"
        return dg.SensorResult(skip_reason=found)

    return reap_dead_runs


class _TickWorkspace(Workspace):
    """A workspace that requests all topics with the same connection at once, however many tables need them."""

    @cached_property
    def sources(self) -> Sources:
        """The state of the shared sources, requested once."""
        return _TickSources(registry=self.registry, kafka=self.kafka, catalog=self)


@dataclass
class _TickSources(Sources):
    """Sources whose topics are requested together."""

    _seen: dict[str, TopicState | BackfillError] = field(default_factory=dict, init=False)

    def topic(self, source: str) -> TopicState:
        """The topic of a source as it was when first seen."""
        if source not in self._seen:
            self._seen |= self._topics_like(self.registry.source(source))
        found = self._seen[source]
        if isinstance(found, BackfillError):
            raise found
        return found

    def _topics_like(self, source: KafkaSource) -> dict[str, TopicState | BackfillError]:
        """The topics of a source and of all sources with the same connection."""
        sources = [each for each in self.registry.declared.values() if isinstance(each, KafkaSource)]
        alike = {
            each.name: (each.topic, each.isolation) for each in sources if each.client_config == source.client_config
        }
        offers = self.client(source).offers(set(alike.values()))
        return {name: offers[wanted] for name, wanted in alike.items()}


@dataclass
class _Tick:
    """What one tick sees; decides for one table after the other. A string is the reason for not requesting a run."""

    workspace: Workspace
    instance: dg.DagsterInstance

    def decide(self, table: Declared, taken: Collection[dg.AssetKey]) -> dg.RunRequest | str:
        """A run of a source with its live views, a run of one view, or why there is none."""
        try:
            self.workspace.prepare_to_read()
            seen = self._ready(table)
            if isinstance(seen, str):
                return seen
            look, record = seen
            if not self._has_work(table, record):
                return "up to date"
            views = self._live_views(table, taken) if isinstance(table, KafkaSource) else []
            return self._request([table, *views], look, record)
        except BackfillError as error:
            return f"[{error.code}] {error.message}"
        except Exception as error:  # an error of one table's storage must not prevent the runs of the others
            mask(error)
            return f"{type(error).__name__}: {error}"

    @cached_property
    def _controls(self) -> Mapping[str, Controls]:
        return self.workspace.state.all_controls()

    @cached_property
    def _leases(self) -> Mapping[str, Lease]:
        return self.workspace.state.leases()

    def _ready(self, table: Declared) -> tuple[TableState, CommitRecord] | str:
        look = self.workspace.table(table).output.look()
        if look.record is None or not look.exists:
            return "not created yet; materialize it once"
        controls = self._controls.get(table.target, Controls())
        if controls.paused or controls.rows_per_second == 0:
            return "paused"
        lease = self._leases.get(table.target)
        if lease is not None and lease.alive(datetime.now(UTC)):
            return f"run {lease.run_id} is working on it"
        tags = {f"{TABLE_TAG}/{table.name}": "true"}
        if self.instance.get_runs_count(dg.RunsFilter(tags=tags, statuses=UNFINISHED)):
            return "a run of it has not ended"
        return look, look.record

    def _has_work(self, table: Declared, record: CommitRecord) -> bool:
        parts = self.workspace.table(table).parts
        return parts.decider.waits(parts.position(record), live=record.live)

    def _live_views(self, source: KafkaSource, taken: Collection[dg.AssetKey]) -> list[Declared]:
        """The views that are refreshed together with their source: not those of another run, nor those still backfilling."""
        return [
            view
            for view in self.workspace.declared.values()
            if isinstance(view, MaterializedView)
            and source in view.upstreams
            and view.key not in taken
            and self._is_live(view)
        ]

    def _is_live(self, view: MaterializedView) -> bool:
        try:
            seen = self._ready(view)
        except BackfillError:  # reported when it is the view's own turn; it does not prevent the refresh of its source
            return False
        return not isinstance(seen, str) and seen[1].live

    def _request(self, tables: list[Declared], look: TableState, record: CommitRecord) -> dg.RunRequest | str:
        transition = f"{record.target}@{record.incarnation}:{record.epoch}"
        filters = dg.RunsFilter(tags={TRANSITION_TAG: transition}, statuses=_FINISHED)
        tries = self.instance.get_runs_count(filters)
        if tries:
            (last,) = self.instance.get_run_records(filters, limit=1)
            ended = last.end_time or last.update_timestamp.timestamp()
            wait = ended + BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)] - datetime.now(UTC).timestamp()
            if wait > 0:
                return f"its last {tries} runs did not get beyond epoch {record.epoch}; the next comes in {wait:.0f} s"
        return dg.RunRequest(
            run_key=f"{transition}:{look.version}:{tries}",
            asset_selection=[each.key for each in tables],
            tags={
                CHEAP_TAG: "since_last_pass",
                TRANSITION_TAG: transition,
                **{f"{TABLE_TAG}/{each.name}": "true" for each in tables},
            },
        )
