"""The progress of a view in each Delta table that it reads, with a forecast of whether retention is long enough."""

import time
from collections.abc import Mapping
from dataclasses import replace

from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.wiring.view_inputs import ViewInputs
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.ports import of_kind
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.epoch.report import Progress, TableProgress
from backfill_assets.core.progress.order import waits_for
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.core.progress.retention import forecast
from backfill_assets.core.strategies.arrangement import left_by_key
from backfill_assets.declare.model import MaterializedView

__all__ = ["table_progress"]


def table_progress(
    workspace: Workspace, table: Table, record: CommitRecord, lag: Mapping[str, int] | None, progress: Progress
) -> list[TableProgress]:
    """The progress of a view in its Delta tables; empty if there are none, or if they cannot be read."""
    if lag is None or not isinstance(table.declared, MaterializedView) or not table.declared.tables:
        return []
    return _in_tables(workspace.inputs(table.declared), record, lag, progress.rows_per_second)


def _in_tables(inputs: ViewInputs, record: CommitRecord, lag: Mapping[str, int], rate: float) -> list[TableProgress]:
    """The progress in each table, with a forecast for what still has to be read. `rate` is in rows per second."""
    position = of_kind(record.position, SnapshotPosition)
    unfinished = [name for name, table in position.tables.items() if not table.backfilled]
    found = []
    for name, table in sorted(position.tables.items()):
        progress = _in_table(inputs.tables[name], table, lag.get(name, 0), rate)
        awaited = waits_for(inputs.view.backfill_order, name, unfinished)
        if awaited and not table.backfilled:
            progress = replace(progress, phase="waiting", awaits=awaited)
        found.append(progress)
    return found


def _in_table(upstream: DeltaUpstream, table: TablePosition, lag: int, rate: float) -> TableProgress:
    newest = upstream.now(again=False)  # the lag was that of the same look
    done = table.backfilled and newest.version == table.version
    files, log = upstream.retention()
    captured = (table.held[1] - table.commit_ms) / 1000  # the log is needed from this time on, after the pin
    seen = forecast(
        now=time.time(),
        pinned_at=table.commit_ms / 1000,
        left_rows=lag - left_by_key(table),  # history by key is read from the newest version
        rows_per_second=rate or None,
        file_retention_seconds=files + (captured if table.backfilled else 0),
        log_retention_seconds=log + captured,
    )
    return TableProgress(
        upstream=upstream.name,
        phase="caught up" if done else _phase(table),
        version=table.version,
        newest=newest.version,
        files_read=sum(bucket.next for bucket in table.buckets.values()),
        files=sum(bucket.parts for bucket in table.buckets.values()),
        lag_rows=lag,
        lag_seconds=max(0, newest.commit_ms - table.held[1]) / 1000,
        captured=table.spool.captured if table.spool else None,
        spool_bytes=table.spool.bytes if table.spool else 0,
        retention_risk="safe" if done else seen.risk,
        headroom_seconds=None if done else seen.headroom_seconds,
        forecast="" if done else seen.message,
    )


def _phase(table: TablePosition) -> str:
    if not table.backfilled:
        return "keys" if table.expected else "snapshot"
    return "spool" if table.spool else "change log"
