"""An upstream whose log was restored while a run follows it: nothing is taken from what the log had before."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.log_replay import LogReplay, replay
from backfill_assets.adapters.delta.upstream import FEED, DeltaUpstream
from backfill_assets.adapters.storage import object_store
from backfill_assets.adapters.storage.object_store import Stored
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import TablePosition
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.core.strategies.same_table import check_same
from backfill_assets.errors import UpstreamChangedError
from tests.support.stored_table import stored_at

At = Callable[[str], TableLocation]
PLACES = pytest.mark.parametrize("at", [lambda uri: TableLocation(uri=uri), stored_at], ids=["disk", "store"])


def add(uri: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        write_deltalake(uri, pa.table({"id": [number]}), mode="append", configuration={FEED: "true"})


def restore(uri: str, version: int) -> None:
    """Remove the entries after a version, as a backup of the log has none of them; the data files stay."""
    for entry in Path(uri, "_delta_log").glob("*.json"):
        if int(entry.stem) > version:
            entry.unlink()


def upstream_of(uri: str, at: At) -> DeltaUpstream:
    return DeltaUpstream(name="base", location=at(uri))


def ids_of(uri: str, upstream: DeltaUpstream, first: int, last: int) -> list[int]:
    read = ChangesRead(source="base", table_id="", first=first, last=last, rows=0)
    upstream.check_readable(read)
    files = upstream.change_files(read)
    assert files is not None
    return sorted(number for each in files.added for number in pq.read_table(f"{uri}/{each.path}")["id"].to_pylist())


@PLACES
def test_a_run_that_has_looked_before_refuses_the_table_as_a_new_one_does(tmp_path: Path, at: At) -> None:
    uri = str(tmp_path / "table")
    add(uri, range(6))
    upstream = upstream_of(uri, at)
    offer = upstream.now()
    position = TablePosition(table_id=offer.table_id, version=5, pinned=0, commit_ms=offer.commit_ms, buckets={})
    check_same("view", "base", position, offer, upstream.commit_timestamp)
    restore(uri, 3)
    add(uri, (40, 50, 60))
    for each in (upstream, upstream_of(uri, at)):
        with pytest.raises(UpstreamChangedError, match="was restored"):
            check_same("view", "base", position, each.now(), each.commit_timestamp)


@PLACES
def test_versions_that_were_looked_at_are_read_as_the_log_has_them_now(tmp_path: Path, at: At) -> None:
    uri = str(tmp_path / "table")
    add(uri, range(6))
    upstream = upstream_of(uri, at)
    upstream.now()
    assert ids_of(uri, upstream, 3, 5) == [3, 4, 5]
    assert (len(upstream.version(5).files), upstream.rows(4)) == (6, (1,) * 5)
    restore(uri, 2)
    add(uri, (30, 40, 50, 60))
    assert upstream.now().version == 6
    assert ids_of(uri, upstream, 3, 6) == [30, 40, 50, 60]
    expected = set(DeltaTable(uri, version=5).get_add_actions().column("path").to_pylist())
    assert {each.path for each in upstream.version(5).files} == expected


def test_entries_of_one_size_and_second_are_told_apart_by_their_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = object_store._stored
    coarse: Callable[..., Stored] = lambda listed: replace(read(listed), modified=0)  # noqa: E731
    monkeypatch.setattr(object_store, "_stored", coarse)
    uri = str(tmp_path / "table")
    add(uri, range(5))
    location = stored_at(uri)
    replayed = LogReplay(location)
    replayed.version(4)
    for version in (3, 4):
        entry = Path(uri, "_delta_log", f"{version:020d}.json")
        entry.write_text(entry.read_text().replace("part-", "file-"))
    add(uri, (5,))
    assert len([each for each in replayed.version(5).files if each.path.startswith("file-")]) == 2
    assert replayed.version(5) == replay(location, 5)
