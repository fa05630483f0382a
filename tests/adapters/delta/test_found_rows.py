"""Rows that are found by values of a column: all of them, and no others, in whatever files they are."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.delta import files_to_search, found_rows
from backfill_assets.adapters.delta.files_to_search import files_of_upstream, files_of_view
from backfill_assets.adapters.delta.found_rows import HASH, FoundRows, Sought, UnfitError
from backfill_assets.adapters.delta.touched_files import LoggedFile
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.touched_spans import may_touch
from backfill_assets.errors import ReadMismatchError
from backfill_assets.query.ddl import Column

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "INTEGER": (pa.int32(), st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1])),
    HASH: (pa.int64(), st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])),
    "STRING": (pa.large_string(), st.text("aA !é𠮷", max_size=3)),
    "DATE": (pa.date32(), st.sampled_from([date(1, 1, 1), date(2020, 2, 29), date(2020, 3, 1), date(9999, 12, 31)])),
    "DECIMAL(20,2)": (
        pa.decimal128(20, 2),
        st.sampled_from([Decimal("0.01"), Decimal("-0.01"), Decimal("999999999999999999.99")]),
    ),
    "BOOLEAN": (pa.bool_(), st.booleans()),
}


def schema_of(kind: str) -> pa.Schema:
    return pa.schema({"key": KINDS[kind][0], "row": pa.int64()})


def alike(value: Any) -> Any:
    return value.rstrip(" ") if isinstance(value, str) else value


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[Any]], list[Any]]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    values = KINDS[kind][1] | st.none()
    return (
        kind,
        draw(st.lists(st.lists(values, max_size=6), min_size=1, max_size=4)),
        draw(st.lists(values, max_size=3)),
    )


@pytest.mark.drawn
@given(tables(), st.integers(1, 3))
def test_rows_are_found_that_have_one_of_the_values(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, list[list[Any]], list[Any]], group: int
) -> None:
    kind, files, values = drawn
    folder = tmp_path_factory.mktemp("table")
    table = written(folder, kind, files, group=group)
    sought = Sought.of(kind, [pa.chunked_array([pa.array(values, KINDS[kind][0])])])
    finder = FoundRows(TableLocation(uri=str(folder)))
    rows = [(value, at) for at, value in enumerate(value for file in files for value in file)]
    wanted = {alike(value) for value in values}
    expected = sorted((row for row in rows if alike(row[0]) in wanted), key=lambda row: row[1])
    upstream = DeltaUpstream(name="t", location=TableLocation(uri=str(folder)))
    column = Column("key", {"INTEGER": "INT", HASH: "BIGINT"}.get(kind, kind))
    for chosen in (
        files_of_view(table, "key", sought),
        files_of_upstream(upstream, table.version(), column, sought),
    ):
        found = finder.among(chosen, schema_of(kind), "key", sought)
        assert sorted(zip(*found.to_pydict().values(), strict=True), key=lambda row: row[1]) == expected


def test_a_text_with_blanks_behind_it_is_found_in_a_file_of_its_own(tmp_path: Path) -> None:
    table = written(tmp_path, "STRING", [["a"], ["a  "], ["a!"]])
    sought = Sought.of("STRING", [pa.chunked_array([["a "]], pa.large_string())])
    assert len(files_of_view(table, "key", sought)) == 3  # the last one for nothing
    found = FoundRows(TableLocation(uri=str(tmp_path))).among(logged(tmp_path), schema_of("STRING"), "key", sought)
    assert sorted(found["row"].to_pylist()) == [0, 1]


@given(
    st.lists(st.text("a \t!", max_size=4), min_size=1, max_size=12, unique=True), st.integers(1, 12), st.integers(0, 3)
)
def test_spans_hold_each_text_with_any_blanks_behind_it(values: list[str], most: int, blanks: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found_rows, "MOST_VALUES", most)
        spans = Sought.of("STRING", [pa.chunked_array([values], pa.string())]).spans
    assert spans is not None
    assert len(spans) <= most
    for each in values:
        text = each.rstrip(" ") + " " * blanks
        assert may_touch(spans, (text, text))


def written(folder: Path, kind: str, files: Sequence[Sequence[Any]], *, group: int = 100) -> DeltaTable:
    """A table with these values, each in a file of its own, and a number for each row."""
    schema = schema_of(kind)
    write_deltalake(str(folder), schema.empty_table())
    begins = 0
    for file in files:
        rows = pa.table({"key": file, "row": range(begins, begins + len(file))}, schema=schema)
        if len(rows):
            properties = WriterProperties(max_row_group_size=group, data_page_size_limit=64)
            write_deltalake(str(folder), rows, mode="append", writer_properties=properties)
        begins += len(file)
    return DeltaTable(str(folder))


def logged(folder: Path) -> list[LoggedFile]:
    return files_of_view(DeltaTable(str(folder)), "key", Sought("INTEGER", pa.array([None], pa.int64())))


SOUGHT = Sought("INTEGER", pa.array([1], pa.int64()))


def found(folder: Path, schema: pa.Schema | None = None, sought: Sought = SOUGHT) -> list[dict[str, Any]]:
    finder = FoundRows(TableLocation(uri=str(folder)))
    rows: list[dict[str, Any]] = finder.among(logged(folder), schema or schema_of("INTEGER"), "key", sought).to_pylist()
    return rows


def test_only_files_are_opened_whose_bounds_may_hold_a_value(tmp_path: Path) -> None:
    table = written(tmp_path, "INTEGER", [[0, 1], [5, 9], [None, 7]])
    assert len(files_of_view(table, "key", SOUGHT)) == 1
    upstream = DeltaUpstream(name="t", location=TableLocation(uri=str(tmp_path)))
    # Of other writers, bounds of a column with nulls are not used.
    assert len(files_of_upstream(upstream, table.version(), Column("key", "INT"), SOUGHT)) == 2
    for value, files in ((None, 3), (3, 0), (9, 1)):
        sought = Sought("INTEGER", pa.array([value], pa.int64()))
        assert len(files_of_view(table, "key", sought)) == files


def test_a_column_that_came_later_is_null_in_older_files(tmp_path: Path) -> None:
    written(tmp_path, "INTEGER", [[1], [2]])
    schema = schema_of("INTEGER").append(pa.field("more", pa.large_string()))
    assert found(tmp_path, schema) == [{"key": 1, "row": 0, "more": None}]
    finder = FoundRows(TableLocation(uri=str(tmp_path)))
    nothing = Sought("STRING", pa.array([None, "a"], pa.large_string()))
    assert len(finder.among(logged(tmp_path), schema, "more", nothing)) == 2
    assert (
        len(finder.among(logged(tmp_path), schema, "more", Sought("STRING", pa.array(["a"], pa.large_string())))) == 0
    )


def test_a_file_with_other_rows_than_the_log_says_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "INTEGER", [[1, 2]])
    (file,) = logged(tmp_path)
    rows = pa.table({"key": [1], "row": [0]}, schema=schema_of("INTEGER"))
    pq.write_table(rows, tmp_path / file.stored)
    with pytest.raises(ReadMismatchError, match="bytes, expected"):
        found(tmp_path)
    same_size = LoggedFile(path=file.path, size=(tmp_path / file.stored).stat().st_size, rows=2)
    finder = FoundRows(TableLocation(uri=str(tmp_path)))
    with pytest.raises(ReadMismatchError, match="has 1 rows, expected 2"):
        finder.among([same_size], schema_of("INTEGER"), "key", SOUGHT)
    (tmp_path / file.stored).unlink()
    with pytest.raises(ReadMismatchError, match="cannot be read"):
        found(tmp_path)


def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"key": pa.array(range(1000), pa.int32()), "row": range(1000)})
    path = tmp_path / "part.parquet"
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    file = LoggedFile(path="part.parquet", size=len(content), rows=1000)
    with pytest.raises(ReadMismatchError, match="CRC"):
        FoundRows(TableLocation(uri=str(tmp_path))).among([file], schema_of("INTEGER"), "key", SOUGHT)


@pytest.mark.parametrize("key", ["org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"])
def test_days_of_another_calendar_are_left_to_spark(tmp_path: Path, key: str) -> None:
    rows = pa.table({"key": [1], "row": [0]}, schema=schema_of("INTEGER")).replace_schema_metadata({key: ""})
    pq.write_table(rows, tmp_path / "part.parquet")
    file = LoggedFile(path="part.parquet", size=0, rows=1)
    with pytest.raises(UnfitError, match="another calendar"):
        FoundRows(TableLocation(uri=str(tmp_path))).among([file], schema_of("INTEGER"), "key", SOUGHT)


def test_names_and_types_that_arrow_may_take_otherwise_are_left_to_spark(tmp_path: Path) -> None:
    written(tmp_path, "INTEGER", [[1]])
    odd = [
        pa.schema({"KEY": pa.int32(), "key": pa.int32()}),
        schema_of("INTEGER").append(pa.field("a.b", pa.int32())),
        schema_of("INTEGER").append(pa.field("span", pa.duration("us"))),
        schema_of("INTEGER").append(pa.field("nanos", pa.timestamp("ns"))),
        pa.schema({"key": pa.int32(), "row": pa.date32()}),
    ]
    for schema in odd:
        with pytest.raises(UnfitError):
            found(tmp_path, schema)


NESTED = pa.struct({"x": pa.int64(), "y": pa.list_(pa.struct({"p": pa.int64()}))})


@pytest.mark.parametrize(
    "there",
    [
        pa.struct({"X": pa.int64(), "y": pa.list_(pa.struct({"p": pa.int64()}))}),
        pa.struct({"x": pa.int64(), "y": pa.list_(pa.struct({"P": pa.int64()}))}),
        pa.timestamp("ns"),
        pa.null(),
    ],
    ids=str,
)
def test_a_file_in_which_spark_finds_something_else_is_left_to_spark(tmp_path: Path, there: pa.DataType) -> None:
    path = tmp_path / "part.parquet"
    rows = pa.table({"key": pa.array([1], pa.int32()), "more": pa.nulls(1, there)})
    pq.write_table(rows, path, version="2.6")
    file = LoggedFile(path=path.name, size=0, rows=1)
    wanted = NESTED if pa.types.is_struct(there) else pa.timestamp("us") if pa.types.is_timestamp(there) else pa.int64()
    schema = pa.schema({"key": pa.int32(), "more": wanted})
    with pytest.raises(UnfitError, match="other names or types"):
        FoundRows(TableLocation(uri=str(tmp_path))).among([file], schema, "key", SOUGHT)


@pytest.mark.parametrize(
    ("there", "wanted", "values"),
    [
        (pa.string_view(), pa.large_string(), ["a", None, "b"]),
        (pa.binary_view(), pa.large_binary(), [b"a", None, b"b"]),
        (pa.list_(pa.string_view()), pa.list_(pa.large_string()), [["a", None], None, []]),
        (
            pa.struct({"x": pa.string_view()}),
            pa.struct({"x": pa.large_string()}),
            [{"x": "a"}, {"x": None}, {"x": "b"}],
        ),
    ],
    ids=str,
)
def test_texts_that_a_writer_held_as_views_are_found_like_others(
    tmp_path: Path, there: pa.DataType, wanted: pa.DataType, values: list[object]
) -> None:
    path = tmp_path / "part.parquet"
    keys = pa.array([1, 2, 1], pa.int32())
    pq.write_table(pa.table({"key": keys, "more": pa.array(values, there)}), path)
    file = LoggedFile(path=path.name, size=0, rows=3)
    schema = pa.schema({"key": pa.int32(), "more": wanted})
    found = FoundRows(TableLocation(uri=str(tmp_path)))
    assert found.among([file], schema, "key", SOUGHT).column("more").to_pylist() == [values[0], values[2]]
    assert found.every([file], schema).column("more").to_pylist() == values
    if pa.types.is_string_view(there):
        among = found.among([file], schema, "more", Sought("STRING", pa.array(["b", None], pa.large_string())))
        assert among.column("key").to_pylist() == [2, 1]


def test_a_field_that_came_later_is_null_in_older_files(tmp_path: Path) -> None:
    rows = pa.table({"key": pa.array([1], pa.int32()), "more": pa.array([{"x": 5}], pa.struct({"x": pa.int64()}))})
    pq.write_table(rows, tmp_path / "part.parquet")
    file = LoggedFile(path="part.parquet", size=0, rows=1)
    schema = pa.schema({"key": pa.int32(), "more": NESTED})
    found = FoundRows(TableLocation(uri=str(tmp_path))).among([file], schema, "key", SOUGHT)
    assert found.to_pylist() == [{"key": 1, "more": {"x": 5, "y": None}}]


def test_partitioned_tables_are_left_to_spark(tmp_path: Path) -> None:
    rows = pa.table({"key": [1], "row": [0]}, schema=schema_of("INTEGER"))
    write_deltalake(str(tmp_path), rows, partition_by=["key"])
    upstream = DeltaUpstream(name="t", location=TableLocation(uri=str(tmp_path)))
    with pytest.raises(UnfitError, match="partitions"):
        files_of_upstream(upstream, 0, Column("key", "INT"), SOUGHT)
    with pytest.raises(UnfitError, match="partitions"):
        files_of_view(DeltaTable(str(tmp_path)), "key", SOUGHT)


def test_many_rows_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "INTEGER", [[1, 1], [1, 1]])
    monkeypatch.setattr(found_rows, "_MOST_ROWS", 3)
    with pytest.raises(UnfitError, match="more than 3 rows"):
        found(tmp_path)
    monkeypatch.setattr(found_rows, "_MOST_BYTES", 1000)
    with pytest.raises(UnfitError, match="2 files of more than 1000 bytes"):
        FoundRows(TableLocation(uri=str(tmp_path))).every(logged(tmp_path), schema_of("INTEGER"))
    monkeypatch.setattr(files_to_search, "_MOST_LOCAL", 1)
    with pytest.raises(UnfitError, match="2 files of"):
        logged(tmp_path)


def test_a_file_of_two_versions_is_read_once_for_the_same_values(tmp_path: Path) -> None:
    written(tmp_path, "INTEGER", [[1], [2]])
    files, schema = logged(tmp_path), schema_of("INTEGER")
    finder = FoundRows(TableLocation(uri=str(tmp_path)))
    once = finder.among(files, schema, "key", SOUGHT)
    for file in files:
        (tmp_path / file.stored).unlink()
    assert finder.among(files, schema, "key", SOUGHT) == once
    with pytest.raises(ReadMismatchError):
        finder.among(files, schema, "key", Sought("INTEGER", pa.array([1], pa.int64())))


def test_rows_of_files_that_have_none_of_the_columns_are_counted(tmp_path: Path) -> None:
    written(tmp_path, "INTEGER", [[1, 2], [3]])
    schema = pa.schema({"more": pa.large_string(), "other": pa.int64()})
    rows = FoundRows(TableLocation(uri=str(tmp_path))).every(logged(tmp_path), schema)
    assert rows.to_pylist() == [{"more": None, "other": None}] * 3
    nothing = Sought("STRING", pa.array([None], pa.large_string()))
    only = pa.schema({"more": pa.large_string()})
    assert len(FoundRows(TableLocation(uri=str(tmp_path))).among(logged(tmp_path), only, "more", nothing)) == 3


def test_values_that_python_cannot_hold_may_be_in_any_file(tmp_path: Path) -> None:
    far = pa.array([3_700_000, 1], pa.int32()).view(pa.date32())
    sought = Sought("DATE", far)
    assert sought.spans is None
    written(tmp_path, "INTEGER", [[1], [2]])
    assert len(files_of_view(DeltaTable(str(tmp_path)), "key", sought)) == 2


def test_values_that_the_column_cannot_have_are_left_to_spark() -> None:
    sought = Sought("INTEGER", pa.array(["text"], pa.large_string()))
    with pytest.raises(UnfitError, match="text"):
        sought.among(pa.chunked_array([[1, 2]]))
