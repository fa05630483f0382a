"""A topic whose log lost its end: records that were read and no longer exist are named, and a mere change of leaders is
not an error."""

from collections.abc import Mapping
from copy import deepcopy

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import IngestPosition, LogMark, ViewPosition, Witness
from backfill_assets.core.strategies.truncation import WITNESSES, narrowed
from backfill_assets.errors import LogTruncatedError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import SourceSettings, World
from tests.support.truncated_logs import SOURCE, VIEW, make, newest, position, refused


def test_a_log_that_lost_its_end_and_was_filled_again_beyond_the_position_is_refused() -> None:
    world, topic = make(rows="abcdef")
    world.refresh(SOURCE)
    topic.truncate(0, 4)
    topic.append(0, "ABCDEFG")
    refused(world, SOURCE, {0: (4, 6)}, "4 to 6 of partition 0", "'orders'", "declare a source with another name")


def test_a_log_that_was_filled_again_exactly_to_the_position_is_refused_too() -> None:
    world, topic = make(rows="abcdef")
    world.refresh(SOURCE)
    topic.truncate(0, 4)
    topic.append(0, "AB")
    refused(world, SOURCE, {0: (4, 6)})


def test_all_partitions_are_counted_and_few_are_named() -> None:
    world, topic = make(partitions=8)
    for partition in topic.partitions:
        topic.append(partition, "abc")
    world.refresh(SOURCE)
    for partition in topic.partitions:
        topic.truncate(partition, 1)
        topic.append(partition, "ABCD")
    refused(world, SOURCE, dict.fromkeys(topic.partitions, (1, 3)), "of partition 4 and of 3 more partitions")


def test_other_leaders_with_all_records_are_no_error_and_cost_no_request_if_nothing_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    for _ in range(3):
        topic.elect(0)
        topic.append(0, "de")
        world.refresh(SOURCE)
    assert world.table(SOURCE).rows == world.expected(SOURCE)
    assert position(world).log.epochs == {0: 3}
    monkeypatch.setattr(topic, "diverged", None)
    monkeypatch.setattr(topic, "last_records", None)
    assert world.refresh(SOURCE).epochs == []
    topic.elect(0)
    topic.append(0, "f")
    assert world.decider(SOURCE).waits(position(world), live=True), "a tick asks for the topic and for nothing else"


def test_partitions_that_have_the_same_leaders_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world, topic = make(partitions=3)
    for partition in topic.partitions:
        topic.append(partition, "abc")
    world.refresh(SOURCE)
    asked: list[Mapping[int, tuple[int, int]]] = []

    def diverged(read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        asked.append(read)
        return {}

    monkeypatch.setattr(topic, "diverged", diverged)
    topic.elect(1)
    topic.append(0, "d")
    world.refresh(SOURCE)
    assert asked == [{1: (3, 0)}] * 2, "once to plan, and once more before the commit"


def test_a_cluster_restored_with_its_metadata_reuses_epochs_and_is_detected_by_its_records() -> None:
    world, topic = make(rows="abc")
    backup = deepcopy(topic)
    topic.elect(0)
    topic.append(0, "def")
    world.refresh(SOURCE)
    topic.restore(backup)
    topic.append(0, "DEFG")
    assert topic.offer().epochs == position(world).log.epochs, "the epoch alone tells nothing"
    refused(world, SOURCE, {0: (3, 6)})


@pytest.mark.parametrize("settings", [SourceSettings(keep_history=False), SourceSettings(start="latest")], ids=repr)
def test_a_source_that_has_read_nothing_yet_knows_a_record_below_its_start(settings: SourceSettings) -> None:
    topic = SimulatedTopic("orders", partitions=2)
    world = World(topic, settings=settings)
    topic.append(0, "abc")
    backup = deepcopy(topic)
    topic.elect(0)
    topic.append(0, "def")
    world.create(SOURCE)
    assert {at: each.offset for at, each in position(world).log.witnesses.items()} == {0: 5}
    if not settings.keep_history:
        world.refresh(
            VIEW, Limits(max_rows=2)
        )  # it still has to read history, all of which is below the source's start
    topic.restore(backup)
    topic.append(0, "DEFG")
    refused(world, SOURCE, {0: (3, 6)})
    if not settings.keep_history:
        refused(world, VIEW, {0: (3, 6)})


def test_an_epoch_that_went_back_is_refused_unless_the_last_record_is_still_there() -> None:
    world, topic = make(rows="abc")
    backup = deepcopy(topic)
    topic.elect(0)
    topic.elect(0)
    world.refresh(SOURCE)
    topic.restore(backup)
    topic.append(0, "d")
    world.refresh(SOURCE)
    assert position(world).log.epochs == {0: 1}
    assert world.table(SOURCE).rows == world.expected(SOURCE)

    topic.abort(0, 10)
    world.refresh(SOURCE)
    topic.restore(backup, restarts=0)
    topic.abort(0, 12)
    refused(world, SOURCE, {0: (0, 15)})


def test_a_limited_number_of_records_is_remembered_those_read_last() -> None:
    world, topic = make(partitions=WITNESSES + 4)
    for partition in topic.partitions:
        topic.append(partition, "abc")
    world.refresh(SOURCE)
    last = topic.partitions[-1]
    topic.append(last, "d")
    world.refresh(SOURCE)
    witnesses = position(world).log.witnesses
    assert (len(witnesses), witnesses[last].offset) == (WITNESSES, 3)


def test_a_remembered_record_that_is_compacted_away_or_expired_proves_nothing() -> None:
    for lose in ("compact", "retain"):
        world, topic = make(rows="abc")
        world.refresh(SOURCE)
        if lose == "compact":
            topic.compact(0, [0, 1, 2])
        else:
            topic.retain(0, 3)
        topic.append(0, "d")
        assert len(world.refresh(SOURCE).epochs) == 1


def test_without_any_remaining_record_nothing_can_be_detected() -> None:
    world, topic = make(rows="abc")
    backup = deepcopy(topic)
    topic.elect(0)
    topic.elect(0)
    world.refresh(SOURCE)
    topic.restore(backup)
    topic.retain(0, 3)
    topic.append(0, "d")
    assert len(world.refresh(SOURCE).epochs) == 1


def test_epochs_detect_it_if_all_records_below_the_position_are_compacted_away() -> None:
    world, topic = make(rows="abcdef")
    world.refresh(SOURCE)
    topic.compact(0, range(6))
    topic.truncate(0, 4)
    topic.append(0, "ABCDEFG")
    refused(world, SOURCE, {0: (4, 6)})


def test_a_position_without_a_mark_is_taken_as_it_is_and_marked_from_then_on() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    unknown = position(world).model_dump(mode="json")
    del unknown["log"]
    old = IngestPosition.model_validate(unknown)
    assert old.log == LogMark()
    topic.truncate(0, 2)
    topic.append(0, "CD")
    step = world.decider(SOURCE).next(old, live=True, budget=5)
    assert step is not None
    assert isinstance(step.after, IngestPosition)
    assert step.after.log.epochs == {0: 1}
    assert step.after.log.witnesses[0].offset == 3


def test_a_plan_whose_offsets_have_other_records_now_is_superseded() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    topic.append(0, "def")
    with pytest.raises(Crash):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("staged")))
    topic.truncate(0, 4)
    topic.append(0, "EFGH")
    world.refresh(SOURCE)
    assert position(world).next == {0: 8}
    assert world.table(SOURCE).rows == world.expected(SOURCE)


@pytest.mark.parametrize("step", ["planned", "staged"])
@pytest.mark.parametrize("restored", [False, True])
def test_a_plan_is_not_redone_over_a_log_that_lost_what_was_read_before(step: str, restored: bool) -> None:
    world, topic = make(rows="abc")
    backup = deepcopy(topic)
    topic.elect(0)
    topic.append(0, "def")
    world.refresh(SOURCE)
    topic.append(0, "ghi")
    with pytest.raises(Crash):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint(step)))
    if restored:
        topic.restore(backup)
    else:
        topic.truncate(0, 3)
    topic.append(0, "DEFGHIJKL")
    refused(world, SOURCE, {0: (3, 6)})


def test_a_log_that_loses_its_end_between_plan_and_commit_stops_the_epoch() -> None:
    world, topic = make(rows="abc")
    world.refresh(SOURCE)
    topic.append(0, "de")

    def lose() -> None:
        topic.truncate(0, 2)
        topic.append(0, "CDEFG")

    with pytest.raises(LogTruncatedError):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("planned", action=lose)))
    assert position(world).next == {0: 3}


# Views that read history from Kafka


def test_a_new_view_does_not_read_history_that_its_source_never_read() -> None:
    world, topic = make(rows="abcdef")
    world.refresh(SOURCE)
    topic.truncate(0, 4)
    topic.append(0, "EFGH")
    with pytest.raises(LogTruncatedError, match="source 'orders'"):
        world.refresh(VIEW)
    assert not world.table(VIEW).versions, "not even the table is made"


@pytest.mark.parametrize("restored", [False, True])
def test_history_that_a_view_read_ahead_of_its_source_and_that_is_gone_is_named(restored: bool) -> None:
    world, topic = make(rows="abc")
    backup = deepcopy(topic)
    topic.elect(0)
    world.create(VIEW)
    topic.append(0, "def")
    world.refresh(VIEW, Limits(max_rows=2))
    world.reset(VIEW)
    world.refresh(VIEW)
    assert position(world).next == {0: 0}, "the source has read nothing yet"
    if restored:
        topic.restore(backup)
    else:
        topic.truncate(0, 3)
    topic.append(0, "DEFG")
    world.refresh(SOURCE)
    refused(world, VIEW, {0: (3, 6)}, "view 'orders_view'", "reset orders_view")
    world.reset(VIEW)
    world.refresh(VIEW)
    assert world.table(VIEW).rows == world.expected(VIEW) == world.table(SOURCE).rows


def test_a_view_that_bronze_has_reached_remembers_no_logs_and_asks_for_no_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, topic = make(rows="abc")
    world.refresh(VIEW)
    ahead = newest(world, VIEW).position
    assert isinstance(ahead, ViewPosition)
    assert ahead.sources["orders"].log.epochs == {0: 0}
    topic.append(0, "d")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    level = newest(world, VIEW).position
    assert isinstance(level, ViewPosition)
    assert level.sources["orders"].log == LogMark()
    monkeypatch.setattr(topic, "offer", None)
    assert world.refresh(VIEW).epochs == []


def test_a_mark_of_some_partitions_has_the_leaders_and_records_of_just_these() -> None:
    whole = LogMark(
        epochs={0: 3, 1: 4, 2: 5},
        witnesses={0: Witness(offset=7, digest="a"), 2: Witness(offset=9, digest="b")},
    )
    assert narrowed(whole, {0, 1}) == LogMark(epochs={0: 3, 1: 4}, witnesses={0: Witness(offset=7, digest="a")})
    assert narrowed(whole, {0, 1, 2}) == whole
