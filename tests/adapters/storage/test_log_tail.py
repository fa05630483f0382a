"""The end of a log that is kept as one object: it spares requests, and never stands for other objects than those listed."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.storage import log_tail
from backfill_assets.adapters.storage.copied_log import CopiedTable
from backfill_assets.adapters.storage.log_tail import Tail
from tests.support.stored_table import StoredLocation, stored_at

TAIL = "_backfill_tail"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "table")
    add(made, 0, 1, 2)
    return made


def add(uri: str, *numbers: int) -> None:
    for number in numbers:
        write_deltalake(uri, pa.table({"id": [number]}), mode="append")


def opened(uri: str) -> StoredLocation:
    """The table as a new process finds it; what it requests to load it is counted."""
    location = stored_at(uri, has_tail=True)
    copied = location.followed.newest()
    assert isinstance(copied, CopiedTable)
    table = DeltaTable(uri)
    assert (copied.version(), copied.metadata().id) == (table.version(), table.metadata().id)
    assert set(pa.table(copied.get_add_actions())["path"].to_pylist()) == set(
        pa.table(table.get_add_actions())["path"].to_pylist()
    )
    return location


def kept(uri: str) -> None:
    opened(uri).followed.keep()


def test_a_kept_log_is_loaded_by_one_object_and_only_newer_entries_are_requested(uri: str) -> None:
    assert opened(uri).counting.taken() == ["0", "1", "2", TAIL, "_last_checkpoint"]
    kept(uri)
    assert opened(uri).counting.taken() == [TAIL]
    add(uri, 3)
    assert opened(uri).counting.taken() == ["3", TAIL]


def test_a_kept_log_begins_at_its_newest_checkpoint(uri: str) -> None:
    DeltaTable(uri).create_checkpoint()
    kept(uri)
    assert opened(uri).counting.taken() == [TAIL]
    add(uri, 3)
    location = opened(uri)
    location.make_checkpoint(3)
    assert opened(uri).counting.taken() == [TAIL]
    add(uri, 4)
    DeltaTable(uri).create_checkpoint()
    assert opened(uri).counting.taken() == ["4", "4.checkpoint.parquet", TAIL]


def test_the_newest_entries_are_kept_though_a_checkpoint_has_come_since(uri: str) -> None:
    add(uri, 3, 4, 5, 6)
    opened(uri).make_checkpoint(6)
    location = opened(uri)
    assert all(location.content(f"_delta_log/{number:020d}.json") for number in range(2, 7))
    assert location.counting.taken() == [TAIL]
    assert location.content(f"_delta_log/{1:020d}.json")
    assert location.counting.taken() == ["1"]


def test_what_is_kept_of_another_log_is_not_used(uri: str) -> None:
    kept(uri)
    tail = Path(uri, "_delta_log", TAIL).read_bytes()
    shutil.rmtree(uri)
    add(uri, 5, 6, 7)
    Path(uri, "_delta_log", TAIL).write_bytes(tail)
    assert opened(uri).counting.taken() == ["0", "1", "2", TAIL]


def test_what_is_kept_of_a_log_that_was_longer_is_passed_over(uri: str) -> None:
    add(uri, 3, 4, 5, 6, 7)
    DeltaTable(uri).create_checkpoint()
    kept(uri)
    tail = Path(uri, "_delta_log", TAIL).read_bytes()
    shutil.rmtree(uri)
    add(uri, 5)
    Path(uri, "_delta_log", TAIL).write_bytes(tail)
    assert opened(uri).counting.taken() == ["0", TAIL, "_last_checkpoint"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"format": 99}',
        b'{"format": 1, "begins": 0, "objects": []}',
        b'{"format": 1, "begins": 0, "objects": {"a": ["b", "?"]}}',
    ],
)
def test_a_tail_that_cannot_be_read_is_none(uri: str, content: bytes) -> None:
    Path(uri, "_delta_log", TAIL).write_bytes(content)
    assert opened(uri).counting.taken() == ["0", "1", "2", TAIL, "_last_checkpoint"]


def test_a_large_tail_is_not_kept_and_a_table_of_others_has_none(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    location = stored_at(uri)
    location.followed.newest()
    location.followed.keep()
    monkeypatch.setattr(log_tail, "LARGEST", 10)
    kept(uri)
    assert not Path(uri, "_delta_log", TAIL).exists()


def test_a_tail_says_what_was_stored() -> None:
    tail = Tail(begins=7, objects={"a": ("a-tag", b"content"), "b": ("another", b"")})
    assert Tail.of(tail.stored()) == tail
    assert Tail.of(None) is None


@pytest.mark.parametrize("begins", ["3", None, [], {}, 5.0, 7.5, True, 10**40, -(10**40)])
def test_a_tail_that_begins_nowhere_is_passed_over(uri: str, begins: object) -> None:
    kept(uri)
    path = Path(uri, "_delta_log", TAIL)
    path.write_text(json.dumps({**json.loads(path.read_text()), "begins": begins}))
    assert opened(uri).followed.newest() is not None


def test_a_tail_that_is_nested_too_deeply_is_passed_over(uri: str) -> None:
    Path(uri, "_delta_log", TAIL).write_text('{"format":1,"x":' + "[" * 200_000 + "]" * 200_000 + "}")
    kept(uri)
    assert opened(uri).counting.taken() == [TAIL]
