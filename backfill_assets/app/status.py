"""The state of a declared table: its progress, its lag, what it waits for, and what stops it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from backfill_assets.app.table_progress import table_progress
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.core.epoch.report import PartitionProgress, Progress, TableProgress, partitions_of, progress_of
from backfill_assets.core.epoch.skips import LeftOut, rows_left_out
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import BackfillError, PositionsLostError

__all__ = ["RATE_EPOCHS", "Status", "lag_of", "status"]

RATE_EPOCHS = 10


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a declared table. `progress` is None until it is created; `problem` says why the rest is unknown.
    `left_out` are the rows that it leaves out, or will leave out, because an operator decided so."""

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
        """The same for a table that a submitted run will work on."""
        at_rest = self.state in {"not created", "dropped", "waiting", "idle"}
        return replace(self, state="queued") if at_rest else self


def status(workspace: Workspace, name: str) -> Status:
    """The state of a table, from its own commits, the state store and one look at its upstreams.

    Errors: `EnvironmentSetupError` if the store of the warehouse cannot be read. What is wrong with this table alone is its
    `problem`.
    """
    declared = workspace.registry.find(name)
    workspace.prepare_to_read()
    try:
        return _stands(workspace, workspace.table(declared))
    except BackfillError as error:
        known = Status(name=name, target=declared.target, state="broken", controls=Controls())
        return replace(known, problem=_problem_text(error))


def _stands(workspace: Workspace, table: Table) -> Status:
    name, look = table.declared.name, _looked(table)
    controls = workspace.state.controls(table.target)
    lease = workspace.state.lease(table.target, again=False)
    running = lease is not None and lease.alive(datetime.now(UTC))
    known = Status(name=name, target=table.target, state="starting" if running else "not created", controls=controls)
    if isinstance(look, PositionsLostError):
        return replace(known, state="broken", problem=_problem_text(look))
    if look.record is None or not look.exists:
        known = replace(known, left_out=rows_left_out(None, workspace.state.skips(table.target, again=False)))
        absent = known if running or look.record is None else replace(known, state="dropped")
        return absent if running else _waiting(workspace, table, absent)
    lag, problem = lag_of(table, look.record)
    progress = progress_of(table.output.records(RATE_EPOCHS), lag)
    return replace(
        known,
        state="paused" if controls.paused else ("running" if running else "idle"),
        progress=progress,
        tables=table_progress(workspace, table, look.record, lag, progress),
        partitions=[] if lag is None else partitions_of(look.record.position, lag, source=name),
        left_out=rows_left_out(look.record.position, workspace.state.skips(table.target, again=False)),
        problem=problem,
    )


def _looked(table: Table) -> TableState | PositionsLostError:
    try:
        return table.output.look()
    except PositionsLostError as error:
        return error


def _problem_text(error: BackfillError) -> str:
    return f"{error.message}. What to do: {error.hint}"


def _waiting(workspace: Workspace, table: Table, absent: Status) -> Status:
    """The state of a table that does not exist: a view may wait for another one, or its upstreams may be refused."""
    declared = table.declared
    if not isinstance(declared, MaterializedView) or not declared.tables:
        return absent
    try:
        awaited = workspace.inputs(declared).upstreams.awaits()
    except BackfillError as error:
        return replace(absent, problem=error.message)
    return replace(absent, state="waiting", problem=awaited) if awaited else absent


def lag_of(table: Table, record: CommitRecord) -> tuple[Mapping[str, int] | None, str]:
    """The lag by partition; None, and why, if upstreams cannot be read."""
    try:
        return table.parts.decider.lag(table.parts.position(record)), ""
    except BackfillError as error:
        return None, error.message
