"""Strategy `snapshot_once`: one step for the whole snapshot, a lag counted in commits, and a creation that is not resumed."""

from dataclasses import replace
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import Decider, InitialState, PlannedEpoch
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitKind, CommitRecord
from backfill_assets.core.epoch.report import lag_numbers
from backfill_assets.core.epoch.run import create_if_missing
from backfill_assets.core.progress.lag import CountBound
from backfill_assets.core.progress.positions import IngestPosition, SnapshotPosition
from backfill_assets.core.progress.reads import SnapshotRead
from backfill_assets.core.strategies.ingest import IngestDecider
from backfill_assets.core.strategies.snapshot_once import SnapshotOnceHistory
from backfill_assets.core.strategies.table_views import TablesDecider
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World
from tests.support.tables_world import FILES, Follower, Lake, Table

SOURCE = "sources/orders"


class Once(Follower):
    """Follows a view with strategy `snapshot_once`."""

    @property
    def decider(self) -> TablesDecider:
        histories = {"snapshot": SnapshotOnceHistory(tables=self.lake, buckets=self.buckets)}
        return replace(super().decider, histories=histories)

    def _note_files(self, read: SnapshotRead, budget: int) -> None:  # noqa: ARG002  (no budget cuts it)
        super()._note_files(read, read.rows)


@given(first=FILES, second=FILES, budget=st.integers(1, 50), commits=st.lists(st.integers(0, 9), max_size=9))
def test_one_step_reads_every_file_of_every_table_and_the_log_follows(
    first: tuple[int, ...], second: tuple[int, ...], budget: int, commits: list[int]
) -> None:
    follower = Once(Lake({"a": Table(first), "b": Table(second)}))
    for rows in commits:
        follower.lake.tables["a"].commit(rows)
    follower.step(budget)
    assert follower.position.backfilled
    follower.finish(budget)
    assert follower.live
    follower.assert_all_read_once()


def test_the_lag_is_counted_in_commits_and_the_bound_goes_down_by_each() -> None:
    follower = Once(Lake({"a": Table((1,))}))
    for _ in range(5):
        follower.lake.tables["a"].commit(10)
    follower.step()
    assert follower.position.bound == CountBound()
    trace = []
    for _ in range(5):
        follower.step(10)
        trace.append((follower.position.lag_commits, follower.position.bound.max_lag))
    assert trace == [(4, 4), (3, 3), (2, 2), (1, 1), (0, 0)]
    assert follower.live


def test_a_position_is_read_back_with_the_bound_that_it_was_saved_with() -> None:
    follower = Once(Lake({"a": Table((1,))}))
    follower.lake.tables["a"].commit(10)
    for _ in range(3):
        assert SnapshotPosition.model_validate_json(follower.position.model_dump_json()) == follower.position
        follower.step()
    assert isinstance(follower.position.bound, CountBound)


def commit(epoch: int, position: SnapshotPosition) -> CommitRecord:
    return CommitRecord(
        kind=CommitKind.EPOCH,
        target="views/large",
        incarnation="a" * 12,
        epoch=epoch,
        attempt="b" * 12,
        plan_hash="",
        fingerprint={},
        position=position,
        live=False,
        started_at=0.0,
        finished_at=float(epoch),
        created_at=0.0,
    )


@pytest.mark.parametrize(("new", "converging"), [(0, True), (1, False)])
def test_the_lag_is_reported_in_commits_and_an_upstream_that_goes_on_is_seen(new: int, converging: bool) -> None:
    follower = Once(Lake({"a": Table((1,))}))
    for _ in range(6):
        follower.lake.tables["a"].commit(10)
    follower.step()
    records = []
    for epoch in range(4):
        follower.step(10)
        records.append(commit(epoch, follower.position))
        for _ in range(new):
            follower.lake.tables["a"].commit(10)
    found = lag_numbers(records[::-1])
    assert found["converging"] is converging
    assert found["lag_commits"] == (2 if converging else 5)
    assert found["lag_bound_commits"] == 2
    assert found["lag_shrinks_by_commits_per_epoch"] == (1.0 if converging else 0.0)


def world() -> World:
    topic = SimulatedTopic("orders")
    topic.append(0, "abcd")
    return World(topic)


class NotResumed(IngestDecider):
    """An unchanged decider, except that its first epoch cannot be resumed."""

    @classmethod
    def of(cls, decider: Decider[Any]) -> Self:
        assert isinstance(decider, IngestDecider)
        return cls(**vars(decider))

    def resumable(self, plan: PlannedEpoch[IngestPosition]) -> bool:
        return plan.before.next != plan.before.begin


def parts(world: World, **given: Any) -> Parts[Any]:
    made = world.parts(SOURCE, **given)
    return replace(made, decider=NotResumed.of(made.decider))


@pytest.mark.parametrize("step", STEPS)
def test_a_creation_that_died_is_given_up_for_a_new_life_unless_it_had_planned_nothing_or_was_committed(
    step: str,
) -> None:
    orders = world()
    first = orders.create(SOURCE, parts(orders)).life
    with pytest.raises(Crash):
        orders.refresh(SOURCE, parts=parts(orders, on_step=CrashPoint(step)))
    report = orders.refresh(SOURCE, parts=parts(orders))
    assert (report.record.incarnation == first[0]) is (step in {"looked", "committed"})
    assert orders.table(SOURCE).rows == orders.expected(SOURCE)
    assert report.record.epoch == 1


def test_a_later_epoch_that_died_is_repeated_as_always() -> None:
    orders = world()
    with pytest.raises(Crash):
        orders.refresh(SOURCE, Limits(chunk_rows=2), parts=parts(orders, on_step=CrashPoint("staged", at=2)))
    life = orders.table(SOURCE).look().life
    orders.refresh(SOURCE, parts=parts(orders))
    assert orders.table(SOURCE).look().life == life


def test_a_run_that_is_only_slow_is_fenced_and_the_one_that_ended_its_life_finishes() -> None:
    orders = world()
    reports = []
    slow = parts(
        orders, on_step=CrashPoint("staged", action=lambda: reports.append(orders.refresh(SOURCE, parts=parts(orders))))
    )
    report = orders.refresh(SOURCE, parts=slow)
    assert (report.stopped, [each.stopped for each in reports]) == ("fenced", ["caught_up"])
    assert orders.table(SOURCE).rows == orders.expected(SOURCE)


def test_two_runs_that_give_up_the_same_creation_begin_one_new_life() -> None:
    orders = world()
    with pytest.raises(Crash):
        orders.refresh(SOURCE, parts=parts(orders, on_step=CrashPoint("planned")))
    mine, rival = parts(orders), parts(orders)
    begin = mine.decider.begin

    class Late(NotResumed):
        def begin(self) -> InitialState[Any]:  # the competing run plans first, and its plan is not given up again
            with pytest.raises(Crash):
                orders.refresh(SOURCE, parts=replace(rival, on_step=CrashPoint("planned")))
            return begin()

    late = replace(mine, decider=Late.of(mine.decider))
    look = create_if_missing(late, orders.table(SOURCE))
    creations = [each for each in orders.table(SOURCE).commits if each.kind is CommitKind.CREATE]
    assert look.record is not None
    assert [each.incarnation for each in creations][1:] == [look.record.incarnation]


def test_a_creation_that_a_slow_run_commits_while_it_is_given_up_continues() -> None:
    orders = world()
    with pytest.raises(Crash):
        orders.refresh(SOURCE, parts=parts(orders, on_step=CrashPoint("planned")))
    mine, life = parts(orders), orders.table(SOURCE).look().life

    class Late(NotResumed):
        def begin(
            self,
        ) -> InitialState[Any]:  # which takes as long as checking the keys: meanwhile the slow run finishes
            orders.refresh(SOURCE)
            return super().begin()

    report = orders.refresh(SOURCE, parts=replace(mine, decider=Late.of(mine.decider)))
    assert (report.record.incarnation, report.record.epoch, report.record.live) == (life[0], 1, True)
    assert orders.table(SOURCE).rows == orders.expected(SOURCE)


def test_history_that_was_planned_is_not_read_as_planned_by_another_run_and_the_log_is() -> None:
    follower = Once(Lake({"a": Table((3, 4))}))
    assert follower.decider.resumable(planned(follower)) is False
    follower.finish()
    follower.lake.tables["a"].commit(5)
    assert follower.decider.resumable(planned(follower)) is True


def planned(follower: Once) -> PlannedEpoch[SnapshotPosition]:
    step = follower.decider.next(follower.position, live=follower.live, budget=9)
    assert step is not None
    return PlannedEpoch(reads=step.reads, before=follower.position, after=step.after)
