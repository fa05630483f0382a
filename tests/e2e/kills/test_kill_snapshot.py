"""kill -9 at every step of the protocol: in a chunk of a snapshot, in a merge of its change log, in a range of a key."""

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.protocol import STEPS
from tests.support.commits import epochs, losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of, over_lake

pytestmark = pytest.mark.e2e

CHUNK = Limits(chunk_rows=10, max_rows=10)
FILES = len(STEPS) + 2


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of files with ten rows each, and a view that has been created and has read the first of them."""
    lake = Lake(tmp_path)
    for file in range(FILES):
        lake.append("base", ({"id": at, "v": at % 10} for at in range(file * 10, file * 10 + 10)))
    lake.project.declare(*over_lake(tmp_path))
    lake.project.refresh("large", CHUNK)
    return lake


def killed(lake: Lake, processes: Processes, step: str, view: str = "large") -> None:
    """A refresh in a process of its own that kills itself at a step of its first epoch; it must have left what is
    expected."""
    before = lake.project.record(view).epoch
    processes.kill(order_of(lake.project), {"refresh": view, "chunk_rows": CHUNK.chunk_rows}, step)
    assert lake.project.record(view).epoch == before + (step == "committed")
    assert len(losers(lake.project, view)) == int(step in {"staged", "verified"})


@pytest.mark.full
def test_a_kill_at_any_step_of_a_chunk_or_a_merge_loses_and_doubles_nothing(lake: Lake, processes: Processes) -> None:
    expected = {at: at % 10 * 2 for at in range(FILES * 10) if at % 10 != 3}
    for step in STEPS:
        killed(lake, processes, step)
        done = lake.project.refresh("large", CHUNK).report
        assert [each.rows_read for each in done.epochs] == [10], "the chunk is redone or the next one read"
        assert losers(lake.project, "large") == []
    assert lake.project.refresh("large").report.record.live
    assert lake.project.rows("large", "id", "twice") == Counter(expected.items())
    assert lake.project.check("large").passed

    for number, step in enumerate(STEPS, 4):  # rows that the view shows, so that there is something to stage
        deleted, updated, new = number, number + 20, 1000 + number
        lake.sql("base", f"DELETE FROM {{t}} WHERE id = {deleted}", f"UPDATE {{t}} SET v = 50 WHERE id = {updated}")
        lake.append("base", [{"id": new, "v": 1}])
        killed(lake, processes, step)
        lake.project.refresh("large")
        expected.pop(deleted)
        expected.update({updated: 100, new: 2})
        assert lake.project.rows("large", "id", "twice") == Counter(expected.items()), step
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    for check in CHECKS:
        outcome = lake.project.check("large", check)
        assert outcome.passed, (check, outcome)


@pytest.mark.full
def test_a_kill_at_any_step_by_key_loses_and_doubles_nothing_of_a_table_that_moves(
    lake: Lake, processes: Processes
) -> None:
    """Rows change on both sides of the cursor before each kill and after it, so the plan is outdated."""
    lake.append("base", ({"id": at, "v": at % 10} for at in range(FILES * 10, FILES * 10 + 10)))
    lake.project.refresh("by_key", CHUNK)
    expected = {at: at % 10 * 2 for at in range(FILES * 10 + 10) if at % 10 != 3}
    for number, step in enumerate(STEPS):
        change(lake, expected, number, 1000 + number, -1 - number)
        killed(lake, processes, step, "by_key")
        change(lake, expected, FILES * 10 + 9 - number, 2000 + number, -100 - number)
        lake.project.refresh("by_key", CHUNK)
        assert losers(lake.project, "by_key") == []
        for check in ("exactly_once", "positions_contiguous", "ledger_matches_table"):
            outcome = lake.project.check("by_key", check)
            assert outcome.passed, (step, check, outcome)
    assert not lake.project.record("by_key").live, "every kill was while keys were read"
    assert lake.project.refresh("by_key").report.record.live
    assert lake.project.rows("by_key", "id", "twice") == Counter(expected.items())
    assert epochs(lake.project, "by_key") == list(range(lake.project.record("by_key").epoch + 1)), "each epoch once"
    for check in CHECKS:
        outcome = lake.project.check("by_key", check)
        assert outcome.passed, (check, outcome)


def change(lake: Lake, expected: dict[int, int], moved: int, last: int, first: int) -> None:
    """Insert rows at both ends of the key, move one across any cursor, and change one in place."""
    lake.append("base", [{"id": last, "v": 1}, {"id": first, "v": 1}])
    table = DeltaTable(lake.path("base"))
    table.update(predicate=f"id = {moved}", updates={"id": "id + 5000"})
    table.update(predicate=f"id = {last}", updates={"v": "7"})
    if moved in expected:
        expected[moved + 5000] = expected.pop(moved)
    expected.update({last: 14, first: 2})
