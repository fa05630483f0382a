"""Strategy `snapshot`: history from one pinned version of each table, read file by file in buckets, resumable anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backfill_assets.core.epoch.ports import Tables, UpstreamState
from backfill_assets.core.progress.lag import LagBound, TimeBound
from backfill_assets.core.progress.positions import BucketState, OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import SnapshotRead, TableRead
from backfill_assets.core.strategies.table_views import BUCKETS, Begun, EpochBudget, Step, begun

__all__ = ["SnapshotHistory", "files_of"]


@dataclass(frozen=True, kw_only=True)
class SnapshotHistory:
    """`History` over the data files of pinned versions."""

    tables: Tables
    buckets: int = BUCKETS
    bound: LagBound = field(default_factory=TimeBound)
    resumable: bool = True

    def begin(self, offers: Mapping[str, UpstreamState]) -> Begun:
        """Pin the present versions, and distribute their files to buckets."""
        return Begun.each(offers, self._begin)

    def _begin(self, name: str, offer: UpstreamState) -> tuple[TablePosition, int]:
        files = self.tables.files(name, offer.version)
        count = min(self.buckets, len(files))
        position = begun(offer, [len(files_of(len(files), bucket, self.buckets)) for bucket in range(count)])
        return position, sum(files)

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether every file of every table has been read."""
        return position.backfilled

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """The next files of every bucket. All tables share the budget, and at least one file of each is read."""
        reads: list[TableRead] = []
        tables = dict(position.tables)
        left = turn.budget
        for name in turn.names:
            table = position.tables[name]
            if table.backfilled or (reads and left <= 0):
                continue
            files = self.tables.files(name, table.pinned)
            buckets, ranges, rows = _next_files(files, table, max(1, left))
            left -= rows
            tables[name] = table.model_copy(update={"buckets": {**table.buckets, **buckets}})
            reads.append(
                SnapshotRead(
                    source=name,
                    table_id=table.table_id,
                    version=table.pinned,
                    buckets=len(table.buckets),
                    ranges=ranges,
                    rows=rows,
                )
            )
        return reads, position.model_copy(update={"tables": tables})

    def left(self, name: str, table: TablePosition) -> int:
        """Rows of the files that still have to be read."""
        return 0 if table.backfilled else sum(self.tables.files(name, table.pinned)) - table.rows


def files_of(files: int, bucket: int, buckets: int) -> range:
    """Which of a snapshot's `files`, sorted by path, belong to a bucket, in their order."""
    return range(bucket, files, buckets)


def _next_files(
    files: Sequence[int], table: TablePosition, budget: int
) -> tuple[dict[int, BucketState], dict[int, OffsetRange], int]:
    """One file of each unfinished bucket in turn while the budget lasts; a file is never split, so one is always taken."""
    buckets = dict(table.buckets)
    count, rows = len(buckets), 0
    going = [number for number, bucket in sorted(buckets.items()) if not bucket.done]
    while going and (rows < budget or rows == 0):
        number = min(going, key=lambda each: (buckets[each].next, each))
        bucket = buckets[number]
        held = files[files_of(len(files), number, count)[bucket.next]]
        if rows and rows + held > budget:
            break
        rows += held
        buckets[number] = bucket.model_copy(update={"next": bucket.next + 1, "rows": bucket.rows + held})
        if buckets[number].done:
            going.remove(number)
    ranges = {
        number: OffsetRange(start=table.buckets[number].next, end=bucket.next)
        for number, bucket in buckets.items()
        if bucket.next > table.buckets[number].next
    }
    return {number: buckets[number] for number in ranges}, ranges, rows
