"""Which files were added to a table and removed from it between two versions: real Delta logs, without Spark."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.proof.file_statistics import stated_since
from backfill_assets.adapters.proof.rows import footer_rows
from backfill_assets.adapters.proof.written import Written, written_between
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.proof_scope import Everything


def append(folder: Path, *numbers: int, **given: object) -> None:
    write_deltalake(str(folder), pa.table({"id": list(numbers)}), mode="append", **given)  # type: ignore[call-overload]


@pytest.fixture
def table(tmp_path: Path) -> TableLocation:
    """Two files, versions 0 and 1."""
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    return TableLocation(uri=str(tmp_path))


def found(table: TableLocation, before: int, now: int) -> Written:
    written = written_between(table, before, now)
    assert isinstance(written, Written)
    assert (written.before, written.now) == (before, now)
    return written


def test_files_that_came_and_went_between_two_versions(table: TableLocation) -> None:
    append(Path(table.uri), 4, 5, 6)
    added = found(table, 1, 2)
    assert (len(added.came), added.went, added.rows, added.nothing) == (1, (), 3, False)
    assert added.bytes == (Path(table.uri) / added.came[0]).stat().st_size
    DeltaTable(table.uri).optimize.compact()
    compacted = found(table, 1, 3)
    assert (len(compacted.came), len(compacted.went), compacted.rows) == (1, 2, 9)
    DeltaTable(table.uri).delete()
    assert not found(table, 3, 4).nothing
    assert found(table, 2, 3).went == tuple(sorted((*compacted.went, *added.came)))
    assert found(table, 3, 3).nothing
    assert not compacted.nothing


def test_restated_statistics_move_no_row_and_are_still_checked(table: TableLocation) -> None:
    path = DeltaTable(table.uri).get_add_actions().column("path").to_pylist()[0]
    restated = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": False}
    (Path(table.uri) / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"add": restated}))
    assert found(table, 1, 2).nothing
    assert stated_since(table, 1, 2) == {path}
    assert stated_since(table, 2, 2) == set()


def test_if_log_entries_or_removed_files_are_missing_everything_is_proved(table: TableLocation) -> None:
    DeltaTable(table.uri).optimize.compact()
    (gone, _) = found(table, 1, 2).went
    (Path(table.uri) / gone).unlink()
    without_file = written_between(table, 1, 2)
    assert isinstance(without_file, Everything)
    assert "files of version 1, which passed, no longer exist" in without_file.reason
    DeltaTable(table.uri).create_checkpoint()
    for entry in (Path(table.uri) / "_delta_log").glob("*.json"):
        entry.unlink()
    without_log = written_between(table, 1, 2)
    assert isinstance(without_log, Everything)
    assert "is no longer in the log" in without_log.reason
    assert stated_since(table, 1, 2) is None


def test_a_table_whose_files_lack_columns_is_not_sampled(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1], "part": [1]}), partition_by=["part"])
    assert isinstance(written_between(TableLocation(uri=str(tmp_path)), 0, 0), Everything)


def test_files_of_another_table_are_not_told_apart_by_their_paths(table: TableLocation) -> None:
    """A shallow clone refers to files of the table from which it was made."""
    added = {
        "path": "s3://elsewhere/a.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    stats = {"stats": '{"numRecords": 1}'}
    (Path(table.uri) / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"add": {**added, **stats}}))
    found = written_between(table, 1, 2)
    assert isinstance(found, Everything)
    assert found.reason == "its files are not below its folder"


def test_a_version_that_cannot_be_loaded_shows_nothing(table: TableLocation) -> None:
    found = written_between(table, 1, 9)
    assert isinstance(found, Everything)
    assert "version 1, which passed, is no longer in the log" in found.reason


def test_of_a_table_that_does_not_exist_no_rows_are_counted(tmp_path: Path) -> None:
    assert footer_rows(TableLocation(uri=str(tmp_path))) == 0
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    assert footer_rows(TableLocation(uri=str(tmp_path))) == 3
