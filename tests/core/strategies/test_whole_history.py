"""Queries over whole tables: everything is read at once at first, and again whenever something has changed."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.reads import FullRead
from backfill_assets.core.strategies.table_views import TablesDecider
from backfill_assets.core.strategies.whole_history import WholeHistory
from tests.support.settings import examples
from tests.support.tables_world import FILES, Follower, Lake, Table


@dataclass
class Whole(Follower):
    """Follows a view whose query is computed over whole tables."""

    @property
    def decider(self) -> TablesDecider:
        return replace(super().decider, histories={"snapshot": WholeHistory(tables=self.lake)}, whole=True)


def reads(follower: Follower, budget: int = 1) -> dict[str, tuple[int, int]]:
    """The versions of each table that the next epoch reads in full; empty if there is no next epoch."""
    found = follower.step(budget)
    every = found.reads if found is not None else ()
    assert all(isinstance(each, FullRead) for each in every)
    return {each.source: (each.first, each.last) for each in every if isinstance(each, FullRead)}


@given(FILES, FILES)
def test_the_first_epoch_reads_all_tables_even_if_they_are_empty(base: tuple[int, ...], other: tuple[int, ...]) -> None:
    follower = Whole(Lake({"base": Table(base), "other": Table(other)}))
    assert (follower.live, follower.total) == (False, sum(base) + sum(other))
    assert reads(follower) == {"base": (1, 0), "other": (1, 0)}
    assert follower.live
    assert reads(follower) == {}


def test_a_change_of_one_table_makes_all_tables_be_read_and_maintenance_makes_none() -> None:
    lake = Lake({"base": Table((3,)), "other": Table((2,))})
    follower = Whole(lake)
    follower.step()
    lake.tables["base"].commit(2, deletes=True)
    lake.tables["base"].commit(1)
    assert reads(follower) == {"base": (1, 2), "other": (1, 0)}
    lake.tables["other"].commit(0)
    assert reads(follower) == {}
    lake.tables["other"].commit(4)
    assert reads(follower) == {"base": (3, 2), "other": (1, 2)}


def test_rows_that_are_to_be_left_out_have_all_tables_read_again() -> None:
    follower = Whole(Lake({"base": Table((3,))}))
    follower.step()
    follower.skips.add(KeySkip(source="base", key=(("id", "1"),)))
    assert reads(follower) == {"base": (1, 0)}
    assert reads(follower) == {}
    follower.skips.clear()
    assert reads(follower) == {"base": (1, 0)}


@given(
    st.lists(st.tuples(st.sampled_from(["base", "other"]), st.integers(0, 5)), max_size=examples(8)), st.integers(1, 9)
)
def test_every_version_is_covered_once_and_the_view_comes_to_rest(commits: list[tuple[str, int]], budget: int) -> None:
    lake = Lake({"base": Table((3,)), "other": Table()})
    follower = Whole(lake)
    for name, rows in commits:
        lake.tables[name].commit(rows)
        follower.step(budget)
    follower.finish(budget)
    follower.files.update({("base", 0): 1})
    follower.assert_all_read_once()
