"""kill -9 at every step of a replacement, and of its undoing: readers see the old rows or the new ones, and the next call
finishes it."""

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.app.replacing import replace_view, undo_replacement
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import DroppedError
from tests.support.commits import losers, staged_folders
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import LAKE_QUERY, order_of, over_lake

pytestmark = pytest.mark.e2e

NEW = "SELECT id, v + 1 AS more FROM base"
STEPS = {
    "planned": 2, "committed": 2, "built": 1, "verified": 1, "copied": 1, "kept": 1, "switched": 1,
}  # fmt: skip
"""The steps of building and switching, and which occurrence of each."""

UNDONE = {"copied": ("copied", 1), "verified": ("verified", 1)}
"""The steps of putting a view back before its commit, and which occurrence of each."""
LEFT = {"switched": ("switched", 1), "ending": ("verified", 2), "ended": ("ended", 1)}
"""The steps after it: what was kept is ended, and its files are deleted."""
OF = {LAKE_QUERY: ("id", "twice"), NEW: ("id", "more")}
"""The columns of the old query and of the new one."""


@pytest.mark.full
@pytest.mark.parametrize("step", [*STEPS, "ended", "second copied"])
def test_a_kill_leaves_the_old_rows_or_the_new_ones(tmp_path: Path, processes: Processes, step: str) -> None:
    lake = Lake(tmp_path)
    for file in range(4):
        lake.append("base", ({"id": at, "v": at % 4} for at in range(10 * file, 10 * file + 10)))
    lake.project.declare(*over_lake(tmp_path, "snapshot"))
    lake.project.refresh("large")
    old = lake.found("large", ["id", "twice"])
    job = {"replace": "large", "query": NEW, "strategy": "snapshot", "chunk_rows": 10}
    name, at = ("copied", 2) if step == "second copied" else (step, STEPS.get(step, 1))
    processes.kill(order_of(lake.project), job, name, at=at)
    if step in LEFT:
        assert lake.found("large", ["id", "more"]).total() == 40
    else:
        assert lake.found("large", ["id", "twice"]) == old
    lake.append("base", [{"id": 1000, "v": 2}])
    lake.view("large", NEW, lake.table("base"), strategy="snapshot")
    done = replace_view(lake.project.workspace(), "large", Limits(chunk_rows=10), run_id=uuid.uuid4().hex)
    assert done.switched
    assert lake.found("large", ["id", "more"]) == lake.expected("large", NEW, "base")
    assert all(lake.project.check("large", check).passed for check in CHECKS)
    assert losers(lake.project, "large") == []
    undo_replacement(lake.project.workspace(), "large")
    assert lake.found("large", ["id", "twice"]) == old
    lake.view("large", LAKE_QUERY, lake.table("base"), strategy="snapshot")
    lake.project.refresh("large")
    assert lake.found("large", ["id", "twice"]) == lake.expected("large", LAKE_QUERY, "base")


@pytest.mark.parametrize(
    "steps",
    [["ended"], pytest.param([*UNDONE, *LEFT], marks=pytest.mark.full)],
    ids="-".join,
)
def test_a_kill_while_it_is_undone_leaves_the_new_rows_or_the_old_ones(
    tmp_path: Path, processes: Processes, steps: list[str]
) -> None:
    lake = Lake(tmp_path)
    lake.append("base", ({"id": at, "v": at % 4} for at in range(40)))
    declare(lake, LAKE_QUERY)
    lake.project.refresh("large")
    for number, step in enumerate(steps):
        lake.append("base", [{"id": 100 + number, "v": 2}])
        known: dict[tuple[str, ...], Counter[tuple[Any, ...]]] = {OF[LAKE_QUERY]: lake.found("large", OF[LAKE_QUERY])}
        declare(lake, NEW)
        assert replace_view(lake.project.workspace(), "large", Limits(), run_id=uuid.uuid4().hex).kept
        known[OF[NEW]] = lake.found("large", OF[NEW])
        switched = newest(lake)
        name, at = (UNDONE | LEFT)[step]
        processes.kill(order_of(lake.project), {"undo": "large", "query": NEW, "strategy": "snapshot"}, name, at=at)
        for version in range(switched, newest(lake) + 1):
            columns, found = rows_of(lake, version)
            assert found == known[columns], (step, version)
        went_on(lake, LAKE_QUERY if step in LEFT else NEW, 200 + number)
        if step == "ended":
            with pytest.raises(DroppedError, match="not kept"):
                undo_replacement(lake.project.workspace(), "large")
        else:
            undo_replacement(lake.project.workspace(), "large")
            assert rows_of(lake, newest(lake)) == (OF[LAKE_QUERY], known[OF[LAKE_QUERY]])
        kept = lake.project.workspace().store.place.table("replaced/large")
        assert (staged_folders(kept), losers(lake.project, "large")) == (set(), [])
        went_on(lake, LAKE_QUERY, 300 + number)
    assert all(lake.project.check("large", check).passed for check in CHECKS)


def declare(lake: Lake, query: str) -> None:
    lake.view("large", query, lake.table("base"), strategy="snapshot")


def went_on(lake: Lake, query: str, row: int) -> None:
    """A refresh by the definition that the view has follows a new row."""
    declare(lake, query)
    lake.append("base", [{"id": row, "v": 1}])
    lake.project.refresh("large")
    assert lake.found("large", OF[query]) == lake.expected("large", query, "base")


def newest(lake: Lake) -> int:
    return lake.project.workspace().table(lake.declared("large")).output.look().version


def rows_of(lake: Lake, version: int) -> tuple[tuple[str, ...], Counter[tuple[Any, ...]]]:
    """The columns of the view at a version, and its rows."""
    rows = lake.rows(lake.location("large"), version)
    columns = tuple(name for name in rows.columns if not name.startswith("__"))
    return columns, Counter(map(tuple, rows.select(*columns).collect()))
