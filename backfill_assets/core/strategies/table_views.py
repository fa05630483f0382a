"""Views over Delta tables and other views: history by one of several strategies, then the change log, then live.

The versions of all upstreams are recorded together when a life begins. The strategy (`History`) reads their contents. After
that, an epoch takes the next versions of each table's change log, without skipping any. The view is live as soon as an
epoch ends at the version that was newest when it was planned. Upstreams need not stop for that: every epoch takes all
waiting versions, up to its budget, and the lag bound says whether that is enough.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from backfill_assets.core.epoch.ports import (
    EVERYTHING,
    Commit,
    InitialState,
    NextEpoch,
    PlannedEpoch,
    Tables,
    TableSize,
    UpstreamState,
)
from backfill_assets.core.epoch.records import CommitRecord, Fingerprint, UpstreamColumns
from backfill_assets.core.epoch.skips import Skips, keys_of, no_skips
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.lag import LagBound
from backfill_assets.core.progress.order import Order, waits_for
from backfill_assets.core.progress.positions import BucketState, SnapshotPosition, TablePosition, allocate
from backfill_assets.core.progress.reads import CaptureRead, FullRead, KeyRead, TableRead
from backfill_assets.core.strategies.change_log import changes_of, split_reads, within
from backfill_assets.core.strategies.full_refresh import cheaper_to_refresh, may_be_cheaper, read_in_full
from backfill_assets.core.strategies.same_table import check_same
from backfill_assets.core.strategies.table_lag import bounded, lagging
from backfill_assets.core.strategies.table_skips import leaving_out, left_out_alike, skip_reads
from backfill_assets.errors import DefinitionChangedError, UpstreamRefusedError, VersionsLostError

__all__ = ["BUCKETS", "Begun", "EpochBudget", "History", "Step", "TableUpstream", "TablesDecider", "begun"]

BUCKETS = 16
"""The number of buckets among which the parts of a history are distributed; fixed when a life begins."""

MAX_EMPTY_VERSIONS, EMPTY_MS = 50, 24 * 3_600_000
"""How many versions of maintenance alone may wait, and how long, before an epoch passes over them: the log may expire."""

MAX_VERSIONS_READ = 1000
"""The maximum number of a table's waiting versions that one epoch looks at: each is a file of its log."""

Step = tuple[list[TableRead], SnapshotPosition]
"""What an epoch reads, and the position after it."""


@dataclass(frozen=True, kw_only=True)
class TableUpstream:
    """A Delta table, as seen by a view; with `keyed`, deletes and updates can be followed by its key."""

    name: str
    keyed: bool


@dataclass(frozen=True, kw_only=True)
class EpochBudget:
    """What an epoch of a history may read: the state of all tables, whose turn it is (`names`), and how many rows.

    `at_once`: other rows are left out from now on. What has been read has to be read again, if it may be joined with them.
    """

    offers: Mapping[str, UpstreamState]
    names: Sequence[str]
    budget: int
    at_once: bool = False


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The first positions in tables by name, and how many rows their history has."""

    tables: dict[str, TablePosition]
    rows: int
    driving: Driving | None = None

    @staticmethod
    def each(
        offers: Mapping[str, UpstreamState], begin: Callable[[str, UpstreamState], tuple[TablePosition, int]]
    ) -> "Begun":
        """Of tables that begin each by itself: `begin` gives the first position and how many rows there are."""
        found = {name: begin(name, offer) for name, offer in offers.items()}
        tables = {name: table for name, (table, _) in found.items()}
        return Begun(tables=tables, rows=sum(rows for _, rows in found.values()))


class History(Protocol):
    """How one strategy reads the history of its upstreams, until only their change logs are left."""

    @property
    def bound(self) -> LagBound:
        """The bound of the lag once the history is read."""
        ...

    @property
    def resumable(self) -> bool:
        """Whether an epoch of the history that a dead run planned is repeated; otherwise the next run begins a new life."""
        ...

    def begin(self, offers: Mapping[str, UpstreamState]) -> Begun:
        """The first position in each table."""
        ...

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether only change logs are left to read."""
        ...

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """The next epoch of a history that is not finished."""
        ...

    def left(self, name: str, table: TablePosition) -> int:
        """How many rows of a table's history still have to be read."""
        ...


@dataclass(frozen=True, kw_only=True)
class TablesDecider:
    """Decides the epochs of one view over Delta tables and other views.

    `strategy` is the declared one; `choose` returns the one that a life begins with and keeps until its history is read.
    With `full_refresh`, tables whose changes are larger may be read in full instead; with `whole` they always
    are, because the query needs the rows of all tables together. `skips` returns what to leave out when an epoch is planned.
    `now` returns the time, in microseconds since 1970, for a query that calls functions of the clock; it is computed again if
    that was last done for a time before `since`, when the run began. `extends` says whether a table that was built with
    another declaration may get the columns of this one in place.
    """

    view: str
    upstreams: tuple[TableUpstream, ...]
    fingerprint: Fingerprint
    tables: Tables
    histories: Mapping[str, History]
    choose: Callable[[], str]
    order: Order = field(default_factory=dict)
    strategy: str = "auto"
    full_refresh: bool = True
    whole: bool = False
    skips: Skips = no_skips
    now: Callable[[], int] | None = None
    since: int = 0
    extends: Callable[[Fingerprint], bool] = lambda _built_with: False

    @property
    def kind(self) -> type[SnapshotPosition]:
        return SnapshotPosition

    @property
    def target(self) -> str:
        return f"views/{self.view}"

    def begin(self) -> InitialState[SnapshotPosition]:
        offers = {each.name: self.tables.table_now(each.name) for each in self.upstreams}
        wanted = self.skips()
        versions = {name: offer.version for name, offer in offers.items()}
        self.tables.check_keys(versions, {name: keys_of(wanted, name) for name in offers})
        strategy = self.choose()
        history = self.histories[strategy]
        begun = history.begin(offers)
        position = SnapshotPosition(strategy=strategy, tables=begun.tables, bound=history.bound, driving=begun.driving)
        position = leaving_out(position, wanted)
        return InitialState(position=position, total=begun.rows, live=begun.rows == 0 and history.finished(position))

    def columns(self) -> UpstreamColumns:
        return self.tables.columns()

    def redefines(self, record: CommitRecord) -> bool:
        over_tables = isinstance(record.position, SnapshotPosition)
        return record.live and over_tables and self.extends(record.fingerprint)

    def next(
        self, position: SnapshotPosition, *, live: bool, budget: int, anew: bool = False
    ) -> NextEpoch[SnapshotPosition] | None:
        before, position = position, leaving_out(position, self.skips())
        offers = {each.name: self._offer(each.name, position.tables[each.name]) for each in self.upstreams}
        history = self.histories[position.strategy]
        if history.finished(position):
            again = anew or (self.whole and (bool(skip_reads(before, position)) or self._is_old(position)))
            step = self._read_log(position, offers, budget, live=live, again=again)
        else:
            self._check_strategy(position)
            turn = EpochBudget(
                offers=offers,
                names=self._in_turn(position),
                budget=budget,
                at_once=not left_out_alike(before, position),
            )
            reads, after = history.read(position, turn)
            if budget == EVERYTHING and position.backfilled:  # everything captured; later versions are in the log
                waiting = self._looked_at(after, offers, most=EVERYTHING)
                more, after = self._follow(after, waiting, budget, behind={read.source for read in reads})
                reads = [*reads, *more]
            step = reads, lagging(after, offers)
        if step is None and not skip_reads(before, position):
            return None
        reads, after = step or ([], position)
        reads = [*skip_reads(before, after), *reads] if not any(isinstance(each, FullRead) for each in reads) else reads
        if self.now is not None and any(isinstance(each, FullRead) for each in reads):
            after = after.model_copy(update={"instant": self.now()})
        caught_up = all(after.tables[name].version == offer.version for name, offer in offers.items())
        keyed = {each.name: each for each in self.upstreams}
        for read in reads:
            if isinstance(read, CaptureRead):
                self._check_followable(keyed[read.source], self.tables.commits(read.source, read.first - 1, read.last))
            self.tables.check_readable(read)
        return NextEpoch(reads=tuple(reads), after=after, live=live or (caught_up and history.finished(after)))

    def waits(self, position: SnapshotPosition, *, live: bool) -> bool:
        offers = {each.name: self._offer(each.name, position.tables[each.name]) for each in self.upstreams}
        if not live or not self.histories[position.strategy].finished(position):
            return True
        if skip_reads(position, leaving_out(position, self.skips())):
            return True
        oldest = self._looked_at(position, offers, most=MAX_EMPTY_VERSIONS)
        changed = any(commit.rows for commits in oldest.values() for commit in commits)
        return changed or self._worth_passing(position, oldest)

    def confirm(self, plan: PlannedEpoch[SnapshotPosition]) -> None:
        for each in self.upstreams:
            self._offer(each.name, plan.before.tables[each.name])

    def readable(self, plan: PlannedEpoch[SnapshotPosition]) -> bool:
        """A plan over pinned versions has no alternative: what is gone is an error, never a gap.

        Ranges of a key, and whole tables, can just as well be read from a newer version, and another list of rows to leave
        out needs another plan.
        """
        if not left_out_alike(leaving_out(plan.before, self.skips()), plan.after):
            return False
        reads = [each for each in plan.reads if isinstance(each, TableRead)]
        for read in sorted(reads, key=lambda each: not isinstance(each, KeyRead)):
            try:
                self.tables.check_readable(read)
            except VersionsLostError:
                if isinstance(read, KeyRead | FullRead):
                    return False
                raise
        return True

    def resumable(self, plan: PlannedEpoch[SnapshotPosition]) -> bool:
        history = self.histories[plan.before.strategy]
        return history.resumable or history.finished(plan.before)

    def done(self, position: SnapshotPosition) -> int:
        return sum(table.rows for table in position.tables.values())

    def offsets(self, position: SnapshotPosition) -> Mapping[str, int]:
        return {name: table.rows for name, table in position.tables.items()}

    def lag(self, position: SnapshotPosition) -> Mapping[str, int]:
        lags = {}
        for each in self.upstreams:
            table = position.tables[each.name]
            offer = self._offer(each.name, table)
            held, _ = table.held
            looked_at = self.tables.commits(each.name, held, min(offer.version, held + MAX_VERSIONS_READ))
            rows = sum(commit.rows for commit in looked_at)
            beyond = offer.version - held - len(looked_at)  # assumed to be like the versions before them
            waiting = rows + (rows * beyond // len(looked_at) if beyond else 0)
            lags[each.name] = self.histories[position.strategy].left(each.name, table) + waiting
        return lags

    def _is_old(self, position: SnapshotPosition) -> bool:
        """Whether the query was last computed for a time before the run began."""
        return self.now is not None and (position.instant is None or position.instant < self.since)

    def _offer(self, name: str, position: TablePosition) -> UpstreamState:
        """The state of a table; one that is not the table of the position is refused."""
        offer = self.tables.table_now(name)
        check_same(self.view, name, position, offer, partial(self.tables.commit_timestamp, name))
        return offer

    def _in_turn(self, position: SnapshotPosition) -> list[str]:
        """The tables whose history waits for no other table."""
        unfinished = [name for name, table in position.tables.items() if not table.backfilled]
        return sorted(name for name in position.tables if not waits_for(self.order, name, unfinished))

    def _check_strategy(self, position: SnapshotPosition) -> None:
        if self.strategy not in {"auto", position.strategy}:
            raise DefinitionChangedError(
                f"view {self.view!r}: its history is being read by strategy {position.strategy!r}, but it is now declared "
                f"with {self.strategy!r}",
                hint=f"declare {position.strategy!r} or 'auto' to continue; or `backfill reset {self.view}` starts over",
                changed=["strategy"],
            )

    def _read_log(
        self, position: SnapshotPosition, offers: Mapping[str, UpstreamState], budget: int, *, live: bool, again: bool
    ) -> tuple[list[TableRead], SnapshotPosition] | None:
        """Waiting versions up to the budget, at least one of each table; None if nothing waits, and nothing has to be
        computed `again`.

        The tables are read in full instead, which covers all versions, if that is less work than following the changes, or
        if the query is computed over whole tables.
        """
        waiting = self._looked_at(position, offers, most=EVERYTHING if budget == EVERYTHING else MAX_VERSIONS_READ)
        empty = not any(commit.rows for commits in waiting.values() for commit in commits)
        if live and empty and not again and not self._worth_passing(position, waiting):
            return None
        if again or (self.whole and not empty) or (not self.whole and self._reads_in_full(waiting, budget)):
            every = self._looked_at(position, offers, most=EVERYTHING)
            reads, after = read_in_full(position, every, self._sizes())
            return reads, bounded(position, after, offers)
        reads, after = self._follow(position, waiting, budget)
        return reads, bounded(position, after, offers)

    def _reads_in_full(self, waiting: Mapping[str, Sequence[Commit]], budget: int) -> bool:
        """Whether reading the tables in full is better than following the waiting changes."""
        return self.full_refresh and may_be_cheaper(waiting) and cheaper_to_refresh(waiting, self._sizes(), budget)

    def _sizes(self) -> dict[str, TableSize]:
        return {each.name: self.tables.size(each.name) for each in self.upstreams}

    def _follow(
        self,
        position: SnapshotPosition,
        waiting: Mapping[str, Sequence[Commit]],
        budget: int,
        *,
        behind: Collection[str] = (),
    ) -> Step:
        """The changes of waiting versions up to the budget, at least one of each table.

        Versions that are only maintenance are passed over, except `behind` other changes that the epoch reads of a table.
        """
        for each in self.upstreams:
            self._check_followable(each, waiting[each.name])
        shares = allocate(
            budget,
            {index: sum(commit.rows for commit in waiting[each.name]) for index, each in enumerate(self.upstreams)},
        )
        reads: list[TableRead] = []
        tables = dict(position.tables)
        for index, each in enumerate(self.upstreams):
            share, commits = shares.get(index, 0), waiting[each.name]
            parts = split_reads(commits) if budget == EVERYTHING else list(filter(None, [within(commits, share)]))
            if not parts:
                continue
            table = position.tables[each.name]
            changes = [changes_of(each.name, table, part) for part in parts]
            rows = sum(read.rows for read in changes)
            reads.extend(changes if rows or each.name in behind else ())
            tables[each.name] = table.followed(
                version=parts[-1][-1].version, commit_ms=parts[-1][-1].commit_ms, rows=rows
            )
        return reads, position.model_copy(update={"tables": tables})

    def _looked_at(
        self, position: SnapshotPosition, offers: Mapping[str, UpstreamState], *, most: int
    ) -> dict[str, Sequence[Commit]]:
        """The oldest waiting versions of each table, up to a maximum number."""
        consumed = {each.name: position.tables[each.name].version for each in self.upstreams}
        return {
            name: self.tables.commits(name, version, min(offers[name].version, version + most))
            for name, version in consumed.items()
        }

    def _worth_passing(self, position: SnapshotPosition, waiting: Mapping[str, Sequence[Commit]]) -> bool:
        """Whether there are so many versions of maintenance, or such old ones, that log clean-up may soon remove them."""
        return any(
            len(commits) >= MAX_EMPTY_VERSIONS or commits[-1].commit_ms - position.tables[name].commit_ms >= EMPTY_MS
            for name, commits in waiting.items()
            if commits
        )

    def _check_followable(self, upstream: TableUpstream, commits: Sequence[Commit]) -> None:
        deleting = next((commit for commit in commits if commit.deletes), None)
        if deleting is not None and not upstream.keyed:
            raise UpstreamRefusedError(
                f"view {self.view!r}: version {deleting.version} of table {upstream.name!r} deleted or updated rows, which "
                "a view without a key cannot follow",
                hint=f"declare delta_table({upstream.name!r}, primary_key=...), or, if its rows have none, "
                f"refresh_mode='full' for the view; then `backfill reset {self.view}`",
                reason="NO_KEY",
                version=deleting.version,
            )


def begun(offer: UpstreamState, parts: Sequence[int]) -> TablePosition:
    """The first position in a table at its present version; `parts` says how many parts each bucket has."""
    return TablePosition(
        table_id=offer.table_id,
        incarnation=offer.incarnation,
        pinned=offer.version,
        version=offer.version,
        commit_ms=offer.commit_ms,
        buckets={bucket: BucketState(parts=count) for bucket, count in enumerate(parts)},
    )
