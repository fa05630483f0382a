"""Files that Spark names by their addresses are found in a log, which names them by their paths."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.compute.merge import _in_log
from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.storage.warehouse import TableLocation

NAMES = ("plain.parquet", "part=a%2520b/f%231.parquet")


class InStore(TableLocation):
    @property
    def is_local(self) -> bool:
        return False


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(str(tmp_path), pa.table({"id": pa.array([], pa.int64())}))
    action = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    location = TableLocation(uri=str(tmp_path))
    assert put_commit(location, 1, "WRITE", [{"add": {"path": name, **action}} for name in NAMES])
    return DeltaTable(str(tmp_path))


@pytest.mark.parametrize(
    ("location", "root"),
    [
        (TableLocation(uri="/lake/my views/v"), "file:///lake/my%20views/v"),
        (InStore(uri="s3://bucket/my views/v"), "s3a://bucket/my%20views/v"),
        (InStore(uri="s3://bucket/my%20views/v/"), "s3a://bucket/my%20views/v"),
        (InStore(uri="abfss://c@account.dfs.core.windows.net/v"), "abfss://c@account.dfs.core.windows.net/v"),
    ],
)
def test_paths_are_those_of_the_log_whatever_spark_writes(
    location: TableLocation, root: str, table: DeltaTable
) -> None:
    assert tuple(_in_log([f"{root}/{name}" for name in NAMES], location, table)) == NAMES
    with pytest.raises(KeyError):
        list(_in_log([f"{root}/another.parquet"], location, table))
