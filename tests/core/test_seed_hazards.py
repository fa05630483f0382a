"""Each bug and complaint known of the seed's source backfill (semantics §1.1(17), §5), shown to be impossible here."""

import pytest

from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import Phase, ViewPosition
from backfill_assets.errors import BrokerUnavailableError, OffsetsLostError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import Operator, SourceSettings, World
from tests.support.orders_world import offset_reads

SOURCE, VIEW = "sources/orders", "views/orders_view"


@pytest.fixture
def topic() -> SimulatedTopic:
    made = SimulatedTopic("orders")
    made.append(0, "abcdef")
    return made


@pytest.fixture
def world(topic: SimulatedTopic) -> World:
    return World(topic)


def newest(world: World, target: str = VIEW) -> CommitRecord:
    return world.table(target).commits[-1]


def right(world: World) -> bool:
    return world.table(VIEW).rows == world.expected(VIEW)


def test_17a_a_dropped_partition_is_refused_instead_of_staying_behind_in_the_state(world: World) -> None:
    two = SimulatedTopic("orders", partitions=2)
    world = World(two)
    world.refresh(SOURCE)
    del two._logs[1]
    with pytest.raises(OffsetsLostError, match="no such partition any more"):
        world.refresh(SOURCE)


def test_17b_throttling_and_a_new_partition_while_paused_do_not_bring_back_a_stale_position(
    world: World, topic: SimulatedTopic
) -> None:
    world.refresh(VIEW, Limits(max_rows=3))
    operator = Operator(paused=True, rows_per_second=2)
    assert world.refresh(VIEW, operator=operator).stopped is Stop.PAUSED
    topic.append(topic.add_partition(), "xy")
    world.refresh(SOURCE)
    operator.paused = False
    world.refresh(VIEW, operator=operator)
    assert right(world)
    assert max(world.table(VIEW).rows.values()) == 1


def test_17c_a_partition_that_appears_after_the_finish_keeps_the_view_live_and_its_progress_growing(
    world: World, topic: SimulatedTopic
) -> None:
    world.refresh(SOURCE)
    world.refresh(VIEW)
    topic.append(topic.add_partition(), "xy")
    world.refresh(SOURCE)
    before, after = newest(world), world.refresh(VIEW, Limits(max_rows=1)).record
    assert before.live
    assert after.live
    assert after.done > before.done
    assert after.total == before.total


def test_17d_a_view_can_be_paused_and_resumed_any_number_of_times(world: World) -> None:
    world.create(SOURCE)
    operator = Operator()
    for _ in range(3):
        operator.paused = True
        assert world.refresh(VIEW, operator=operator).offsets == 0
        operator.paused = False
        assert world.refresh(VIEW, Limits(max_rows=2), operator=operator).offsets == 2
    assert right(world)


def test_5_1_a_transactional_topic_whose_last_offset_is_a_control_record_finishes() -> None:
    topic = SimulatedTopic("orders")
    topic.commit(0, "abc")
    topic.abort(0, 2)
    world = World(topic)
    assert world.refresh(VIEW).record.live
    world.refresh(SOURCE)
    report = world.refresh(VIEW)
    assert (report.stopped, report.epochs) == (Stop.CAUGHT_UP, []), "nothing waits for a row at the last offset"
    topic.append(0, "d")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    position = newest(world).position
    assert isinstance(position, ViewPosition)
    assert position.sources["orders"].partitions[0].phase is Phase.FINISHED
    assert right(world)


def test_5_2_without_kafka_a_run_fails_at_once_and_the_view_can_still_be_dropped(world: World) -> None:
    world.refresh(VIEW, Limits(max_rows=2))

    def unreachable(_source: str) -> None:
        raise BrokerUnavailableError("no broker answered")

    reachable, world.topic = world.topic, unreachable  # type: ignore[assignment, method-assign]
    with pytest.raises(BrokerUnavailableError):
        world.refresh(VIEW)
    world.drop(VIEW)
    assert not world.table(VIEW).look().exists
    world.topic = reachable  # type: ignore[method-assign]
    world.refresh(VIEW)
    assert right(world)


@pytest.mark.parametrize("operator", [Operator(paused=True), Operator(rows_per_second=0)], ids=["paused", "rate 0"])
def test_5_3_a_view_that_is_paused_or_throttled_to_nothing_ends_its_run_and_holds_no_slot(
    world: World, operator: Operator
) -> None:
    report = world.refresh(VIEW, operator=operator)
    assert (report.stopped, report.offsets, world.clock.slept) == (Stop.PAUSED, 0, 0)
    assert world.refresh(SOURCE).stopped is Stop.CAUGHT_UP


def test_5_4_latest_means_the_end_when_the_source_is_made_and_is_recorded_as_offsets(topic: SimulatedTopic) -> None:
    world = World(topic, settings=SourceSettings(start="latest"))
    world.create(SOURCE)
    topic.append(0, "x" * 5)
    report = world.refresh(VIEW)
    assert report.record.total == 5
    assert world.expected(VIEW).total() == 5


def test_5_5_the_target_follows_what_bronze_committed_not_the_high_watermark(
    world: World, topic: SimulatedTopic
) -> None:
    world.create(VIEW)
    world.refresh(SOURCE, Limits(max_rows=4))
    topic.append(0, "x" * 50)
    found = world.decider(VIEW).next(newest(world).position, live=False, budget=100)
    assert found is not None
    assert [(each.start, each.end) for read in offset_reads(found.reads) for each in read.ranges.values()] == [(0, 4)]


def test_5_6_a_rate_of_zero_and_then_none_loses_no_rows(world: World) -> None:
    world.create(SOURCE)
    operator = Operator(rows_per_second=2)
    world.refresh(VIEW, Limits(max_rows=2), operator=operator)
    operator.rows_per_second = 0
    world.refresh(VIEW, operator=operator)
    operator.rows_per_second = None
    world.refresh(VIEW, operator=operator)
    assert right(world)
    assert newest(world).done == 6


def test_5_7_progress_never_goes_backwards_and_its_total_is_frozen(world: World, topic: SimulatedTopic) -> None:
    world.create(VIEW)
    for _ in range(5):
        topic.append(0, "xyz")
        world.refresh(SOURCE, Limits(max_rows=4))
        world.refresh(VIEW, Limits(max_rows=2))
    commits = world.table(VIEW).commits
    assert {each.total for each in commits} == {6}
    assert [each.done for each in commits] == sorted(each.done for each in commits)


def test_5_8_progress_is_numbers_from_the_first_moment(world: World) -> None:
    world.create(VIEW)
    record = newest(world)
    assert (record.done, record.total) == (0, 6)
    decider = world.decider(VIEW)
    assert decider.lag(record.position) == {"orders/0": 6}
    world.refresh(VIEW, Limits(max_rows=2))
    assert (newest(world).done, decider.lag(newest(world).position)) == (2, {"orders/0": 4})


def test_5_11_a_view_that_is_dropped_and_made_again_reads_all_history_whatever_was_left_behind(world: World) -> None:
    world.refresh(VIEW)
    left_behind = dict(world.ledger.plans)
    world.drop(VIEW)
    report = world.refresh(VIEW)
    assert left_behind.items() <= world.ledger.plans.items()
    assert (report.offsets, report.totals.rows_written) == (6, 6)
    assert right(world)


def test_i11_finishing_needs_no_new_data_and_no_running_ingest(world: World) -> None:
    world.create(SOURCE)
    report = world.refresh(VIEW)
    assert (report.stopped, report.record.live) == (Stop.CAUGHT_UP, True)
    assert world.table(SOURCE).rows.total() == 0
