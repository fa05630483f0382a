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

pytestmark = pytest.mark.e2e

QUERIES = {
    "additive": "SELECT count(*) AS n, sum(a.v) AS total, max(b.id) AS most FROM base a JOIN base b ON a.v = b.id",
    "full": "SELECT id, rank() OVER (ORDER BY v) AS place FROM base",
    "parted": "SELECT id, v, count(*) OVER (PARTITION BY id) AS n FROM base",
    "linear": "SELECT a.v, b.v AS other FROM base a JOIN base b ON a.v = b.id",
    "restricted": "SELECT a.v, b.id AS other FROM base a LEFT JOIN base b ON a.id = b.v",
}
"""By the rule that keeps each; `linear` and `restricted` give rows more than once, and the latter hides its key. The history
of `parted` is divided by the hashes of a key."""


BY_STAGED = ["staged", *(each for each in STEPS if each != "staged")]
"""All steps, beginning with the one at which the gate kills a view over several tables."""
CHANGED = (("orders", "lines", "notes"), ("orders",), ("lines",), ("notes",), ("orders", "lines"))
"""The tables of which rows come, go and change before each kill."""
SEVERAL = {
    "joined": (
        "SELECT o.id, l.id AS line, n.v AS note FROM orders o JOIN lines l ON l.k = o.k LEFT JOIN notes n ON n.k = o.k",
        ["restricted", "linear", "linear", "restricted", "linear"],
    ),
    "grouped": (
        "SELECT o.v, count(*) AS n, sum(l.v) AS total, max(n.v) AS most FROM orders o JOIN lines l ON l.k = o.k "
        "LEFT JOIN notes n ON n.k = o.k GROUP BY o.v",
        ["additive"] * 5,
    ),
    "not in": (
        "SELECT o.id, l.v FROM orders o JOIN lines l ON l.id = o.id WHERE o.k NOT IN (SELECT n.k FROM notes n WHERE n.v > 2)",
        ["restricted", "linear", "linear", "restricted", "linear"],
    ),
    "compared": (
        "SELECT o.id, l.id AS line FROM orders o JOIN lines l ON l.k = o.k WHERE o.v < (SELECT max(n.v) FROM notes n)",
        ["linear"] * 5,
    ),
}
"""Views over tables of their own: the query, and its rule for what changes at each step (`CHANGED`). `not in` follows changes
of `notes` as long as no null is compared, and `compared` as long as the maximum stays."""


@pytest.mark.full
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
    ("name", "steps"),
    [("joined", BY_STAGED[:1]), *(pytest.param(each, BY_STAGED, marks=pytest.mark.full) for each in SEVERAL)],
    ids=lambda given: given if isinstance(given, str) else given[-1],
)
def test_a_kill_in_an_epoch_of_several_tables_loses_and_doubles_nothing(
    tmp_path: Path, processes: Processes, name: str, steps: list[str]
) -> None:
    lake, (query, rules) = Lake(tmp_path), SEVERAL[name]
    for table, rows in (("orders", 40), ("lines", 60), ("notes", 20)):
        lake.append(table, (row(table, at) for at in range(rows)))
    tables = {each: lake.path(each) for each in CHANGED[0]}
    read = [delta_table(each, path=path, primary_key="id") for each, path in tables.items()]
    lake.project.declare(materialized_view("large", query=query, upstreams=read, refresh_mode="incremental"))
    lake.project.refresh("large")
    job = {"refresh": "large", "query": query, "strategy": "auto", "mode": "incremental", "tables": tables}
    for number, (step, changed, rule) in enumerate(zip(steps, CHANGED, rules, strict=False)):
        for each in changed:
            lake.append(each, [row(each, 100 + number)])
            lake.sql(each, f"DELETE FROM {{t}} WHERE id = {number}", f"UPDATE {{t}} SET k = 3 WHERE id = {number + 10}")
        before = lake.project.record("large").epoch
        processes.kill(order_of(lake.project), job, step)
        assert lake.project.record("large").epoch == before + (step == "committed")
        lake.project.refresh("large")
        record = lake.project.record("large")
        assert (record.epoch, record.rule, record.why_full) == (before + 1, rule, ""), step
        assert lake.shown("large") == lake.expected("large", query, *tables), step
        assert losers(lake.project, "large") == []
    assert epochs(lake.project, "large") == list(range(lake.project.record("large").epoch + 1)), "each epoch once"
    lake.passes("large", CHECKS)


def row(table: str, at: int) -> dict[str, object]:
    """A row of one of several tables; only `notes` has few values of `k`."""
    return {"id": at, "k": at % 5 if table == "notes" else at % 20, "v": at % 7}


@pytest.mark.full
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
