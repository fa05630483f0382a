"""Strategy `snapshot`: history from one pinned version of each table, then the change log, version by version, then live.

The versions of all upstreams are pinned as one vector when a life begins. While the snapshot is read, an epoch takes
the next files of every bucket; after that it takes the next versions of each table's change log, never skipping one.
The view is live as soon as an epoch ends at what was newest when it was planned. Nothing has to be kept from moving for
that: every epoch takes all versions that wait, up to its budget, and the lag bound says whether that is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.backfill.epoch import ChangesRead, Fingerprint, Plan, Position, SnapshotRead, TableRead
from backfill_assets.backfill.lag import TimeBound
from backfill_assets.backfill.ports import Begin, Commit, Next, TableOffer, Tables
from backfill_assets.backfill.positions import BucketState, OffsetRange, SnapshotPosition, TablePosition, deal
from backfill_assets.errors import UpstreamChangedError, UpstreamRefusedError

__all__ = ["BUCKETS", "SnapshotDecider", "SnapshotUpstream", "files_of"]

BUCKETS = 16
"""How many buckets the files of a snapshot are dealt to; fixed when a life begins."""

MOST_EMPTY_VERSIONS, EMPTY_MS = 50, 24 * 3_600_000
"""So many versions of mere maintenance may wait, and for so long: an epoch passes over them before the log forgets them."""


@dataclass(frozen=True, kw_only=True)
class SnapshotUpstream:
    """A Delta table as a view reads it; with `keyed`, deletes and updates can be followed by its key."""

    name: str
    keyed: bool


@dataclass(frozen=True, kw_only=True)
class SnapshotDecider:
    """Decides the epochs of one view over Delta tables and other views."""

    view: str
    upstreams: tuple[SnapshotUpstream, ...]
    fingerprint: Fingerprint
    tables: Tables
    buckets: int = BUCKETS

    @property
    def target(self) -> str:
        return f"views/{self.view}"

    def begin(self) -> Begin:
        offers = {each.name: self.tables.table_now(each.name) for each in self.upstreams}
        self.tables.check_keys({name: offer.version for name, offer in offers.items()})
        positions, left = {}, 0
        for name, offer in offers.items():
            files = self.tables.files(name, offer.version)
            left += sum(files)
            positions[name] = TablePosition(
                table_id=offer.table_id,
                incarnation=offer.incarnation,
                pinned=offer.version,
                version=offer.version,
                at_ms=offer.at_ms,
                buckets={
                    bucket: BucketState(files=len(files_of(len(files), bucket, self.buckets)))
                    for bucket in range(min(self.buckets, len(files)))
                },
            )
        return Begin(position=SnapshotPosition(tables=positions), total=left, live=left == 0)

    def next(self, position: Position, *, live: bool, budget: int) -> Next | None:
        assert isinstance(position, SnapshotPosition)
        offers = {each.name: self._offer(each.name, position.tables[each.name]) for each in self.upstreams}
        if position.backfilled:
            step = self._read_log(position, offers, budget, live=live)
        else:
            step = self._read_files(position, budget)
        if step is None:
            return None
        reads, after = step
        level = after.backfilled and all(after.tables[name].version == offer.version for name, offer in offers.items())
        for read in reads:
            self.tables.check_readable(read)
        return Next(reads=tuple(reads), after=after, live=live or level)

    def confirm(self, plan: Plan) -> None:
        assert isinstance(plan.before, SnapshotPosition)
        for each in self.upstreams:
            self._offer(each.name, plan.before.tables[each.name])

    def readable(self, plan: Plan) -> bool:
        """A plan over pinned versions has no other way: what is gone is an error, never a hole."""
        for read in plan.table_reads:
            self.tables.check_readable(read)
        return True

    def done(self, position: Position) -> int:
        assert isinstance(position, SnapshotPosition)
        return sum(table.rows for table in position.tables.values())

    def offsets(self, position: Position) -> Mapping[str, int]:
        assert isinstance(position, SnapshotPosition)
        return {name: table.rows for name, table in position.tables.items()}

    def lag(self, position: Position) -> Mapping[str, int]:
        assert isinstance(position, SnapshotPosition)
        lags = {}
        for each in self.upstreams:
            table = position.tables[each.name]
            offer = self._offer(each.name, table)
            waiting = self.tables.commits(each.name, table.version, offer.version)
            left = 0 if table.backfilled else sum(self.tables.files(each.name, table.pinned)) - table.rows
            lags[each.name] = left + sum(commit.rows for commit in waiting)
        return lags

    def _offer(self, name: str, position: TablePosition) -> TableOffer:
        """What a table offers, after refusing one that is not the one that the position speaks of."""
        offer = self.tables.table_now(name)
        redo = f"`backfill reset {self.view}` takes a new snapshot of what is there now"
        if offer.table_id != position.table_id:
            raise UpstreamChangedError(
                f"view {self.view!r}: table {name!r} is another one than the view was built from: expected table id "
                f"{position.table_id}, found {offer.table_id}",
                hint=f"put the old table back, or {redo}",
                expected=position.table_id,
                found=offer.table_id,
            )
        if offer.incarnation != position.incarnation:
            raise UpstreamChangedError(
                f"view {self.view!r}: {name!r} was reset or dropped since: expected incarnation "
                f"{position.incarnation}, found {offer.incarnation}",
                hint=redo,
                expected=position.incarnation,
                found=offer.incarnation,
            )
        if offer.version < position.version:
            raise UpstreamChangedError(
                f"view {self.view!r}: table {name!r} was put back to version {offer.version}; the view has consumed it "
                f"up to version {position.version}",
                hint=f"restore the table's newer versions, or {redo}",
                expected=position.version,
                found=offer.version,
            )
        return offer

    def _read_files(self, position: SnapshotPosition, budget: int) -> tuple[list[TableRead], SnapshotPosition]:
        """The next files of every bucket: all tables share the budget, and each gives at least one file."""
        reads: list[TableRead] = []
        tables = dict(position.tables)
        left = budget
        for name, table in sorted(position.tables.items()):
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

    def _read_log(
        self, position: SnapshotPosition, offers: Mapping[str, TableOffer], budget: int, *, live: bool
    ) -> tuple[list[TableRead], SnapshotPosition] | None:
        """All waiting versions up to the budget, at least one of each table; None where nothing waits."""
        waiting = {
            each.name: self.tables.commits(each.name, position.tables[each.name].version, offers[each.name].version)
            for each in self.upstreams
        }
        empty = not any(commit.rows for commits in waiting.values() for commit in commits)
        if live and empty and not self._worth_passing(position, waiting):
            return None
        for each in self.upstreams:
            self._check_followable(each, waiting[each.name])
        shares = deal(
            budget,
            {index: sum(commit.rows for commit in waiting[each.name]) for index, each in enumerate(self.upstreams)},
        )
        reads: list[TableRead] = []
        tables = dict(position.tables)
        for index, each in enumerate(self.upstreams):
            taken = _within(waiting[each.name], shares.get(index, 0))
            if not taken:
                continue
            table = position.tables[each.name]
            rows = sum(commit.rows for commit in taken)
            if rows:
                first, last = taken[0].version, taken[-1].version
                reads.append(ChangesRead(source=each.name, table_id=table.table_id, first=first, last=last, rows=rows))
            tables[each.name] = table.model_copy(
                update={"version": taken[-1].version, "at_ms": taken[-1].at_ms, "changes": table.changes + rows}
            )
        return reads, _bounded(position, position.model_copy(update={"tables": tables}), offers)

    def _worth_passing(self, position: SnapshotPosition, waiting: Mapping[str, Sequence[Commit]]) -> bool:
        """Whether versions of mere maintenance are so many, or so old, that the log may soon forget them."""
        return any(
            len(commits) >= MOST_EMPTY_VERSIONS or commits[-1].at_ms - position.tables[name].at_ms >= EMPTY_MS
            for name, commits in waiting.items()
            if commits
        )

    def _check_followable(self, upstream: SnapshotUpstream, commits: Sequence[Commit]) -> None:
        deleting = next((commit for commit in commits if commit.deletes), None)
        if deleting is not None and not upstream.keyed:
            raise UpstreamRefusedError(
                f"view {self.view!r}: version {deleting.version} of table {upstream.name!r} deleted or updated rows, which "
                "a view without a key cannot follow",
                hint=f"declare delta_table({upstream.name!r}, primary_key=...), then `backfill reset {self.view}`",
                reason="NO_KEY",
                version=deleting.version,
            )


def files_of(files: int, bucket: int, buckets: int) -> range:
    """Which of a snapshot's `files`, sorted by path, belong to a bucket, in their order."""
    return range(bucket, files, buckets)


def _next_files(
    files: Sequence[int], table: TablePosition, budget: int
) -> tuple[dict[int, BucketState], dict[int, OffsetRange], int]:
    """One file of each unfinished bucket in turn while the budget lasts; a file is never cut, so one is always taken."""
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


def _within(commits: Sequence[Commit], budget: int) -> list[Commit]:
    """The versions from the oldest on that fit the budget; at least one, and with them mere maintenance after it.

    They end where the table's change data feed was turned on or off, as both are not read alike.
    """
    taken: list[Commit] = []
    rows = 0
    for commit in commits:
        if (commit.rows and rows and rows + commit.rows > budget) or commit.feed != commits[0].feed:
            break
        taken.append(commit)
        rows += commit.rows
    return taken


def _bounded(before: SnapshotPosition, after: SnapshotPosition, offers: Mapping[str, TableOffer]) -> SnapshotPosition:
    """The position with its lag, and its bound: set when the log phase begins, from then on it only shrinks."""
    lag = _behind(after, offers)
    elapsed = max(after.tables[name].at_ms - table.at_ms for name, table in before.tables.items())
    bound = TimeBound.start(_behind(before, offers)) if before.bound.max_lag is None else before.bound
    return after.model_copy(update={"lag_ms": lag, "bound": bound.consumed(max(0, elapsed), lag)})


def _behind(position: SnapshotPosition, offers: Mapping[str, TableOffer]) -> int:
    return max(0, *(offer.at_ms - position.tables[name].at_ms for name, offer in offers.items()))
