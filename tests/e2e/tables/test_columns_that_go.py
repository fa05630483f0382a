"""Columns of an upstream that go, or have other names or types, while views follow it that do not read them."""

from pathlib import Path

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import UpstreamChangedError
from tests.support.lake import Lake
from tests.support.settings import CHECKS

pytestmark = [pytest.mark.e2e, pytest.mark.full]

QUERIES = {
    "rows": "SELECT id, price + 1 AS more FROM orders WHERE qty > 0",
    "sums": "SELECT qty, sum(price) AS total FROM orders GROUP BY qty",
    "kinds": "SELECT DISTINCT qty FROM orders",
    "places": "SELECT price, row_number() OVER (PARTITION BY qty ORDER BY price) AS place FROM orders",
    "before": "SELECT id, lag(price) OVER (PARTITION BY qty ORDER BY id) AS before FROM orders",
    "pairs": "SELECT a.id, b.id AS next FROM orders AS a JOIN orders AS b ON b.id = a.id + a.qty",
}
CHANGES = ("RENAME COLUMN st TO elect", "DROP COLUMN elect", "ALTER COLUMN ro TYPE BIGINT")
"""Of columns whose names are parts of words of the queries: DISTINCT, SELECT, FROM."""
SETTINGS = (
    "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', 'delta.enableChangeDataFeed' = 'true'"
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    columns = "id BIGINT, price BIGINT, qty BIGINT, st STRING, ro INT"
    made.spark.sql(f"CREATE TABLE delta.`{made.path('orders')}` ({columns}) USING delta TBLPROPERTIES ({SETTINGS})")
    made.sql("orders", "INSERT INTO {t} SELECT id, id % 7, id % 3, 'x', 1 FROM range(0, 30, 1, 3)", spark=True)
    return made


def churn(lake: Lake, step: int) -> None:
    lake.sql(
        "orders",
        f"INSERT INTO {{t}} (id, price, qty) SELECT id, 2, 1 FROM range({100 + 5 * step}, {105 + 5 * step})",
        f"UPDATE {{t}} SET price = price + 1, qty = qty + 1 WHERE id % 4 = {step % 4}",
        f"DELETE FROM {{t}} WHERE id = {3 * step}",
        spark=True,
    )


def assert_right(lake: Lake, view: str) -> None:
    found = lake.shown(view)
    assert found == lake.expected(view, QUERIES[view], "orders")
    assert found
    lake.passes(view, CHECKS)


@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_views_follow_a_table_over_changes_of_columns_that_they_do_not_read(lake: Lake, mode: str) -> None:
    for name, query in QUERIES.items():
        lake.view(name, query, lake.table("orders"), refresh_mode=mode)
        lake.project.refresh(name)
    for step, change in enumerate(CHANGES):
        churn(lake, 2 * step)
        lake.sql("orders", f"ALTER TABLE {{t}} {change}", spark=True)
        churn(lake, 2 * step + 1)
        for name in QUERIES:
            lake.project.refresh(name)
            assert_right(lake, name)


@pytest.mark.parametrize("strategy", ["snapshot", "arrangement", "rearranged"])
def test_history_is_read_over_changes_of_columns_that_are_not(lake: Lake, strategy: str) -> None:
    lake.view("rows", QUERIES["rows"], lake.table("orders"), strategy=strategy, refresh_mode="incremental")
    assert not lake.project.refresh("rows", Limits(chunk_rows=5, max_rows=5)).report.record.live
    for step, change in enumerate(CHANGES):
        churn(lake, 2 * step)
        lake.sql("orders", f"ALTER TABLE {{t}} {change}", spark=True)
        churn(lake, 2 * step + 1)
        lake.project.refresh("rows", Limits(chunk_rows=5, max_rows=5))
    assert lake.project.refresh("rows").report.record.live
    assert_right(lake, "rows")


@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_a_column_that_is_read_must_stay(lake: Lake, mode: str) -> None:
    lake.view("rows", QUERIES["rows"], lake.table("orders"), refresh_mode=mode)
    lake.project.refresh("rows")
    lake.sql("orders", "ALTER TABLE {t} RENAME COLUMN price TO cost", spark=True)
    with pytest.raises(UpstreamChangedError, match="changed column 'price'"):
        lake.project.refresh("rows")
