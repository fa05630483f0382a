"""Of the files in a folder that Spark has written only those count which its log lists; the log goes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from backfill_assets.adapters.delta.spark_files import fits_delta, listed
from backfill_assets.adapters.delta.staged_files import described
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.errors import StagingError

FOLDER = "11111111-1-22222222/rows"


@pytest.fixture
def table(tmp_path: Path) -> TableLocation:
    return TableLocation(uri=str(tmp_path))


@pytest.fixture
def folder(table: TableLocation) -> Path:
    """A folder with files by the values of a column, of which a log tells, and one of a task that was given up."""
    place = Path(table.uri, FOLDER)
    rows = pa.table({"id": [1, 2, 3], "__op": ["insert", "a value=%", "insert"]})
    write_deltalake(str(place), rows, partition_by=["__op"])
    pq.write_table(pa.table({"id": [4]}), place / "__op=insert" / "part-00000-given-up.parquet")
    return place


def test_only_files_of_tasks_that_succeeded_count(table: TableLocation, folder: Path) -> None:
    found = listed(table, FOLDER)
    assert sum(each.rows for each in described(table, found)) == 3
    assert {each.size for each in found} == {Path(table.uri, each.path).stat().st_size for each in found}
    assert len({Path(each.path).parent for each in found}) == 2
    assert not [
        each for each in folder.rglob("*") if each.is_file() and each.stat().st_size and "_delta_log" in str(each)
    ]
    assert len([*folder.rglob("*.parquet")]) == len(found)


@pytest.mark.usefixtures("folder")
def test_a_folder_without_a_list_is_no_result(table: TableLocation) -> None:
    listed(table, FOLDER)
    with pytest.raises(StagingError, match="no list of what it wrote"):
        listed(table, FOLDER)


def field(name: str, kind: object = "long") -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        (struct(field("ä.b`c")), True),
        (struct(field("a"), field("b c")), False),
        (struct(field("a", struct(field("b,c")))), False),
        (struct(field("a", {"type": "array", "elementType": struct(field("b=c"))})), False),
        (struct(field("a", {"type": "map", "keyType": struct(field("b;")), "valueType": "long"})), False),
        (struct(field("a", {"type": "map", "keyType": "long", "valueType": struct(field("b\tc"))})), False),
        (struct(field("a", "decimal(38,18)")), True),
    ],
)
def test_names_that_a_new_delta_table_must_not_have_are_found_wherever_they_are(kind: object, fits: bool) -> None:
    assert fits_delta(kind) == fits
