"""An empty output table: its first log entry is written once, whoever else writes it, and has all that later commits
need."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta.created_table import STATUS_PROPERTY, create_table
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.warehouse import TableLocation


def schema(*types: str) -> str:
    fields = [{"name": f"c{at}", "type": kind, "nullable": True, "metadata": {}} for at, kind in enumerate(types)]
    return json.dumps({"type": "struct", "fields": fields})


@pytest.fixture
def location(tmp_path: Path) -> TableLocation:
    return TableLocation(uri=str(tmp_path / "with blank" / "views" / "ünder way"))


def test_a_created_table_is_empty_and_has_all_its_properties(location: TableLocation) -> None:
    create_table(location, schema("long", "decimal(38,18)", "timestamp_ntz"))
    table = location.load()
    assert table is not None
    assert (table.version(), table.file_uris()) == (0, [])
    assert [str(each.type) for each in table.schema().fields] == [
        'PrimitiveType("long")',
        'PrimitiveType("decimal(38,18)")',
        'PrimitiveType("timestamp_ntz")',
    ]
    configuration = table.metadata().configuration
    assert configuration["delta.enableChangeDataFeed"] == "true"
    assert configuration["delta.enableExpiredLogCleanup"] == "false"
    assert configuration[STATUS_PROPERTY] == "creating"
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert set(protocol.reader_features or ()) <= set(protocol.writer_features or ())


def test_a_table_that_exists_is_not_changed(location: TableLocation) -> None:
    create_table(location, schema("long"))
    before = DeltaTable(location.uri).metadata().id
    create_table(location, schema("string", "string"))
    assert DeltaTable(location.uri).metadata().id == before
    assert len(DeltaTable(location.uri).schema().fields) == 1


def test_one_of_many_concurrent_writers_of_a_name_succeeds(tmp_path: Path) -> None:
    def write(number: int) -> bool:
        return ObjectFolder(uri=str(tmp_path)).put_if_absent("_delta_log/0.json", f"{number}".encode() * 1000)

    with ThreadPoolExecutor(8) as threads:
        wrote = list(threads.map(write, range(8)))
    assert wrote.count(True) == 1
    assert (tmp_path / "_delta_log" / "0.json").read_bytes() == f"{wrote.index(True)}".encode() * 1000
