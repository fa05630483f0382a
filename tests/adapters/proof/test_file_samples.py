"""Rows of data files as read without Spark: at places that a seed selects, and of the requested columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.adapters.delta.log_replay import DataFile, Version
from backfill_assets.adapters.proof import file_samples
from backfill_assets.adapters.proof.file_samples import TableFiles, TableSample, sample_of
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.query.ddl import parse_schema
from tests.support.careless import damaged

ROWS = 100
PLAIN: Mapping[str, Any] = {"minReaderVersion": 1}
MAPPED: Mapping[str, Any] = {"minReaderVersion": 2}


def drawn_of(
    folder: Path,
    *actions: Mapping[str, Any],
    columns: str = "id LONG, More STRING",
    protocol: Mapping[str, Any] = PLAIN,
) -> TableSample:
    files = tuple(DataFile(action) for action in actions or ({"path": "f.parquet"},))
    table = TableFiles(
        name="t",
        location=TableLocation(uri=str(folder)),
        version=Version(protocol, {"schemaString": "{}"}, files),
        columns=parse_schema(columns),
    )
    return sample_of(table, "seed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of one file, of which a fourth is selected; row groups are shorter than that."""
    monkeypatch.setattr(file_samples, "ROWS_SAMPLED", 25)
    rows = pa.table({"id": list(range(ROWS)), "more": [str(at) for at in range(ROWS)], "other": [None] * ROWS})
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=9)
    return tmp_path


def test_rows_are_those_of_their_places_wherever_row_groups_begin(folder: Path) -> None:
    (file,) = drawn_of(folder).files
    assert file.rows is not None
    assert 0 < file.places.start < file.places.end == file.places.start + 25 < ROWS
    assert file.rows.to_pylist() == [{"id": at, "More": str(at)} for at in range(file.places.start, file.places.end)]


def test_rows_from_the_middle_of_a_file_are_copies_as_slices_of_nested_values_are_not_taken(folder: Path) -> None:
    nested = pa.list_(pa.struct([("key", pa.string())]))
    values = pa.array([None if at % 3 else [{"key": str(at)}] for at in range(ROWS)], nested)
    pq.write_table(pa.table({"id": list(range(ROWS)), "more": values}), folder / "f.parquet")
    (file,) = drawn_of(folder, columns="id LONG, more ARRAY<STRUCT<key: STRING>>").files
    assert file.rows is not None
    assert file.places.start > 0
    assert {chunk.offset for column in file.rows.columns for chunk in column.chunks} == {0}
    assert file.rows["more"].to_pylist() == values.to_pylist()[file.places.start : file.places.end]


def test_columns_that_a_file_lacks_are_left_out_and_files_without_any_are_skipped(folder: Path) -> None:
    (file,) = drawn_of(folder, columns="ID LONG, late STRING").files
    assert file.rows is not None
    assert file.rows.column_names == ["ID"]
    without = drawn_of(folder, columns="late STRING")
    assert (without.files, without.passed_over) == ((), 1)


def test_a_damaged_or_missing_file_is_reported(folder: Path) -> None:
    with damaged(folder / "f.parquet"):
        (file,) = drawn_of(folder).files
    assert file.rows is None
    assert file.error.startswith("OSError: ")
    (gone,) = drawn_of(folder, {"path": "gone.parquet"}).files
    assert gone.rows is None
    assert gone.error.startswith("FileNotFoundError: ")


@pytest.mark.parametrize(
    ("action", "protocol", "columns"),
    [
        ({"path": "f.parquet", "deletionVector": {"cardinality": 1}}, PLAIN, "id LONG"),
        ({"path": "s3://elsewhere/f.parquet"}, PLAIN, "id LONG"),
        ({"path": "f.parquet"}, MAPPED, "id LONG"),
        ({"path": "f.parquet"}, PLAIN, "id LONG, _metadata STRING"),
    ],
    ids=["hidden rows", "elsewhere", "mapped columns", "a column in the way"],
)
def test_files_that_do_not_contain_exactly_their_rows_are_passed_over(
    folder: Path, action: Mapping[str, Any], protocol: Mapping[str, Any], columns: str
) -> None:
    found = drawn_of(folder, action, columns=columns, protocol=protocol)
    assert (found.files, found.passed_over) == ((), 1)


def test_a_file_of_a_kind_that_pyarrow_does_not_know_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_given: object) -> None:
        raise pa.ArrowNotImplementedError("a codec of tomorrow")

    monkeypatch.setattr(file_samples, "_rows", unknown)
    found = drawn_of(folder)
    assert (found.files, found.passed_over) == ((), 1)
