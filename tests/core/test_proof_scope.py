"""What a check reads again after a pass is exactly what the view has read since then, whichever pass it was."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import Commit
from backfill_assets.core.progress.positions import BucketState, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, SnapshotRead
from backfill_assets.core.proof_scope import MAX_VERSIONS, Everything, Since, followed, scope
from backfill_assets.core.strategies.full_refresh import FEWEST_BYTES
from backfill_assets.core.strategies.snapshot import files_of
from tests.support.tables_world import FILES, MAX_STEPS, Follower, Lake, Table

CHANGES = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8)


@given(FILES, FILES, CHANGES, st.integers(0, 40), st.integers(1, 60))
def test_what_was_read_between_any_two_epochs_is_read_again(
    one: tuple[int, ...], two: tuple[int, ...], changes: list[tuple[int, bool]], pass_after: int, budget: int
) -> None:
    lake = Lake({"one": Table(one), "two": Table(two)})
    follower = Follower(lake, buckets=4)
    positions = [follower.position]
    noted = [(Counter(follower.files), {name: list(each) for name, each in follower.versions.items()})]
    for step in range(MAX_STEPS):
        if step < len(changes):
            rows, feed = changes[step]
            lake.tables["one"].commit(rows, feed=feed)
        if follower.step(budget) is None and step >= len(changes):
            break
        positions.append(follower.position)
        noted.append((Counter(follower.files), {name: list(each) for name, each in follower.versions.items()}))
    at = min(pass_after, len(positions) - 1)
    before, after = positions[at], positions[-1]
    spans = followed(before, after)
    assert not isinstance(spans, Everything)
    commits = {name: lake.commits(name, *span) for name, span in spans.items()}
    found = scope(before, after, commits, written=0, held=0)
    assert isinstance(found, Since)
    files, versions = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for read in found.reads:
        if isinstance(read, SnapshotRead):
            table = lake.tables[read.source].files
            places = [
                index
                for bucket, each in read.ranges.items()
                for index in files_of(len(table), bucket, read.buckets)[each.start : each.end]
            ]
            files.update((read.source, index) for index in places)
            assert read.rows == sum(table[index] for index in places)
        elif isinstance(read, ChangesRead):
            kinds = {lake.tables[read.source].commits[number - 1].feed for number in range(read.first, read.last + 1)}
            assert len(kinds) == 1, "those with and without a change data feed apart"
            versions.update((read.source, number) for number in range(read.first, read.last + 1))
    assert files == noted[-1][0] - noted[at][0]
    changed = {("one", each.version) for each in lake.tables["one"].commits if each.rows}
    since = {("one", number) for number in noted[-1][1].get("one", [])} - {
        ("one", number) for number in noted[at][1].get("one", [])
    }
    assert {each for each in versions if each in changed} == since & changed
    assert set(versions.values()) <= {1}


TABLE = TablePosition(
    table_id="first",
    pinned=0,
    version=5,
    commit_ms=0,
    buckets={0: BucketState(next=2, parts=3), 1: BucketState(parts=1)},
)


def moved(**changes: object) -> Everything | dict[str, tuple[int, int]]:
    return moved_from(TABLE, **changes)


def moved_from(table: TablePosition, **changes: object) -> Everything | dict[str, tuple[int, int]]:
    before = SnapshotPosition(tables={"t": table})
    return followed(before, SnapshotPosition(tables={"t": table.model_copy(update=changes)}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"table_id": "another"}, "another table"),
        ({"incarnation": "b"}, "another table"),
        ({"pinned": 1}, "another table, or another version"),
        ({"expected": (1,)}, "its history is read by key"),
        ({"version": 4}, "its position went back"),
        ({"buckets": {0: BucketState(next=1, parts=3), 1: BucketState(parts=1)}}, "its position went back"),
        ({"buckets": {0: BucketState(next=2, parts=3)}}, "its history is cut in another way"),
        ({"version": 6 + MAX_VERSIONS}, "versions were committed since"),
    ],
)
def test_everything_is_proved_if_positions_do_not_show_what_was_read(changes: dict[str, object], reason: str) -> None:
    found = moved(**changes)
    assert isinstance(found, Everything)
    assert reason in found.reason


def test_everything_is_proved_if_a_view_reads_other_tables_than_before() -> None:
    before = SnapshotPosition(tables={"t": TABLE})
    for tables in ({"t": TABLE, "u": TABLE}, {"u": TABLE}, {}):
        found = followed(before, SnapshotPosition(tables=tables))
        assert isinstance(found, Everything)
        assert found.reason == "the view reads other tables than before"


@pytest.mark.parametrize("later", [(1,), (2,), ()], ids=["as before", "other ranges", "all of it is read"])
def test_everything_is_proved_where_the_position_that_passed_was_within_history_that_is_read_by_key(
    later: tuple[int, ...],
) -> None:
    found = moved_from(TABLE.model_copy(update={"expected": (1,)}), expected=later)
    assert isinstance(found, Everything)
    assert "its history is read by key" in found.reason


def test_everything_is_proved_if_more_changed_than_exists() -> None:
    before = SnapshotPosition(tables={"t": TABLE})
    after = SnapshotPosition(tables={"t": TABLE.model_copy(update={"version": 6})})
    assert moved(version=6) == {"t": (5, 6)}
    for written, changed, held, everything in (
        (FEWEST_BYTES, 0, 0, False),
        (FEWEST_BYTES, 1, 0, True),
        (0, FEWEST_BYTES + 1, 0, True),
        (FEWEST_BYTES, FEWEST_BYTES, 2 * FEWEST_BYTES, False),
    ):
        commits = {"t": [Commit(version=6, commit_ms=0, rows=1, bytes=changed)]}
        found = scope(before, after, commits, written=written, held=held)
        assert isinstance(found, Everything) is everything
