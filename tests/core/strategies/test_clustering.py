"""How many of a table's files one range of its key touches, given where each file begins and ends."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backfill_assets.core.strategies.key_cuts import Span, clustering

ROWS = 100


def spans(*ends: tuple[Any, Any], rows: int = ROWS) -> list[Span]:
    return [Span(low=low, high=high, text=str(high), rows=rows) for low, high in ends]


IN_ORDER = spans(*((at * 10, at * 10 + 9) for at in range(16)))


@pytest.mark.parametrize("chunks", [2, 4, 8, 16])
def test_of_files_in_the_order_of_the_key_each_range_touches_its_own(chunks: int) -> None:
    assert clustering(IN_ORDER, chunk_rows=16 * ROWS // chunks) == 1 / chunks


@pytest.mark.parametrize(
    "ends",
    [
        [(0, 10_000)] * 16,
        [(at, 10_000 + at) for at in range(16)],
        [("aaa", "zzz")] * 16,
        [("user-0000001", "user-9999999")] * 16,
        [("2024-01-01", "2024-12-31")] * 16,
        [(Decimal("0.01"), Decimal("0.99"))] * 16,
        [(7, 7)] * 16,
        [("one", "one")] * 16,
    ],
    ids=["alike", "shifted", "letters", "long prefix", "days", "decimals", "one number", "one text"],
)
@pytest.mark.parametrize("chunk_rows", [ROWS * 4, ROWS, ROWS // 3])
def test_where_each_file_holds_keys_from_all_over_each_range_touches_all(
    ends: Sequence[tuple[Any, Any]], chunk_rows: int
) -> None:
    assert clustering(spans(*ends), chunk_rows=chunk_rows) > 0.95


@pytest.mark.parametrize(
    "ends",
    [
        [(f"user-{at:04}-0", f"user-{at:04}-9") for at in range(16)],
        [(Decimal(at) / 100, Decimal(at) / 100 + Decimal("0.009")) for at in range(16)],
        [(f"2024-01-{at + 10}", f"2024-01-{at + 10}") for at in range(16)],
        [(10**18 + at, 10**18 + at) for at in range(16)],
    ],
    ids=["texts", "decimals", "days", "large numbers"],
)
def test_values_of_any_type_are_distinguished(ends: Sequence[tuple[Any, Any]]) -> None:
    assert clustering(spans(*ends), chunk_rows=4 * ROWS) == pytest.approx(0.25, abs=0.05)


def test_files_larger_than_a_range_are_touched_by_several() -> None:
    four = spans(*((at * 100, at * 100 + 99) for at in range(4)), rows=1000)
    assert clustering(four, chunk_rows=100) == pytest.approx(0.25, abs=0.03), "each range lies within one file"
    assert clustering(spans((0, 99), rows=1000), chunk_rows=100) == 1.0


@given(
    ends=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40)), min_size=1, max_size=12),
    chunk_rows=st.integers(1, 2000),
)
def test_it_is_a_share_and_every_range_of_a_chunk_touches_a_file(ends: list[tuple[int, int]], chunk_rows: int) -> None:
    found = clustering(spans(*((low, low + length) for low, length in ends)), chunk_rows=chunk_rows)
    assert 0 < found <= 1
    assert found * len(ends) * 64 >= 1


END = st.none() | st.integers(0, 9)


@given(st.tuples(st.integers(0, 9), st.integers(0, 9)), END, END, st.booleans(), st.integers(0, 18))
@example(place=(1, 8), after=9, upto=None, beyond=False, key=9).via("the file's last key is the range's first one")
@example(place=(1, 8), after=None, upto=1, beyond=False, key=1).via("the file's first key is the range's last one")
def test_a_file_overlaps_each_range_that_may_have_one_of_its_keys(
    place: tuple[int, int], after: int | None, upto: int | None, beyond: bool, key: int
) -> None:
    low, length = place
    (file,) = spans((low, low + length))
    above = after is None or key > after or (key == after and not beyond)
    if low <= key <= low + length and above and (upto is None or key <= upto):
        assert file.overlaps(after, upto, beyond=beyond)


@pytest.mark.parametrize(
    ("after", "upto", "beyond"), [(10, None, False), (None, 0, False), (9, None, True), (9, 20, True), (-3, 0, False)]
)
def test_a_file_outside_of_a_range_does_not_overlap_it(after: int | None, upto: int | None, beyond: bool) -> None:
    (file,) = spans((1, 9))
    assert not file.overlaps(after, upto, beyond=beyond)
