"""A log that is copied from a store: each entry is requested once, what is new is seen, and another log is noticed."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.storage.copied_log import CopiedTable
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.warehouse import TableLocation


@dataclass(frozen=True, kw_only=True)
class CountingFolder(ObjectFolder):
    """A folder of this machine's disk that remembers what was requested of it."""

    requested: list[str] = field(default_factory=list)

    def get(self, path: str) -> bytes | None:
        self.requested.append(path.removeprefix("_delta_log/").removesuffix(".json").lstrip("0") or "0")
        return super().get(path)

    def taken(self) -> list[str]:
        """What was requested since this was asked before."""
        found = sorted(self.requested)
        self.requested.clear()
        return found


@dataclass(frozen=True, kw_only=True)
class StoredLocation(TableLocation):
    """A table on this machine's disk that is reached as if it were in an object store."""

    counting: CountingFolder

    @property
    def is_local(self) -> bool:
        return False

    def objects(self) -> ObjectFolder:
        return self.counting


@pytest.fixture
def location(tmp_path: Path) -> StoredLocation:
    uri = str(tmp_path / "table")
    for number in range(3):
        add(uri, number)
    return StoredLocation(uri=uri, counting=CountingFolder(uri=uri))


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


def test_an_entry_that_was_put_here_is_not_requested_and_one_of_another_is(location: StoredLocation) -> None:
    newest(location)
    location.counting.taken()
    assert put_commit(location, 3, "OPTIMIZE", [])
    same(location)
    assert location.counting.taken() == []
    assert put_commit(location, 4, "OPTIMIZE", [])
    entry = Path(location.uri, "_delta_log", f"{4:020d}.json")
    entry.unlink()
    entry.write_text(json.dumps({"commitInfo": {"operation": "of another"}}))
    assert newest(location).version() == 4
    assert location.counting.taken() == ["4"]
    assert not put_commit(location, 4, "OPTIMIZE", [])
    assert b"of another" in (location.content("_delta_log/00000000000000000004.json") or b"")


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


def test_a_log_of_which_entries_are_missing_or_that_has_other_checkpoints_is_left_to_delta(
    location: StoredLocation,
) -> None:
    log = Path(location.uri, "_delta_log")
    DeltaTable(location.uri).create_checkpoint()
    (log / f"{2:020d}.checkpoint.parquet").rename(log / f"{2:020d}.checkpoint.0000000001.0000000001.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 2, "size": 5, "parts": 1}))
    assert not isinstance(newest(location), CopiedTable)
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
