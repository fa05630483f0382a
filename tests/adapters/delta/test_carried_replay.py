"""A version that is derived from the one before it, compared with one that is replayed in full, on real logs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_assets.adapters.delta import known_log, log_replay
from backfill_assets.adapters.delta.commits import read_commit
from backfill_assets.adapters.delta.log_replay import LogGapError, LogReplay, Version, replay
from backfill_assets.adapters.delta.upstream import FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from tests.support.settings import examples


def append(uri: str) -> None:
    write_deltalake(uri, pa.table({"id": [1, 2]}), mode="append")


def delete(uri: str) -> None:
    DeltaTable(uri).delete("id = 1")


def compact(uri: str) -> None:
    DeltaTable(uri).optimize.compact()


def describe(uri: str) -> None:
    DeltaTable(uri).alter.set_table_properties({"delta.checkpointInterval": "7"})


def checkpoint(uri: str) -> None:
    DeltaTable(uri).create_checkpoint()


def cut_off(uri: str) -> None:
    """Keep in the log only a checkpoint of its newest version, without older commits."""
    newest = DeltaTable(uri).version()
    checkpoint(uri)
    for version in range(newest):
        Path(uri, f"_delta_log/{version:020d}.json").unlink(missing_ok=True)


def restore_backup(uri: str) -> None:
    """Replace the newest commit by others."""
    newest = DeltaTable(uri).version()
    entry, older = Path(uri, f"_delta_log/{newest:020d}.json"), Path(uri, f"_delta_log/{newest - 1:020d}.json")
    if older.exists() and not any(Path(uri).glob(f"_delta_log/{newest:020d}.checkpoint*")):
        entry.unlink()
        Path(uri, "_delta_log/_last_checkpoint").unlink(missing_ok=True)
    append(uri)


def make_again(uri: str) -> None:
    """Another table at the same place, with as many versions."""
    versions = DeltaTable(uri).version() + 1
    shutil.rmtree(uri)
    for _ in range(versions):
        append(uri)


STEPS: tuple[Callable[[str], None], ...] = (
    append, append, delete, compact, describe, checkpoint, cut_off, restore_backup, make_again,
)  # fmt: skip


def said(value: Any) -> Any:
    """An action as it is written; in a checkpoint, missing values are null, and no file says that its data changed."""
    if not isinstance(value, dict):
        return value
    return {name: said(each) for name, each in value.items() if each not in (None, {}, []) and name != "dataChange"}


def told(read: Callable[[], Version]) -> list[Any]:
    try:
        found = read()
    except LogGapError:
        return []
    files = [{**said(each.action), "stats": each.stats} for each in found.files]
    return [said(found.protocol), said(found.metadata), files]


def is_as_in_full(carried: LogReplay, version: int) -> None:
    assert told(lambda: carried.version(version)) == told(lambda: replay(carried.location, version))


@settings(max_examples=examples(12))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2)), min_size=4, max_size=12))
def test_a_version_is_the_same_whatever_was_read_before_and_happened_to_the_log(
    steps: list[tuple[Callable[[str], None], int]],
) -> None:
    with TemporaryDirectory() as folder:
        location = TableLocation(uri=f"{folder}/table")
        carried = LogReplay(location)
        append(location.uri)
        for step, back in steps:
            step(location.uri)
            newest = DeltaTable(location.uri).version()
            is_as_in_full(carried, newest)
            is_as_in_full(carried, max(0, newest - back))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions whose log entries are read."""
    found: list[int] = []

    def noted(location: TableLocation, version: int, *, again: bool) -> Any:
        found.append(version)
        return read_commit(location, version, again=again)

    monkeypatch.setattr(log_replay, "read_commit", noted)
    return found


def test_only_what_came_since_is_read_and_of_a_version_far_ahead_what_came_since_its_checkpoint(
    tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_replay, "MAX_COMMITS_AHEAD", 3)
    carried = LogReplay(TableLocation(uri=str(tmp_path)))
    for _ in range(4):
        append(str(tmp_path))

    def entries(version: int) -> list[int]:
        read.clear()
        assert len(carried.version(version).files) == version + 1
        return list(read)

    assert entries(1) == [0, 1]
    assert entries(1) == []
    assert entries(3) == [2, 3]
    assert entries(2) == [0, 1, 2], "an older one"
    for _ in range(4):
        append(str(tmp_path))
    checkpoint(str(tmp_path))
    append(str(tmp_path))
    assert entries(8) == [8]


def test_a_version_read_while_the_log_was_recreated_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "table")
    append(uri)
    append(uri)
    carried = LogReplay(TableLocation(uri=uri))

    def make_again_first(location: TableLocation, version: int, *, again: bool) -> Any:
        if version == 1:
            monkeypatch.undo()
            make_again(uri)
        return read_commit(location, version, again=again)

    monkeypatch.setattr(log_replay, "read_commit", make_again_first)
    carried.version(1)
    append(uri)
    is_as_in_full(carried, 2)


def upstream_of(folder: Path, versions: int) -> DeltaUpstream:
    uri = str(folder / "table")
    for at in range(versions):
        write_deltalake(uri, pa.table({"id": [at]}), mode="append", configuration={FEED: "true"})
    return DeltaUpstream(name="base", location=TableLocation(uri=uri))


def test_what_a_run_keeps_of_a_table_is_bounded_and_the_pinned_version_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    monkeypatch.setattr(known_log, "KEPT_COMMITS", 3)
    table = upstream_of(tmp_path, 8)
    for number in range(8):
        assert len(table.rows(number)) == number + 1
        assert len(table.version(0).files) == 1
        assert [each.version for each in table.commits(number - 1, number)] == [number]
        assert table.commit_timestamp(number) is not None
    known = table._known
    kept = (known.versions, known.rows, known.commits, known.commit_timestamps)
    assert [len(each) for each in kept] == [known_log.KEPT_VERSIONS, known_log.KEPT_VERSIONS, 3, 3]
    assert read == list(range(8)), "the pinned version is read once, and each entry once"
    assert [each.rows for each in table.commits(-1, 7)] == [1] * 8, "what is not kept is read again"
