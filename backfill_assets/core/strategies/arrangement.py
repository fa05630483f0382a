"""Strategy `arrangement` (a keyed scan): history in the order of the key, each range from the version that is newest then.

When a life begins, the key of each table is cut once into ranges, which are distributed to buckets in consecutive runs. The
cursor of a bucket is the upper end of the last of its ranges that has been read; the ranges are read in order. An epoch
goes from version u to the newest version, v, in two parts:

- what the versions after u and up to v did to rows whose key had been read when the epoch *began*. An update that moves a
  row over a cursor becomes a delete or an insert. Rows of ranges that had not been read then, including those of this very
  epoch, are not touched: nothing of them is in the view yet.
- the next ranges at v, which has all of those changes.

So after each epoch the view equals its query over the rows of v whose keys have been read. Only the change log since the
last epoch must still exist, so the strategy works with any retention of files and log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backfill_assets.core.epoch.ports import Commit, KeyedTables, UpstreamState
from backfill_assets.core.progress.lag import LagBound, TimeBound
from backfill_assets.core.progress.positions import KeyRange, OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, KeyRead, TableRead
from backfill_assets.core.strategies.change_log import changes_of, split_reads
from backfill_assets.core.strategies.table_views import BUCKETS, Begun, EpochBudget, Step, begun

__all__ = ["ArrangementHistory", "done_ranges", "left_by_key"]


@dataclass(frozen=True, kw_only=True)
class ArrangementHistory:
    """`History` over the keys of tables that change meanwhile."""

    tables: KeyedTables
    buckets: int = BUCKETS
    bound: LagBound = field(default_factory=TimeBound)
    resumable: bool = True

    def begin(self, offers: Mapping[str, UpstreamState]) -> Begun:
        """Cut the keys of the present versions, and distribute the ranges to buckets."""
        return Begun.each(offers, self._begin)

    def _begin(self, name: str, offer: UpstreamState) -> tuple[TablePosition, int]:
        planned = self.tables.key_ranges(name, offer.version)
        ranges = len(planned.rows)
        count = min(self.buckets, ranges)
        parts = [(bucket + 1) * ranges // count - bucket * ranges // count for bucket in range(count)]
        position = begun(offer, parts).model_copy(update={"bounds": planned.bounds, "expected": planned.rows})
        return position, sum(planned.rows)

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether every key range of every table has been read."""
        return position.backfilled

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """All changes since the last epoch, and the next ranges with the rest of the budget; at least one range.

        Changes are never postponed: the ranges are read at the newest version, and postponed changes may be vacuumed.
        """
        keys: list[TableRead] = []
        changes: list[ChangesRead] = []
        tables = dict(position.tables)
        for name, offer in sorted(turn.offers.items()):
            table = position.tables[name]
            waiting = self.tables.commits(name, table.version, offer.version)
            made = list(_changes(name, table, waiting))
            changes.extend(made)
            tables[name] = table.model_copy(
                update={
                    "version": offer.version,
                    "commit_ms": offer.commit_ms,
                    "changes": table.changes + sum(read.rows for read in made),
                }
            )
        left = turn.budget - sum(read.rows for read in changes)
        for name in turn.names:
            table = tables[name]
            if table.backfilled or (keys and left <= 0):
                continue
            read, tables[name] = _next_ranges(name, table, left)
            left -= read.rows
            keys.append(read)
        return [*keys, *changes], position.model_copy(update={"tables": tables})

    def left(self, name: str, table: TablePosition) -> int:  # noqa: ARG002  (the position says it all)
        """Rows that the ranges which still have to be read had when they were planned."""
        return left_by_key(table)


def left_by_key(table: TablePosition) -> int:
    """Rows that the key ranges which still have to be read had when they were planned; 0 if there are none."""
    return sum(table.expected) - sum(bucket.rows for bucket in table.buckets.values()) if table.expected else 0


def done_ranges(table: TablePosition) -> tuple[KeyRange, ...]:
    """The key ranges that have been read, with adjacent ones joined; for a finished history: all keys."""
    if table.backfilled:
        return (KeyRange(),)
    starts = _starts(table)
    return _joined(table, [range(start, start + table.buckets[at].next) for at, start in starts.items()])


def _changes(name: str, table: TablePosition, waiting: Sequence[Commit]) -> Iterator[ChangesRead]:
    """What the waiting versions did to rows that have been read; versions with and without a change feed separately."""
    within = done_ranges(table)
    if not within or not any(commit.rows for commit in waiting):
        return
    for commits in split_reads(waiting):
        yield changes_of(name, table, commits, None if table.backfilled else within)


def _next_ranges(name: str, table: TablePosition, budget: int) -> tuple[KeyRead, TablePosition]:
    """The next ranges in the order of the key while the budget lasts, at least one, and the position after them."""
    starts = _starts(table)
    buckets = dict(table.buckets)
    rows, places = 0, dict[int, OffsetRange]()
    for number, bucket in sorted(table.buckets.items()):
        held = table.expected[starts[number] + bucket.next : starts[number] + bucket.parts]
        taken = 0
        for each in held:
            if (taken or places) and rows + each > budget:
                break
            rows += each
            taken += 1
        if taken:
            places[number] = OffsetRange(start=bucket.next, end=bucket.next + taken)
            buckets[number] = bucket.model_copy(
                update={"next": bucket.next + taken, "rows": bucket.rows + sum(held[:taken])}
            )
        if taken < len(held):
            break
    keys = _joined(table, [range(starts[at] + each.start, starts[at] + each.end) for at, each in places.items()])
    read = KeyRead(source=name, table_id=table.table_id, version=table.version, ranges=places, keys=keys, rows=rows)
    after = table.model_copy(update={"buckets": buckets})
    return read, after.model_copy(update={"bounds": (), "expected": ()}) if after.backfilled else after


def _starts(table: TablePosition) -> dict[int, int]:
    """Which of the table's ranges is the first one of each bucket."""
    starts, start = dict[int, int](), 0
    for number, bucket in sorted(table.buckets.items()):
        starts[number] = start
        start += bucket.parts
    return starts


def _joined(table: TablePosition, runs: Sequence[range]) -> tuple[KeyRange, ...]:
    """Runs of the table's ranges, in their order, as ranges of keys."""
    joined: list[range] = []
    for run in filter(None, runs):
        if joined and joined[-1].stop == run.start:
            joined[-1] = range(joined[-1].start, run.stop)
        else:
            joined.append(run)
    ends = (None, *table.bounds, None)
    return tuple(KeyRange(after=ends[run.start], upto=ends[run.stop]) for run in joined)
