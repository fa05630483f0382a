"""What a view over a source reads next: history, live rows and the seam between them."""

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import Phase
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import SourceSettings, World
from tests.support.orders_world import SOURCE, VIEW, make, offset_reads, partition, reads, right, step


def test_history_is_read_from_kafka_without_waiting_for_bronze_and_live_rows_below_it_are_dropped() -> None:
    world, topic = make(rows="abcdef")
    world.create(SOURCE)
    assert reads(step(world)) == {"kafka": (0, 6)}
    assert world.refresh(VIEW).record.live
    assert partition(world).phase is Phase.CATCHING_UP
    world.refresh(SOURCE, Limits(chunk_rows=4, max_rows=4))
    assert step(world) is None, "bronze is behind: its rows are hidden"
    topic.append(0, "gh")
    world.refresh(SOURCE)
    assert reads(step(world)) == {"bronze": (6, 8)}
    world.refresh(VIEW)
    assert partition(world).phase is Phase.FINISHED
    assert right(world)


def test_history_behind_bronze_reads_up_to_bronze_and_no_further() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    world.create(VIEW)
    topic.append(0, "def")
    world.refresh(SOURCE)
    assert reads(step(world, budget=2)) == {"kafka": (0, 2)}
    topic.append(0, "ghi")
    assert reads(step(world)) == {"kafka": (0, 6)}, "the target is where bronze is, not where the topic ends"
    world.refresh(VIEW)
    assert partition(world).phase is Phase.FINISHED
    assert right(world)


def test_history_ahead_of_a_moving_bronze_stops_there() -> None:
    world, _ = make(rows="abcdefgh")
    world.create(SOURCE)
    world.refresh(VIEW, Limits(max_rows=4))
    world.refresh(SOURCE, Limits(max_rows=2))
    after = step(world)
    assert after is not None
    assert after.reads == ()
    world.refresh(VIEW)
    assert (partition(world).phase, partition(world).next) == (Phase.CATCHING_UP, 4)
    world.refresh(SOURCE)
    assert reads(step(world)) == {"bronze": (4, 8)}


def test_a_partition_that_is_catching_up_or_finished_never_reads_history_again() -> None:
    world, topic = make(rows="abc")
    world.create(SOURCE)
    world.refresh(VIEW)
    topic.append(0, "def")
    assert step(world) is None
    world.refresh(SOURCE)
    after = step(world)
    assert after is not None
    assert not any(isinstance(read, KafkaRead) for read in after.reads)


def test_an_empty_partition_is_finished_at_once() -> None:
    world, _ = make()
    world.create(VIEW)
    assert partition(world).phase is Phase.FINISHED
    assert world.refresh(VIEW).record.live


def test_a_view_over_a_source_that_starts_at_latest_has_no_history_however_late_it_is_made() -> None:
    topic = SimulatedTopic("orders")
    topic.append(0, "abc")
    world = World(topic, settings=SourceSettings(start="latest"))
    world.create(SOURCE)
    topic.append(0, "de")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    assert [row.value for row in sorted(world.table(VIEW).rows)] == ["d", "e"]


def test_a_new_partition_joins_finished_and_comes_from_bronze_alone() -> None:
    world, topic = make(rows="ab")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    topic.append(topic.add_partition(), "xyz")
    assert step(world) is None
    world.refresh(SOURCE)
    after = step(world)
    assert after is not None
    assert [read.kind for read in after.reads] == ["bronze"]
    world.refresh(VIEW)
    assert (partition(world, 1).phase, partition(world, 1).start) == (Phase.FINISHED, 0)
    assert right(world)


def test_history_has_half_of_each_epoch_under_a_topic_that_never_rests() -> None:
    world, topic = make(rows="a" * 40)
    world.create(SOURCE)
    topic.append(topic.add_partition(), "b")
    world.create(VIEW)
    epochs = 0
    while partition(world).phase is Phase.BACKFILLING:
        topic.append(1, "b" * 50)
        world.refresh(SOURCE)
        world.refresh(VIEW, Limits(chunk_rows=10, max_rows=10))
        epochs += 1
    assert epochs <= 8
    assert right(world)


def test_a_live_partition_is_not_held_up_by_another_ones_history() -> None:
    world, topic = make(rows="a" * 90)
    topic.add_partition()
    world.create(VIEW)
    topic.append(1, "bbb")
    world.refresh(SOURCE)
    found = step(world, budget=20)
    assert found is not None
    live = [read for read in found.reads if isinstance(read, BronzeRead)]
    assert [read.ranges.keys() for read in live] == [{1}]
    assert sum(len(each) for read in offset_reads(found.reads) for each in read.ranges.values()) == 20


def test_a_view_is_live_when_no_row_of_bronze_waits_and_a_partition_that_joined_is_behind_until_it_is_read() -> None:
    world, topic = make(rows="aaa")
    world.refresh(SOURCE)
    world.create(VIEW)
    topic.append(topic.add_partition(), "bbbbbb")
    world.refresh(SOURCE)
    record = world.create(VIEW).record
    assert record is not None
    assert world.decider(VIEW).lag(record.position) == {"orders/0": 3, "orders/1": 6}
    lives = []
    while not record.live:
        record = world.refresh(VIEW, Limits(chunk_rows=4, max_rows=4)).record
        lives.append((record.done, record.live))
    assert lives == [(4, False), (8, False), (9, True)]


def test_a_view_over_two_sources_shares_its_budget_and_is_live_when_both_are() -> None:
    first, second = SimulatedTopic("a"), SimulatedTopic("b")
    world = World(first, second)
    both = world.add_view("both", ("a", "b"))
    first.append(0, "x" * 10)
    second.append(0, "y" * 10)
    world.create(both)
    record = world.refresh(both, Limits(chunk_rows=4, max_rows=4)).record
    assert world.decider(both).offsets(record.position) == {"a/0": 2, "b/0": 2}
    assert not record.live
    assert world.refresh(both, Limits(chunk_rows=4)).record.live
    assert world.table(both).rows == world.expected(both)
