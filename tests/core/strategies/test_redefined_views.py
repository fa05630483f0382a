"""A view over tables whose declaration only adds columns: when all rows may be computed again, and what that reads."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.records import CommitKind, CommitRecord, fingerprint
from backfill_assets.core.progress.reads import FullRead
from backfill_assets.core.strategies.table_views import TablesDecider
from tests.support.tables_world import Follower, Lake, Table

OLD, NEW = fingerprint(query="old"), fingerprint(query="new")


@dataclass
class Redefined(Follower):
    """Follows tables by a declaration that gives more columns than the view has."""

    extends: bool = True

    @property
    def decider(self) -> TablesDecider:
        return replace(super().decider, fingerprint=NEW, extends=lambda built_with: self.extends and built_with == OLD)

    def record(self) -> CommitRecord:
        """The newest commit, by the old declaration."""
        return CommitRecord(
            kind=CommitKind.EPOCH,
            target="views/large",
            incarnation="life",
            epoch=1,
            attempt="one",
            plan_hash="",
            fingerprint=OLD,
            position=self.position,
            live=self.live,
            started_at=0,
            finished_at=0,
            created_at=0,
        )


def test_a_view_whose_history_is_still_read_is_not_extended() -> None:
    follower = Redefined(Lake({"base": Table((3, 3))}))
    assert not follower.decider.redefines(follower.record())
    follower.step(3)
    assert not follower.decider.redefines(follower.record())
    follower.finish()
    assert follower.decider.redefines(follower.record())


def test_a_view_that_must_not_be_extended_is_not() -> None:
    follower = Redefined(Lake({"base": Table((3,))}), extends=False)
    follower.finish()
    assert not follower.decider.redefines(follower.record())


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 9))
def test_all_tables_are_read_at_their_newest_versions_whatever_waits(commits: list[int], budget: int) -> None:
    lake = Lake({"base": Table((3,)), "other": Table((2,))})
    follower = Redefined(lake)
    follower.finish()
    for rows in commits:
        lake.tables["base"].commit(rows, deletes=True)
    found = follower.decider.next(follower.position, live=True, budget=budget, anew=True)
    assert found is not None
    assert {each.source: each.version for each in found.reads if isinstance(each, FullRead)} == {
        "base": len(commits),
        "other": 0,
    }
    assert found.live
    assert len(found.reads) == 2
    assert found.after.tables["base"].version == len(commits)
