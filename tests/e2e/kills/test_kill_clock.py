"""kill -9 at every step of the protocol, in epochs of a view that reads the clock: what is redone keeps its time."""

from collections import Counter
from pathlib import Path

import pytest

from backfill_assets.adapters.delta.commits import commits_of, ours_in
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import SnapshotPosition
from tests.support.commits import epochs, losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of
from tests.support.timed_queries import called, found_and_expected, instant_of

pytestmark = [pytest.mark.e2e, pytest.mark.full]

QUERIES = {
    "rows": "SELECT id, v, {now} AS seen FROM base",
    "groups": "SELECT v, count(*) AS n, {now} AS seen FROM base WHERE id < {seconds} GROUP BY v",
}


@pytest.mark.parametrize("shape", QUERIES)
def test_a_kill_at_any_step_gives_the_rows_of_the_planned_time_and_then_those_of_now(
    tmp_path: Path, processes: Processes, shape: str
) -> None:
    lake, query = Lake(tmp_path), QUERIES[shape]
    lake.append("base", ({"id": at, "v": at % 4} for at in range(40)))
    lake.view("large", called(query), lake.table("base"), refresh_mode="full")
    lake.project.refresh("large")
    job = {"refresh": "large", "query": called(query), "strategy": "auto", "mode": "full"}
    for number, step in enumerate(STEPS):
        if number % 2:
            lake.append("base", [{"id": 100 + number, "v": number % 5}])
        before = lake.project.record("large").epoch
        processes.kill(order_of(lake.project), job, step)
        planned = plan_of(lake, before + 1)
        assert (planned is None) == (step == "looked")
        lake.project.refresh("large")
        assert lake.project.record("large").epoch == before + (1 if planned is None else 2)
        found, expected = found_and_expected(lake, "large", query, "base")
        assert found == expected, step
        if planned is not None:
            assert seen(lake, before + 1) == {instant_in(planned)}, step
            assert instant_in(planned) < instant_of(lake, "large")
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    for check in CHECKS:
        outcome = lake.project.check("large", check)
        assert outcome.passed, (check, outcome)


def plan_of(lake: Lake, epoch: int) -> Plan | None:
    incarnation = lake.project.record("large").incarnation
    return lake.project.workspace().state.ledger().plan("views/large", incarnation, epoch)


def instant_in(plan: Plan) -> int:
    assert isinstance(plan.after, SnapshotPosition)
    assert plan.after.instant is not None
    return plan.after.instant


def seen(lake: Lake, epoch: int) -> set[int]:
    """The times in the rows of the view after an epoch, in microseconds."""
    output = lake.project.workspace().table(lake.declared("large")).output
    commits = commits_of(output.location, output.look().version)
    version = next(number for number, actions in commits if (ours_in(actions) or {}).get("epoch") == epoch)
    rows = lake.rows(lake.location("large"), version).selectExpr("unix_micros(seen) AS seen").collect()
    found = Counter(row.seen for row in rows)
    assert found
    return set(found)
