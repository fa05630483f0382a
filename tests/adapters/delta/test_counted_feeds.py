"""How many rows of a change data feed there are: as its writer has counted them, or by its size."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.logged_changes import changed_rows
from backfill_assets.adapters.delta.upstream import FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation


def logged(operation: str, **metrics: object) -> list[dict[str, Any]]:
    """A commit with a change data feed."""
    return [
        {"commitInfo": {"operation": operation, "operationMetrics": metrics}},
        {"cdc": {"path": "_change_data/a.parquet", "size": 500}},
    ]


MERGED = {"numTargetRowsInserted": "3", "numTargetRowsUpdated": "20", "numTargetRowsDeleted": "100"}


@pytest.mark.parametrize(
    ("actions", "rows"),
    [
        (logged("MERGE", **MERGED, numOutputRows="9", numTargetRowsMatchedUpdated="20"), 143),
        (logged("MERGE", num_target_rows_inserted=3, num_target_rows_updated=20, num_target_rows_copied=9), 43),
        (logged("DELETE", numDeletedRows="7", numCopiedRows="9"), 7),
        (logged("UPDATE", num_updated_rows=7), 14),
        (logged("MERGE", numTargetRowsUpdated="0"), 10),
        (logged("MERGE", numTargetRowsUpdated="many", numTargetRowsDeleted=None), 10),
        (logged("MERGE", numTargetRowsUpdated=-3, numTargetRowsDeleted="1" + "0" * 15), 10),
        (logged("MERGE", numTargetRowsDeleted="9" * 15), 10**15 - 1),
        (logged("WRITE", numOutputRows="9"), 10),
        ([{"commitInfo": {"operationMetrics": None}}, *logged("")[1:]], 10),
        ([{"commitInfo": {"operationMetrics": "12"}}, *logged("")[1:]], 10),
        (logged("")[1:], 10),
    ],
)
def test_rows_of_a_feed_are_counted_by_its_writer_or_told_by_its_size(actions: list[dict[str, Any]], rows: int) -> None:
    assert changed_rows(actions) == rows


def test_delta_rs_says_how_many_rows_it_has_changed(tmp_path: Path) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": pa.array(range(4), pa.int64())}), configuration={FEED: "true"})
    source = pa.table({"id": pa.array([2, 3, 8, 9], pa.int64())})
    merge = DeltaTable(uri).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    deleted = merge.when_matched_update({"id": "s.id + 10"}, predicate="t.id = 2").when_matched_delete("t.id = 3")
    deleted.when_not_matched_insert_all().execute()
    DeltaTable(uri).delete("id > 8")
    assert [each.rows for each in DeltaUpstream(name="base", location=TableLocation(uri=uri)).commits(0, 2)] == [5, 2]
