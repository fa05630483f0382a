"""A refresh: creates a table if necessary, then works epoch by epoch until it has caught up or something stops it.

The Dagster shell and the command line both call this, so they behave in the same way.
"""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

from backfill_assets.adapters.delta.staging import spooled_folders, sweep
from backfill_assets.adapters.runtime.garbage import pass_over_what_is_loaded
from backfill_assets.adapters.spark.resource import do_nothing
from backfill_assets.app.heartbeat import Heartbeat, Listener
from backfill_assets.app.status import RATE_EPOCHS, lag_of
from backfill_assets.app.table_progress import table_progress
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import TableState
from backfill_assets.core.epoch.report import PartitionProgress, Progress, TableProgress, partitions_of, progress_of
from backfill_assets.core.epoch.run import RunReport, create_if_missing, run
from backfill_assets.core.epoch.skips import LeftOut, Skip, rows_left_out
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.declare.model import KafkaSource
from backfill_assets.errors import LeaseHeldError

__all__ = ["Refresh", "refresh"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """One refresh: what the run did, and the state of the table after it.

    `first_live`: this refresh is the first after which the table is live, so readers may start.
    """

    target: str
    report: RunReport
    first_live: bool
    progress: Progress
    partitions: list[PartitionProgress]
    tables: list[TableProgress] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def refresh(
    workspace: Workspace,
    name: str,
    limits: Limits,
    *,
    run_id: str,
    listener: Listener | None = None,
) -> Refresh:
    """Create a table if necessary, then work epoch by epoch until it has caught up or something stops it.

    If another run of the same table is alive, this one stops at once (`Stop.LEASE_HELD`); the lease of a dead run is taken
    over.
    """
    pass_over_what_is_loaded()
    listener = listener or Listener()
    table = workspace.table(workspace.registry.find(name))
    workspace.prepare_to_write()
    lease = workspace.state.lease(table.target)
    if lease is not None and lease.run_id != run_id and lease.alive(datetime.now(UTC)):
        return _held(workspace, table, lease.run_id)
    taken_over = lease is not None and lease.run_id != run_id
    if lease is not None and taken_over:
        listener.on_takeover(lease.run_id)
    heartbeat = Heartbeat(
        workspace=workspace,
        table=table,
        run_id=run_id,
        listener=listener,
        endless=limits.until == "forever",
        yields_to_views=limits.yield_to_views,
    )
    workspace.runner.on_wait = heartbeat.renew_lease
    if taken_over or limits.until == "forever":
        heartbeat.renew_lease()
    try:
        look = _at_work_on(table)
        if look.record is not None and not look.record.live:
            heartbeat.renew_lease()  # before planning: otherwise another run might take the plan for a dead run's
        # A dead run may have left staged files, even of an epoch that it or another run committed.
        heartbeat.tidy_due = taken_over
        heartbeat.spooled = _spooled(look)
        done = run(table.parts, look, limits, heartbeat)
        if taken_over and heartbeat.tidy_due:  # there was no epoch, and otherwise nobody learns that a run died here
            sweep(table.output.location, table.output.look)
        first_live = _made_live(table, done)
        if done.epochs or first_live:
            table.output.location.followed.keep()
    finally:
        workspace.runner.on_wait = do_nothing
        if heartbeat.held:
            workspace.state.release_lease(table.target, run_id)
    return _refresh(workspace, table, done, first_live=first_live)


def _at_work_on(table: Table) -> TableState:
    """The table, created if necessary, with status `creating` as long as it is not live, and with only exact bounds in
    its log."""
    look = create_if_missing(table.parts, table)
    if look.record is not None and (look.record.epoch == 0 or _drained(table, look)):
        # staged by a creation that was given up, or drained by a run that died
        sweep(table.output.location, table.output.look)
        look = check_look(table.parts, table.output.look(), redefines=True)
    if look.record is None:
        return look
    changed = not look.record.live and table.output.set_status("creating")
    # A new life may have other columns than the one before.
    changed |= table.output.keep_bounds(thoroughly=look.record.epoch == 0)
    return check_look(table.parts, table.output.look(), redefines=True) if changed else look


def _made_live(table: Table, done: RunReport) -> bool:
    """Set the table's status to live, if it is live and this run may do so; returns whether anything changed."""
    if done.stopped is Stop.FENCED or not done.record.live or table.output.has_status("live"):
        return False
    look = table.output.look()
    if look.life != (done.record.incarnation, True):
        return False
    return table.output.set_status("live")


def _refresh(workspace: Workspace, table: Table, done: RunReport, *, first_live: bool) -> Refresh:
    lag, _ = lag_of(table, done.record)
    records = [*reversed(done.epochs[-RATE_EPOCHS:])] or [done.record]
    name = table.declared.name
    progress = progress_of(records, lag)
    tables = table_progress(workspace, table, done.record, lag, progress)
    for each in tables:
        if each.retention_risk != "safe":
            _log.warning("%s: %s: %s", table.target, each.upstream, each.forecast)
    return Refresh(
        target=table.target,
        report=done,
        first_live=first_live,
        progress=progress,
        tables=tables,
        left_out=rows_left_out(done.record.position, _skips(workspace, table)),
        partitions=partitions_of(
            done.record.position, lag or {}, source=name if isinstance(table.declared, KafkaSource) else ""
        ),
    )


def _skips(workspace: Workspace, table: Table) -> list[Skip]:
    """The rows that the operator wants a view to leave out, as this run planned with them; nobody leaves out of a source."""
    return [] if isinstance(table.declared, KafkaSource) else workspace.state.skips(table.target, again=False)


def _held(workspace: Workspace, table: Table, holder: str) -> Refresh:
    look = table.output.look()
    if look.record is None:
        raise LeaseHeldError(f"{table.target}: run {holder} is creating it now", hint="wait for that run, or end it")
    report = RunReport(record=look.record, stopped=Stop.LEASE_HELD, detail=f"run {holder} is working on it")
    return _refresh(workspace, table, report, first_live=False)


def _drained(table: Table, look: TableState) -> set[str]:
    """The staged folders in the view's spool that its newest commit does not need; only views over tables have a spool."""
    over_tables = look.record is not None and isinstance(look.record.position, SnapshotPosition)
    return spooled_folders(table.output.location) - _spooled(look) if over_tables else set()


def _spooled(look: TableState) -> set[str]:
    """The staged folders in the view's spool that its newest commit needs."""
    return set(look.record.spooled.values()) if look.record is not None else set()
