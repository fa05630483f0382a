"""The history of a query over several tables in chunks: every file of the tables that drive it once, each with all others."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.reads import FullRead, HashRead, LookupRead, SnapshotRead
from backfill_assets.core.strategies.hashed_history import PARTS
from backfill_assets.core.strategies.joined_history import JoinedHistory
from backfill_assets.core.strategies.table_views import TablesDecider
from tests.support.settings import examples
from tests.support.tables_world import FILES, Follower, Lake, Table

NOTHING_DRIVES = None


@dataclass
class Joined(Follower):
    """Follows a view whose query `base` drives, or whichever table is larger; it is joined with the other one, and itself."""

    drives: Mapping[int, str] | None = field(default_factory=lambda: {0: "base"})

    def driven(self) -> Driving | None:
        return Driving(places=dict(self.drives), beside=("base", "other")) if self.drives else None

    @property
    def decider(self) -> TablesDecider:
        def drive(rows: Mapping[str, int]) -> Driving | None:
            assert rows == {name: sum(table.files) for name, table in self.lake.tables.items()}
            return self.driven()

        history = JoinedHistory(tables=self.lake, buckets=self.buckets, drive=drive)
        return replace(super().decider, histories={"snapshot": history}, whole=True)


@given(FILES.filter(any), FILES, st.integers(1, 9))
def test_each_file_of_the_driving_table_is_read_once_and_the_others_with_each_chunk(
    base: tuple[int, ...], other: tuple[int, ...], budget: int
) -> None:
    follower = Joined(Lake({"base": Table(base), "other": Table(other)}))
    assert (follower.live, follower.total) == (False, sum(base))
    while not follower.position.backfilled:
        found = follower.step(budget)
        assert found is not None
        kinds = {type(read) for read in found.reads}
        assert kinds == {SnapshotRead, LookupRead}
        beside = {read.source: (read.version, read.held) for read in found.reads if isinstance(read, LookupRead)}
        assert beside == {"base": (0, sum(base)), "other": (0, sum(other))}
    assert follower.live
    assert [follower.files["base", at] for at in range(len(base))] == [1] * len(base)
    assert follower.step(budget) is None


@given(
    FILES.filter(any),
    st.lists(st.tuples(st.sampled_from(["base", "other"]), st.integers(1, 5)), min_size=1, max_size=examples(6)),
    st.integers(1, 9),
)
def test_changes_wait_until_history_is_read_and_are_all_followed(
    base: tuple[int, ...], commits: list[tuple[str, int]], budget: int
) -> None:
    lake = Lake({"base": Table(base), "other": Table((2,))})
    follower = Joined(lake)
    for name, rows in commits:
        lake.tables[name].commit(rows)
        follower.step(budget)
    follower.finish(budget)
    for name, table in lake.tables.items():
        assert follower.versions.get(name, []) == list(range(1, len(table.commits) + 1))


@dataclass
class Parted(Joined):
    """Follows a view whose query a key divides that both tables have, `base` in two places; a third one is read beside."""

    def driven(self) -> Driving:
        return Driving(places={0: "base", 1: "base", 3: "other"}, beside=("third",), hashes={0: "a", 1: "b", 3: "c"})


@given(FILES, FILES, st.integers(1, 200))
def test_each_part_of_the_hashes_is_read_once_of_all_tables_that_have_the_key(
    base: tuple[int, ...], other: tuple[int, ...], budget: int
) -> None:
    assume(any(base) or any(other))
    held = {"base": sum(base), "other": sum(other)}
    follower = Parted(Lake({"base": Table(base), "other": Table(other), "third": Table((2,))}))
    assert (follower.live, follower.total) == (False, sum(held.values()))
    begins = 0
    while not follower.position.backfilled:
        found = follower.step(budget)
        assert found is not None
        hashed = {read.source: read for read in found.reads if isinstance(read, HashRead)}
        beside = [read for read in found.reads if isinstance(read, LookupRead)]
        assert [(read.source, read.held) for read in beside] == [("third", 2)]
        assert len(hashed) + len(beside) == len(found.reads)
        assert {name: read.held for name, read in hashed.items()} == held
        ((taken,), *others) = ([*read.ranges.values()] for read in hashed.values())
        assert all(each == [taken] for each in others)
        assert taken.start == begins < taken.end
        begins = taken.end
        rows = sum(read.rows for read in hashed.values())
        assert rows < budget + sum(held.values()) / PARTS + len(held) + 1
        assert rows > budget - len(held) or follower.position.backfilled, "as large as it may be, but for rounding"
    assert begins == PARTS
    assert {name: follower.position.tables[name].rows for name in held} == held
    assert follower.live
    assert follower.step(budget) is None


def test_parts_follow_changes_only_when_all_are_read_and_take_the_rest_at_once_where_rows_are_left_out() -> None:
    follower = Parted(Lake({"base": Table((64,)), "other": Table((64,)), "third": Table((2,))}))
    follower.step(32)
    follower.lake.tables["other"].commit(3)
    follower.step(32)
    assert follower.versions == {}
    follower.skips.add(KeySkip(source="third", key=(("id", "1"),)))
    found = follower.step(32)
    assert found is not None
    reads = {read.source: (read.rows, read.held) for read in found.reads if isinstance(read, FullRead)}
    assert reads == {"base": (32, 64), "other": (32, 64), "third": (0, 2)}
    assert len(reads) == len(found.reads)
    follower.finish(32)
    assert follower.versions["other"] == [1]


def test_rows_left_out_have_the_rest_read_at_once() -> None:
    follower = Joined(Lake({"base": Table((3, 3, 3)), "other": Table((2,))}))
    follower.step(3)
    follower.skips.add(KeySkip(source="other", key=(("id", "1"),)))
    found = follower.step(3)
    assert found is not None
    reads = {read.source: (read.rows, read.held) for read in found.reads if isinstance(read, FullRead)}
    assert reads == {"base": (6, 9), "other": (0, 2)}
    assert len(reads) == len(found.reads)
    assert follower.live


@pytest.mark.parametrize("name", ["base", "other"])
def test_rows_taken_back_before_the_first_chunk_are_not_left_out_of_it(name: str) -> None:
    skip = KeySkip(source=name, key=(("id", "1"),))
    follower = Joined(Lake({"base": Table((3, 3)), "other": Table((2,))}), skips={skip})
    follower.skips.clear()
    found = follower.step(3)
    assert found is not None
    assert {type(read) for read in found.reads} == {FullRead}, "chunks leave out what either position leaves out"


def test_tables_without_rows_to_drive_a_query_are_read_at_once() -> None:
    for base, drives in (((), {0: "base"}), ((0,), {0: "base"}), ((3,), NOTHING_DRIVES)):
        follower = Joined(Lake({"base": Table(base), "other": Table((2,))}), drives=drives)
        assert not follower.live
        found = follower.step(1)
        assert found is not None
        assert {type(read) for read in found.reads} == {FullRead}
        assert follower.live
