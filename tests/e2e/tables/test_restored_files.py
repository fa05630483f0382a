"""Tables that are put back to an older version between two refreshes of the views over them, by delta-rs's RESTORE."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.lake import Lake
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

WITHOUT_KEY = {
    "joined": "SELECT b.id, o.x AS other FROM base b JOIN base o ON b.x = o.x",
    "different": "SELECT DISTINCT id, x FROM base",
}
VIEWS = {
    **WITHOUT_KEY,
    "large": "SELECT id, x * 2 AS twice FROM base WHERE x < 90",
    "groups": "SELECT x, count(*) AS n, max(id) AS most FROM base GROUP BY x",
}


def made(root: Path, key: str | None, **given: Any) -> Lake:
    lake = Lake(root)
    for number in range(3):
        rows = [{"id": number, "x": number % 2}, {"id": 10 + number, "x": 1}]
        lake.append("base", [row | {"part": row["id"] % 2} for row in rows], **given)
    for name, query in (VIEWS if key else WITHOUT_KEY).items():
        lake.view(name, query, lake.table("base", key), refresh_mode="incremental")
        lake.project.refresh(name)
    return lake


def follows(lake: Lake, views: Mapping[str, str]) -> None:
    for name, query in views.items():
        lake.project.refresh(name)
        assert lake.shown(name) == lake.expected(name, query, "base"), name
        assert lake.shown(name)


def overwritten(lake: Lake) -> None:
    """Files are removed, restored and removed again: removals by delta-rs do not say how many rows a file had."""
    for row in ({"id": 7, "x": 7, "part": 1}, {"id": 8, "x": 1, "part": 0}):
        lake.append("base", [row], mode="overwrite")
        if row["id"] == 7:
            DeltaTable(lake.path("base")).restore(2)


def updated(lake: Lake) -> None:
    """The same by updates that make rows equal to others, which their change data feed lacks."""
    for value in ("1", "x + 1"):
        DeltaTable(lake.path("base")).update(updates={"x": value, "id": "10"}, predicate="id < 11")
        if value == "1":
            DeltaTable(lake.path("base")).restore(2)


def test_files_that_are_removed_restored_and_removed_again_are_followed(tmp_path: Path) -> None:
    lake = made(tmp_path, "id")
    overwritten(lake)
    follows(lake, VIEWS)


@pytest.mark.parametrize("placed", one_in_gate("parted", "whole"))
def test_updates_before_and_after_a_restore_are_followed_though_their_feed_is_incomplete(
    tmp_path: Path, placed: str
) -> None:
    """Partitions are read through a log, which names each file once."""
    lake = made(tmp_path, None, **({"partition_by": ["part"]} if placed == "parted" else {}))
    updated(lake)
    follows(lake, WITHOUT_KEY)


@pytest.mark.parametrize("how", one_in_gate("restored", "overwritten"))
def test_a_column_that_a_view_does_not_name_may_come_and_go_between_refreshes(tmp_path: Path, how: str) -> None:
    lake = made(tmp_path, "id")
    lake.append("base", [{"id": 2, "x": 2, "part": 0, "more": 5}], schema_mode="merge")
    lake.append("base", [{"id": 3, "x": 3, "part": 1, "more": 6}])
    if how == "restored":
        DeltaTable(lake.path("base")).restore(2)
    else:
        write_deltalake(
            lake.path("base"), pa.table({"id": [1], "x": [1], "part": [1]}), mode="overwrite", schema_mode="overwrite"
        )
    follows(lake, VIEWS)
