"""The pure checks: how commits and the ledger must agree, and where records are read again as evidence."""

from dataclasses import replace

import pytest

from backfill_assets.core.audit import (
    KEPT_PLANS,
    LedgerEntry,
    conserved,
    consumed,
    contiguous,
    evidence,
    ledger_agrees,
)
from backfill_assets.core.epoch.ports import BronzeState, TopicState
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan
from backfill_assets.core.progress.positions import (
    IngestPosition,
    OffsetRange,
    PartitionState,
    Phase,
    SourcePosition,
    ViewPosition,
)
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.core.strategies.source import SourceUpstream
from tests.support.orders_world import offset_reads

LIFE = "a" * 12
SOURCE = SourceUpstream(name="orders", topic="t", isolation="read_committed")


def span(start: int, end: int) -> OffsetRange:
    return OffsetRange(start=start, end=end)


def at(*offsets: int) -> IngestPosition:
    begin = dict.fromkeys(range(len(offsets)), 0)
    return IngestPosition(topic="t", topic_id="1", history=begin, begin=begin, next=dict(enumerate(offsets)))


def plan(epoch: int, before: IngestPosition, after: IngestPosition, *ranges: tuple[int, int]) -> Plan:
    read = KafkaRead(
        source="orders",
        topic="t",
        isolation="read_committed",
        ranges={partition: span(*each) for partition, each in enumerate(ranges)},
    )
    return Plan(
        target="sources/orders",
        incarnation=LIFE,
        epoch=epoch,
        fingerprint={},
        reads=(read,),
        before=before,
        after=after,
        live=True,
    )


def commit(planned: Plan | None, rows: int = 0, total: int = 0) -> CommitRecord:
    position = planned.after if planned else at(0)
    assert isinstance(position, IngestPosition)
    return CommitRecord(
        kind=CommitKind.EPOCH if planned else CommitKind.CREATE,
        target="sources/orders",
        incarnation=LIFE,
        epoch=planned.epoch if planned else 0,
        attempt="b" * 12,
        plan_hash=planned.hash if planned else "",
        fingerprint={},
        position=position,
        live=True,
        rows_read=rows,
        rows_written=rows,
        rows_total=total,
        done=sum(position.next.values()),
        started_at=0,
        finished_at=1,
        created_at=0,
    )


def entry(planned: Plan, *, known: bool = True) -> LedgerEntry:
    return LedgerEntry(
        epoch=planned.epoch, plan_hash=planned.hash, plan=planned if known else None, found_hash=planned.hash
    )


FIRST = plan(1, at(0), at(5), (0, 5))
SECOND = plan(2, at(5), at(9), (5, 9))
RECORDS = [commit(None), commit(FIRST, 5, 5), commit(SECOND, 4, 9)]
ENTRIES = [entry(FIRST), entry(SECOND)]


def test_a_good_history_has_no_violations() -> None:
    assert contiguous(RECORDS, ENTRIES) == []
    assert ledger_agrees(RECORDS, ENTRIES, 2) == []
    assert ledger_agrees(RECORDS, ENTRIES, 3) == []
    assert conserved(RECORDS, 9, copies=1) == []


def test_a_missing_epoch_is_named() -> None:
    assert contiguous([RECORDS[0], RECORDS[2]], ENTRIES) == ["epoch 2 follows epoch 0"]


def test_a_position_that_moves_without_its_offsets_being_read_is_named() -> None:
    jump = plan(2, at(5), at(9), (6, 9))
    (violation,) = contiguous([RECORDS[1], commit(jump)], [entry(jump)])
    assert "epoch 2: partition 0 of the topic moved from 5 to 9" in violation
    assert "6" in violation.partition("read")[2]


def test_a_position_that_goes_back_and_a_partition_that_is_gone_are_named() -> None:
    back = plan(2, at(5), at(4), (4, 4))
    assert contiguous([RECORDS[1], commit(back)], [entry(back)]) == [
        "epoch 2: partition 0 of the topic went back from 5 to 4"
    ]
    gone = plan(2, at(5), at(), (5, 5))
    assert contiguous([RECORDS[1], commit(gone)], []) == ["epoch 2: partition 0 of the topic is missing"]


def test_a_partition_that_joins_counts_from_its_beginning() -> None:
    joined = plan(2, at(5), at(5, 3), (5, 5), (0, 3))
    assert contiguous([RECORDS[1], commit(joined)], [entry(joined)]) == []
    late = plan(2, at(5), at(5, 3), (5, 5), (1, 3))
    assert len(contiguous([RECORDS[1], commit(late)], [entry(late)])) == 1


def test_a_partition_of_a_view_that_goes_back_a_phase_is_named() -> None:
    def record(epoch: int, phase: Phase) -> CommitRecord:
        state = PartitionState(phase=phase, start=0, next=5, live=5, target=5)
        position = ViewPosition(sources={"orders": SourcePosition(incarnation=LIFE, version=1, partitions={0: state})})
        return RECORDS[1].model_copy(update={"epoch": epoch, "position": position})

    assert contiguous([record(1, Phase.CATCHING_UP), record(2, Phase.FINISHED)], []) == []
    assert contiguous([record(1, Phase.FINISHED), record(2, Phase.BACKFILLING)], []) == [
        "epoch 2: partition 0 of orders went back from finished to backfilling"
    ]


def test_what_was_read_and_is_left_out_only_afterwards_or_no_more_is_named() -> None:
    def record(epoch: int, *skipped: int) -> CommitRecord:
        state = PartitionState(phase=Phase.FINISHED, start=0, next=5, live=5, target=5)
        source = SourcePosition(incarnation=LIFE, version=1, partitions={0: state}, skipped={0: skipped})
        return RECORDS[1].model_copy(update={"epoch": epoch, "position": ViewPosition(sources={"orders": source})})

    assert contiguous([record(1, 3, 5), record(2, 3, 6)], []) == [], "what is still to be read may change"
    assert contiguous([record(1, 3), record(2, 3, 4)], []) == [
        "epoch 2: partition 0 of orders had been read to 5 leaving out [3], and now [3, 4]"
    ]
    assert contiguous([record(1, 3), record(2)], []) == [
        "epoch 2: partition 0 of orders had been read to 5 leaving out [3], and now nothing"
    ]


@pytest.mark.parametrize("lost", [0, 1], ids=["the first plan", "the last plan"])
def test_a_plan_that_is_missing_in_the_ledger_is_named(lost: int) -> None:
    (violation,) = ledger_agrees(RECORDS, [each for each in ENTRIES if each.epoch != lost + 1], 2)
    assert violation == f"epoch {lost + 1} was committed by plan {RECORDS[lost + 1].plan_hash}, the ledger has none"


def test_a_plan_that_another_one_replaced_is_named_and_a_superseded_one_is_not() -> None:
    other = plan(2, at(5), at(8), (5, 8))
    (violation,) = ledger_agrees(RECORDS, [ENTRIES[0], entry(other)], 2)
    assert f"the ledger has {other.hash}" in violation
    assert ledger_agrees(RECORDS, [ENTRIES[0], entry(other), ENTRIES[1]], 2) == []


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"after": at(7)}, "position"),
        ({"live": False}, "live flag"),
        ({"fingerprint": {"query": "0"}}, "fingerprint"),
    ],
)
def test_a_plan_of_another_outcome_than_was_committed_is_named(change: dict[str, object], part: str) -> None:
    other = replace(entry(SECOND), plan=SECOND.model_copy(update=change))
    assert ledger_agrees(RECORDS, [ENTRIES[0], other], 2) == [
        f"epoch 2: the {part} in the ledger's plan is not the one in the table"
    ]


def test_a_plan_that_was_altered_is_named() -> None:
    text = SECOND.model_dump_json()
    assert Plan.hash_of(text) == SECOND.hash
    altered = replace(entry(SECOND), found_hash=Plan.hash_of(text.replace("read_committed", "read_uncommitted")))
    (violation,) = ledger_agrees(RECORDS, [ENTRIES[0], altered], 2)
    assert violation.startswith(f"epoch 2: the plan was altered: it was stored as {SECOND.hash}")


def test_epochs_before_a_rebuilt_entry_are_not_asked_for() -> None:
    assert ledger_agrees(RECORDS, [entry(SECOND, known=False)], 2) == []


def test_plans_that_may_have_been_pruned_are_not_missed_and_younger_ones_are() -> None:
    last = KEPT_PLANS + 3
    records = [RECORDS[2].model_copy(update={"epoch": epoch}) for epoch in range(1, last + 1)]
    entries = [replace(ENTRIES[1], epoch=epoch) for epoch in range(1, last + 1)]
    assert ledger_agrees(records, entries[3:], last) == []
    (violation,) = ledger_agrees(records, entries[4:], last)
    assert violation.startswith("epoch 4 was committed by plan")


@pytest.mark.parametrize("newest", [None, 0, 7])
def test_a_life_without_commits_disagrees_with_no_ledger(newest: int | None) -> None:
    assert ledger_agrees([], ENTRIES, newest) == []


@pytest.mark.parametrize("newest", [None, 1, 4])
def test_a_ledger_that_is_behind_or_too_far_ahead_is_named(newest: int | None) -> None:
    (violation,) = ledger_agrees(RECORDS, ENTRIES, newest)
    assert violation == f"the table is at epoch 2, but the newest planned epoch is {newest}"


def test_a_table_with_other_rows_than_were_written_is_named() -> None:
    assert conserved(RECORDS, 8, copies=1) == ["epochs wrote 9 rows, the table has 8"]


def test_an_epoch_that_wrote_more_than_it_read_or_read_more_than_its_offsets_is_named() -> None:
    wrote = RECORDS[2].model_copy(update={"rows_written": 8, "rows_total": 13})
    assert len(conserved([RECORDS[1], wrote], 13, copies=1)) == 1
    assert conserved([RECORDS[1], wrote], 13, copies=2) == []
    few = RECORDS[2].model_copy(update={"rows_read": 3})
    assert len(conserved([RECORDS[1], few], 9, copies=1)) == 1, "four rows of three that were read"
    read = RECORDS[2].model_copy(update={"rows_read": 5})
    assert len(conserved([RECORDS[1], read], 9, copies=1)) == 1


def test_a_total_that_does_not_add_up_is_named() -> None:
    wrong = RECORDS[2].model_copy(update={"rows_total": 10})
    assert conserved([RECORDS[1], wrong], 10, copies=1) == ["epoch 2: total 10 is not 5 + 4"]


def bronze(begin: int, end: int) -> BronzeState:
    position = IngestPosition(topic="t", topic_id="1", history={0: 0}, begin={0: begin}, next={0: end})
    return BronzeState(incarnation=LIFE, version=3, position=position)


def held(start: int, end: int, *, compacted: bool = False) -> TopicState:
    return TopicState(topic="t", topic_id="1", partitions={0: span(start, end)}, compacted=compacted)


@pytest.mark.parametrize(
    ("topic", "ingested", "expected"),
    [
        (held(0, 9), bronze(0, 9), {"kafka": (0, 9)}),
        (held(4, 9), bronze(0, 9), {"bronze": (0, 4), "kafka": (4, 9)}),
        (held(9, 9), bronze(0, 9), {"bronze": (0, 9)}),
        (held(4, 9), bronze(2, 9), {"lost": (0, 2), "bronze": (2, 4), "kafka": (4, 9)}),
        (held(4, 9), bronze(6, 9), {"lost": (0, 4), "kafka": (4, 9)}),
        (held(4, 9), None, {"lost": (0, 4), "kafka": (4, 9)}),
        (held(0, 9, compacted=True), bronze(0, 9), {"bronze": (0, 9)}),
        (held(0, 9, compacted=True), bronze(0, 6), {"bronze": (0, 6), "kafka": (6, 9)}),
        (held(0, 9, compacted=True), None, {"kafka": (0, 9)}),
        (TopicState(topic="t", topic_id="1", partitions={}), bronze(0, 9), {"bronze": (0, 9)}),
        (TopicState(topic="t", topic_id="1", partitions={}), None, {"lost": (0, 9)}),
    ],
)
def test_each_offset_is_proved_by_kafka_else_by_bronze_else_named_as_lost(
    topic: TopicState, ingested: BronzeState | None, expected: dict[str, tuple[int, int]]
) -> None:
    found = evidence(SOURCE, {0: span(0, 9)}, topic, ingested)
    parts: dict[str, tuple[int, int]] = {
        read.kind: (read.ranges[0].start, read.ranges[0].end) for read in offset_reads(found.reads)
    }
    parts.update(("lost", (each.start, each.end)) for each in found.unprovable.values())
    assert parts == expected
    assert found.subset == topic.compacted


def test_what_a_table_consumed_is_counted_from_where_each_partition_began() -> None:
    assert consumed(at(5, 3)) == {("", 0): span(0, 5), ("", 1): span(0, 3)}
    state = PartitionState(phase=Phase.FINISHED, start=2, next=5, live=5, target=5)
    view = ViewPosition(sources={"orders": SourcePosition(incarnation=LIFE, version=1, partitions={1: state})})
    assert consumed(view) == {("orders", 1): span(2, 5)}
