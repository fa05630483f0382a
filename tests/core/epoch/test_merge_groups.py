"""Into which files a merge writes: neighbours together while they are small, new rows where values near theirs are."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.merge_groups import (
    ROWS_OF_FILE,
    SMALL_BYTES,
    Group,
    TouchedFile,
    group_for,
    groups_of,
    overlap,
)

SIZES = st.integers(1, 2 * SMALL_BYTES)
ROWS = st.integers(1, 2 * ROWS_OF_FILE)


@st.composite
def files(draw: st.DrawFn) -> TouchedFile:
    rows = draw(ROWS)
    lowest = draw(st.none() | st.integers(0, 50))
    return TouchedFile(size=draw(SIZES), rows=rows, deleted=draw(st.integers(0, rows)), lowest=lowest)


def test_small_neighbours_become_one_and_others_stay_apart() -> None:
    half, small = ROWS_OF_FILE // 2, SMALL_BYTES // 2
    found = groups_of([
        TouchedFile(size=small, rows=half, lowest=30),
        TouchedFile(size=small, rows=half, lowest=1),
        TouchedFile(size=1, rows=half, lowest=20),
        TouchedFile(size=SMALL_BYTES, rows=1, lowest=40),
        TouchedFile(size=1, rows=1),
    ])
    assert [each.files for each in found] == [(1, 2), (0,), (3,), (4,)]
    assert (found[0].rows, found[0].lowest) == (2 * half, 1)


def test_a_file_of_which_nothing_is_known_is_a_group() -> None:
    assert [each.files for each in groups_of([TouchedFile(size=0, rows=0)])] == [(0,)]


def test_no_more_rows_become_one_than_a_file_has() -> None:
    found = groups_of([TouchedFile(size=1, rows=ROWS_OF_FILE, lowest=at) for at in range(3)])
    assert [each.files for each in found] == [(0,), (1,), (2,)]


def test_new_rows_go_where_near_values_are_and_take_the_place_of_deleted_ones() -> None:
    full = groups_of([TouchedFile(size=SMALL_BYTES + 1, rows=9, deleted=2, lowest=at) for at in (10, 20)])
    assert group_for([25, 20, 19, 3], full) == [1, 1, 0, 0]
    assert group_for([21, 22, 23, 11], full) == [2, 2, 2, 0]
    small = groups_of([TouchedFile(size=9, rows=9, lowest=10)])
    assert group_for(list(range(20)), small) == [0] * 20


def test_rows_without_a_value_or_files_without_bounds_are_served_too() -> None:
    groups = [Group(files=(0,), rows=9, lowest="b"), Group(files=(1,), rows=9)]
    assert group_for([None, "c"], groups) == [1, 0]
    assert group_for(["c"], [Group(files=(0,), rows=9)]) == [0]
    assert group_for([1, 2], []) == [0, 0]


@given(st.lists(files(), max_size=8), st.lists(st.none() | st.integers(0, 60), max_size=30))
def test_each_file_is_in_one_group_and_no_group_grows_beyond_a_small_file(
    touched: list[TouchedFile], values: list[int | None]
) -> None:
    groups = groups_of(touched)
    assert sorted(at for each in groups for at in each.files) == list(range(len(touched)))
    for each in groups:
        assert len(each.files) == 1 or (each.rows <= ROWS_OF_FILE and each.size <= SMALL_BYTES)
    lowest = [each.lowest for each in groups if each.lowest is not None]
    assert lowest == sorted(lowest)
    into = group_for(values, groups)
    assert len(into) == len(values)
    for number, group in enumerate(groups):
        rows = group.stay + into.count(number)
        assert into.count(number) == 0 or rows <= max(group.rows, ROWS_OF_FILE)


def test_a_value_of_many_files_is_laid_out_as_well_as_it_can_be() -> None:
    assert overlap([("A", "US"), *[("US", "US")] * 9, ("US", "Z"), None, None]) == 1
    assert overlap([(1, 9), (2, 8), (3, 7), (9, 12)]) == 3
    assert overlap([(1, 2), (2, 3), (3, 4)]) == 1
