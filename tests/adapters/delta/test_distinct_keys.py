"""Whether a key is unique in a version of a table, told without Spark: never said of a key that is not."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta import distinct_keys
from backfill_assets.adapters.delta.distinct_keys import are_surely_distinct, is_surely_unique
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation

KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1]),
    pa.int8(): st.integers(-2, 2),
    pa.string(): st.sampled_from(["", "a", "A", "é", "𠮷"]),
    pa.binary(): st.sampled_from([b"", b"\xff", b"a"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.sampled_from([date(1, 1, 1), date(2020, 2, 29), date(9999, 12, 31)]),
    pa.timestamp("us", "UTC"): st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)]),
    pa.timestamp("us"): st.sampled_from([datetime(1, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 1)]),
    pa.decimal128(38, 2): st.sampled_from([Decimal("0.01"), Decimal("-0.01"), Decimal(10**36 - 1)]),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[tuple[Any, ...]]]]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    keys = st.tuples(*(KINDS[kind] | st.none() for kind in kinds))
    return kinds, draw(st.lists(st.lists(keys, max_size=4), min_size=1, max_size=3))


def upstream(folder: Path, rows: Sequence[pa.Table], **given: Any) -> DeltaUpstream:
    """A table with these rows, each part of them in a file of its own."""
    for each in rows:
        write_deltalake(str(folder), each, mode="append", **given)
    return DeltaUpstream(name="t", location=TableLocation(uri=str(folder)))


def is_unique(table: DeltaUpstream, *key: str) -> bool:
    return is_surely_unique(table, DeltaTable(table.location.uri).version(), key)


@given(tables())
def test_a_key_is_said_to_be_unique_just_where_it_is(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[pa.DataType], list[list[tuple[Any, ...]]]]
) -> None:
    kinds, files = drawn
    names = [f"Key{at}" for at in range(len(kinds))]
    schema = pa.schema([*zip(names, kinds, strict=True), ("row", pa.int64())])
    parts = [
        pa.table([*([key[at] for key in file] for at in range(len(kinds))), [1] * len(file)], schema=schema)
        for file in files
    ]
    keys = [key for file in files for key in file]
    table = upstream(tmp_path_factory.mktemp("table"), parts)
    assert is_unique(table, *map(str.lower, names)) == (len(set(keys)) == len(keys))


def test_a_version_is_judged_by_its_own_rows(tmp_path: Path) -> None:
    table = upstream(tmp_path, [pa.table({"id": [1, 2]}), pa.table({"id": [2]})])
    assert [is_surely_unique(table, version, ["id"]) for version in (0, 1)] == [True, False]


@pytest.mark.parametrize("values", [[0.0, 1.0], [["a"], ["b"]], ["a", "a "]], ids=["float", "nested", "blanks"])
def test_keys_of_which_equal_ones_may_differ_are_left_to_spark(tmp_path: Path, values: list[Any]) -> None:
    assert not is_unique(upstream(tmp_path, [pa.table({"id": values})]), "id")


def test_tables_that_others_do_not_read_as_they_are_are_left_to_spark(tmp_path: Path) -> None:
    table = upstream(tmp_path, [pa.table({"id": [1, 2], "part": [1, 2]})], partition_by=["part"])
    assert not is_unique(table, "id")


def test_a_damaged_file_is_left_to_spark(tmp_path: Path) -> None:
    table = upstream(tmp_path, [pa.table({"id": [1, 2]}), pa.table({"id": [3]})])
    assert is_unique(table, "id")
    next(tmp_path.glob("*.parquet")).unlink()
    assert not is_unique(table, "id")


def test_a_store_that_fails_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = upstream(tmp_path, [pa.table({"id": [1, 2]})])

    def fail(*_given: object) -> pa.Table:
        raise OSError("the store does not answer")

    monkeypatch.setattr(FoundRows, "columns", fail)
    assert not is_unique(table, "id")


@pytest.mark.parametrize(("values", "most"), [([1, 2, 3], "MOST_NUMBERS"), (["a", "b", "c"], "MOST_ROWS")])
def test_many_rows_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[Any], most: str
) -> None:
    table = upstream(tmp_path, [pa.table({"id": values[:2]}), pa.table({"id": values[2:]})])
    monkeypatch.setattr(distinct_keys, most, 3)
    assert is_unique(table, "id")
    monkeypatch.setattr(distinct_keys, most, 2)
    assert not is_unique(table, "id")


@given(st.lists(st.tuples(st.integers(-1, 1) | st.none(), st.sampled_from(["", "a", "a ", "A", None])), max_size=4))
def test_rows_are_said_to_be_distinct_where_they_differ_in_more_than_blanks(keys: list[tuple[Any, ...]]) -> None:
    forms = [(number, text if text is None else text.rstrip(" ")) for number, text in keys]
    schema = pa.schema({"n": pa.int32(), "s": pa.string()})
    rows = pa.table([[key[at] for key in keys] for at in range(2)], schema=schema)
    assert are_surely_distinct(rows) is (len({*forms}) == len(forms))


def test_numbers_with_several_forms_are_not_said_to_be_distinct() -> None:
    assert not are_surely_distinct(pa.table({"n": [0.0, 1.0]}))
