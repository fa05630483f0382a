"""The history of a query that no table drives, in parts of the hashes of a key: after each, the view is the query over the
rows that were taken."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from backfill_assets.app.dry_run import plan
from backfill_assets.app.skipping import Named, set_skips
from backfill_assets.cli.printing import plan_text
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.strategies.hashed_history import PARTS
from backfill_assets.errors import DuplicateKeyError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from tests.support.lake import Lake
from tests.support.queries_world import churn, order
from tests.support.settings import CHECKS, FULL

pytestmark = pytest.mark.e2e

ROWS = 200
HALF = Limits(chunk_rows=ROWS // 2, max_rows=ROWS // 2)

QUERIES = {
    "window": "SELECT id, customer, amount, count(*) OVER (PARTITION BY id ORDER BY amount) AS n FROM orders",
    "full": "SELECT o.amount, c.name FROM (SELECT customer, amount FROM orders) o FULL JOIN customers c ON o.customer = c.id",
    "distinct": "SELECT customer, count(DISTINCT item) AS kinds, percentile(amount, 0.5) AS middle FROM orders "
    "GROUP BY customer",
    "copies": "SELECT o.amount % 2 AS odd, c.region FROM customers c FULL JOIN orders o ON o.customer = c.id",
    "beside": "SELECT DISTINCT o.customer, i.price FROM orders o LEFT JOIN (SELECT DISTINCT id, price FROM items) i "
    "ON i.id = o.item",
    "except": "SELECT id FROM customers EXCEPT SELECT customer FROM orders",
}
"""Queries in which nothing is linear, but which a key partitions."""
IN_GATE = ("beside", "window")


def world(root: Path) -> Lake:
    lake, random = Lake(root), Random(1)
    lake.append("customers", ({"id": at, "name": f"name {at % 4}", "region": at % 3} for at in range(40)))
    lake.append("items", ({"id": at, "price": at} for at in range(5)))
    lake.append("orders", (order(random, at) for at in range(ROWS)))
    return lake


def tables_of(query: str) -> list[str]:
    return [name for name in ("customers", "items", "orders") if name in query]


def view_of(lake: Lake, query: str, **given: Any) -> None:
    lake.view("parted", query, *map(lake.table, tables_of(query)), **{"strategy": "snapshot", **given})


def position(lake: Lake) -> SnapshotPosition:
    found = lake.project.record("parted").position
    assert isinstance(found, SnapshotPosition)
    return found


def expected(lake: Lake, query: str) -> Counter[tuple[Any, ...]]:
    """The query over the rows of pinned versions whose key is in the parts that were read: computed by Spark alone."""
    at = position(lake)
    assert at.driving is not None
    for name, table in at.tables.items():
        version = DeltaTable(lake.path(name), version=table.version)
        rows = lake.spark.createDataFrame(version.to_pyarrow_table())
        places = [number for number, each in at.driving.places.items() if each == name]
        if places and not table.backfilled:
            (bucket,) = table.buckets.values()
            rows = rows.where(f"pmod({at.driving.hashes[places[0]]}, {PARTS}) < {bucket.next}")
        rows.createOrReplaceTempView(name)
    return Counter(map(tuple, lake.spark.sql(query).collect()))


def assert_right(lake: Lake, query: str, *checks: str) -> None:
    assert lake.shown("parted") == expected(lake, query)
    assert lake.shown("parted").total() > 0
    lake.passes("parted", checks)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in IN_GATE else [pytest.mark.full]) for each in QUERIES]
)
def test_each_part_adds_what_it_gives_and_changes_wait_until_history_is_read(tmp_path: Path, name: str) -> None:
    lake, query, random = world(tmp_path), QUERIES[name], Random(name)
    view_of(lake, query)
    record = lake.project.refresh("parted", HALF).report.record
    assert (record.epoch, record.rule, record.live) == (1, "restricted", False)
    assert 0 < position(lake).tables["orders"].buckets[0].next < PARTS
    assert_right(lake, query, *CHECKS)
    assert f"of {PARTS} parts of a key are taken" in plan_text("parted", plan(lake.project.workspace(), "parted", HALF))
    churn(lake, random, 1000)
    rest = lake.project.refresh("parted", Limits(chunk_rows=ROWS // 2)).report
    assert rest.record.live
    assert len(rest.epochs) > 1
    assert_right(lake, query, *CHECKS)


def test_a_check_reads_all_files_of_a_table_of_which_fewer_parts_are_taken(tmp_path: Path) -> None:
    lake, query, random = Lake(tmp_path), QUERIES["window"], Random(2)
    for first in range(0, 80, 20):
        lake.append("orders", (order(random, at) for at in range(first, first + 20)))
    view_of(lake, query)
    assert not lake.project.refresh("parted", Limits(chunk_rows=2, max_rows=2)).report.record.live
    assert position(lake).tables["orders"].buckets[0].next < 4, "fewer parts than files"
    assert_right(lake, query, "exactly_once")


@pytest.mark.full
def test_a_run_that_dies_at_any_step_of_a_part_is_resumed_and_doubles_nothing(tmp_path: Path) -> None:
    lake, query = world(tmp_path), QUERIES["copies"]
    view_of(lake, query)
    for number, step in enumerate(STEPS if FULL else STEPS[2:4], start=1):
        with pytest.raises(Crash):
            lake.project.refresh("parted", Limits(chunk_rows=40, max_rows=40), on_step=CrashPoint(step))
        lake.append("orders", [order(Random(number), 1000 + number)])
        assert lake.shown("parted") == expected(lake, query), step
    life = lake.project.record("parted").incarnation
    assert lake.project.refresh("parted", Limits(chunk_rows=ROWS // 2)).report.record.live
    assert lake.project.record("parted").incarnation == life
    assert_right(lake, query, *(CHECKS if FULL else ["exactly_once"]))


@pytest.mark.full
def test_rows_that_are_left_out_have_the_rest_read_at_once(tmp_path: Path) -> None:
    lake, query = world(tmp_path), QUERIES["window"]
    view_of(lake, query)
    lake.project.refresh("parted", HALF)
    gone = next(row[0] for row in lake.shown("parted"))
    set_skips(lake.project.workspace(), "parted", Named(source="orders", key=(f"id={gone}",)), undo=False, by="test")
    record = lake.project.refresh("parted", HALF).report.record
    assert (record.epoch, record.rule, record.live) == (2, "full", True)
    assert gone not in {row[0] for row in lake.shown("parted")}
    assert lake.project.check("parted", "exactly_once").passed


@pytest.mark.full
def test_a_key_that_two_parts_have_is_refused(tmp_path: Path) -> None:
    lake = world(tmp_path)
    query = "SELECT item AS id, customer, rank() OVER (PARTITION BY customer ORDER BY amount, id) AS place FROM orders"
    view_of(lake, query, primary_key="id")
    with pytest.raises(DuplicateKeyError):
        lake.project.refresh("parted", HALF)
    assert lake.project.record("parted").epoch == 0
