"""What can be done with a declared table: refresh, reset, drop, maintain, rebuild the ledger, tell how it is.

The Dagster shell and the command line both call these, so that they behave the same.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from backfill_assets.adapters.delta.staging import delete_data, spooled_folders, sweep
from backfill_assets.adapters.spark.resource import do_nothing
from backfill_assets.app.choosing import choice_of
from backfill_assets.app.dependents import check_unneeded, expire_log
from backfill_assets.app.heartbeat import Heartbeat, Listener
from backfill_assets.app.workspace import Table, Workspace
from backfill_assets.core.choice.choose import Choice
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.ports import Controls, NextEpoch
from backfill_assets.core.epoch.protocol import begin_life, check_look, end_life, restate
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.core.epoch.report import PartitionProgress, Progress, TableProgress, partitions_of, progress_of
from backfill_assets.core.epoch.run import RunReport, create_if_missing, plan_next, run
from backfill_assets.core.epoch.skips import LeftOut, standings
from backfill_assets.declare.declarations import KafkaSource, MaterializedView
from backfill_assets.errors import BackfillError, DeclarationError, DroppedError, FencedError, LeaseHeldError

__all__ = [
    "Listener",
    "Planned",
    "Refresh",
    "Status",
    "drop",
    "maintain",
    "plan",
    "rebuild",
    "refresh",
    "reset",
    "set_controls",
    "status",
]

RATE_EPOCHS = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """One refresh: what the run did and how the table stands after it.

    `first_live`: this refresh is the first that found or brought the table live, so readers may start.
    """

    target: str
    report: RunReport
    first_live: bool
    progress: Progress
    partitions: list[PartitionProgress]
    tables: list[TableProgress] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Status:
    """How a declared table stands. `progress` is None while it has not been created; `problem` is what hides the rest.
    `left_out` are the rows that an operator has it leave out, or wants it to."""

    name: str
    target: str
    state: str
    controls: Controls
    progress: Progress | None = None
    partitions: list[PartitionProgress] = field(default_factory=list)
    tables: list[TableProgress] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problem: str = ""

    def queued(self) -> "Status":
        """The same of a table that a submitted run is about to work on."""
        at_rest = self.state in {"not created", "dropped", "waiting", "idle"}
        return replace(self, state="queued") if at_rest else self


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a refresh would do. `record`: the newest commit (None: not created yet); `step`: the next epoch, which should
    take `expected_seconds` (None: nothing to do); `choice`: the strategy of a new life, of a view that is not live."""

    record: CommitRecord | None
    step: NextEpoch | None
    choice: Choice | None
    expected_seconds: float

    def document(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "exists": self.record is not None,
            "epoch": self.record.epoch if self.record else None,
            "reads": [read.model_dump(mode="json") for read in self.step.reads] if self.step else [],
            "expected_seconds": self.expected_seconds,
            "choice": self.choice.model_dump(mode="json") if self.choice else None,
        }


def refresh(
    workspace: Workspace,
    name: str,
    limits: Limits,
    *,
    run_id: str,
    listener: Listener | None = None,
) -> Refresh:
    """Create a table if need be, then work epoch by epoch until it has caught up or something stops it.

    Another living run of the same table makes this one stop at once (`Stop.LEASE_HELD`); a dead one's lease is taken
    over.
    """
    listener = listener or Listener()
    table = workspace.table(workspace.find(name))
    lease = workspace.state.lease(table.target)
    if lease is not None and lease.run_id != run_id and lease.alive(datetime.now(UTC)):
        return _held(workspace, table, lease.run_id)
    taken_over = lease is not None and lease.held and lease.run_id != run_id
    if lease is not None and taken_over:
        listener.on_takeover(lease.run_id)
    beat = Heartbeat(
        workspace=workspace,
        table=table,
        run_id=run_id,
        listener=listener,
        endless=limits.until == "forever",
        yields_to_views=limits.yield_to_views,
    )
    workspace.runner.on_wait = beat.beat
    if taken_over or limits.until == "forever":
        beat.beat()
    try:
        look = _at_work_on(table)
        if look.record is not None and not look.record.live:
            beat.beat()  # before it plans: another run might take what it plans for a dead run's, and begin anew
        # A run that died may have left staged files, even of an epoch that it or another one committed.
        beat.tidy_due = taken_over or _left_behind(table, look)
        beat.spooled = _spooled(look)
        done = run(table.parts, look, limits, beat)
        if taken_over and beat.tidy_due:  # no epoch came, and nobody else will know that a run died here
            sweep(table.output.location, table.output.look)
        first_live = _made_live(table, done)
    finally:
        workspace.runner.on_wait = do_nothing
        if beat.held:
            _give_back(workspace, table, run_id)
    return _refresh(workspace, table, done, first_live=first_live)


def plan(workspace: Workspace, name: str, limits: Limits) -> Planned:
    """What a refresh would do next, and for a view that is not live the strategy that a new life takes; writes nothing.

    Errors: what choosing and deciding raise, such as `UpstreamRefusedError`.
    """
    declared = workspace.find(name)
    table = workspace.table(declared)
    look = table.output.look()
    record = look.record if look.exists else None
    step = None if record is None else plan_next(table.parts, record, limits)
    choice = None
    if isinstance(declared, MaterializedView) and (record is None or not record.live):
        choice = choice_of(workspace, declared)
    expected = 0.0 if step is None else table.parts.costs().expected_seconds(step.reads)
    return Planned(record=record, step=step, choice=choice, expected_seconds=expected)


def reset(workspace: Workspace, name: str) -> CommitRecord:
    """Begin a new life: all data goes in one commit, and the next refresh reads history anew."""
    table = workspace.table(workspace.find(name))
    base = table.output.look_for_reset()
    if not base.exists and (base.record is not None or not table.output.is_ours()):
        raise DroppedError(
            f"{table.target} does not exist, so there is nothing to reset", hint=f"`backfill refresh {name}` creates it"
        )
    table.schema()
    record = begin_life(table.parts, base, table.parts.decider.begin(), incarnation=table.parts.new_id())
    table.output.set_status("creating")  # the next refresh says that it is live, if only that
    sweep(table.output.location, table.output.look)
    return record


def drop(workspace: Workspace, name: str) -> None:
    """End a table's life: data, staged files, plans and settings go; a marker stays in the table's log."""
    table = workspace.table(workspace.find(name))
    base = table.output.look()
    past = workspace.state.ledger().incarnations(table.target)  # before it ends: none that may begin afterwards
    if base.exists:
        end_life(table.parts, base)
    if base.record is not None:
        table.output.set_status("dropped")
        if not delete_data(table.output.location, table.output.look):
            return  # begun anew in the meantime: what is there now belongs to that life
        workspace.state.forget(table.target, past)


def maintain(workspace: Workspace, name: str, *, vacuum_hours: int | None = None) -> list[str]:
    """Keep a table's files few: sweep staged files, restate its positions, expire its log, compact, vacuum if asked to. And
    its log true: bounds of files that are not exact go, whoever wrote them.

    Files are swept first, as the log tells which of them were committed; then the positions are said again, so that they
    outlive the log's older entries. Errors: `StillNeededError`, before anything is done, where vacuuming would take what a
    view has still to read.
    """
    table = workspace.table(workspace.find(name))
    if not table.output.look().exists:
        return []
    if vacuum_hours is not None:
        check_unneeded(workspace, name, hours=vacuum_hours)
    swept = sweep(table.output.location, table.output.look)
    table.output.keep_bounds(thoroughly=True)
    look = table.output.look()  # what is committed is made on the look before it
    try:
        restate(table.parts, look)
    except FencedError:
        if table.output.look().life != look.life:
            raise
        _log.info("%s: an epoch came in between, which says the positions as well", table.target)
    expire_log(workspace, table)
    if look.record is not None:
        workspace.state.ledger().prune(look.record)
    table.output.compact(2)
    if vacuum_hours is not None:
        table.output.vacuum(vacuum_hours)
    return swept


def rebuild(workspace: Workspace) -> list[str]:
    """Enter every existing table's newest commit into the ledger, where it is not known there."""
    rebuilt = []
    for declared in workspace.declared.values():
        table = workspace.table(declared)
        look = table.output.look()
        if look.record is not None and look.exists:
            workspace.state.ledger().rebuild(look.record)
            rebuilt.append(table.target)
    return rebuilt


def set_controls(
    workspace: Workspace, name: str, *, paused: bool | None = None, throttle: float | str | None = None, by: str
) -> Controls:
    """Pause or resume a table, or set its throttle (rows per second, or `"off"`); what is not named stays."""
    target = workspace.find(name).target
    controls = workspace.state.controls(target)
    if paused is not None:
        controls = replace(controls, paused=paused)
    if throttle is not None:
        rate = None if throttle == "off" else float(throttle)
        if rate is not None and not (math.isfinite(rate) and rate >= 0):
            raise DeclarationError(
                f"throttle of {name!r}: expected rows per second, 0 or more, found {throttle!r}",
                hint="use a finite number, or 'off' for no limit",
                argument="rows_per_second",
            )
        controls = replace(controls, rows_per_second=rate)
    workspace.state.set_controls(target, controls, by=by)
    return controls


def status(workspace: Workspace, name: str) -> Status:
    """How a table stands, from its own commits, the state store and one look at its upstreams."""
    table = workspace.table(workspace.find(name))
    controls = workspace.state.controls(table.target)
    lease = workspace.state.lease(table.target)
    running = lease is not None and lease.alive(datetime.now(UTC))
    known = Status(name=name, target=table.target, state="starting" if running else "not created", controls=controls)
    try:
        look = table.output.look()
    except BackfillError as error:
        return replace(known, state="broken", problem=error.message)
    if look.record is None or not look.exists:
        known = replace(known, left_out=standings(None, workspace.state.skips(table.target)))
        absent = known if running or look.record is None else replace(known, state="dropped")
        return absent if running else _waiting(workspace, table, absent)
    lag, problem = _lag(table, look.record)
    progress = progress_of(table.output.records(RATE_EPOCHS), lag)
    return replace(
        known,
        state="paused" if controls.paused else ("running" if running else "idle"),
        progress=progress,
        tables=_tables(workspace, table, look.record, lag, progress),
        partitions=[] if lag is None else partitions_of(look.record.position, lag, source=name),
        left_out=standings(look.record.position, workspace.state.skips(table.target)),
        problem=problem,
    )


def _waiting(workspace: Workspace, table: Table, absent: Status) -> Status:
    """How a table stands that does not exist: a view may wait for another one, or be kept from its upstreams."""
    declared = table.declared
    if not isinstance(declared, MaterializedView) or not declared.tables:
        return absent
    try:
        awaited = workspace.reads(declared).awaits()
    except BackfillError as error:
        return replace(absent, problem=error.message)
    return replace(absent, state="waiting", problem=awaited) if awaited else absent


def _at_work_on(table: Table) -> TableState:
    """The table as it stands, created if need be, saying that it is in creation as long as it is not live, and of its
    files only what is exact."""
    look = create_if_missing(table.parts, table)
    if look.record is not None and (look.record.epoch == 0 or spooled_folders(table.output.location) - _spooled(look)):
        # what a creation that was given up had staged, or a run that died had drained
        sweep(table.output.location, table.output.look)
        look = check_look(table.parts, table.output.look())
    if look.record is None:
        return look
    changed = not look.record.live and table.output.set_status("creating")
    # A life that has just begun may have other columns than the one before.
    changed |= table.output.keep_bounds(thoroughly=look.record.epoch == 0)
    return check_look(table.parts, table.output.look()) if changed else look


def _made_live(table: Table, done: RunReport) -> bool:
    """Let the table say that it is live, if it is and this run may speak for it; tells whether it said otherwise."""
    if done.stopped is Stop.FENCED or not done.record.live:
        return False
    look = table.output.look()
    if look.life != (done.record.incarnation, True):
        return False
    return table.output.set_status("live")


def _give_back(workspace: Workspace, table: Table, run_id: str) -> None:
    """Give the lease back, unless a successor has taken it over."""
    lease = workspace.state.lease(table.target)
    if lease is not None and lease.run_id == run_id:
        workspace.state.put_lease(table.target, run_id, held=False)


def _lag(table: Table, record: CommitRecord) -> tuple[Mapping[str, int] | None, str]:
    """The lag by partition; None, and why, where upstreams cannot be asked."""
    try:
        return table.parts.decider.lag(record.position), ""
    except BackfillError as error:
        return None, error.message


def _refresh(workspace: Workspace, table: Table, done: RunReport, *, first_live: bool) -> Refresh:
    lag, _ = _lag(table, done.record)
    records = [*reversed(done.epochs[-RATE_EPOCHS:])] or [done.record]
    name = table.declared.name
    progress = progress_of(records, lag)
    tables = _tables(workspace, table, done.record, lag, progress)
    for each in tables:
        if each.level != "safe":
            _log.warning("%s: %s: %s", table.target, each.upstream, each.forecast)
    return Refresh(
        target=table.target,
        report=done,
        first_live=first_live,
        progress=progress,
        tables=tables,
        left_out=standings(done.record.position, workspace.state.skips(table.target)),
        partitions=partitions_of(
            done.record.position, lag or {}, source=name if isinstance(table.declared, KafkaSource) else ""
        ),
    )


def _tables(
    workspace: Workspace, table: Table, record: CommitRecord, lag: Mapping[str, int] | None, progress: Progress
) -> list[TableProgress]:
    """Where a view stands in its Delta tables; nothing where there are none, or where they cannot be asked."""
    if lag is None or not isinstance(table.declared, MaterializedView) or not table.declared.tables:
        return []
    return workspace.reads(table.declared).progress(record, lag, progress.rows_per_second)


def _held(workspace: Workspace, table: Table, holder: str) -> Refresh:
    look = table.output.look()
    if look.record is None:
        raise LeaseHeldError(
            f"{table.target}: run {holder} is creating it at this moment", hint="wait for that run, or end it"
        )
    report = RunReport(record=look.record, stopped=Stop.LEASE_HELD, detail=f"run {holder} is at work on it")
    return _refresh(workspace, table, report, first_live=False)


def _spooled(look: TableState) -> set[str]:
    """The staged folders in the view's spool that its newest commit needs."""
    return set(look.record.spooled.values()) if look.record is not None else set()


def _left_behind(table: Table, look: TableState) -> bool:
    """Whether a run planned an epoch that was not committed: it may have left staged files."""
    record = look.record
    return (
        record is not None
        and table.parts.ledger.newest(record.target, record.incarnation, since=record.epoch) == record.epoch + 1
    )
