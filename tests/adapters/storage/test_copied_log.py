"""A log that is copied from a store: each entry is requested once, what is new is seen, and another log is noticed."""

import gc
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.log_replay import replay
from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.copied_log import CopiedTable
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.query.ddl import Column
from tests.support.stored_table import StoredLocation, stored_at


@pytest.fixture
def location(tmp_path: Path) -> StoredLocation:
    uri = str(tmp_path / "table")
    for number in range(3):
        add(uri, number)
    return stored_at(uri)


def add(uri: str, number: int) -> None:
    write_deltalake(uri, pa.table({"id": [number]}), mode="append")


def newest(location: TableLocation) -> DeltaTable:
    table = location.followed.newest()
    assert table is not None
    return table


def same(location: TableLocation) -> None:
    """The copy says the same of the table as its own log."""
    copied, table = newest(location), DeltaTable(location.uri)
    assert isinstance(copied, CopiedTable)
    assert copied.version() == table.version()
    assert copied.metadata().id == table.metadata().id
    assert copied.table_uri == location.uri
    found, expected = (
        {row["path"]: row for row in pa.table(each.get_add_actions(flatten=True)).to_pylist()}
        for each in (copied, table)
    )
    assert found == expected


def test_each_entry_is_requested_once_and_new_ones_as_they_come(location: StoredLocation) -> None:
    same(location)
    assert location.counting.taken() == ["0", "1", "2", "_last_checkpoint"]
    same(location)
    assert location.content("_delta_log/00000000000000000001.json") is not None
    assert location.counting.taken() == []
    add(location.uri, 3)
    same(location)
    assert location.counting.taken() == ["3"]


def test_a_log_is_copied_from_its_newest_checkpoint_on(location: StoredLocation) -> None:
    DeltaTable(location.uri).create_checkpoint()
    same(location)
    assert location.counting.taken() == ["2", "2.checkpoint.parquet", "_last_checkpoint"]
    add(location.uri, 3)
    location.followed.forget()
    same(location)
    assert location.counting.taken() == ["2.checkpoint.parquet", "3", "_last_checkpoint"]
    Path(location.uri, "_delta_log", "_last_checkpoint").unlink()  # it is a hint
    location.followed.forget()
    same(location)


def test_versions_of_which_all_is_copied_are_loaded_without_a_request(location: StoredLocation) -> None:
    newest(location)
    location.counting.taken()
    for version in range(3):
        table = location.at(version)
        assert isinstance(table, CopiedTable)
        assert table.version() == version
        assert pa.table(table.get_add_actions()).num_rows == version + 1
    assert location.counting.taken() == []


def test_versions_before_a_copied_checkpoint_are_left_to_delta(location: StoredLocation) -> None:
    DeltaTable(location.uri).create_checkpoint()
    add(location.uri, 3)
    newest(location)
    for version, copied in ((1, False), (2, True), (3, True)):
        table = location.at(version)
        assert table is not None
        assert isinstance(table, CopiedTable) == copied
        assert pa.table(table.get_add_actions()).num_rows == version + 1


def test_an_entry_that_was_put_here_is_not_requested(location: StoredLocation) -> None:
    newest(location)
    location.counting.taken()
    assert put_commit(location, 3, "OPTIMIZE", [])
    add(location.uri, 4)
    same(location)
    assert location.counting.taken() == ["4"]


def test_an_entry_that_was_put_here_and_replaced_since_is_requested(location: StoredLocation) -> None:
    newest(location)
    assert put_commit(location, 3, "OPTIMIZE", [])
    entry = Path(location.uri, "_delta_log", f"{3:020d}.json")
    content = entry.read_text()
    entry.unlink()
    entry.write_text(content.replace("OPTIMIZE", "ANOTHER!"))
    location.counting.taken()
    newest(location)
    assert location.counting.taken() == ["3"]
    assert b"ANOTHER!" in (location.content("_delta_log/00000000000000000003.json") or b"")


def test_an_entry_that_another_put_first_is_requested(location: StoredLocation) -> None:
    newest(location)
    add(location.uri, 3)
    location.counting.taken()
    assert not put_commit(location, 3, "OPTIMIZE", [])
    same(location)
    assert location.counting.taken() == ["3"]


def test_another_log_in_the_tables_place_is_loaded_anew(location: StoredLocation) -> None:
    before = newest(location).metadata().id
    shutil.rmtree(location.uri)
    for number in range(5):
        add(location.uri, number)
    same(location)
    assert newest(location).metadata().id != before
    shutil.rmtree(location.uri)
    add(location.uri, 0)  # it is shorter than what was copied
    same(location)
    shutil.rmtree(location.uri)
    assert location.followed.newest() is None
    add(location.uri, 0)
    same(location)


def replaced(location: StoredLocation, version: int) -> None:
    """The entry of a version, as a writer leaves it who only looked whether it was there."""
    entry = Path(location.uri, "_delta_log", f"{version:020d}.json")
    content = entry.read_text()
    entry.unlink()
    entry.write_text(f"{content}\n")


@pytest.mark.parametrize("version", [2, 3, 5])
def test_an_entry_that_is_replaced_below_a_newest_one_that_stays_is_requested_again(
    location: StoredLocation, version: int
) -> None:
    for number in range(3, 7):
        add(location.uri, number)
        same(location)
    loads = location.followed.loads
    replaced(location, version)
    location.counting.taken()
    same(location)
    assert str(version) in location.counting.taken()
    assert location.followed.loads == loads + 1, "nothing that was read of the old log counts"


def test_entries_that_expire_are_not_another_log(location: StoredLocation) -> None:
    for number in range(3, 7):
        add(location.uri, number)
    same(location)
    DeltaTable(location.uri).create_checkpoint()
    for version in range(6):
        Path(location.uri, "_delta_log", f"{version:020d}.json").unlink()
    add(location.uri, 7)
    location.counting.taken()
    same(location)
    assert location.counting.taken() == ["7"]


def test_a_log_of_which_entries_are_missing_or_that_has_other_checkpoints_is_left_to_delta(
    location: StoredLocation,
) -> None:
    log = Path(location.uri, "_delta_log")
    DeltaTable(location.uri).create_checkpoint()
    (log / f"{2:020d}.checkpoint.parquet").rename(log / f"{2:020d}.checkpoint.0000000001.0000000001.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 2, "size": 5, "parts": 1}))
    assert not isinstance(newest(location), CopiedTable)
    assert location.counting.taken() == ["2", "_last_checkpoint"]
    add(location.uri, 3)
    assert newest(location).version() == 3
    (log / f"{2:020d}.checkpoint.0000000001.0000000001.parquet").unlink()
    (log / "_last_checkpoint").unlink()
    location.followed.forget()
    same(location)
    (log / f"{1:020d}.json").unlink()
    location.followed.forget()
    with pytest.raises(Exception, match="log"):
        location.followed.newest()


def test_a_version_is_replayed_from_the_log_as_it_is_now(location: StoredLocation) -> None:
    newest(location)
    shutil.rmtree(location.uri)
    for number in range(3):
        add(location.uri, number)
    assert {each.path for each in replay(location, 2).files} == files_of(location.uri)


def test_an_upstreams_versions_are_replayed_from_the_copy_of_its_log(location: StoredLocation) -> None:
    DeltaTable(location.uri).create_checkpoint()
    upstream = DeltaUpstream(name="t", location=location, follows=False)
    assert upstream.now().version == 2
    location.counting.taken()
    location.counting.lists.clear()
    assert len(upstream.version(2).files) == 3
    assert (upstream.columns(), upstream.size().rows) == ((Column("id", "BIGINT"),), 3)
    assert upstream.retention()[0] > 0
    assert upstream.now(again=False).version == 2
    assert (location.counting.taken(), location.counting.lists) == ([], [])
    add(location.uri, 3)
    assert [len(upstream.version(number).files) for number in (2, 3)] == [3, 4], "3 is not copied yet"
    assert (upstream.now(again=False).version, upstream.now().version) == (2, 3)
    location.counting.taken()
    add(location.uri, 4)
    assert upstream.now().version == 4
    assert {each.path for each in upstream.version(4).files} == files_of(location.uri)
    assert len(upstream.version(1).files) == 2, "the copy begins at a checkpoint of 2"
    assert location.counting.taken() == ["0", "1", "1", "1", "4"]


def test_a_copy_stays_while_a_version_of_it_is_replayed(location: StoredLocation) -> None:
    newest(location)
    with location.followed.log(2) as log:
        location.followed.forget()
        newest(location)
        gc.collect()
        assert Path(log.uri, "_delta_log", f"{2:020d}.json").exists()
    with location.followed.log(3) as log:
        assert log == location
    gc.collect()
    with stored_at(location.uri).followed.log(2) as log:
        assert log.uri == location.uri, "nothing is copied before it is loaded"


def files_of(uri: str) -> set[str]:
    return set(pa.table(DeltaTable(uri).get_add_actions()).column("path").to_pylist())


@pytest.mark.parametrize("expired", [1, 2, 3])
def test_another_table_in_its_place_is_noticed_however_far_its_log_has_expired(
    location: StoredLocation, expired: int
) -> None:
    newest(location)
    shutil.rmtree(location.uri)
    for number in range(6):
        add(location.uri, number)
    DeltaTable(location.uri, version=4).create_checkpoint()
    for number in range(expired + 1):
        Path(location.uri, "_delta_log", f"{number:020d}.json").unlink()
    same(location)
    assert location.followed.loads == 2


def test_a_copy_that_has_grown_long_is_made_anew(location: StoredLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backfill_assets.adapters.storage.copied_log.MANY", 4)
    newest(location)
    add(location.uri, 3)
    same(location)
    DeltaTable(location.uri).create_checkpoint()
    location.counting.taken()
    add(location.uri, 4)
    same(location)
    assert location.counting.taken() == ["3.checkpoint.parquet", "4", "_last_checkpoint"]


def test_a_checkpoint_is_made_of_the_copy_and_read_by_others(location: StoredLocation) -> None:
    newest(location)
    location.counting.taken()
    location.make_checkpoint(2)
    assert location.counting.taken() == []
    log = Path(location.uri, "_delta_log")
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 2
    for number in range(2):
        (log / f"{number:020d}.json").unlink()
    add(location.uri, 3)
    assert sorted(DeltaTable(location.uri).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]
    same(stored_at(location.uri))


def test_a_checkpoint_of_a_version_that_is_not_the_newest_any_more_is_left_to_delta(location: StoredLocation) -> None:
    newest(location)
    add(location.uri, 3)
    location.make_checkpoint(2)
    assert newest(location).version() == 3
    found = [each.name for each in Path(location.uri, "_delta_log").glob("*.checkpoint.parquet")]
    assert found == [f"{2:020d}.checkpoint.parquet"]


def test_a_copy_is_deleted_with_what_holds_it(location: StoredLocation) -> None:
    newest(location)
    copy = location.followed._copy
    assert copy is not None
    folder = copy.folder
    assert folder.exists()
    location.followed.forget()
    del copy
    newest(location)
    assert not folder.exists()


def test_who_commits_gets_the_version_as_it_is_in_its_place(location: StoredLocation) -> None:
    copied = newest(location)
    add(location.uri, 3)
    found = location.to_write(copied)
    assert not isinstance(found, CopiedTable)
    assert found.version() == copied.version() == 2
    assert location.to_write(found) is found


def nullable(kind: pa.DataType) -> pa.DataType:
    """A type in which each field of a struct may be null."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(each.name, nullable(each.type)) for each in kind.fields])


def test_a_checkpoint_without_content_is_left_to_delta(location: StoredLocation) -> None:
    Path(location.uri, "_delta_log", f"{1:020d}.checkpoint.parquet").write_bytes(b"")
    assert DeltaTable(location.uri).version() == 2
    found = newest(location)
    assert not isinstance(found, CopiedTable)
    assert (found.version(), len(found.file_uris())) == (2, 3)
    assert len(replay(location, 2).files) == 3


def test_a_checkpoint_whose_files_are_in_sidecars_is_left_to_delta_though_its_name_does_not_tell(
    location: StoredLocation,
) -> None:
    log = Path(location.uri, "_delta_log")
    DeltaTable(location.uri).create_checkpoint()
    add(location.uri, 3)
    path = log / f"{2:020d}.checkpoint.parquet"
    rows = pq.read_table(path)
    rows = rows.cast(pa.schema([pa.field(each.name, nullable(each.type)) for each in rows.schema]))
    (log / "_sidecars").mkdir()
    pq.write_table(rows.filter(pc.is_valid(rows["add"])).select(["add"]), log / "_sidecars" / "one.parquet")
    size = (log / "_sidecars" / "one.parquet").stat().st_size
    sidecar = pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()})
    named = pa.array([{"path": "one.parquet", "sizeInBytes": size, "modificationTime": 0}], sidecar)
    others = rows.filter(pc.is_null(rows["add"])).select([each for each in rows.column_names if each != "sidecar"])
    pq.write_table(pa.concat_tables([others, pa.table({"sidecar": named})], promote_options="default"), path)
    assert len(DeltaTable(location.uri).file_uris()) == 4
    found = newest(location)
    assert not isinstance(found, CopiedTable)
    assert (found.version(), len(found.file_uris())) == (3, 4)
    assert len(replay(location, 3).files) == 4


def test_a_log_that_has_no_newer_checkpoint_is_not_copied_again(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.adapters.storage.copied_log.MANY", 4)
    newest(location)
    for number in range(3, 8):
        add(location.uri, number)
        same(location)
    location.counting.taken()
    same(location)
    assert location.counting.taken() == []
    DeltaTable(location.uri).create_checkpoint()
    same(location)
    assert location.counting.taken() == ["7", "7.checkpoint.parquet", "_last_checkpoint"]
    same(location)
    assert location.counting.taken() == []


@pytest.mark.parametrize("version", ["9" * 5000, "9" * 30, "-1", '"2"', ""])
def test_a_hint_that_says_nothing_costs_only_a_longer_list(location: StoredLocation, version: str) -> None:
    Path(location.uri, "_delta_log", "_last_checkpoint").write_text(f'{{"version": {version}, "size": 5}}')
    table = newest(location)
    assert isinstance(table, CopiedTable)
    assert table.version() == 2
