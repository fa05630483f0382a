"""Files that this process has put into a store are known to be there until the commit that was tried with them."""

from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from deltalake import Schema
from deltalake.exceptions import CommitFailedError

from backfill_assets.adapters.delta.arrow_files import put_rows
from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staging import changed_rows
from backfill_assets.adapters.storage.object_store import ObjectFolder, tag_of
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.errors import EnvironmentSetupError, StagingError
from tests.support.outputs import SCHEMA, TARGET, record, rows
from tests.support.stored_table import StoredLocation, stored_at

LIFE = "11111111"
INSERTED = f"{LIFE}-1-aaaaaaaa/rows/__op=insert/part.parquet"


@pytest.fixture
def location(tmp_path: Path) -> StoredLocation:
    return stored_at(str(tmp_path / "table"))


def opened(location: StoredLocation) -> DeltaOutput:
    create_table(location, Schema.from_arrow(SCHEMA).to_json())
    return DeltaOutput(location=location, target=TARGET, schema=lambda: Schema.from_arrow(SCHEMA).to_json())


def put(location: StoredLocation, path: str = "part.parquet") -> Staged:
    made = put_rows(location, path, pa.table({"id": [1, 2]}, schema=SCHEMA))
    return Staged(files=(made,), rows_written=2)


def test_what_was_put_here_is_neither_looked_for_nor_read_again(location: StoredLocation) -> None:
    output, staged = opened(location), put(location, INSERTED)
    output.look()
    location.counting.taken()
    output.verify(staged)
    assert changed_rows(location, staged).to_pylist() == [{"id": each, "__op": "insert"} for each in (1, 2)]
    assert location.counting.taken() == []
    output.commit(record(CommitKind.EPOCH, LIFE, 1), staged)
    assert rows(output) == [1, 2]
    location.counting.taken()
    output.verify(staged)
    assert location.counting.taken() == ["part.parquet"]


def test_before_a_commit_is_tried_again_its_files_are_looked_for(location: StoredLocation) -> None:
    output, staged = opened(location), put(location)
    output.look()
    output.verify(staged)
    assert location.put_entry(1, b"{}")
    with pytest.raises(CommitFailedError):
        output.commit(record(CommitKind.EPOCH, LIFE, 1), staged)
    Path(location.uri, "part.parquet").unlink()
    with pytest.raises(StagingError, match="1 of 1 staged files are missing"):
        output.verify(staged)


def test_many_files_of_a_folder_are_looked_for_in_its_list(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.adapters.storage.warehouse._LISTED", 3)
    paths = [f"inner/{at}.parquet" for at in range(4)] + ["a.parquet", "b.parquet"]
    for path in paths[:3] + paths[4:5]:
        location.objects().put(path, b"content")
    location.counting.taken()
    assert location.sizes(paths) == dict.fromkeys(paths[:3] + paths[4:5], len(b"content"))
    assert location.counting.taken() == ["3.parquet", "a.parquet", "b.parquet"]


def test_large_files_are_not_remembered(location: StoredLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backfill_assets.adapters.storage.warehouse._REMEMBERED", 8)
    output, staged = opened(location), put(location)
    output.look()
    location.counting.taken()
    output.verify(staged)
    assert location.counting.taken() == ["part.parquet"]


@pytest.mark.parametrize(("told", "tag"), [('"0x1"', "0x1"), ("0x1", "0x1"), (None, None)])
def test_a_tag_is_the_same_with_and_without_quotes(told: str | None, tag: str | None) -> None:
    assert tag_of(told) == tag


def test_a_file_that_is_not_there_to_be_copied_is_told_from_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    folder = ObjectFolder(uri=str(tmp_path))
    folder.put("a", b"content")
    folder.copy("a", "b")
    assert folder.get("b") == b"content"
    with pytest.raises(FileNotFoundError):
        folder.copy("lost", "c")
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentSetupError, match="cannot be written or deleted"):
        folder.copy("a", "file/c")


def test_a_list_begins_where_it_is_to_begin_whatever_the_store_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, from_the_start = ObjectFolder(uri=str(tmp_path)), obstore.list
    for name in ("a/1-0", "a/2-0", "a/2-1", "a/3-0"):
        folder.put(name, b"")
    monkeypatch.setattr(obstore, "list", lambda store, *, prefix, offset: from_the_start(store, prefix=prefix))  # noqa: ARG005
    assert folder.names("a", after="a/2") == ["a/2-0", "a/2-1", "a/3-0"]
    assert folder.names("a", after="a/2-0") == ["a/2-1", "a/3-0"]
    assert folder.names("a") == ["a/1-0", "a/2-0", "a/2-1", "a/3-0"]
