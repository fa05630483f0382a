"""Whether a Delta table is still the one that a view has read: the same life of it, not restored and written to again."""

from collections.abc import Callable

from backfill_assets.core.epoch.ports import UpstreamState
from backfill_assets.core.progress.positions import TablePosition
from backfill_assets.errors import UpstreamChangedError

__all__ = ["check_same"]


def check_same(
    view: str, name: str, position: TablePosition, offer: UpstreamState, timestamp: Callable[[int], int | None]
) -> None:
    """Refuse a table that is not the one of a position; `timestamp` returns when a version was committed.

    Errors: `UpstreamChangedError`.
    """
    redo = (
        f"`backfill replace {view}` builds it anew over the present table, beside the rows that it has; "
        f"`backfill reset {view}` empties it first"
    )
    if offer.table_id != position.table_id:
        raise UpstreamChangedError(
            f"view {view!r}: table {name!r} is not the one that the view was built from: expected table id "
            f"{position.table_id}, found {offer.table_id}",
            hint=f"restore the old table, or {redo}",
            expected=position.table_id,
            found=offer.table_id,
        )
    if offer.incarnation != position.incarnation:
        raise UpstreamChangedError(
            f"view {view!r}: {name!r} was reset, replaced, put back or dropped since, so its rows are no longer those that "
            f"the view has followed: expected incarnation {position.incarnation}, found {offer.incarnation}",
            hint=redo,
            expected=position.incarnation,
            found=offer.incarnation,
        )
    version, commit_ms = position.held  # what was captured is as much of that history as what was consumed
    if offer.version < version:
        raise UpstreamChangedError(
            f"view {view!r}: table {name!r} was restored to version {offer.version}; the view has consumed or "
            f"captured it up to version {version}",
            hint=f"restore the table's newer versions, or {redo}",
            expected=version,
            found=offer.version,
        )
    stated = timestamp(version)
    if stated not in {None, commit_ms}:
        raise UpstreamChangedError(
            f"view {view!r}: table {name!r} was restored to an older version and written to again: the view has consumed or "
            f"captured a version {version} that was committed at {commit_ms}; the present one was committed at {stated} "
            "(milliseconds since 1970)",
            hint=f"restore the versions that were lost, or {redo}",
            expected=commit_ms,
            found=stated,
        )
