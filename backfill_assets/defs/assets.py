"""Sources and views as software-defined assets: one multi-asset, so that any selection is one step in one process.

So a run over a source and its views shares one Spark session and one order (sources first), and a source without new data
does not make Dagster skip its views. This module is only wiring; `app.refresh` does the work.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from pydantic import Field
from sqlglot import transpile

from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.store_errors import mask
from backfill_assets.app.dry_run import plan
from backfill_assets.app.heartbeat import Listener
from backfill_assets.app.refresh import Refresh, refresh
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import DEFAULT_CHUNK_ROWS, Limits, Stop
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.declare.model import Declared, DeltaTable, KafkaSource, MaterializedView
from backfill_assets.defs.carried_checks import carried_checks
from backfill_assets.defs.dead_runs import mark_run, report_dead_runs
from backfill_assets.defs.metadata import epoch_metadata, held_metadata, plan_metadata, refresh_metadata, summary_line
from backfill_assets.defs.table_metadata import table_metadata, table_name
from backfill_assets.errors import BackfillError, DeclarationError, LeaseHeldError, UpstreamNotLiveError

__all__ = [
    "OP_NAME",
    "RESOURCE_KEYS",
    "TABLES_KEY",
    "DeclaredTables",
    "RefreshConfig",
    "build_assets",
    "in_order",
    "workspace_in",
    "workspace_of",
]

RESOURCE_KEYS = {"backfill_state", "backfill_kafka", "backfill_spark"}

OP_NAME = "backfill_refresh"
TABLES_KEY = "backfill_tables"


class RefreshConfig(dg.Config):
    """What one run may do with each table that it refreshes."""

    max_seconds: float | None = Field(default=None, gt=0, description="Stop after this long; None: no limit.")
    max_rows: int | None = Field(default=None, gt=0, description="Stop after this many rows; None: no limit.")
    chunk_rows: int = Field(default=DEFAULT_CHUNK_ROWS, gt=0, description="Maximum number of rows in one epoch.")
    rows_per_second: float | None = Field(
        default=None,
        ge=0,
        description="Throttle of this run, capped by the stored one; None: no limit, 0: no rows.",
    )
    until: Literal["caught_up", "forever"] = Field(default="caught_up", description="`forever` only for one table.")
    dry_run: bool = Field(default=False, description="Only show what would be read next.")
    yield_to_views: bool = Field(
        default=False,
        description="End early while a view that reads this table is behind its lag bound in another run.",
    )

    def limits(self) -> Limits:
        """The same as a plain value."""
        return Limits(
            max_seconds=self.max_seconds,
            max_rows=self.max_rows,
            chunk_rows=self.chunk_rows,
            rows_per_second=self.rows_per_second,
            until=self.until,
            dry_run=self.dry_run,
            yield_to_views=self.yield_to_views,
        )


def workspace_of(resources: object, declared: Mapping[str, Declared]) -> Workspace:
    """The declared tables over a run's resources."""
    store: StateStore = getattr(resources, "backfill_state")  # noqa: B009  (generated attributes)
    kafka: KafkaConnector = getattr(resources, "backfill_kafka")  # noqa: B009
    spark: SparkResource = getattr(resources, "backfill_spark")  # noqa: B009
    return Workspace(declared=declared, store=store, kafka=kafka, spark=spark)


def workspace_in(definitions: dg.Definitions) -> Workspace:
    """The declared tables of built definitions, with their own resources; for use outside a run."""
    resources = definitions.resources or {}
    if TABLES_KEY not in resources:
        raise DeclarationError(
            "these definitions have no sources or views",
            hint="make them with build_definitions(...)",
            argument="declared",
        )
    return Workspace(
        declared=resources[TABLES_KEY].tables,
        store=resources["backfill_state"],
        kafka=resources["backfill_kafka"],
        spark=resources["backfill_spark"],
    )


@dataclass(frozen=True)
class DeclaredTables:
    """The declared tables by name, as a resource, so that merged definitions still know them."""

    tables: Mapping[str, Declared]


def build_assets(declared: Mapping[str, Declared]) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets of all declared tables, and the topics that they come from as external assets."""
    ordered = in_order(declared.values())
    names = {each.key: each.name for each in ordered}

    @dg.multi_asset(
        name=OP_NAME,
        specs=[_spec(each) for each in ordered],
        can_subset=True,
        required_resource_keys=RESOURCE_KEYS,
    )
    def backfill_refresh(
        context: dg.AssetExecutionContext, config: RefreshConfig
    ) -> Iterator[dg.AssetObservation | dg.MaterializeResult[None]]:
        selected = [each for each in ordered if each.key in context.selected_asset_keys]
        if config.until == "forever" and len(selected) > 1:
            raise dg.Failure(
                f"until='forever' was asked for {len(selected)} tables at once; such a run can serve only one",
                metadata={"selected": [names[each.key] for each in selected]},
            )
        mark_run(context.instance, context.run.run_id)
        workspace = workspace_of(context.resources, declared)
        failed: list[str] = []
        for each in selected:
            try:
                yield from _refresh(context, workspace, each, config.limits())
            except Exception as error:  # raised again below: one table must not prevent the refresh of the others
                failed.append(_failure(context, each, error))
        if failed:
            raise dg.Failure("\n".join(failed), allow_retries=False)

    return [backfill_refresh, *_externals(ordered)]


def _externals(declared: Iterable[Declared]) -> Iterator[dg.AssetSpec]:
    """External inputs of the tables: topics, and Delta tables without an asset of their own."""
    found: dict[dg.AssetKey, dg.AssetSpec] = {}
    for each in declared:
        if isinstance(each, KafkaSource):
            key = _topic_key(each)
            found[key] = dg.AssetSpec(key, description=f"Kafka topic {each.topic}", kinds={"kafka"})
            continue
        for table in each.tables:
            if isinstance(table, DeltaTable) and table.labels.key is None:
                text = table.labels.description or f"Delta table at {table.path}"
                found[table.key] = dg.AssetSpec(table.key, description=text, kinds={"deltalake"})
    yield from found.values()


def _failure(context: dg.AssetExecutionContext, declared: Declared, error: Exception) -> str:
    """Log an error of one table, and return what the run's failure says about it. Tracebacks are only in the log."""
    mask(error)
    if isinstance(error, BackfillError):
        context.log.error("%s failed: %s", declared.target, error)
        return f"{declared.target}: {error}"
    context.log.exception("%s failed", declared.target)
    return f"{declared.target}: {type(error).__name__}: {error}"


def in_order(declared: Iterable[Declared]) -> list[Declared]:
    """Sources first, and each view after the views that it reads; otherwise in the order of declaration."""
    return sorted(declared, key=_depth)


def _depth(declared: Declared) -> int:
    if isinstance(declared, KafkaSource):
        return 0
    return 1 + max((_depth(each) for each in declared.tables if isinstance(each, MaterializedView)), default=0)


def _refresh(
    context: dg.AssetExecutionContext, workspace: Workspace, declared: Declared, limits: Limits
) -> Iterator[dg.AssetObservation | dg.MaterializeResult[None]]:
    if limits.dry_run:
        yield dg.AssetObservation(declared.key, metadata=plan_metadata(plan(workspace, declared.name, limits)))
        return

    def heartbeat(record: CommitRecord) -> None:
        context.log_event(dg.AssetObservation(declared.key, metadata=epoch_metadata(record)))

    def on_live(record: CommitRecord) -> None:
        context.log_event(dg.AssetMaterialization(declared.key, metadata=epoch_metadata(record)))

    def on_takeover(_run_id: str) -> None:
        report_dead_runs(context.instance, workspace.state, {declared.target}, spare=context.run.run_id)

    listener = Listener(on_commit=heartbeat, on_live=on_live, on_takeover=on_takeover)
    try:
        done = refresh(workspace, declared.name, limits, run_id=context.run.run_id, listener=listener)
    except (LeaseHeldError, UpstreamNotLiveError) as error:
        context.log_event(dg.AssetObservation(declared.key, metadata=held_metadata(error)))
        return
    context.log.info(summary_line(done))
    metadata = refresh_metadata(done)
    if _changed(done):
        record = done.report.record
        yield dg.MaterializeResult(
            asset_key=declared.key,
            metadata=metadata | table_metadata(workspace, declared, done),
            data_version=dg.DataVersion(f"{record.incarnation}:{record.epoch}"),
        )
        return
    if done.report.stopped is not Stop.CAUGHT_UP or done.report.epochs:
        context.log_event(dg.AssetObservation(declared.key, metadata=metadata))
    if not done.report.epochs:
        for evaluation in carried_checks(context.instance, context.run.run_id, declared.key):
            context.log_event(evaluation)


def _changed(done: Refresh) -> bool:
    """Whether readers have something new to read: the table is live, and this run brought it there or further.

    A fenced run does not know the state of the table; the run that fenced it reports that.
    """
    if done.report.stopped is Stop.FENCED:
        return False
    return done.report.record.live and (done.first_live or bool(done.report.epochs))


def _spec(declared: Declared) -> dg.AssetSpec:
    labels = declared.labels
    if isinstance(declared, KafkaSource):
        deps = [_topic_key(declared)]
        text = labels.description or f"Every record of Kafka topic {declared.topic}, once."
        kinds = {"kafka", "deltalake", "spark"}
    else:
        deps = [upstream.key for upstream in declared.upstreams]
        query = transpile(declared.text, read="spark", write="spark", pretty=True)[0]
        text = f"{labels.description or ''}\n\n```sql\n{query}\n```".strip()
        kinds = {"deltalake", "spark", "sql"}
    return dg.AssetSpec(
        declared.key,
        deps=deps,
        skippable=True,
        description=text,
        owners=list(labels.owners),
        tags=dict(labels.tags),
        metadata={"dagster/table_name": table_name(declared), **labels.metadata},
        group_name=labels.group_name,
        automation_condition=labels.automation_condition,
        freshness_policy=labels.freshness_policy,
        kinds=kinds,
    )


def _topic_key(source: KafkaSource) -> dg.AssetKey:
    """The lineage graph shows only the last part of a key, and a source is often named like its topic."""
    return dg.AssetKey(["kafka", f"{source.topic}_topic"])
