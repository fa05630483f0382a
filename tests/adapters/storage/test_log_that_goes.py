"""A log that is copied from a store, of which parts go meanwhile, or whose end cannot be kept."""

import logging
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.storage.copied_log import CopiedTable
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.store_files import StoreFiles
from backfill_assets.errors import EnvironmentSetupError
from tests.adapters.storage.test_copied_log import add, newest
from tests.support.stored_table import CountingFolder, StoredLocation, stored_at


@pytest.fixture
def location(tmp_path: Path) -> StoredLocation:
    uri = str(tmp_path / "table")
    for number in range(3):
        add(uri, number)
    return stored_at(uri)


def forget(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """An entry is gone after it was listed."""
    get = CountingFolder.get
    name = f"{number:020d}.json"
    monkeypatch.setattr(CountingFolder, "get", lambda folder, path: None if path.endswith(name) else get(folder, path))


def test_a_log_of_which_an_entry_goes_while_it_is_copied_is_left_to_delta(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch, 1)
    table = newest(location)
    assert not isinstance(table, CopiedTable)
    assert table.version() == 2


def test_a_new_entry_that_goes_while_it_is_copied_has_the_log_copied_anew(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(newest(location), CopiedTable)
    add(location.uri, 3)
    with monkeypatch.context() as meanwhile:
        forget(meanwhile, 3)
        assert newest(location).version() == 3
    same_again = newest(location)
    assert same_again.version() == 3


def test_the_end_of_a_log_is_put_once_for_a_version_and_no_run_fails_if_it_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        add(str(tmp_path), number)
    location, puts = stored_at(str(tmp_path), has_tail=True), list[str]()
    put = CountingFolder.put

    def counted(folder: CountingFolder, path: str, content: bytes) -> Any:
        puts.append(path)
        return put(folder, path, content)

    monkeypatch.setattr(CountingFolder, "put", counted)
    newest(location)
    for _ in range(3):
        location.followed.keep()
    assert len(puts) == 1

    def fail(*_given: object) -> None:
        raise OSError("no room")

    add(location.uri, 3)
    newest(location)
    monkeypatch.setattr(CountingFolder, "put", fail)
    with caplog.at_level(logging.INFO):
        location.followed.keep()
    assert "the end of its log was not kept: OSError: no room" in caplog.text


def test_a_log_that_the_operating_system_does_not_give_is_told_of_the_table(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object, **_named: object) -> None:
        raise OSError("Too many open files")

    monkeypatch.setattr(CountingFolder, "listed", fail)
    with pytest.raises(EnvironmentSetupError, match=r"cannot be read: .*Too many open files"):
        location.followed.newest()


def test_of_a_folder_that_does_not_exist_nothing_is_found(tmp_path: Path) -> None:
    folder = ObjectFolder(uri=str(tmp_path / "nowhere"))
    assert (folder.get("a"), folder.head("a"), folder.listed("")) == (None, None, {})
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_missing_in_a_store_is_told_as_missing() -> None:
    def fails() -> None:
        raise FileNotFoundError("a")

    files = StoreFiles("s3://lake/t", {"aws_region": "us-east-1"})
    with pytest.raises(FileNotFoundError):
        files._asked(fails)
    with pytest.raises(FileNotFoundError), files._deleting("a"):
        fails()


def test_an_entry_of_which_the_store_tells_no_tag_is_read_again(
    location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest(location)
    put = CountingFolder.put_new
    monkeypatch.setattr(CountingFolder, "put_new", lambda folder, path, content: (put(folder, path, content)[0], None))
    assert location.put_entry(3, b"{}")
    location.counting.taken()
    assert newest(location).version() == 3
    assert "3" in location.counting.taken()
