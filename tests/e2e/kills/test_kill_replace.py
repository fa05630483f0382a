"""kill -9 at every step of a replacement: readers see the old rows or the new ones, and the next call finishes it."""

import uuid
from pathlib import Path

import pytest

from backfill_assets.app.replacing import replace_view, undo_replacement
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from tests.support.commits import losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import LAKE_QUERY, order_of, over_lake

pytestmark = [pytest.mark.e2e, pytest.mark.full]

NEW = "SELECT id, v + 1 AS more FROM base"
STEPS = {
    "planned": 2, "committed": 2, "built": 1, "verified": 1, "copied": 1, "kept": 1, "switched": 1,
}  # fmt: skip
"""The steps of building and switching, and which occurrence of each."""


@pytest.mark.parametrize("step", [*STEPS, "second copied"])
def test_a_kill_leaves_the_old_rows_or_the_new_ones(tmp_path: Path, processes: Processes, step: str) -> None:
    lake = Lake(tmp_path)
    for file in range(4):
        lake.append("base", ({"id": at, "v": at % 4} for at in range(10 * file, 10 * file + 10)))
    lake.project.declare(*over_lake(tmp_path, "snapshot"))
    lake.project.refresh("large")
    old = lake.found("large", ["id", "twice"])
    job = {"replace": "large", "query": NEW, "strategy": "snapshot", "chunk_rows": 10}
    name, at = ("copied", 2) if step == "second copied" else (step, STEPS[step])
    processes.kill(order_of(lake.project), job, name, at=at)
    if step == "switched":
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
