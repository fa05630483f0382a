"""The facts in the log of a real Delta table, with delta-rs alone, from which a strategy is chosen."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.table_facts import table_facts
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.costs import TableFacts
from backfill_assets.errors import UpstreamRefusedError

FEED = {"delta.enableChangeDataFeed": "true"}
NOON = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0


def facts(root: Path, *, key: Sequence[str] = ("id",), chunk_rows: int = 10, now: float = NOON) -> TableFacts:
    location = TableLocation(uri=str(root), storage_options={})
    upstream = DeltaUpstream(name="base", location=location, key=lambda: tuple(key))
    return table_facts(upstream, kind="table", chunk_rows=chunk_rows, now=now)


def write(root: Path, ids: Sequence[int], **configuration: str) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "v": ["x"] * len(ids), "many": [[1]] * len(ids)})
    write_deltalake(str(root), rows, mode="append", configuration={**FEED, **configuration})


def committed(root: Path, *at: float) -> None:
    """Set the time of each commit, from the oldest on."""
    entries = sorted(root.glob("_delta_log/*.json"))
    for entry, seconds in zip(entries, at, strict=True):
        actions: list[dict[str, Any]] = [json.loads(line) for line in entry.read_text().splitlines()]
        (info,) = (each["commitInfo"] for each in actions if "commitInfo" in each)
        info["timestamp"] = int(seconds * 1000)
        entry.write_text("".join(json.dumps(each) + "\n" for each in actions))


def test_size_and_files_are_those_of_the_newest_version(tmp_path: Path) -> None:
    write(tmp_path, range(10))
    write(tmp_path, range(10, 40))
    DeltaTable(str(tmp_path)).delete("id < 10")
    found = facts(tmp_path)
    (left,) = DeltaTable(str(tmp_path)).file_uris()
    assert (found.rows, found.files, found.bytes) == (30, 1, Path(left).stat().st_size)
    assert (found.has_feed, found.append_only, found.keyed) == (True, False, True)


def test_rates_are_of_the_last_day_and_leave_out_the_load(tmp_path: Path) -> None:
    for first, count in ((0, 5), (100, 1000), (2000, 20)):
        write(tmp_path, range(first, first + count))
    table = DeltaTable(str(tmp_path))
    table.update(predicate="id < 3", updates={"v": "'y'"})
    committed(tmp_path, NOON - 3 * DAY, NOON - 10 * HOUR, NOON - 4 * HOUR, NOON - HOUR)
    found = facts(tmp_path)
    assert found.versions_per_second == pytest.approx(2 / (10 * HOUR)), "that of the day before yesterday is over"
    written = table.to_pyarrow_table()
    assert written.num_rows == 1025
    assert 23 <= found.changes_per_second * 10 * HOUR < 100, (
        "twenty rows, and an update of three as far as its size tells"
    )
    assert found.change_bytes_per_second > 0
    assert found.newest_commit_age_seconds == HOUR
    assert found.moves


def test_a_table_with_nothing_but_its_load_or_without_a_commit_of_today_stands_still(tmp_path: Path) -> None:
    write(tmp_path, range(10))
    committed(tmp_path, NOON - 60)
    assert not facts(tmp_path).moves
    write(tmp_path, range(10, 20))
    committed(tmp_path, NOON - 9 * DAY, NOON - 8 * DAY)
    found = facts(tmp_path)
    assert not found.moves
    assert found.newest_commit_age_seconds == 8 * DAY


def test_a_short_past_does_not_make_a_rate_of_a_few_commits(tmp_path: Path) -> None:
    for first in (0, 50, 60):
        write(tmp_path, range(first, first + 10))
    committed(tmp_path, NOON - 3, NOON - 2, NOON - 1)
    assert facts(tmp_path).changes_per_second == pytest.approx(20 / HOUR), "as if it had been an hour"


def test_maintenance_is_a_version_without_changes(tmp_path: Path) -> None:
    for first in (0, 10, 20):
        write(tmp_path, range(first, first + 10))
    DeltaTable(str(tmp_path)).optimize.compact()
    committed(tmp_path, *(NOON - back * HOUR for back in (10, 8, 6, 5)))
    found = facts(tmp_path)
    assert found.versions_per_second == pytest.approx(3 / (10 * HOUR))
    assert found.changes_per_second == pytest.approx(20 / (10 * HOUR))
    assert (found.rows, found.files) == (30, 1)


@pytest.mark.parametrize(
    ("files", "clustering"),
    [
        ([range(at, at + 10) for at in range(0, 40, 10)], 0.25),
        ([range(at, 40, 4) for at in range(4)], 1.0),
    ],
    ids=["sorted", "scattered"],
)
def test_clustering_is_the_share_of_files_that_a_range_touches(
    tmp_path: Path, files: Sequence[Sequence[int]], clustering: float
) -> None:
    for ids in files:
        write(tmp_path, ids)
    assert facts(tmp_path).clustering == pytest.approx(clustering, abs=0.13)


def test_without_statistics_of_the_key_clustering_is_not_known(tmp_path: Path) -> None:
    write(tmp_path, range(10), **{"delta.dataSkippingNumIndexedCols": "0"})
    found = facts(tmp_path)
    assert (found.key_sortable, found.clustering) == (True, None)


@pytest.mark.parametrize(
    ("key", "keyed", "sortable"), [((), False, False), (("many",), True, False), (("v",), True, True)]
)
def test_a_key_is_sortable_if_its_type_is(tmp_path: Path, key: Sequence[str], keyed: bool, sortable: bool) -> None:
    write(tmp_path, range(10))
    found = facts(tmp_path, key=key)
    assert (found.keyed, found.key_sortable) == (keyed, sortable)


def test_retention_and_kind_are_what_the_properties_say(tmp_path: Path) -> None:
    write(tmp_path / "plain", range(3))
    assert (facts(tmp_path / "plain").file_retention_seconds, facts(tmp_path / "plain").log_retention_seconds) == (
        7 * DAY,
        30 * DAY,
    )
    said = {"delta.deletedFileRetentionDuration": "interval 0 hours", "delta.logRetentionDuration": "interval 2 days"}
    write(tmp_path / "said", range(3), **said, **{"delta.appendOnly": "true"})
    found = facts(tmp_path / "said")
    assert (found.file_retention_seconds, found.log_retention_seconds, found.append_only) == (0, 2 * DAY, True)


def test_an_empty_table_has_facts_and_a_missing_one_has_none(tmp_path: Path) -> None:
    write(tmp_path / "empty", [])
    found = facts(tmp_path / "empty")
    assert (found.rows, found.files, found.bytes, found.moves) == (0, 0, 0, False)
    with pytest.raises(UpstreamRefusedError):
        facts(tmp_path / "none")
