"""The rows of files as their own footers say."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.adapters.delta.footers import footer_rows, held_rows
from backfill_assets.adapters.delta.log_replay import DataFile
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.errors import ReadMismatchError


@pytest.fixture
def table(tmp_path: Path) -> TableLocation:
    for rows in (0, 3, 4):
        pq.write_table(pa.table({"id": range(rows)}), tmp_path / f"of {rows}.parquet")
    return TableLocation(uri=str(tmp_path))


def test_the_rows_of_files_are_added_up(table: TableLocation) -> None:
    assert footer_rows(table, {f"of%20{rows}.parquet": 0 for rows in (0, 3, 4)}) == 7
    assert footer_rows(table, {}) == 0


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(b"PAR1" * 9), lambda file: file.unlink()])
def test_a_file_whose_footer_cannot_be_read_is_named(table: TableLocation, damage: object) -> None:
    assert callable(damage)
    damage(Path(table.uri, "of 3.parquet"))
    with pytest.raises(ReadMismatchError, match=r"cannot read the footer of file of%203.parquet"):
        footer_rows(table, {"of%204.parquet": 0, "of%203.parquet": 0})


def test_footers_say_what_the_log_does_not_and_hidden_rows_do_not_count(table: TableLocation) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "cardinality": 2}
    silent, hidden = (
        DataFile({"path": "of%203.parquet"}),
        DataFile({"path": "of%204.parquet", "deletionVector": vector}),
    )
    stated = DataFile({"path": "gone.parquet", "stats": '{"numRecords": 7}', "deletionVector": vector})
    assert held_rows(table, [stated]) == 5
    assert held_rows(table, [silent, hidden, stated]) == 3 + 2 + 5
    assert held_rows(table, [stated, DataFile({"path": "s3://other/f.parquet"})]) is None


def test_a_file_that_was_written_in_the_place_of_another_is_told_by_its_size(table: TableLocation) -> None:
    paths = ["of%203.parquet", "of%204.parquet"]
    sizes = {path: Path(table.uri, path.replace("%20", " ")).stat().st_size for path in paths}
    assert footer_rows(table, sizes) == footer_rows(table, {**sizes, paths[0]: 0}) == 7
    pq.write_table(pa.table({"id": range(300)}), Path(table.uri, "of 3.parquet"))
    with pytest.raises(ReadMismatchError, match=rf"of%203.parquet .* expected {sizes[paths[0]]} as the log says"):
        footer_rows(table, sizes)
    with pytest.raises(ReadMismatchError, match="written in its place"):
        held_rows(table, [DataFile({"path": path, "size": sizes[path]}) for path in paths])
