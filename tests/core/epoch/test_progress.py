"""The progress of a table: percent, rate, time left, none of which goes backwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.records import CommitKind, CommitRecord
from backfill_assets.core.epoch.report import partitions_of, progress_of
from backfill_assets.core.progress.positions import (
    IngestPosition,
    PartitionState,
    Phase,
    SourcePosition,
    ViewPosition,
)

EMPTY = IngestPosition(topic="orders", topic_id=None, history={}, begin={}, next={})


def commit(epoch: int, done: int, *, total: int = 100, live: bool = False, seconds: float = 1.0) -> CommitRecord:
    return CommitRecord(
        kind=CommitKind.EPOCH if epoch else CommitKind.CREATE,
        target="sources/orders",
        incarnation="a" * 12,
        epoch=epoch,
        attempt="b" * 12,
        plan_hash="",
        fingerprint={},
        position=EMPTY,
        live=live,
        total=total,
        done=done,
        started_at=1000.0 * epoch,
        finished_at=1000.0 * epoch + seconds,
        created_at=0.0,
    )


def test_percent_is_what_is_done_of_the_frozen_total_and_full_only_when_live() -> None:
    assert progress_of([commit(1, 25)], {}).backfill_percent == 25.0
    assert progress_of([commit(1, 100)], {}).backfill_percent == 99.99
    assert progress_of([commit(1, 140)], {}).backfill_percent == 99.99
    assert progress_of([commit(1, 100, live=True)], {}).backfill_percent == 100.0


def test_a_history_without_rows_is_never_divided_by() -> None:
    assert progress_of([commit(0, 0, total=0)], {}).backfill_percent == 99.99
    assert progress_of([commit(0, 0, total=0, live=True)], {}).backfill_percent == 100.0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(0, 5000))
def test_percent_never_goes_backwards(steps: list[int], total: int) -> None:
    done, shown = 0, []
    for epoch, step in enumerate(steps):
        done += step
        shown.append(progress_of([commit(epoch, done, total=total)], {}).backfill_percent)
    shown.append(progress_of([commit(len(steps), done, total=total, live=True)], {}).backfill_percent)
    assert shown == sorted(shown)
    assert 0 <= shown[0] <= shown[-1] == 100.0


def test_the_rate_counts_offsets_over_the_time_spent_on_epochs_not_the_time_between_runs() -> None:
    records = [commit(2, 60, seconds=2.0), commit(1, 20, seconds=3.0), commit(0, 0)]
    assert progress_of(records, {}).rows_per_second == 12.0


def test_the_rate_counts_only_epochs_whose_beginning_is_known() -> None:
    newest_two = [commit(3, 90, seconds=1.0), commit(2, 60, seconds=1.0)]
    assert progress_of(newest_two, {}).rows_per_second in {30.0, 15.0}
    assert progress_of([commit(0, 0)], {"orders/0": 5}).rows_per_second == 0.0
    assert progress_of([commit(1, 10, seconds=0.0)], {}).rows_per_second == 0.0


def test_commits_of_an_earlier_life_do_not_count() -> None:
    earlier = commit(9, 5000).model_copy(update={"incarnation": "c" * 12})
    assert progress_of([commit(1, 10), commit(0, 0), earlier], {}).rows_per_second == 10.0


@pytest.mark.parametrize(("lag", "eta"), [({"a/0": 30, "a/1": 10}, 4.0), ({"a/0": 0}, None), ({}, None)])
def test_the_time_left_is_the_lag_over_the_rate_and_unknown_without_either(
    lag: dict[str, int], eta: float | None
) -> None:
    found = progress_of([commit(1, 10), commit(0, 0)], lag)
    assert (found.lag_rows, found.eta_seconds) == (sum(lag.values()), eta)
    assert progress_of([commit(0, 0)], {"a/0": 9}).eta_seconds is None


def test_each_partition_has_a_line_with_its_phase_next_offset_and_lag() -> None:
    ingest = EMPTY.model_copy(update={"next": {1: 7, 0: 5}})
    lines = partitions_of(ingest, {"orders/1": 3}, source="orders")
    assert [(each.source, each.partition, each.next_offset, each.lag_rows) for each in lines] == [
        ("orders", 0, 5, 0),
        ("orders", 1, 7, 3),
    ]
    state = PartitionState(phase=Phase.CATCHING_UP, start=0, next=9, live=4, target=9)
    view = ViewPosition(sources={"orders": SourcePosition(incarnation="a" * 12, version=1, partitions={2: state})})
    (line,) = partitions_of(view, {})
    assert (line.source, line.partition, line.phase, line.next_offset) == ("orders", 2, "catching_up", 9)
