"""The number of the part in which a value is, as SQL that another engine computes."""

import sqlite3
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.sql.keys import part_of_value


@given(bounds=st.lists(st.integers(-20, 20), unique=True, max_size=12).map(sorted), value=st.integers(-25, 25))
def test_a_value_is_in_the_first_part_that_ends_with_it_or_a_greater_one(bounds: list[int], value: int) -> None:
    assert _computed(bounds, value) == bisect_left(bounds, value)


@given(bounds=st.lists(st.integers(-20, 20), unique=True, max_size=12).map(sorted))
def test_nulls_are_in_the_last_part(bounds: list[int]) -> None:
    assert _computed(bounds, None) == len(bounds)


def test_a_bound_is_a_literal_of_the_columns_type() -> None:
    assert part_of_value("`a b`", "STRING", ["it's"]) == r"IF(`a b` <= CAST('it\'s' AS STRING), 0, 1)"


def _computed(bounds: list[int], value: int | None) -> int:
    sql = part_of_value("k", "INT", list(map(str, bounds))).replace("IF(", "iif(")
    (found,) = sqlite3.connect(":memory:").execute(f"SELECT {sql} FROM (SELECT ? AS k)", (value,)).fetchone()
    return int(found)
