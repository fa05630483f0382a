"""Copies that come and go, told by Arrow, against a model; and rows for which nothing is told."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.compute.numbered_copies import numbered_copies
from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.working_columns import OPERATION

VIEW = pa.schema([("a", pa.int64()), ("b", pa.large_string()), (ROW_HASH, pa.int64()), (COPY, pa.int64())])


def net_of(more: dict[int, int]) -> pa.Table:
    """Of row `n`, whose hash is ten times as much, there are to be so many more."""
    rows = {"a": pa.array(more, pa.int32()), "b": pa.array([f"text {row}" for row in more], pa.string())}
    hashes = pa.array([10 * row for row in more], pa.int64())
    return pa.table({**rows, ROW_HASH: hashes, "net": pa.array(more.values(), pa.int64())})


def held_of(copies: list[tuple[int, int]]) -> pa.Table:
    rows = [{"a": row, "b": f"text {row}", ROW_HASH: 10 * row, COPY: copy} for row, copy in copies]
    return pa.Table.from_pylist(rows, schema=VIEW)


@given(st.data())
def test_the_last_copies_go_and_new_ones_get_the_numbers_after_them(data: st.DataObject) -> None:
    row = st.integers(-3, 3)
    held = data.draw(st.sets(st.tuples(row, st.integers(1, 9))).map(sorted).flatmap(st.permutations), label="held")
    copies = {number: sorted(copy for other, copy in held if other == number) for number in range(-3, 4)}
    more = {
        number: data.draw(st.integers(-len(copies[number]), 3).filter(bool), label=f"more of {number}")
        for number in data.draw(st.lists(row, unique=True), label="rows")
    }
    found = numbered_copies(net_of(more), held_of(held), "net")
    assert found is not None
    assert found.schema.names == [*VIEW.names, OPERATION]
    assert found.select(VIEW.names).schema.types == VIEW.types
    expected = Counter[tuple[Any, ...]]()
    for number, many in more.items():
        numbers = copies[number][many:] if many < 0 else range(max(copies[number], default=0) + 1, 99)[:many]
        kind = "delete" if many < 0 else "insert"
        expected.update((number, f"text {number}", 10 * number, copy, kind) for copy in numbers)
    assert Counter(tuple(each.values()) for each in found.to_pylist()) == expected


def test_rows_that_are_not_equal_are_left_to_spark() -> None:
    held = held_of([(1, 1)])
    other = held.set_column(1, "b", pa.array(["another text"], pa.large_string()))
    assert numbered_copies(net_of({1: 1}), held, "net") is not None
    assert numbered_copies(net_of({1: 1}), other, "net") is None
    assert numbered_copies(net_of({2: 1}), other, "net") is not None, "it has another hash"
    same_hash = net_of({1: 1, 2: 1}).set_column(2, ROW_HASH, pa.array([5, 5]))
    assert numbered_copies(same_hash, held, "net") is None


def test_more_than_there_are_is_left_to_spark_which_refuses_it() -> None:
    assert numbered_copies(net_of({1: -2}), held_of([(1, 1), (1, 4)]), "net") is not None
    assert numbered_copies(net_of({1: -3}), held_of([(1, 1), (1, 4)]), "net") is None
    assert numbered_copies(net_of({1: -1}), held_of([]), "net") is None


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (pa.float64(), 1.5, True),
        (pa.float64(), float("nan"), False),
        (pa.decimal128(38, 2), Decimal("123456789012345678901234567890.12"), True),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=UTC), True),
        (pa.bool_(), None, True),
        (pa.binary(), b"\x00", True),
        (pa.list_(pa.int32()), [1], False),
        (pa.struct([("x", pa.int32())]), {"x": 1}, False),
    ],
)
def test_values_of_each_kind_are_told_or_left_to_spark(kind: pa.DataType, value: object, told: bool) -> None:
    rows = {"a": pa.array([value], kind), ROW_HASH: pa.array([1], pa.int64())}
    net = pa.table({**rows, "net": pa.array([1], pa.int64())})
    held = pa.table({**rows, COPY: pa.array([3], pa.int64())})
    found = numbered_copies(net, held, "net")
    assert (found is not None) is told
    if found is not None:
        assert found.column(COPY).to_pylist() == [4]
        assert found.column("a").to_pylist() == [value]


def test_a_value_that_the_view_cannot_hold_is_left_to_spark() -> None:
    net = net_of({1: 1}).set_column(0, "a", pa.array([2**40]))
    held = held_of([]).cast(VIEW.set(0, pa.field("a", pa.int32())))
    assert numbered_copies(net, held, "net") is None
