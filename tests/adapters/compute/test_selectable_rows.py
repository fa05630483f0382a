"""Changed rows that this process holds: those that come and go at once are no changes."""

from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.adapters.compute.selectable_rows import LocalChanges, Part, netted

SCHEMA = pa.schema({"number": pa.float64(), "small": pa.float32(), "text": pa.large_string(), "day": pa.date32()})
FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), None])
ROWS = st.lists(st.tuples(FLOATS, FLOATS, st.sampled_from(["", "a", "a ", None]), st.none()), max_size=8)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    return pa.table(
        [pa.array(list(each), kind) for each, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


def counted(rows: pa.Table) -> Counter[str]:
    """Rows by what they look like, so that zeros with and without a sign differ."""
    return Counter(map(repr, zip(*rows.to_pydict().values(), strict=True)))


@given(ROWS, ROWS)
def test_what_is_left_is_the_difference(come: list[tuple[Any, ...]], go: list[tuple[Any, ...]]) -> None:
    before = counted(table(come)), counted(table(go))
    after = tuple(map(counted, netted(table(come), table(go))))
    assert after == (before[0] - before[1], before[1] - before[0])


def test_nested_rows_are_left_as_they_are() -> None:
    rows = pa.table({"list": [[1]], "id": [1]})
    assert netted(rows, rows) == (rows, rows)


@pytest.mark.parametrize("empty", ["come", "go"])
def test_rows_that_only_come_or_go_stay(empty: str) -> None:
    rows = table([(0.0, None, "a", None)] * 2)
    sides = {"come": rows, "go": rows} | {empty: rows.slice(0, 0)}
    assert netted(sides["come"], sides["go"]) == (sides["come"], sides["go"])


def test_changes_are_few_where_each_side_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectable_rows, "_ROWS_OF_TASK", 2)
    sides = [table([(0.0, None, "a", None)] * rows) for rows in (2, 3)]
    for come, go, few in ((0, 0, True), (0, 1, False), (1, 0, False)):
        assert LocalChanges(come=sides[come], go=sides[go], part=partial(Part, few=True)).few is few
