"""Tables are read in full if the waiting changes are far larger than the tables; then every version has been read,
once."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import NextEpoch, TableSize, planned
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, FullRead
from backfill_assets.core.strategies.full_refresh import FEWEST_BYTES, MAX_EPOCHS, TIMES_HELD
from tests.support.tables_world import FINGERPRINT, PLENTY, Follower, Lake, Table

HELD = FEWEST_BYTES
LITTLE, MUCH = HELD // 10, 4 * HELD


def level(*names: str, rows: int = 100) -> tuple[Lake, Follower]:
    """Tables with this many rows and `HELD` bytes in total, and a view that has read them."""
    size = TableSize(rows=rows, bytes=HELD // len(names))
    lake = Lake({name: Table((rows,), size=size) for name in names})
    follower = Follower(lake)
    follower.finish()
    return lake, follower


def taken(follower: Follower, budget: int = PLENTY) -> NextEpoch[Any]:
    step = follower.step(budget)
    assert step is not None
    return step


def test_changes_that_outweigh_their_table_are_not_followed() -> None:
    lake, follower = level("a")
    for size in (LITTLE, MUCH, LITTLE):
        lake.tables["a"].commit(7, deletes=True, size=size)
    step = taken(follower)
    assert step.reads == (FullRead(source="a", table_id="first", first=1, last=3, rows=21, held=100),)
    assert step.live
    assert follower.position.tables["a"].version == 3
    assert follower.decider.lag(follower.position) == {"a": 0}
    lake.tables["a"].commit(1, size=LITTLE)
    assert isinstance(taken(follower).reads[0], ChangesRead), "from there on changes are followed again"


def test_all_tables_are_read_in_full_or_none() -> None:
    lake, follower = level("a", "b", "c")
    lake.tables["a"].commit(7, deletes=True, size=MUCH)
    lake.tables["b"].commit(0)
    step = taken(follower)
    assert [(each.source, each.version) for each in step.reads if isinstance(each, FullRead)] == [
        ("a", 1),
        ("b", 1),
        ("c", 0),
    ]
    assert len(step.reads) == 3
    assert {name: table.version for name, table in follower.position.tables.items()} == {"a": 1, "b": 1, "c": 0}


def test_a_table_that_was_overwritten_once_is_followed_and_so_are_a_few_bytes() -> None:
    for held, changed in ((HELD, 2 * HELD), (HELD, int(TIMES_HELD * HELD)), (1, FEWEST_BYTES)):
        lake, follower = level("a")
        lake.tables["a"].size = TableSize(rows=100, bytes=held)
        lake.tables["a"].commit(100, deletes=True, size=changed)
        assert isinstance(taken(follower).reads[0], ChangesRead)


def test_a_table_that_only_grew_is_followed_however_many_small_files_it_grew_by() -> None:
    lake, follower = level("a")
    lake.tables["a"].commit(100, size=100 * HELD)
    assert isinstance(taken(follower).reads[0], ChangesRead)


def test_a_table_of_many_epochs_is_followed_so_that_it_can_be_interrupted() -> None:
    for rows, kind in ((10 * MAX_EPOCHS, FullRead), (10 * MAX_EPOCHS + 1, ChangesRead)):
        lake, follower = level("a", rows=rows)
        lake.tables["a"].commit(7, deletes=True, size=MUCH)
        assert isinstance(taken(follower, budget=10).reads[0], kind)


def test_a_view_that_is_to_be_incremental_follows_whatever_waits() -> None:
    lake, follower = level("a")
    follower.full_refresh = False
    lake.tables["a"].commit(7, deletes=True, size=MUCH)
    assert isinstance(taken(follower).reads[0], ChangesRead)


def test_a_table_that_was_emptied_is_read_in_full_too() -> None:
    lake, follower = level("a")
    lake.tables["a"].size = TableSize(rows=0, bytes=0)
    lake.tables["a"].commit(100, deletes=True, size=MUCH)
    (read,) = taken(follower).reads
    assert isinstance(read, FullRead)
    assert (read.held, read.rows) == (0, 100)


def test_a_plan_whose_version_is_gone_is_superseded_by_one_over_a_newer_version() -> None:
    lake, follower = level("a")
    before = follower.position
    lake.tables["a"].commit(7, deletes=True, size=MUCH)
    step = taken(follower)
    assert isinstance(step.after, SnapshotPosition)
    plan = Plan(
        target="views/large",
        incarnation="life",
        epoch=2,
        fingerprint=FINGERPRINT,
        reads=step.reads,
        before=before,
        after=step.after,
        live=True,
    )
    assert plan.replaces
    assert follower.decider.readable(planned(plan, SnapshotPosition))
    lake.tables["a"].lost.add(1)
    assert not follower.decider.readable(planned(plan, SnapshotPosition))


COMMITS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.sampled_from([0, LITTLE, HELD, MUCH])), max_size=12
)


@given(commits=st.lists(COMMITS, max_size=6), budgets=st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_every_version_is_consumed_once_however_it_is_read(
    commits: list[list[tuple[str, int, int]]], budgets: list[int]
) -> None:
    lake, follower = level("a", "b", rows=20)
    for at, batch in enumerate(commits):
        for name, rows, size in batch:
            lake.tables[name].commit(rows, deletes=True, size=size)
        step = follower.step(budgets[at % len(budgets)])
        if step is not None and any(isinstance(each, FullRead) for each in step.reads):
            assert all(isinstance(each, FullRead) for each in step.reads)
            assert {name: len(table.commits) for name, table in lake.tables.items()} == {
                name: table.version for name, table in follower.position.tables.items()
            }, "a view that is recomputed is at what is newest"
    follower.finish(budgets[0])
    follower.assert_all_read_once()
    assert sum(follower.decider.lag(follower.position).values()) == 0
