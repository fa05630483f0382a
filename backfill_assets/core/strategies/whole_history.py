"""The history of a query that is computed over whole tables: strategy `snapshot_once` for queries of any shape.

One epoch reads all rows of all pinned versions, and each later epoch reads all rows of newer versions in the same way.
Tables without rows are read as well, because a query may return rows for empty tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backfill_assets.core.epoch.ports import Tables, UpstreamState
from backfill_assets.core.progress.lag import CountBound, LagBound
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import FullRead, TableRead
from backfill_assets.core.strategies.snapshot import files_of
from backfill_assets.core.strategies.table_views import Begun, EpochBudget, Step, begun

__all__ = ["WholeHistory", "at_once"]


@dataclass(frozen=True, kw_only=True)
class WholeHistory:
    """`table_views.History` over whole pinned versions, each as one part."""

    tables: Tables
    bound: LagBound = field(default_factory=CountBound)
    resumable: bool = False

    def begin(self, offers: Mapping[str, UpstreamState]) -> Begun:
        """Pin the present versions."""
        return Begun.each(offers, lambda name, offer: (begun(offer, [1]), sum(self.tables.files(name, offer.version))))

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether the pinned versions have been read."""
        return position.backfilled

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:  # noqa: ARG002  (`tables.History`)
        """All rows of all tables, whatever the budget."""
        return at_once(position, self.tables)

    def left(self, name: str, table: TablePosition) -> int:
        """Rows that are still to be read."""
        return 0 if table.backfilled else sum(self.tables.files(name, table.pinned))


def at_once(position: SnapshotPosition, tables: Tables) -> Step:
    """All rows of the pinned versions of all tables, which replace what has been read of them."""
    reads: list[TableRead] = []
    after = {}
    for name, table in position.tables.items():
        files = tables.files(name, table.pinned)
        count = len(table.buckets)
        buckets = {
            number: bucket.model_copy(
                update={
                    "next": bucket.parts,
                    "rows": sum(files[index] for index in files_of(len(files), number, count)),
                }
            )
            for number, bucket in table.buckets.items()
        }
        after[name] = table.model_copy(update={"buckets": buckets})
        reads.append(
            FullRead(
                source=name,
                table_id=table.table_id,
                first=table.pinned + 1,
                last=table.pinned,
                rows=after[name].rows - table.rows,
                held=sum(files),
            )
        )
    return reads, position.model_copy(update={"tables": after})
