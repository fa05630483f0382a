"""kill -9 at every step of the protocol, in epochs of views over whole tables: by each of the rules that follow changes."""

from pathlib import Path

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.protocol import STEPS
from tests.support.commits import epochs, losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of

pytestmark = [pytest.mark.e2e, pytest.mark.full]

QUERIES = {
    "additive": "SELECT count(*) AS n, sum(a.v) AS total, max(b.id) AS most FROM base a JOIN base b ON a.v = b.id",
    "full": "SELECT id, rank() OVER (ORDER BY v) AS place FROM base",
    "parted": "SELECT id, v, count(*) OVER (PARTITION BY id) AS n FROM base",
    "linear": "SELECT a.v, b.v AS other FROM base a JOIN base b ON a.v = b.id",
    "restricted": "SELECT a.v, b.id AS other FROM base a LEFT JOIN base b ON a.id = b.v",
}
"""By the rule that keeps each; `linear` and `restricted` give rows more than once, and the latter hides its key. The history
of `parted` is divided by the hashes of a key."""


@pytest.mark.parametrize("rule", ["additive", "full", "linear", "restricted"])
def test_a_kill_at_any_step_loses_and_doubles_nothing_by_whichever_rule(
    tmp_path: Path, processes: Processes, rule: str
) -> None:
    lake, query = Lake(tmp_path), QUERIES[rule]
    lake.append("base", ({"id": at, "v": at % 4} for at in range(40)))
    lake.project.declare(
        materialized_view(
            "large",
            query=query,
            upstreams=[delta_table("base", path=lake.path("base"), primary_key="id")],
            refresh_mode="incremental",
        )
    )
    lake.project.refresh("large")
    columns = [name for name in lake.rows(lake.location("large")).columns if not name.startswith("__")]
    for number, step in enumerate(STEPS):
        lake.append("base", [{"id": 100 + number, "v": number % 5}])
        lake.sql("base", f"DELETE FROM {{t}} WHERE id = {number}", f"UPDATE {{t}} SET v = 3 WHERE id = {number + 20}")
        before = lake.project.record("large").epoch
        job = {"refresh": "large", "query": query, "strategy": "auto", "mode": "incremental"}
        processes.kill(order_of(lake.project), job, step)
        assert lake.project.record("large").epoch == before + (step == "committed")
        lake.project.refresh("large")
        record = lake.project.record("large")
        assert (record.epoch, record.rule) == (before + 1, rule)
        assert lake.found("large", columns) == lake.expected("large", query, "base"), step
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    for check in CHECKS:
        outcome = lake.project.check("large", check)
        assert outcome.passed, (check, outcome)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("additive", "additive"), ("linear", "linear"), ("restricted", "linear"), ("parted", "restricted")],
)
def test_a_kill_at_any_step_of_a_chunk_of_several_tables_loses_and_doubles_nothing(
    tmp_path: Path, processes: Processes, name: str, rule: str
) -> None:
    lake, query = Lake(tmp_path), QUERIES[name]
    for file in range(2 * len(STEPS) + 1):
        lake.append("base", ({"id": 4 * file + at, "v": at + file % 3} for at in range(4)))
    table = delta_table("base", path=lake.path("base"), primary_key="id")
    lake.project.declare(materialized_view("large", query=query, upstreams=[table], strategy="snapshot"))
    one = Limits(chunk_rows=4, max_rows=4)
    lake.project.refresh("large", one)
    for step in STEPS:
        before = lake.project.record("large").epoch
        processes.kill(
            order_of(lake.project), {"refresh": "large", "query": query, "strategy": "snapshot", "chunk_rows": 4}, step
        )
        assert lake.project.record("large").epoch == before + (step == "committed")
        lake.project.refresh("large", one)
        record = lake.project.record("large")
        assert (record.live, record.rule) == (False, rule)
        outcome = lake.project.check("large", "exactly_once")
        assert outcome.passed, (step, outcome)
        lake.append("base", [{"id": 1000 + record.epoch, "v": 2}])
    lake.project.refresh("large")
    columns = [name for name in lake.rows(lake.location("large")).columns if not name.startswith("__")]
    assert lake.found("large", columns) == lake.expected("large", query, "base")
    assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
