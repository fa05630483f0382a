"""History by the hashes of a key, for a query over several tables that no table drives, but that a key partitions.

What the query gives for a value of the key follows from the rows with this value alone. So the hashes of all values are
divided into parts, and each epoch computes the query for the next of them. It reads all rows of the tables, and keeps those
whose key falls into its parts: epochs bound the memory that a query needs, and what a killed run has to repeat, not what is
scanned.
"""

from collections.abc import Mapping
from typing import Final

from backfill_assets.core.epoch.ports import UpstreamState
from backfill_assets.core.progress.positions import OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import HashRead
from backfill_assets.core.strategies.table_views import begun

__all__ = ["PARTS", "begun_parts", "next_parts"]

PARTS: Final = 64
"""Into so many parts hashes are divided: an epoch reads at least one. More would hardly be used, as each reads all rows."""


def begun_parts(offer: UpstreamState) -> TablePosition:
    """The first position in a table whose rows are taken by the hash of a key: one bucket with all parts."""
    return begun(offer, [PARTS])


def next_parts(
    position: SnapshotPosition, held: Mapping[str, int], budget: int
) -> tuple[list[HashRead], SnapshotPosition]:
    """The next parts, as many as make up the budget, of all tables that have so many rows, by name, and the position then.

    All parts count as if they had equally many rows.
    """
    bucket = position.tables[next(iter(held))].buckets[0]
    share = -(-budget * bucket.parts // max(1, sum(held.values())))
    end = min(bucket.parts, bucket.next + share)
    reads = []
    tables = dict(position.tables)
    for name, rows in held.items():
        table = tables[name]
        before, after = (-(-rows * at // bucket.parts) for at in (bucket.next, end))
        moved = table.buckets[0].model_copy(update={"next": end, "rows": after})
        tables[name] = table.model_copy(update={"buckets": {0: moved}})
        reads.append(
            HashRead(
                source=name,
                table_id=table.table_id,
                version=table.pinned,
                parts=bucket.parts,
                ranges={0: OffsetRange(start=bucket.next, end=end)},
                rows=after - before,
                held=rows,
            )
        )
    return reads, position.model_copy(update={"tables": tables})
