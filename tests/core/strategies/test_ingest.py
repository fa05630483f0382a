"""What a source ingests next, and what it refuses."""

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import TopicState
from backfill_assets.core.progress.positions import IngestPosition, OffsetRange
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.errors import BackfillError, LogTruncatedError, OffsetsLostError, TopicRecreatedError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import SourceSettings, World

SOURCE = "sources/orders"


def make(*, partitions: int = 1, start: object = "earliest", bronze: str = "all") -> tuple[World, SimulatedTopic]:
    topic = SimulatedTopic("orders", partitions=partitions)
    settings = SourceSettings(start=start, keep_history=bronze == "all")  # type: ignore[arg-type]
    return World(topic, settings=settings), topic


def position(world: World) -> IngestPosition:
    found = world.table(SOURCE).commits[-1].position
    assert isinstance(found, IngestPosition)
    return found


def refused(world: World, error: type[BackfillError], *texts: str) -> BackfillError:
    """A refresh that is refused and changes nothing."""
    version = world.table(SOURCE).version
    with pytest.raises(error) as caught:
        world.refresh(SOURCE)
    for text in texts:
        assert text in str(caught.value)
    assert caught.value.hint
    assert world.table(SOURCE).version == version, "nothing may be written"
    return caught.value


def test_all_records_are_ingested_once_and_control_records_are_passed_over() -> None:
    world, topic = make(partitions=2)
    topic.commit(0, "ab")
    topic.abort(1, 3)
    report = world.refresh(SOURCE)
    assert position(world).next == {0: 3, 1: 4}
    assert world.table(SOURCE).rows == world.expected(SOURCE)
    assert (report.totals.rows_written, report.offsets, report.record.live) == (2, 7, True)


def test_an_epoch_reads_at_most_its_budget_and_starves_no_partition() -> None:
    world, topic = make(partitions=3)
    for partition, rows in enumerate([1, 10, 100]):
        topic.append(partition, "x" * rows)
    world.create(SOURCE)
    step = world.decider(SOURCE).next(position(world), live=False, budget=9)
    assert step is not None
    (read,) = step.reads
    assert isinstance(read, KafkaRead)
    assert {partition: len(each) for partition, each in read.ranges.items()} == {0: 1, 1: 4, 2: 4}
    assert not step.live


def test_an_empty_topic_is_live_at_once_and_needs_no_epoch() -> None:
    world, _ = make()
    report = world.refresh(SOURCE)
    assert (report.epochs, report.record.live, report.record.total) == ([], True, 0)


def test_a_partition_that_joins_later_is_read_from_its_very_first_offset() -> None:
    world, topic = make(start="latest")
    topic.append(0, "old")
    world.refresh(SOURCE)
    topic.append(topic.add_partition(), "new")
    world.refresh(SOURCE)
    assert position(world).begin == {0: 3, 1: 0}
    assert [row.value for row in sorted(world.table(SOURCE).rows)] == ["n", "e", "w"]


def test_a_partition_that_joins_empty_is_recorded_in_an_epoch_without_rows_and_then_there_is_nothing_to_do() -> None:
    world, topic = make()
    world.refresh(SOURCE)
    topic.add_partition()
    assert len(world.refresh(SOURCE).epochs) == 1
    assert position(world).next == {0: 0, 1: 0}
    assert world.refresh(SOURCE).epochs == []


@pytest.mark.parametrize(
    ("start", "bronze", "history", "begin"),
    [("earliest", "all", 2, 2), ("latest", "all", 5, 5), ({0: 3}, "all", 3, 3), ("earliest", "new", 2, 5)],
)
def test_the_start_is_resolved_once_when_the_source_is_created(
    start: object, bronze: str, history: int, begin: int
) -> None:
    world, topic = make(start=start, bronze=bronze)
    topic.append(0, "abcde")
    topic.retain(0, 2)
    world.create(SOURCE)
    topic.append(0, "fg")
    assert (position(world).history, position(world).begin) == ({0: history}, {0: begin})
    world.refresh(SOURCE)
    assert (position(world).history, position(world).next) == ({0: history}, {0: 7})
    assert world.table(SOURCE).rows == world.expected(SOURCE)


def test_a_start_beyond_the_end_is_refused() -> None:
    world, topic = make(start={0: 9})
    topic.append(0, "ab")
    refused(world, OffsetsLostError, "start offset 9 of partition 0", "has 0 (earliest) to 2 (end", "at most 2")


def test_a_start_that_retention_removed_is_refused() -> None:
    world, topic = make(start={0: 1})
    topic.append(0, "abc")
    topic.retain(0, 2)
    refused(world, OffsetsLostError, "start offset 1", "has 2 (earliest)", "start at 2 or later")


def test_a_start_for_other_partitions_than_the_topic_has_is_refused() -> None:
    world, _ = make(partitions=2, start={0: 0})
    refused(world, OffsetsLostError, "start names partitions [0]", "has [0, 1]", "give a start for each partition")


def test_offsets_that_retention_removed_before_they_were_read_are_an_error_never_a_gap() -> None:
    world, topic = make()
    topic.append(0, "ab")
    world.refresh(SOURCE)
    topic.append(0, "cdef")
    topic.retain(0, 4)
    error = refused(
        world, OffsetsLostError, "partition 0 must be read from offset 2", "still has is 4", "backfill reset"
    )
    assert (error.facts["expected"], error.facts["earliest"]) == (2, 4)


def test_a_truncated_topic_is_refused() -> None:
    world, topic = make()
    topic.append(0, "abcd")
    world.refresh(SOURCE)
    topic.truncate(0, 2)
    error = refused(
        world, LogTruncatedError, "offsets 2 to 4 of partition 0", "backfill reset orders", "with another name"
    )
    assert error.facts["ranges"] == {0: (2, 4)}


def test_a_partition_that_vanished_is_refused() -> None:
    held = IngestPosition(topic="orders", topic_id=None, history={0: 0, 1: 0}, begin={0: 0, 1: 0}, next={0: 0, 1: 0})
    world, _ = make()
    with pytest.raises(OffsetsLostError, match=r"partition 1 .* no such partition any more"):
        world.decider(SOURCE).next(held, live=True, budget=5)


def test_a_recreated_topic_is_refused_even_where_its_offsets_fit() -> None:
    world, topic = make()
    topic.append(0, "ab")
    world.refresh(SOURCE)
    topic.recreate(partitions=1)
    topic.append(0, "vwxyz")
    refused(world, TopicRecreatedError, "expected topic id orders-1", "found orders-2", "backfill reset orders")
    world.reset(SOURCE)
    world.refresh(SOURCE)
    assert world.table(SOURCE).rows == world.expected(SOURCE)


@pytest.mark.parametrize("step", ["planned", "staged"])
def test_a_topic_recreated_while_a_planned_epoch_waits_to_be_redone_is_refused(step: str) -> None:
    world, topic = make()
    topic.append(0, "ab")
    world.create(SOURCE)
    with pytest.raises(Crash):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint(step)))
    topic.recreate(partitions=1)
    topic.append(0, "xyz")
    refused(world, TopicRecreatedError, "found orders-2")


def test_a_topic_recreated_between_plan_and_read_is_refused() -> None:
    world, topic = make()
    topic.append(0, "ab")
    world.create(SOURCE)

    def recreate() -> None:
        topic.recreate(partitions=1)
        topic.append(0, "xyz")

    with pytest.raises(TopicRecreatedError):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("planned", action=recreate)))
    assert not world.table(SOURCE).rows


def test_brokers_that_report_no_topic_id_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    world, topic = make()
    topic.append(0, "a")
    held = IngestPosition(topic="orders", topic_id="other", history={0: 0}, begin={0: 0}, next={0: 0})
    offer = TopicState(topic="orders", topic_id=None, partitions={0: OffsetRange(start=0, end=1)})
    monkeypatch.setattr(world, "topic", lambda _source: offer)
    assert world.decider(SOURCE).next(held, live=True, budget=5) is not None


def test_done_grows_to_the_total_that_was_frozen_at_the_start_and_never_goes_back() -> None:
    world, topic = make(partitions=2)
    topic.append(0, "abcdef")
    topic.append(1, "abcd")
    world.refresh(SOURCE, Limits(chunk_rows=3))
    topic.append(0, "gh")
    world.refresh(SOURCE, Limits(chunk_rows=3))
    commits = world.table(SOURCE).commits
    assert {each.total for each in commits} == {10}
    assert [each.done for each in commits] == sorted(each.done for each in commits)
    assert commits[-1].done == 12


def test_lag_and_offsets_are_reported_by_partition() -> None:
    world, topic = make(partitions=2)
    topic.append(1, "abc")
    world.refresh(SOURCE)
    topic.append(1, "de")
    decider = world.decider(SOURCE)
    assert decider.offsets(position(world)) == {"orders/0": 0, "orders/1": 3}
    assert decider.lag(position(world)) == {"orders/0": 0, "orders/1": 2}
