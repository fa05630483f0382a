"""The pure checks of views over Delta tables: files of a snapshot by bucket, then the versions of its change log."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_assets.core.audit import CHANGE_LOG, LedgerEntry, conserved, consumed, contiguous, ledger_agrees
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan, Position
from backfill_assets.core.progress.positions import BucketState, OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, Read, SkipRead, SnapshotRead, TableRead
from tests.support.settings import examples
from tests.support.tables_world import Follower, Lake, Table

LIFE = "a" * 12
FILE_ROWS = 10
DONE = (2, 2)
"""Both buckets of a snapshot of four files read through."""


def span(start: int, end: int) -> OffsetRange:
    return OffsetRange(start=start, end=end)


def table(*nexts: int, version: int = 3, changes: int = 0, **other: Any) -> SnapshotPosition:
    """A position in table `t`, pinned at version 3, whose files are in buckets of two."""
    buckets = {number: BucketState(next=at, parts=2, rows=at * FILE_ROWS) for number, at in enumerate(nexts)}
    position = TablePosition(table_id="id", pinned=3, version=version, commit_ms=0, buckets=buckets, changes=changes)
    return SnapshotPosition(tables={"t": position.model_copy(update=other)})


def files(**ranges: tuple[int, int]) -> SnapshotRead:
    """A read of files by bucket (`b0`, `b1`)."""
    spans = {int(bucket[1:]): span(*each) for bucket, each in ranges.items()}
    rows = sum(len(each) for each in spans.values()) * FILE_ROWS
    return SnapshotRead(source="t", table_id="id", version=3, buckets=2, ranges=spans, rows=rows)


def versions(first: int, last: int, rows: int) -> ChangesRead:
    return ChangesRead(source="t", table_id="id", first=first, last=last, rows=rows)


def planned(epoch: int, before: Position, after: Position, reads: tuple[Read, ...]) -> Plan:
    given: dict[str, Any] = {"target": "views/v", "incarnation": LIFE, "fingerprint": {}, "live": True}
    return Plan(epoch=epoch, reads=reads, before=before, after=after, **given)


def entry(plan: Plan) -> LedgerEntry:
    return LedgerEntry(epoch=plan.epoch, plan_hash=plan.hash, plan=plan, found_hash=plan.hash)


def committed(plan: Plan) -> CommitRecord:
    """The plan's commit, which wrote each row that it read."""
    assert isinstance(plan.after, SnapshotPosition)
    rows = sum(each.rows for each in plan.after.tables.values())
    return CommitRecord(
        kind=CommitKind.EPOCH,
        target=plan.target,
        incarnation=plan.incarnation,
        epoch=plan.epoch,
        attempt="b" * 12,
        plan_hash=plan.hash,
        fingerprint=plan.fingerprint,
        position=plan.after,
        live=plan.live,
        rows_read=plan.offsets,
        rows_written=plan.offsets,
        rows_total=rows,
        done=rows,
        started_at=0,
        finished_at=1,
        created_at=0,
    )


def stepped(before: SnapshotPosition, after: SnapshotPosition, *reads: TableRead) -> list[str]:
    """The violations of one step, without the number of its epoch."""
    was = committed(planned(1, before, before, ()))
    plan = planned(2, before, after, reads)
    return [each.removeprefix("epoch 2: ") for each in contiguous([was, committed(plan)], [entry(plan)])]


def test_a_list_of_keys_that_changed_without_their_rows_being_read_is_named() -> None:
    key = (("id", "7"),)
    before, after = table(*DONE), table(*DONE, skipped=(key,))
    read = SkipRead(source="t", table_id="id", before=3, after=3, out=(key,))
    assert stepped(before, after, read) == []
    (violation,) = stepped(before, after)
    assert "for the rows that it leaves out, the plan had to read" in violation
    assert "but read nothing" in violation
    assert len(stepped(before, before, read)) == 1
    assert stepped(table(0, 0), table(2, 0, skipped=(key,)), files(b0=(0, 2))) == [], "nothing of it had been read"


@pytest.mark.parametrize(
    ("before", "after", "reads"),
    [
        (table(0, 0), table(1, 0), [files(b0=(0, 1))]),
        (table(1, 0), table(2, 2), [files(b0=(1, 2), b1=(0, 2))]),
        (table(*DONE), table(*DONE, version=6, changes=5), [versions(4, 6, 5)]),
        (table(*DONE, version=6, changes=5), table(*DONE, version=90, changes=5), []),
        (table(*DONE), table(*DONE), []),
    ],
    ids=["one file", "both buckets", "versions", "mere maintenance", "nothing"],
)
def test_steps_of_a_snapshot_and_its_change_log_that_are_sound(
    before: SnapshotPosition, after: SnapshotPosition, reads: list[TableRead]
) -> None:
    assert stepped(before, after, *reads) == []


@pytest.mark.parametrize(
    ("before", "after", "reads", "said"),
    [
        (table(0, 0), table(2, 0), [files(b0=(1, 2))], "bucket 0 of t moved from 0 to 2, but the plan read 1 to 2"),
        (table(1, 0), table(2, 0), [files(b0=(0, 2))], "bucket 0 of t moved from 1 to 2, but the plan read 0 to 2"),
        (table(0, 0), table(1, 1), [files(b0=(0, 1))], "bucket 1 of t moved from 0 to 1, but the plan read nothing"),
        (table(0, 2), table(0, 1), [], "bucket 1 of t went back from 2 to 1"),
        (table(0, 0), table(0), [], "bucket 1 of t is missing"),
        (
            table(*DONE),
            table(*DONE, version=6, changes=5),
            [versions(5, 6, 5)],
            "the change log of t moved from 3 to 6, but the plan read 4 to 6",
        ),
        (
            table(*DONE, version=5, changes=5),
            table(*DONE, version=6, changes=9),
            [versions(5, 6, 4)],
            "the change log of t moved from 5 to 6, but the plan read 4 to 6",
        ),
        (
            table(*DONE),
            table(*DONE, version=6, changes=5),
            [],
            "the change log of t moved from 3 to 6, but the plan read nothing",
        ),
        (table(*DONE, version=6), table(*DONE, version=5), [], "the change log of t went back from 6 to 5"),
        (table(*DONE), table(*DONE, table_id="new"), [], "the table id of t changed from id to new"),
        (table(*DONE), table(*DONE, incarnation=LIFE), [], f"the incarnation of t changed from None to {LIFE}"),
        (table(*DONE), table(*DONE, pinned=4), [], "the pinned version of t changed from 3 to 4"),
        (
            table(*DONE),
            table(*DONE, version=4, changes=5),
            [versions(4, 4, 7)],
            "5 rows of t were counted, but the plan read 7",
        ),
        (
            table(*DONE),
            table(*DONE, version=4, changes=5),
            [versions(4, 4, 3)],
            "5 rows of t were counted, but the plan read 3",
        ),
        (
            table(0, 0),
            table(1, 0),
            [files(b0=(0, 1)).model_copy(update={"version": 4})],
            "the plan read ('id', 4) of t, but the position is for ('id', 3)",
        ),
        (
            table(*DONE),
            table(*DONE, version=4, changes=5),
            [versions(4, 4, 5).model_copy(update={"table_id": "new"})],
            "the plan read ('new',) of t, but the position is for ('id',)",
        ),
        (SnapshotPosition(tables={}), table(*DONE), [], "table t joined"),
        (table(*DONE), SnapshotPosition(tables={}), [], "the change log of t is missing"),
    ],
)
def test_steps_of_a_snapshot_and_its_change_log_that_are_not_sound_are_named(
    before: SnapshotPosition, after: SnapshotPosition, reads: list[TableRead], said: str
) -> None:
    assert said in stepped(before, after, *reads)


def test_a_bucket_that_lost_an_unread_file_is_named() -> None:
    short = table(1, 0, buckets={0: BucketState(next=1, parts=1, rows=10), 1: BucketState(parts=2)})
    assert stepped(table(0, 0), short, files(b0=(0, 1))) == [
        "the parts by bucket of t changed from {0: 2, 1: 2} to {0: 1, 1: 2}"
    ]


def history(upstreams: dict[str, tuple[int, ...]], commits: list[tuple[str, int]], budget: int) -> list[Plan]:
    """The plans of a view's life over tables with these files, while these commits (table, changed rows) happen."""
    follower = Follower(Lake({name: Table(rows) for name, rows in upstreams.items()}))
    left = list(commits)
    plans: list[Plan] = []
    while True:
        before = follower.position
        step = follower.step(budget)
        if step is not None:
            plans.append(planned(len(plans) + 1, before, step.after, step.reads))
        elif not left:
            return plans
        if left:
            name, rows = left.pop(0)
            follower.lake.tables[name].commit(rows)


FEWER = settings(max_examples=examples(40))
"""Histories have many steps each."""

HISTORIES = st.builds(
    history,
    st.fixed_dictionaries({name: st.lists(st.integers(0, 20), max_size=20).map(tuple) for name in "ab"}),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), max_size=8),
    st.integers(1, 40),
)


def audited(plans: list[Plan]) -> list[str]:
    """The violations that all pure checks find in a history whose plans were all committed unchanged."""
    created = committed(planned(1, plans[0].before, plans[0].before, ())).model_copy(update={"epoch": 0})
    records = [created, *map(committed, plans)]
    entries = [entry(each) for each in plans]
    return [
        *contiguous(records, entries),
        *ledger_agrees(records, entries, plans[-1].epoch),
        *conserved(records, records[-1].rows_total, copies=1),
    ]


@FEWER
@given(plans=HISTORIES.filter(bool))
def test_whatever_the_strategy_plans_is_sound(plans: list[Plan]) -> None:
    assert audited(plans) == []


def shifted(read: Read, by: tuple[int, int]) -> Read:
    """The read with another start or end of its first range, or of its versions."""
    if isinstance(read, ChangesRead):
        return read.model_copy(update={"first": read.first + by[0], "last": read.last + by[1]})
    assert isinstance(read, SnapshotRead)
    bucket, each = min(read.ranges.items())
    moved = OffsetRange.model_construct(start=each.start + by[0], end=each.end + by[1])
    return read.model_copy(update={"ranges": {**read.ranges, bucket: moved}})


def other_table(read: Read, _by: tuple[int, int]) -> Read:
    return read.model_copy(update={"table_id": "other"})


def other_rows(read: Read, by: tuple[int, int]) -> Read:
    assert isinstance(read, SnapshotRead | ChangesRead)
    return read.model_copy(update={"rows": read.rows + abs(by[0]) + abs(by[1])})


SHIFTS = st.tuples(st.integers(-2, 2), st.integers(-2, 2)).filter(any)


@pytest.mark.parametrize("damage", [shifted, other_table, other_rows, None])
@FEWER
@given(plans=HISTORIES.filter(lambda plans: any(plan.reads for plan in plans)), by=SHIFTS, data=st.data())
def test_a_plan_that_read_anything_except_its_step_is_named(
    damage: Callable[[Read, tuple[int, int]], Read] | None, plans: list[Plan], by: tuple[int, int], data: st.DataObject
) -> None:
    plan = data.draw(st.sampled_from([each for each in plans if each.reads]))
    at = data.draw(st.integers(0, len(plan.reads) - 1))
    instead = () if damage is None else (damage(plan.reads[at], by),)
    wrong = plan.model_copy(update={"reads": (*plan.reads[:at], *instead, *plan.reads[at + 1 :])})
    violations = audited([wrong if each is plan else each for each in plans])
    assert any(each.startswith(f"epoch {plan.epoch}: ") for each in violations), violations


@FEWER
@given(plans=HISTORIES.filter(lambda plans: len(plans) > 1), data=st.data())
def test_an_epoch_that_is_left_out_of_a_snapshot_is_named(plans: list[Plan], data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, len(plans) - 2))
    (said,) = [each for each in audited([*plans[:lost], *plans[lost + 1 :]]) if " follows " in each]
    assert said == f"epoch {lost + 2} follows epoch {lost}"


@FEWER
@given(plans=HISTORIES.filter(bool), data=st.data())
def test_what_a_table_consumed_is_every_file_and_version_up_to_its_position(
    plans: list[Plan], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from("ab"))
    reaches = [consumed(each.before) for each in plans] + [consumed(plans[-1].after)]
    for before, after in pairwise(reaches):
        assert all(after[key].start == each.start and after[key].end >= each.end for key, each in before.items())
    position = plans[-1].after
    assert isinstance(position, SnapshotPosition)
    found = position.tables[name]
    assert reaches[-1][name, CHANGE_LOG] == span(found.pinned, found.version)
    assert {at: reaches[-1][name, at] for at in found.buckets} == {
        at: span(0, bucket.parts) for at, bucket in found.buckets.items()
    }, "at the end of a history its snapshot is read through"


def test_rows_that_no_file_of_a_snapshot_held_are_named_and_those_of_a_change_log_are_not() -> None:
    start = committed(planned(1, table(0, 0), table(0, 0), ()))
    chunk = committed(planned(2, table(0, 0), table(2, 0), (files(b0=(0, 2)),)))
    more = chunk.model_copy(update={"rows_written": 21, "rows_total": 21})
    assert conserved([start, chunk], 20, copies=1) == []
    assert conserved([start, more], 21, copies=2) == []
    assert conserved([start, more], 21, copies=1) == ["epoch 2: 21 rows were written of 20 read from 20 rows of tables"]
    ahead = chunk.model_copy(update={"done": 19})
    assert len(conserved([start, ahead], 20, copies=1)) == 1
    done = committed(planned(2, table(*DONE), table(*DONE), ()))
    log = committed(planned(3, table(*DONE), table(*DONE, version=4, changes=1), (versions(4, 4, 1),)))
    estimated = log.model_copy(update={"rows_written": 7, "rows_total": done.rows_total + 7})
    assert conserved([done, estimated], 47, copies=1) == []


def test_more_rows_may_be_written_of_a_key_range_than_it_had_when_it_was_cut() -> None:
    """The range is read in its present state; for files, which never change, one row more is one too many."""
    cut: dict[str, Any] = {"bounds": ((None,), ("7",), ("14",)), "expected": (FILE_ROWS,) * 4}
    for by_key, violations in ((cut, 0), ({}, 1)):
        start = committed(planned(1, table(0, 0, **by_key), table(0, 0, **by_key), ()))
        chunk = committed(planned(2, table(0, 0, **by_key), table(1, 0, **by_key), (files(b0=(0, 1)),)))
        grown = chunk.model_copy(update={"rows_written": 11, "rows_total": 11})
        assert len(conserved([start, grown], 11, copies=1)) == violations
        assert len(conserved([start, grown], 10, copies=1)) == violations + 1, "what was written must be there"
