"""What a view over Delta tables reads next: every file once, then every version once and in order, until it is live."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.backfill.epoch import ChangesRead, Fingerprint, SnapshotRead, fingerprint
from backfill_assets.backfill.order import Order, order_of
from backfill_assets.backfill.ports import Commit, Next, TableOffer
from backfill_assets.backfill.positions import OffsetRange, SnapshotPosition
from backfill_assets.backfill.snapshot import SnapshotHistory, files_of
from backfill_assets.backfill.tables import MOST_EMPTY_VERSIONS, TablesDecider, TableUpstream
from backfill_assets.errors import UpstreamChangedError, UpstreamRefusedError, VersionsLostError

FINGERPRINT: Fingerprint = fingerprint(query="SELECT *", key=[])
PLENTY = 10**9
MOST_STEPS = 500


@dataclass
class Table:
    """A Delta table in memory: the rows of its files at version 0, and what each later version changed."""

    files: tuple[int, ...] = ()
    commits: list[Commit] = field(default_factory=list)
    table_id: str = "first"
    incarnation: str | None = None
    lost: set[int] = field(default_factory=set)

    def commit(self, rows: int, *, deletes: bool = False, feed: bool = True) -> None:
        number = len(self.commits) + 1
        self.commits.append(Commit(version=number, at_ms=1000 * number, rows=rows, deletes=deletes, feed=feed))


@dataclass
class Lake:
    """`ports.Tables` in memory; notes what was looked at."""

    tables: dict[str, Table]
    checked_keys: list[Mapping[str, int]] = field(default_factory=list)

    def table_now(self, name: str) -> TableOffer:
        table = self.tables[name]
        version = len(table.commits)
        return TableOffer(table_id=table.table_id, version=version, at_ms=1000 * version, incarnation=table.incarnation)

    def files(self, name: str, version: int) -> Sequence[int]:
        assert version == 0, "only the pinned version's files are asked for"
        return self.tables[name].files

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        return self.tables[name].commits[after:until]

    def stated_at(self, name: str, version: int) -> int | None:
        commits = self.tables[name].commits
        if version in self.tables[name].lost or version > len(commits):
            return None
        return commits[version - 1].at_ms if version else 0

    def check_readable(self, read: SnapshotRead | ChangesRead) -> None:
        versions = {read.version} if isinstance(read, SnapshotRead) else set(range(read.first, read.last + 1))
        if lost := versions & self.tables[read.source].lost:
            raise VersionsLostError("gone", hint="none", version=min(lost))

    def check_keys(self, versions: Mapping[str, int]) -> None:
        self.checked_keys.append(dict(versions))


@dataclass
class Follower:
    """Takes the decider's steps as the protocol does, and notes everything that was read."""

    lake: Lake
    buckets: int = 16
    keyed: bool = True
    order: Order = field(default_factory=dict)
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
            histories={"snapshot": SnapshotHistory(tables=self.lake, buckets=self.buckets)},
            choose=lambda: "snapshot",
        )

    def step(self, budget: int = PLENTY) -> Next | None:
        found = self.decider.next(self.position, live=self.live, budget=budget)
        if found is None:
            return None
        assert isinstance(found.after, SnapshotPosition)
        self._check_moves(found.after)
        for read in found.reads:
            match read:
                case SnapshotRead():
                    self._note_files(read, budget)
                case ChangesRead():
                    self.versions.setdefault(read.source, []).extend(range(read.first, read.last + 1))
        self.position, self.live = found.after, found.live
        return found

    def finish(self, budget: int = PLENTY) -> int:
        for steps in range(MOST_STEPS):
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


FILES = st.lists(st.integers(0, 40), max_size=30).map(tuple)
COMMITS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=12)


@given(
    first=FILES,
    second=FILES,
    budgets=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    buckets=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    commits=st.lists(COMMITS, max_size=6),
)
def test_every_file_and_every_version_is_read_once_whatever_comes_between(
    first: tuple[int, ...],
    second: tuple[int, ...],
    budgets: list[int],
    buckets: list[int],
    commits: list[list[tuple[str, int]]],
):
    lake = Lake({"a": Table(first), "b": Table(second)})
    follower = Follower(lake, buckets=buckets[0])
    for at, batch in enumerate(commits):
        for name, rows in batch:
            lake.tables[name].commit(rows)
        follower.buckets = buckets[at % len(buckets)]  # another setting must not move the buckets of a life
        before = follower.decider.lag(follower.position)
        offsets = follower.decider.offsets(follower.position)
        follower.step(budgets[at % len(budgets)])
        after, now = follower.decider.lag(follower.position), follower.decider.offsets(follower.position)
        assert {name: before[name] + offsets[name] for name in lake.tables} == {
            name: after[name] + now[name] for name in lake.tables
        }, "what was waiting was read or is still waiting"
    follower.finish(budgets[0])
    assert follower.live
    follower.assert_all_read_once()
    assert follower.total == sum(first) + sum(second)
    assert sum(follower.decider.lag(follower.position).values()) == 0
    assert follower.decider.done(follower.position) == follower.total + sum(
        commit.rows for table in lake.tables.values() for commit in table.commits
    )


@given(files=FILES, budget=st.integers(1, 100))
def test_a_step_is_never_empty_while_files_are_left(files: tuple[int, ...], budget: int):
    follower = Follower(Lake({"a": Table(files)}))
    while not follower.position.backfilled:
        found = follower.step(budget)
        assert found is not None
        assert found.reads
    follower.assert_all_read_once()


@given(first=FILES, second=FILES, budgets=st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_a_table_that_waits_for_another_one_is_not_read_before_that_has_been(
    first: tuple[int, ...], second: tuple[int, ...], budgets: list[int]
):
    lake = Lake({"a": Table(first), "b": Table(second)})
    follower = Follower(lake, order=order_of(["b", "a"]))
    at = 0
    while not follower.position.tables["b"].backfilled:
        follower.step(budgets[at % len(budgets)])
        assert not any(bucket.next for bucket in follower.position.tables["a"].buckets.values())
        at += 1
    follower.finish(budgets[0])
    assert follower.live
    follower.assert_all_read_once()


def test_three_files_in_256_buckets_make_three_buckets():
    follower = Follower(Lake({"a": Table((5, 6, 7))}), buckets=256)
    assert sorted(follower.position.tables["a"].buckets) == [0, 1, 2]
    follower.finish(1)
    follower.assert_all_read_once()


def test_an_empty_table_is_live_at_once_and_so_is_nothing_else():
    empty = Follower(Lake({"a": Table()}))
    assert (empty.live, empty.total, empty.step()) == (True, 0, None)
    assert not Follower(Lake({"a": Table((1,))})).live


def test_a_file_without_rows_is_read_before_the_change_log():
    follower = Follower(Lake({"a": Table((0, 0))}))
    follower.lake.tables["a"].commit(3)
    follower.finish()
    follower.assert_all_read_once()


def test_one_huge_file_is_one_step_whatever_the_budget():
    follower = Follower(Lake({"a": Table((10**12,))}))
    found = follower.step(1)
    assert found is not None
    assert [read.rows for read in found.reads if isinstance(read, SnapshotRead)] == [10**12]
    assert found.live
    assert follower.step(1) is None


def test_the_last_file_and_the_newest_version_make_it_live_in_the_same_step():
    follower = Follower(Lake({"a": Table((4, 4))}))
    found = follower.step()
    assert found is not None
    assert found.live
    assert follower.lake.checked_keys == [{"a": 0}]


def test_versions_that_came_during_the_snapshot_are_read_before_it_is_live():
    follower = Follower(Lake({"a": Table((4, 4))}))
    follower.lake.tables["a"].commit(2)
    found = follower.step()
    assert found is not None
    assert not found.live
    found = follower.step()
    assert found is not None
    assert found.live
    assert follower.position.bound.max_lag is not None


def test_a_file_is_taken_from_every_bucket_in_turn():
    follower = Follower(Lake({"a": Table((1,) * 8)}), buckets=4)
    found = follower.step(4)
    assert found is not None
    (read,) = found.reads
    assert isinstance(read, SnapshotRead)
    assert read.ranges == {bucket: OffsetRange(start=0, end=1) for bucket in range(4)}


def test_maintenance_alone_is_passed_over_only_when_much_of_it_waits():
    follower = Follower(Lake({"a": Table((1,))}))
    follower.finish()
    for _ in range(MOST_EMPTY_VERSIONS - 1):
        follower.lake.tables["a"].commit(0)
    assert follower.step() is None
    follower.lake.tables["a"].commit(0)
    found = follower.step()
    assert found is not None
    assert found.reads == ()
    assert follower.position.tables["a"].version == MOST_EMPTY_VERSIONS
    assert follower.step() is None


def test_versions_with_and_without_a_feed_are_never_read_together():
    follower = Follower(Lake({"a": Table((1,))}))
    for feed in (False, False, True, True, False):
        follower.lake.tables["a"].commit(1, feed=feed)
    steps = follower.finish()
    assert (steps, follower.versions) == (4, {"a": [1, 2, 3, 4, 5]})


@pytest.mark.parametrize("after_snapshot", [True, False])
def test_deletes_in_a_table_without_a_key_are_refused_by_version(after_snapshot: bool):
    follower = Follower(Lake({"a": Table((1, 1))}), keyed=False)
    follower.step(PLENTY if after_snapshot else 1)
    follower.lake.tables["a"].commit(5)
    follower.lake.tables["a"].commit(1, deletes=True)
    with pytest.raises(UpstreamRefusedError) as refused:
        follower.finish()
    assert refused.value.facts["version"] == 2


def grown_again(table: Table) -> list[Commit]:
    """The table was put back to its first version, and others were committed later, as many as before and one more."""
    later = [replace(commit, at_ms=commit.at_ms + 77) for commit in table.commits]
    return [*later, replace(later[-1], version=len(later) + 1, at_ms=later[-1].at_ms + 1)]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (lambda table: replace(table, table_id="second"), "another one"),
        (lambda table: replace(table, incarnation="life"), "reset or dropped"),
        (lambda table: replace(table, commits=[]), "put back"),
        (lambda table: replace(table, commits=grown_again(table)), "put back and written to again"),
    ],
)
def test_another_table_another_life_and_a_table_put_back_are_refused(changed, what: str):
    follower = Follower(Lake({"a": Table((1,))}))
    follower.lake.tables["a"].commit(1)
    follower.finish()
    follower.lake.tables["a"] = changed(follower.lake.tables["a"])
    for look in (follower.step, lambda: follower.decider.lag(follower.position)):
        with pytest.raises(UpstreamChangedError, match=what):
            look()


@pytest.mark.parametrize("gone", [0, 2])
def test_what_is_gone_is_an_error_and_never_a_hole(gone: int):
    follower = Follower(Lake({"a": Table((1, 1))}))
    for _ in range(3):
        follower.lake.tables["a"].commit(1)
    follower.lake.tables["a"].lost.add(gone)
    with pytest.raises(VersionsLostError):
        follower.finish(1)
    assert follower.versions.get("a", []) in ([], [1])
