"""What the views that read a table need from it: to wait for one that catches up, and to keep what they still need."""

import logging
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from backfill_assets.adapters.state.state_store import Lease
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import BackfillError, EnvironmentSetupError, StillNeededError, StoredFormatError

__all__ = ["awaited_view", "check_unneeded", "expire_log"]

_log = logging.getLogger(__name__)


def awaited_view(workspace: Workspace, name: str, *, run_id: str) -> str:
    """The view that catches up in another run and that table `name` has to wait for, in a sentence; empty if there is none.

    Only views that a run works on count: a paused view does not move, a dead run would be waited for endlessly, and a view
    of the same run comes later anyway.
    """
    leases = workspace.state.leases()
    for view in workspace.registry.readers(name):
        with suppress(StoredFormatError):  # as below
            if awaited := _awaited(workspace, view, leases.get(view.target), run_id=run_id):
                return awaited
    return ""


def _awaited(workspace: Workspace, view: MaterializedView, lease: Lease | None, *, run_id: str) -> str:
    if lease is None or lease.run_id == run_id or not lease.alive(datetime.now(UTC)):
        return ""
    record = None if workspace.state.controls(view.target).paused else _record(workspace, view)
    if record is None or record.live or not isinstance(record.position, SnapshotPosition):
        return ""
    behind = record.position.behind
    return f"view {view.name!r} catches up in run {lease.run_id}: {behind}" if behind else ""


def check_unneeded(workspace: Workspace, name: str, *, hours: int) -> None:
    """Refuse to delete files of table `name` that it has not used for `hours` if a view still has to read them.

    Errors: `StillNeededError`, naming the view.
    """
    newest = workspace.upstream(workspace.registry.find(name)).output.look().version
    for view, read in _positions(workspace, name):
        version, commit_ms = _needed_since(read)
        behind = time.time() - commit_ms / 1000
        if behind <= hours * 3600:
            continue
        # After the pinned version only the change log is needed, and no files of versions that are only maintenance.
        if read.reads_pinned or any(each.rows for each in workspace.inputs(view).tables[name].commits(version, newest)):
            raise StillNeededError(
                f"{name!r} cannot be vacuumed of what is older than {hours} h: view {view.name!r} has read it up to version "
                f"{version} of {newest}, which is {behind / 3600:.1f} h old",
                hint=f"`backfill refresh {view.name}` first, or keep at least {int(behind / 3600) + 1} h",
                view=view.name,
                version=version,
            )


def expire_log(workspace: Workspace, table: Table) -> None:
    """Delete entries of a table's log beyond its retention, unless a view still has to continue from a version as old.

    This is only done if the newest version is an epoch, or repeats the positions: it is never deleted itself, and an epoch
    in progress is based on nothing older than the epoch before it. A view goes through every version, including maintenance,
    so none may be missing.
    """
    look = table.output.look()
    kept = table.output.log_retention()
    if look.at != look.version or not math.isfinite(kept):
        return
    oldest = time.time() - kept
    for view, read in _positions(workspace, table.declared.name):
        version, commit_ms = _needed_since(read)
        if (read.reads_pinned or version < look.version) and commit_ms / 1000 < oldest:
            _log.info("%s: its log stays, as %s has read it up to version %d only", table.target, view.target, version)
            return
    table.output.expire_log()


def _needed_since(read: TablePosition) -> tuple[int, int]:
    """The version of a table from which a view continues, and when it was committed (milliseconds since 1970)."""
    return (read.version, read.commit_ms) if read.reads_pinned else read.held


def _positions(workspace: Workspace, name: str) -> Iterator[tuple[MaterializedView, TablePosition]]:
    """The views that read table `name`, and their replacements that are not finished, each with its position in it."""
    for view in workspace.registry.readers(name):
        for record in (_record(workspace, view), _record(workspace.beside(view, "replacements"), view)):
            if record is not None and isinstance(record.position, SnapshotPosition) and name in record.position.tables:
                yield view, record.position.tables[name]


def _record(workspace: Workspace, view: MaterializedView) -> CommitRecord | None:
    """The newest commit of an existing view; None if it does not exist or cannot be read. An error of the store is raised,
    because what the view needs is unknown then."""
    try:
        look = workspace.upstream(workspace.registry.find(view.name)).output.look()
    except EnvironmentSetupError:
        raise
    except BackfillError:  # a problem of a reader is reported by its own run, and stops nobody else
        return None
    return look.record if look.exists else None
