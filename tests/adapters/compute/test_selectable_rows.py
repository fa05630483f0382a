"""Changed rows that this process holds: those that come and go at once are no changes. What a view surely has not."""

from collections import Counter
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.adapters.compute.selectable_rows import LocalChanges, Part, ViewFinder, netted
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.storage.warehouse import TableLocation

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


def finder(folder: Path, *files: pa.Table) -> ViewFinder:
    for each in files:
        write_deltalake(str(folder), each, mode="append")
    spark: Any = None  # nothing is computed
    return ViewFinder(spark=spark, table=DeltaTable(str(folder)), files=FoundRows(TableLocation(uri=str(folder))))


KEYS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1]),
    pa.int16(): st.integers(-2, 2),
    pa.string(): st.sampled_from(["", "a", "a ", "A", "é", "\u20020b", "x" * 40]),
    pa.date32(): st.sampled_from([date(1, 1, 1), date(2020, 2, 29), date(9999, 12, 31)]),
}


@given(st.data())
def test_a_view_is_said_to_lack_values_just_where_it_does(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(list(KEYS)))
    values = st.lists(KEYS[kind] | st.none(), max_size=4)
    held = data.draw(st.lists(values, min_size=1, max_size=3))
    come = data.draw(values)
    files = [pa.table({"key": pa.array(each, kind)}) for each in held]
    view = finder(tmp_path_factory.mktemp("view"), *files)
    plain = {each.rstrip(" ") if isinstance(each, str) else each for part in held for each in part}
    meets = any((each.rstrip(" ") if isinstance(each, str) else each) in plain for each in come)
    assert view.lacks("key", pa.chunked_array([pa.array(come, kind)])) is not meets


def test_what_cannot_be_told_here_is_not_lacked(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "number": [0.5, 1.5], "amount": pa.array([1, 2], pa.decimal128(9, 2))})
    view = finder(tmp_path, rows)
    ids = pa.chunked_array([[3]])
    assert view.lacks("id", ids)
    assert not view.lacks("number", pa.chunked_array([[3.5]]))
    assert not view.lacks("amount", pa.chunked_array([pa.array([3], pa.decimal128(9, 2))]))
    assert not replace(view, table=None).lacks("id", ids)


@pytest.mark.parametrize("damage", ["gone", "cut", "other", "rotten"])
def test_of_a_view_with_a_damaged_file_nothing_is_said(tmp_path: Path, damage: str) -> None:
    many = pa.table({"id": range(10_000)})
    view = finder(tmp_path, many)
    wanted = pa.chunked_array([[5_000]])  # within the bounds of the file
    missing = pa.chunked_array([pa.array([2], pa.int64())])
    (file,) = tmp_path.glob("*.parquet")
    content = file.read_bytes()
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[:-100])
    elif damage == "other":
        pq.write_table(many.slice(0, 9_000), file)
    elif damage == "rotten":
        file.write_bytes(content[:100] + bytes(1_000) + content[1_100:])
    assert not view.lacks("id", wanted)
    assert not view.lacks("id", missing)
