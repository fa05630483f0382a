"""Strategy `snapshot` on real Delta tables: history from one pinned version, then every version of the change log."""

from pathlib import Path

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.backfill.control import Limits, Stop
from backfill_assets.model import DeltaTable
from tests.e2e.lake import Lake

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, upper(name) AS name, amount * 2 AS twice FROM orders WHERE amount > 10"
COLUMNS = ("id", "name", "twice")
CHECKS = ("positions_contiguous", "ledger_matches_table", "unique_key", "rows_conserved", "exactly_once")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def orders(lake: Lake, *, rows: int = 1000, files: int = 8, **options: str) -> DeltaTable:
    """A table of orders with a key, and a view over it."""
    made = lake.spark.range(0, rows).selectExpr("id", "concat('n', id % 7) AS name", "CAST(id % 50 AS INT) AS amount")
    lake.write("orders", made.repartition(files), **options)
    table = delta_table("orders", path=lake.path("orders"), primary_key="id")
    lake.project.declare(materialized_view("large", query=QUERY, upstreams=[table]))
    return table


def check_all(lake: Lake, view: str = "large") -> None:
    for check in CHECKS:
        outcome = lake.project.check(view, check)
        assert outcome.passed, f"{check}: {outcome.summary}"


def test_history_is_read_in_chunks_and_changes_of_every_kind_follow(lake: Lake):
    orders(lake)
    done = lake.project.refresh("large", Limits(chunk_rows=300))
    assert done.report.stopped is Stop.CAUGHT_UP
    assert len(done.report.epochs) == 4
    assert sum(each.rows_read for each in done.report.epochs) == 1000
    assert done.report.record.live
    check_all(lake)
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "orders")

    lake.write("orders", lake.spark.range(1000, 1100).selectExpr("id", "'new' AS name", "CAST(40 AS INT) AS amount"))
    lake.sql("orders", "UPDATE {t} SET amount = amount + 20 WHERE id % 9 = 0")
    lake.sql("orders", "DELETE FROM {t} WHERE id % 11 = 0")
    lake.sql("orders", "UPDATE {t} SET amount = 0 WHERE id BETWEEN 200 AND 300")
    lake.sql("orders", "OPTIMIZE {t}")
    done = lake.project.refresh("large")
    assert done.report.record.engine == "delta-rs"
    assert sum(lake.found("large", COLUMNS).values()) == done.report.record.rows_total
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "orders")
    check_all(lake)
    assert lake.project.refresh("large").report.epochs == []
