"""Which view, catching up in another run, a table is to wait for; asked only where that was opted into.

Only views at work count: a paused one does not move, a dead one would be waited for in vain, and one of the same run
comes later by itself.
"""

from datetime import UTC, datetime

from backfill_assets.backfill.positions import SnapshotPosition
from backfill_assets.errors import BackfillError
from backfill_assets.model import MaterializedView
from backfill_assets.workspace import Workspace

__all__ = ["awaited_view"]


def awaited_view(workspace: Workspace, name: str, *, run_id: str) -> str:
    """Why table `name` is to wait, in a sentence that names the view; empty if it may go on."""
    leases = workspace.state.leases()
    for view in workspace.declared.values():
        if not isinstance(view, MaterializedView) or name not in {each.name for each in view.tables}:
            continue
        lease = leases.get(view.target)
        if lease is None or lease.run_id == run_id or not lease.alive(datetime.now(UTC)):
            continue
        if workspace.state.controls(view.target).paused:
            continue
        if lags := _lag_over_bound(workspace, view):
            return f"view {view.name!r} catches up in run {lease.run_id}: {lags}"
    return ""


def _lag_over_bound(workspace: Workspace, view: MaterializedView) -> str:
    try:
        record = workspace.upstream(view).output.look().record
    except BackfillError:  # what is wrong with a reader is told by its own run, and holds up nobody else
        return ""
    position = record.position if record is not None and not record.live else None
    return position.behind if isinstance(position, SnapshotPosition) else ""
