"""The history of a query over several tables, read in chunks of some of them: after each, the view is the query over what was
read."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from backfill_assets.app.skipping import Named, set_skips
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import DuplicateKeyError, NoStrategyError
from tests.support.lake import Lake
from tests.support.queries_world import churn, order
from tests.support.settings import CHECKS, FULL

pytestmark = pytest.mark.e2e

FILES, ROWS = 3 if FULL else 2, 10
ONE = Limits(chunk_rows=ROWS, max_rows=ROWS)
"""An epoch of one file."""

QUERIES = {
    "linear": "SELECT o.id, c.name, o.amount FROM {orders} o JOIN customers c ON o.customer = c.id",
    "copies": "SELECT o.amount % 2 AS odd, c.region FROM {orders} o LEFT JOIN customers c ON o.customer = c.id",
    "groups": "SELECT c.region, count(*) AS n, max(o.amount) AS most, avg(o.amount) AS share FROM {orders} o "
    "JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "of_all": "SELECT count(*) AS n, sum(o.amount) AS total FROM {orders} o JOIN customers c ON o.customer = c.id",
    "hidden_key": "SELECT o.amount, i.price FROM {orders} o LEFT JOIN items i ON i.id = o.item",
    "parts": "SELECT o.id, c.name FROM {orders} o JOIN customers c ON o.customer = c.id "
    "UNION ALL SELECT a.amount, 'itself' FROM {orders} a JOIN orders b ON a.item = b.item AND a.id < b.id",
}
"""Queries in which chunks of the orders are joined with the other tables."""
IN_GATE = ("of_all", "parts")


def world(root: Path) -> Lake:
    lake, random = Lake(root), Random(1)
    lake.append("customers", ({"id": at, "name": f"name {at % 4}", "region": at % 3} for at in range(8)))
    lake.append("items", ({"id": at, "price": at} for at in range(5)))
    for file in range(FILES):
        lake.append("orders", (order(random, at) for at in range(ROWS * file, ROWS * (file + 1))))
    return lake


def view_of(lake: Lake, query: str, **given: Any) -> None:
    text = query.format(orders="orders")
    names = [name for name in ("customers", "items", "orders") if f" {name} " in text]
    lake.view("joined", text, *map(lake.table, names), **{"strategy": "snapshot", **given})


def expected(lake: Lake, query: str) -> Counter[tuple[Any, ...]]:
    """The query over the files of orders that were read, and all other rows of the pinned versions; pyarrow reads them."""
    position = lake.project.record("joined").position
    assert isinstance(position, SnapshotPosition)
    for name, table in position.tables.items():
        version = DeltaTable(lake.path(name), version=table.version)
        lake.spark.createDataFrame(version.to_pyarrow_table()).createOrReplaceTempView(name)
        if name == "orders" and not table.backfilled:
            files = sorted(version.file_uris())
            read = [
                file for at, bucket in table.buckets.items() for file in files[at :: len(table.buckets)][: bucket.next]
            ]
            lake.spark.createDataFrame(pq.read_table(read)).createOrReplaceTempView("orders_read")
        elif name == "orders":
            lake.spark.table("orders").createOrReplaceTempView("orders_read")
    return Counter(map(tuple, lake.spark.sql(query.format(orders="orders_read")).collect()))


def assert_right(lake: Lake, query: str, *checks: str) -> None:
    assert lake.shown("joined") == expected(lake, query)
    assert lake.shown("joined").total() > 0
    lake.passes("joined", checks)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in IN_GATE else [pytest.mark.full]) for each in QUERIES]
)
def test_each_chunk_adds_what_it_gives_and_changes_wait_until_history_is_read(tmp_path: Path, name: str) -> None:
    lake, query, random = world(tmp_path), QUERIES[name], Random(name)
    view_of(lake, query)
    for chunk in range(FILES):
        record = lake.project.refresh("joined", ONE).report.record
        assert (record.epoch, record.rule) == (chunk + 1, "additive" if name in {"groups", "of_all"} else "linear")
        assert record.rows_read == ROWS
        assert_right(lake, query, *(["exactly_once"] if chunk == 0 else []))
        change(lake, random, 100 * (chunk + 1))
    assert not record.live
    assert lake.project.refresh("joined").report.record.live
    assert_right(lake, query, *(CHECKS if FULL else ()))


def change(lake: Lake, random: Random, first: int) -> None:
    """Change the tables while history is read: by rows that come, and in the full proof by rows that go, too."""
    if FULL:
        churn(lake, random, first)
    else:
        lake.append("orders", [order(random, first)])
        lake.append("customers", [{"id": first, "name": "late", "region": 1}])


@pytest.mark.full
def test_rows_that_are_left_out_have_the_rest_read_at_once(tmp_path: Path) -> None:
    lake, query = world(tmp_path), QUERIES["linear"]
    view_of(lake, query)
    lake.project.refresh("joined", ONE)
    gone = next(row[0] for row in lake.shown("joined"))
    set_skips(lake.project.workspace(), "joined", Named(source="orders", key=(f"id={gone}",)), undo=False, by="test")
    record = lake.project.refresh("joined", ONE).report.record
    assert (record.epoch, record.rule, record.live) == (2, "full", True)
    assert gone not in {row[0] for row in lake.shown("joined")}
    assert expected(lake, query) - lake.shown("joined") == Counter({
        row: 1 for row in expected(lake, query) if row[0] == gone
    })
    assert lake.project.check("joined", "exactly_once").passed


@pytest.mark.full
def test_a_key_that_two_chunks_have_is_refused(tmp_path: Path) -> None:
    lake = world(tmp_path)
    view_of(lake, "SELECT o.item AS id, c.name FROM {orders} o JOIN customers c ON o.customer = c.id", primary_key="id")
    with pytest.raises(DuplicateKeyError):
        lake.project.refresh("joined", ONE)
    assert lake.project.record("joined").epoch == 0


@pytest.mark.full
def test_a_query_without_rows_to_drive_it_is_computed_at_once(tmp_path: Path) -> None:
    lake = world(tmp_path)
    lake.sql("orders", "DELETE FROM {t}")
    view_of(lake, QUERIES["of_all"])
    assert lake.project.refresh("joined").report.record.live
    assert lake.shown("joined") == Counter({(0, None): 1})


@pytest.mark.full
def test_a_query_that_nothing_can_drive_is_refused_in_chunks_with_the_strategy_to_use(tmp_path: Path) -> None:
    lake = world(tmp_path)
    view_of(lake, "SELECT count(DISTINCT o.item) AS n FROM {orders} o JOIN customers c ON o.customer = c.id")
    with pytest.raises(NoStrategyError, match="snapshot_once"):
        lake.project.refresh("joined")
