"""How far a view is behind its Delta tables, and the bound of that, in the position after an epoch."""

from collections.abc import Mapping

from backfill_assets.core.epoch.ports import UpstreamState
from backfill_assets.core.progress.lag import TimeBound
from backfill_assets.core.progress.positions import SnapshotPosition

__all__ = ["bounded", "lagging"]


def lagging(position: SnapshotPosition, offers: Mapping[str, UpstreamState]) -> SnapshotPosition:
    """The position, with the lag of what was consumed, or captured to be consumed."""
    return position.model_copy(update={"lag_ms": _behind(position, offers), "lag_commits": _waiting(position, offers)})


def bounded(before: SnapshotPosition, after: SnapshotPosition, offers: Mapping[str, UpstreamState]) -> SnapshotPosition:
    """The position, with its lag and its bound, which is set when the change log begins and then only shrinks."""
    after = lagging(after, offers)
    lag, waiting = after.lag_ms, after.lag_commits
    if isinstance(before.bound, TimeBound):
        elapsed = max(after.tables[name].commit_ms - table.commit_ms for name, table in before.tables.items())
        step, pending, at_first = max(0, elapsed), lag, _behind(before, offers)
    else:
        step, pending, at_first = _waiting(before, offers) - waiting, waiting, _waiting(before, offers)
    bound = before.bound.start(at_first) if before.bound.max_lag is None else before.bound
    return after.model_copy(update={"bound": bound.consumed(step, pending)})


def _behind(position: SnapshotPosition, offers: Mapping[str, UpstreamState]) -> int:
    return max(0, *(offer.commit_ms - position.tables[name].held[1] for name, offer in offers.items()))


def _waiting(position: SnapshotPosition, offers: Mapping[str, UpstreamState]) -> int:
    return sum(offer.version - position.tables[name].held[0] for name, offer in offers.items())
