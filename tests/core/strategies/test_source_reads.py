"""Where a view reads history, from Kafka or bronze, and what it refuses to read at all."""

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.strategies.ingest import kafka_holds
from backfill_assets.core.strategies.source import begin_source
from backfill_assets.errors import OffsetsLostError, TopicRecreatedError, UpstreamChangedError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from tests.support.orders_world import SOURCE, VIEW, make, reads, refused, right, step


def test_with_bronze_new_older_records_come_from_kafka_and_newer_ones_from_bronze() -> None:
    world, topic = make(bronze="new", rows="abc")
    world.create(SOURCE)
    topic.append(0, "de")
    world.refresh(SOURCE)
    assert reads(step(world, budget=2)) == {"kafka": (0, 2)}
    world.refresh(VIEW)
    assert [row.value for row in world.table(SOURCE).rows] == ["d", "e"]
    assert [row.value for row in sorted(world.table(VIEW).rows)] == list("abcde")


def test_a_compacted_topic_is_read_from_bronze_where_bronze_has_it() -> None:
    world, topic = make(compacted=True, rows="abcd")
    world.refresh(SOURCE)
    topic.compact(0, [1, 2])
    topic.append(0, "ef")
    assert reads(step(world)) == {"bronze": (0, 4)}
    world.refresh(VIEW)
    world.refresh(SOURCE)
    world.refresh(VIEW)
    assert right(world)


def test_a_compacted_topic_with_bronze_new_is_read_from_kafka_up_to_where_bronze_begins() -> None:
    world, topic = make(bronze="new", compacted=True, rows="abc")
    world.create(SOURCE)
    topic.append(0, "def")
    world.refresh(SOURCE)
    topic.compact(0, [4])
    assert reads(step(world)) == {"kafka": (0, 3)}
    world.refresh(VIEW)
    assert right(world)


def test_history_that_kafka_lost_is_read_from_bronze_where_bronze_has_it() -> None:
    world, topic = make(rows="abcdef")
    world.refresh(SOURCE)
    topic.retain(0, 3)
    assert reads(step(world, budget=4)) == {"bronze": (0, 4)}
    world.refresh(VIEW, Limits(chunk_rows=4))
    assert right(world)


def test_history_that_nobody_has_any_more_is_an_error_never_a_gap() -> None:
    world, topic = make(bronze="new", rows="abcdef")
    world.create(VIEW)
    topic.retain(0, 3)
    refused(world, OffsetsLostError, "partition 0, must be read from offset 0", "still has is 3", "nothing was skipped")


def test_a_planned_epoch_whose_history_kafka_lost_since_is_read_from_bronze_instead() -> None:
    world, topic = make(rows="abcdef")
    world.create(VIEW)
    with pytest.raises(Crash):
        world.refresh(VIEW, parts=world.parts(VIEW, on_step=CrashPoint("planned")))
    world.refresh(SOURCE)
    topic.retain(0, 3)
    world.refresh(VIEW)
    assert right(world)
    assert [reads(plan) for plan in next(p for life, p in world.ledger.plans.items() if life[0] == VIEW)] == [
        {"kafka": (0, 6)},
        {"bronze": (0, 6)},
    ]


def test_a_planned_epoch_over_a_topic_that_was_compacted_since_is_read_from_bronze_instead() -> None:
    world, topic = make(compacted=True, rows="abcdef")
    world.create(VIEW)
    with pytest.raises(Crash):
        world.refresh(VIEW, parts=world.parts(VIEW, on_step=CrashPoint("staged")))
    world.refresh(SOURCE)
    topic.compact(0, [2])
    world.refresh(VIEW)
    assert right(world)


def test_a_view_over_a_topic_that_was_recreated_is_not_begun() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    topic.recreate(partitions=1)
    with pytest.raises(TopicRecreatedError):
        world.create(VIEW)
    assert world.table(VIEW).commits == []


def test_a_view_over_a_topic_that_lost_a_partition_is_not_begun() -> None:
    world, topic = make(rows="abc")
    topic.add_partition()
    bronze = world.create_bronze("orders")
    fewer, _ = make(rows="abc")
    with pytest.raises(OffsetsLostError, match="has no partition 1 any more"):
        begin_source("orders", bronze, fewer.topic("orders"))


def test_kafka_holds_a_range_if_it_has_its_first_and_last_offset() -> None:
    world, topic = make(rows="abcdef")
    topic.retain(0, 2)
    offer = world.topic("orders")
    found = {
        (start, end): kafka_holds(offer, {0: OffsetRange(start=start, end=end)})
        for start, end in ((2, 6), (1, 6), (2, 7), (6, 6))
    }
    assert found == {(2, 6): True, (1, 6): False, (2, 7): False, (6, 6): True}
    assert not kafka_holds(offer, {1: OffsetRange(start=0, end=0)})


def test_history_is_read_from_kafka_no_further_than_kafka_goes() -> None:
    world, topic = make(rows="abcdef")
    world.create(VIEW)
    topic.truncate(0, 4)
    assert reads(step(world)) == {"kafka": (0, 4)}


def test_a_recreated_topic_is_refused_while_history_is_read_even_for_an_epoch_that_is_planned() -> None:
    world, topic = make(rows="abc")
    world.create(VIEW)
    with pytest.raises(Crash):
        world.refresh(VIEW, parts=world.parts(VIEW, on_step=CrashPoint("planned")))
    topic.recreate(partitions=1)
    topic.append(0, "xyz")
    refused(world, TopicRecreatedError, "expected topic id orders-1", "found orders-2")


def test_a_source_that_was_reset_under_a_view_is_refused_by_its_incarnation() -> None:
    world, _ = make(rows="abc")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    world.reset(SOURCE)
    world.refresh(SOURCE)
    refused(world, UpstreamChangedError, "source 'orders' was reset", "expected incarnation 0000", "found incarnation")
    world.reset(VIEW)
    world.refresh(VIEW)
    assert right(world)


def test_a_source_that_is_still_empty_after_its_reset_is_named_by_its_incarnation_too() -> None:
    world, _ = make(rows="abc")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    world.reset(SOURCE)
    refused(world, UpstreamChangedError, "expected incarnation 0000", "found incarnation")


@pytest.mark.parametrize("planned", [False, True])
def test_a_source_that_was_restored_under_a_view_is_refused(planned: bool) -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    topic.append(0, "def")
    backup = world.table(SOURCE).version
    world.refresh(SOURCE)
    if planned:
        with pytest.raises(Crash):
            world.refresh(VIEW, parts=world.parts(VIEW, on_step=CrashPoint("planned")))
    else:
        world.refresh(VIEW)
    world.table(SOURCE).restore_backup(backup)
    refused(world, UpstreamChangedError, "partitions [0] went back", "backfill reset orders_view")


def test_a_source_that_was_restored_to_before_a_partition_joined_is_refused() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    backup = world.table(SOURCE).version
    topic.append(topic.add_partition(), "xy")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    world.table(SOURCE).restore_backup(backup)
    refused(world, UpstreamChangedError, "partitions [1] went back")
