"""Delta tables in memory, and a view that follows them by a decider's steps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import Commit, KeysLeftOut, NextEpoch, TableSize, UpstreamState
from backfill_assets.core.epoch.records import Fingerprint, UpstreamColumns, fingerprint
from backfill_assets.core.epoch.skips import Skip
from backfill_assets.core.progress.order import Order
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import (
    ChangesRead,
    FullRead,
    HashRead,
    KeyRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
    TableRead,
)
from backfill_assets.core.strategies.snapshot import SnapshotHistory, files_of
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.errors import VersionsLostError

FINGERPRINT: Fingerprint = fingerprint(query="SELECT *", key=[])
PLENTY = 10**9
MAX_STEPS = 500
FILES = st.lists(st.integers(0, 40), max_size=30).map(tuple)
"""The number of rows in each file of a table."""


@dataclass
class Table:
    """A Delta table in memory: the rows of its files at version 0, and the changes of each later version."""

    files: tuple[int, ...] = ()
    commits: list[Commit] = field(default_factory=list)
    table_id: str = "first"
    incarnation: str | None = None
    lost: set[int] = field(default_factory=set)

    size: TableSize = field(default_factory=lambda: TableSize(rows=0, bytes=0))

    def commit(self, rows: int, *, deletes: bool = False, feed: bool = True, size: int = 0) -> None:
        number, at = len(self.commits) + 1, 1000 * (len(self.commits) + 1)
        commit = Commit(version=number, commit_ms=at, rows=rows, deletes=deletes, feed=feed, bytes=size)
        self.commits.append(commit)


@dataclass
class Lake:
    """`ports.Tables` in memory; records what was requested."""

    tables: dict[str, Table]
    checked_keys: list[Mapping[str, int]] = field(default_factory=list)
    looked_at: Counter[str] = field(default_factory=Counter)

    def table_now(self, name: str) -> UpstreamState:
        table = self.tables[name]
        version = len(table.commits)
        return UpstreamState(
            table_id=table.table_id, version=version, commit_ms=1000 * version, incarnation=table.incarnation
        )

    def columns(self) -> UpstreamColumns:
        return dict.fromkeys(self.tables, (("id", "BIGINT"),))

    def files(self, name: str, version: int) -> Sequence[int]:
        assert version == 0, "only the pinned version's files are asked for"
        return self.tables[name].files

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        self.looked_at[name] += max(0, until - after)
        return self.tables[name].commits[after:until]

    def size(self, name: str) -> TableSize:
        return self.tables[name].size

    def commit_timestamp(self, name: str, version: int) -> int | None:
        commits = self.tables[name].commits
        if version in self.tables[name].lost or version > len(commits):
            return None
        return commits[version - 1].commit_ms if version else 0

    def check_readable(self, read: TableRead) -> None:
        assert not isinstance(read, KeyRead), "no table here is read by key"
        match read:
            case SnapshotRead() | FullRead() | LookupRead() | HashRead():
                versions = {read.version}
            case SkipRead():
                versions = set(read.versions)
            case _:
                versions = set(range(read.first, read.last + 1))
        if lost := versions & self.tables[read.source].lost:
            raise VersionsLostError("gone", hint="none", version=min(lost))

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:  # noqa: ARG002  (ports.Tables)
        self.checked_keys.append(dict(versions))


@dataclass
class Follower:
    """Takes the decider's steps like the protocol, and records everything that was read."""

    lake: Lake
    buckets: int = 16
    keyed: bool = True
    order: Order = field(default_factory=dict)
    full_refresh: bool = True
    skips: set[Skip] = field(default_factory=set)
    files: Counter[tuple[str, int]] = field(default_factory=Counter)
    versions: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        begin = self.decider.begin()
        assert isinstance(begin.position, SnapshotPosition)
        self.position, self.live, self.total = begin.position, begin.live, begin.total

    @property
    def decider(self) -> TablesDecider:
        return TablesDecider(
            view="large",
            upstreams=tuple(TableUpstream(name=name, keyed=self.keyed) for name in self.lake.tables),
            fingerprint=FINGERPRINT,
            tables=self.lake,
            order=self.order,
            full_refresh=self.full_refresh,
            histories={"snapshot": SnapshotHistory(tables=self.lake, buckets=self.buckets)},
            choose=lambda: "snapshot",
            skips=lambda: tuple(self.skips),
        )

    def step(self, budget: int = PLENTY) -> NextEpoch[Any] | None:
        waits = self.decider.waits(self.position, live=self.live)
        found = self.decider.next(self.position, live=self.live, budget=budget)
        assert waits == (found is not None)
        if found is None:
            return None
        assert isinstance(found.after, SnapshotPosition)
        self._check_moves(found.after)
        for read in found.reads:
            match read:
                case SnapshotRead():
                    self._note_files(read, budget)
                case ChangesRead() | FullRead() | SpoolRead():
                    self.versions.setdefault(read.source, []).extend(range(read.first, read.last + 1))
        self.position, self.live = found.after, found.live
        return found

    def finish(self, budget: int = PLENTY) -> int:
        for steps in range(MAX_STEPS):
            if self.step(budget) is None:
                return steps
        raise AssertionError("it never comes to rest")

    def _note_files(self, read: SnapshotRead, budget: int) -> None:
        files = self.lake.tables[read.source].files
        taken = [
            index
            for bucket, places in read.ranges.items()
            for index in files_of(len(files), bucket, read.buckets)[places.start : places.end]
        ]
        self.files.update((read.source, index) for index in taken)
        places = read.ranges.items()
        assert read.rows == sum(
            files[bucket + at * read.buckets] for bucket, each in places for at in range(each.start, each.end)
        )
        with_rows = [index for index in taken if files[index]]
        assert read.rows <= budget or len(with_rows) == 1, "more than the budget only as one file"

    def _check_moves(self, after: SnapshotPosition) -> None:
        for name, before in self.position.tables.items():
            now = after.tables[name]
            assert (now.pinned, now.table_id) == (before.pinned, before.table_id)
            assert now.version >= before.version
            assert now.rows >= before.rows
            assert all(now.buckets[at].next >= each.next for at, each in before.buckets.items())
        behind = [len(table.commits) - after.tables[name].held[0] for name, table in self.lake.tables.items()]
        assert (after.lag_commits, after.lag_ms) == (sum(behind), 1000 * max(behind)), "told while history is read, too"
        if self.position.bound.max_lag is not None:
            assert after.bound.max_lag is not None
            assert after.bound.max_lag <= self.position.bound.max_lag

    def assert_all_read_once(self) -> None:
        for name, table in self.lake.tables.items():
            assert [self.files[name, at] for at in range(len(table.files))] == [1] * len(table.files)
            changed = [each.version for each in table.commits if each.rows]
            assert [at for at in self.versions.get(name, []) if at in changed] == changed
            assert len(set(self.versions.get(name, []))) == len(self.versions.get(name, [])), "a version was read twice"
