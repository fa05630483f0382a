"""Strategy `snapshot_once`: the whole snapshot in one commit, then the change log with a lag counted in commits.

Readers see nothing before the snapshot is complete. There is nothing to resume: if a creation was planned and not committed
when a run begins, it is replaced by a new life over the versions that are newest then (`run.create_if_missing`).
"""

from dataclasses import dataclass, field, replace

from backfill_assets.core.epoch.ports import EVERYTHING
from backfill_assets.core.progress.lag import CountBound, LagBound
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.strategies.snapshot import SnapshotHistory
from backfill_assets.core.strategies.table_views import EpochBudget, Step

__all__ = ["SnapshotOnceHistory"]


@dataclass(frozen=True, kw_only=True)
class SnapshotOnceHistory(SnapshotHistory):
    """`History` over all data files of the pinned versions at once."""

    bound: LagBound = field(default_factory=CountBound)
    resumable: bool = False

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """Every file of every table, whatever the budget and the order: otherwise a part of it would be visible."""
        return super().read(position, replace(turn, names=sorted(position.tables), budget=EVERYTHING))
