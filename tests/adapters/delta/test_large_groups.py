"""Rows are found in groups that take much more memory than their files have bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.adapters.delta.found_rows import FoundRows, Sought, UnfitError
from backfill_assets.adapters.delta.touched_files import LoggedFile
from backfill_assets.adapters.storage.warehouse import TableLocation


@pytest.mark.full
def test_texts_of_more_than_two_gib_in_one_group_are_decoded_in_parts(tmp_path: Path) -> None:
    count = 1_000_000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 2300]))
    rows = pa.table({"key": pa.array(range(count), pa.int32()), "text": texts})
    with pq.ParquetWriter(tmp_path / "part.parquet", rows.schema, store_schema=False) as writer:
        writer.write_table(rows, row_group_size=count)
    file = LoggedFile(path="part.parquet", size=0, rows=count)
    schema = pa.schema({"key": pa.int32(), "text": pa.large_string()})
    finder = FoundRows(TableLocation(uri=str(tmp_path)))
    before = pa.total_allocated_bytes()
    assert finder.among([file], schema, "key", Sought("INTEGER", pa.array([1], pa.int64())))["text"].to_pylist() == [
        "x" * 2300
    ]
    with pytest.raises(UnfitError, match="more than"):
        finder.every([file], schema)
    assert pa.default_memory_pool().max_memory() - before < 1.5 * 2**30
