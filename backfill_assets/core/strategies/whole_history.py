"""The history of a query that is computed over whole tables: strategy `snapshot_once` for queries of any shape.

One epoch reads all rows of all pinned versions, and each later epoch reads all rows of newer versions in the same way.
Tables without rows are read as well, because a query may return rows for empty tables.
"""

from dataclasses import dataclass, field

from backfill_assets.core.epoch.ports import Tables, UpstreamState
from backfill_assets.core.progress.lag import CountBound, LagBound
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import FullRead, TableRead
from backfill_assets.core.strategies.table_views import EpochBudget, Step, begun

__all__ = ["WholeHistory"]


@dataclass(frozen=True, kw_only=True)
class WholeHistory:
    """`table_views.History` over whole pinned versions, each as one part."""

    tables: Tables
    bound: LagBound = field(default_factory=CountBound)
    resumable: bool = False

    def begin(self, name: str, offer: UpstreamState) -> tuple[TablePosition, int]:
        """Pin the present version."""
        return begun(offer, [1]), sum(self.tables.files(name, offer.version))

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether the pinned versions have been read."""
        return position.backfilled

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:  # noqa: ARG002  (`tables.History`)
        """All rows of all tables, whatever the budget."""
        reads: list[TableRead] = []
        tables = dict(position.tables)
        for name, table in position.tables.items():
            rows = sum(self.tables.files(name, table.pinned))
            done = table.buckets[0].model_copy(update={"next": 1, "rows": rows})
            tables[name] = table.model_copy(update={"buckets": {0: done}})
            reads.append(
                FullRead(
                    source=name,
                    table_id=table.table_id,
                    first=table.pinned + 1,
                    last=table.pinned,
                    rows=rows,
                    held=rows,
                )
            )
        return reads, position.model_copy(update={"tables": tables})

    def left(self, name: str, table: TablePosition) -> int:
        """Rows that are still to be read."""
        return 0 if table.backfilled else sum(self.tables.files(name, table.pinned))
