"""The bounds of key ranges stay small, whatever the keys are, because each commit contains them."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.ports import KeyRanges
from backfill_assets.core.strategies.key_cuts import thinned

texts = st.lists(st.tuples(st.text("xyz", max_size=40)), max_size=30, unique=True)


@given(texts, st.integers(1, 300), st.data())
def test_ranges_are_joined_until_their_bounds_are_short_enough_and_no_row_is_lost(
    keys: list[tuple[str]], most: int, data: st.DataObject
) -> None:
    rows = tuple(data.draw(st.lists(st.integers(0, 9), min_size=len(keys) + 1, max_size=len(keys) + 1)))
    planned = KeyRanges(bounds=tuple(sorted(keys)), rows=rows)
    found = thinned(planned, most=most)
    assert len(found.rows) == len(found.bounds) + 1
    assert sum(found.rows) == sum(rows)
    assert list(found.bounds) == sorted(set(found.bounds) & set(planned.bounds)), "each bound is one that was planned"
    for bound, held in zip(found.bounds, found.rows, strict=False):
        upto = planned.bounds.index(bound) + 1
        after = 0 if bound == found.bounds[0] else planned.bounds.index(found.bounds[found.bounds.index(bound) - 1]) + 1
        assert held == sum(rows[after:upto])
    if sum(len(text) for (text,) in keys) <= most:
        assert found == planned


def test_bounds_of_equal_length_stay_within_their_limit() -> None:
    planned = KeyRanges(bounds=tuple((f"{at:0100d}",) for at in range(255)), rows=(1,) * 256)
    found = thinned(planned, most=5_000)
    assert sum(len(text or "") for key in found.bounds for text in key) <= 5_000
    assert sum(found.rows) == 256


def test_an_empty_table_has_no_ranges() -> None:
    assert thinned(KeyRanges(bounds=(), rows=())) == KeyRanges(bounds=(), rows=())
