"""Between which values a merge looks for rows: never past one that it may touch, and not where files can be spared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.touched_spans import MOST_SPANS, Span, apart, blocks, may_touch, touched_spans

VALUES = st.integers(-50, 50)
SPANS = st.tuples(VALUES, VALUES).map(lambda ends: (min(ends), max(ends)))
FILES = st.lists(st.none() | SPANS, max_size=8)


@given(st.lists(SPANS, min_size=1, max_size=12), FILES)
def test_a_value_that_a_change_has_and_a_file_may_have_lies_in_a_span(
    changes: list[Span], files: list[Span | None]
) -> None:
    spans = touched_spans(apart(changes), files)
    if spans is None:
        return
    for value in {value for low, high in changes for value in range(low, high + 1)}:
        if any(file is None or file[0] <= value <= file[1] for file in files):
            assert any(low <= value <= high for low, high in spans)


APART = (
    st
    .lists(VALUES, max_size=16, unique=True)
    .map(sorted)
    .map(lambda ends: list(zip(ends[::2], ends[1::2], strict=False)))
)


@given(st.lists(VALUES, min_size=1, max_size=12, unique=True), APART)
def test_spans_spare_just_the_files_without_a_change(values: list[int], files: list[Span]) -> None:
    changes = blocks(sorted(values))
    touched = [(low, high) for low, high in files if any(low <= value <= high for value in values)]
    assert [file for file in files if may_touch(changes, file)] == touched
    spans = touched_spans(changes, files)
    assert (spans is None) == (len(touched) == len(files))
    if spans is not None and touched:
        assert [file for file in files if may_touch(spans, file)] == touched


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3)), min_size=MOST_SPANS + 1, max_size=120))
def test_many_spans_become_few_that_hold_them_all(ends: list[tuple[int, int]]) -> None:
    files: list[Span | None] = [(low, low + more) for low, more in ends]
    changes = [file for file in files if file is not None]
    spans = touched_spans(apart(changes), [*files, (-5, -1)])
    assert spans is not None
    assert len(spans) <= MOST_SPANS
    assert spans == sorted(spans)
    assert all(any(low <= a and b <= high for low, high in spans) for a, b in changes)


@given(st.lists(st.text(), min_size=1, unique=True), st.integers(1, 9))
def test_blocks_hold_every_value_and_are_not_more_than_asked_for(values: list[str], most: int) -> None:
    found = blocks(sorted(values), most)
    assert len(found) <= most
    assert all(any(low <= value <= high for low, high in found) for value in values)


@pytest.mark.parametrize(
    ("changes", "files", "spans"),
    [
        ([(3, 3), (5, 5), (90, 90)], [(0, 9), (10, 19), (80, 99)], [(3, 5), (90, 90)]),
        ([(3, 3)], [(0, 9), None], None),
        ([(3, 3), (12, 12)], [(0, 9), (10, 19)], None),
        ([(9, 10)], [(0, 9), (10, 19), (20, 29)], [(9, 10)]),
        ([(30, 30), (40, 41)], [(0, 9)], [(30, 41)]),
        ([], [(0, 9)], None),
        ([(1, 1)], [], None),
    ],
    ids=["apart", "bounds unknown", "all files", "across two files", "only new keys", "no change", "no file"],
)
def test_spans(changes: list[Span], files: list[Span | None], spans: list[Span] | None) -> None:
    assert touched_spans(changes, files) == spans
