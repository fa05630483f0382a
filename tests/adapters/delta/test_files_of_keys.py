"""Which files of a real Delta table may have the keys of a range, by the statistics in its log."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta import key_statistics
from backfill_assets.adapters.delta.key_statistics import files_of_keys, may_be_null, sortable_key
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import Key, KeyRange
from backfill_assets.core.progress.reads import KeyRead
from backfill_assets.query.ddl import Column

CONFIGURATION = {"delta.enableChangeDataFeed": "true"}
INT, TEXT, DAYS = pa.int64(), pa.string(), pa.date32()


def stated(
    root: Path, files: Sequence[Sequence[Any]], kind: pa.DataType, *ranges: tuple[Key | None, Key | None]
) -> list[int]:
    """Which of these files, each with these keys, are read for ranges of the key."""
    rows = dict[str, int]()
    upstream = DeltaUpstream(name="base", location=TableLocation(uri=str(root)), key=lambda: ("id",))
    for number, keys in enumerate(files):
        made = pa.table({"id": pa.array(keys, kind), "v": ["x"] * len(keys)})
        write_deltalake(str(root), made, mode="append", configuration=CONFIGURATION)
        new = {each.path for each in upstream.version(number).files} - rows.keys()
        rows.update(dict.fromkeys(new, number))
    keys = tuple(KeyRange(after=after, upto=upto) for after, upto in ranges)
    read = KeyRead(source="base", table_id="t", version=len(files) - 1, ranges={}, keys=keys, rows=1)
    (leading,) = sortable_key(upstream)
    return sorted(rows[each.path] for each in files_of_keys(upstream, read, leading))


NUMBERS = [[1, 5], [6, 9], [20, 30]]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(None, None)], [0, 1, 2]),
        ([(None, ("5",))], [0]),
        ([(None, ("6",))], [0, 1]),
        ([(("9",), None)], [2]),
        ([(("9", "x"), None)], [1, 2]),
        ([(("10",), ("19",))], []),
        ([(("10",), ("20",))], [2]),
        ([(None, ("1",)), (("25",), None)], [0, 2]),
        ([((None,), ("5",))], [0]),
    ],
)
def test_files_whose_keys_are_outside_are_left_out(
    tmp_path: Path, ranges: list[tuple[Key | None, Key | None]], expected: list[int]
) -> None:
    assert stated(tmp_path, NUMBERS, INT, *ranges) == expected


@pytest.mark.parametrize(
    ("files", "kind", "upto", "expected"),
    [
        ([["a", "b"], ["ba", "c"]], TEXT, "b", [0]),
        ([["é"], ["z"]], TEXT, "z", [1]),
        ([[Decimal("1.50")], [Decimal("1.51")]], pa.decimal128(10, 2), "1.50", [0]),
        ([[date(2024, 1, 1)], [date(2024, 1, 3)]], DAYS, "2024-01-02", [0]),
        ([[date(2024, 1, 1)], [date(2024, 1, 3)]], DAYS, "+12000-01-01", [0, 1]),
    ],
    ids=["texts", "letters", "decimals", "days", "far days"],
)
def test_keys_are_compared_as_spark_orders_them(
    tmp_path: Path, files: list[list[Any]], kind: pa.DataType, upto: str, expected: list[int]
) -> None:
    assert stated(tmp_path, files, kind, (None, (upto,))) == expected


@pytest.mark.parametrize(
    ("files", "kind", "upto"),
    [
        ([[1, None], [5, 6]], INT, "-5"),
        ([[0.5], [9.5]], pa.float64(), "-1.0"),
        ([[Decimal(10**20)], [Decimal(10**21)]], pa.decimal128(38, 0), "5"),
        ([[datetime(2024, 1, 1, tzinfo=UTC)], [datetime(2024, 1, 2, tzinfo=UTC)]], pa.timestamp("us", "UTC"), "5"),
        ([[True], [True]], pa.bool_(), "false"),
        ([["\ufffd"], ["x\ufffd"]], TEXT, "a"),
    ],
    ids=["nulls", "floats", "long decimals", "instants", "booleans", "no text"],
)
def test_a_file_whose_bounds_are_missing_or_inexact_may_have_any_key(
    tmp_path: Path, files: list[list[Any]], kind: pa.DataType, upto: str
) -> None:
    expected = [0] if kind == INT else [0, 1]
    assert stated(tmp_path, files, kind, (None, (upto,))) == expected


@pytest.mark.parametrize("bound", ["no time", "2024-01-01T00:00:00", "12024-01-01T00:00:00Z"])
def test_a_bound_of_instants_that_is_none_excludes_nothing(bound: str) -> None:
    found = key_statistics._ordered(Column("at", "TIMESTAMP"), bound)
    assert found is None
    assert key_statistics._ordered(Column("at", "TIMESTAMP"), "2024-01-01T00:00:00.000001Z") == 1_704_067_200_000_001


def test_statistics_of_very_many_files_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_statistics, "MAX_FILES", 2)
    assert stated(tmp_path, NUMBERS, INT, (None, ("5",))) == [0, 1, 2]


def test_statistics_are_those_of_the_column_that_has_the_name_now(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], INT), "old": pa.array([70, 80], INT)})
    write_deltalake(str(tmp_path), rows, configuration=CONFIGURATION)
    (entry,) = tmp_path.glob("_delta_log/*.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    (metadata,) = (each["metaData"] for each in actions if "metaData" in each)
    metadata["configuration"]["delta.columnMapping.mode"] = "name"
    schema = json.loads(metadata["schemaString"])
    for field, stored in zip(schema["fields"], ("old", "id"), strict=True):
        field["metadata"] = {"delta.columnMapping.physicalName": stored}
    metadata["schemaString"] = json.dumps(schema)
    entry.write_text("".join(json.dumps(each) + "\n" for each in actions))
    upstream = DeltaUpstream(name="base", location=TableLocation(uri=str(tmp_path)))

    def found(text: str) -> int:
        keys = (KeyRange(after=(text,), upto=(text,)),)
        read = KeyRead(source="base", table_id="t", version=0, ranges={}, keys=keys, rows=1)
        return len(files_of_keys(upstream, read, Column("id", "BIGINT")))

    assert (found("75"), found("1")) == (1, 0), "id is the column that was named old when the file was written"


def test_a_column_may_be_null_unless_every_file_says_that_it_is_not(tmp_path: Path) -> None:
    upstream = DeltaUpstream(name="base", location=TableLocation(uri=str(tmp_path)), key=lambda: ("id",))
    one, other = Column("one", "BIGINT"), Column("other", "BIGINT")

    def found() -> tuple[bool, bool]:
        version = upstream.version(upstream.loaded().version())
        return may_be_null(version, one), may_be_null(version, other)

    schema = pa.schema({"one": INT, "other": INT})
    write_deltalake(str(tmp_path), pa.table({"one": [1, 2], "other": [1, 2]}, schema), configuration=CONFIGURATION)
    assert found() == (False, False)
    write_deltalake(str(tmp_path), pa.table({"one": [1, 2], "other": [None, 2]}, schema), mode="append")
    assert found() == (False, True)
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.dataSkippingStatsColumns": "other"})
    write_deltalake(str(tmp_path), pa.table({"one": [3], "other": [3]}, schema), mode="append")
    assert found() == (True, True)
    DeltaTable(str(tmp_path)).delete()
    assert found() == (False, False)
