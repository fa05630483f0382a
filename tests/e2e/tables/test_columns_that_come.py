"""Columns that are added to an upstream while a view follows it: the names in the query keep their meaning."""

import random
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.app.lifecycle import reset
from backfill_assets.core.epoch.limits import Limits
from tests.support.lake import Lake
from tests.support.settings import CHECKS, one_in_gate

pytestmark = pytest.mark.e2e

TAXED = "SELECT id, price * qty AS total, total * 0.2 AS tax FROM orders"
BY_DAY = "SELECT date(at) AS day, count(*) AS n, sum(qty) AS qty FROM orders GROUP BY day"
BOTH = "SELECT id, price, qty, at FROM orders UNION ALL SELECT * FROM returns"
KNOWN = ["id", "price", "qty", "at"]
CHUNK = Limits(chunk_rows=5, max_rows=5)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    for part in range(0, 20, 5):
        add(made, "orders", part, part + 5)
    return made


def add(lake: Lake, name: str, start: int, end: int, **more: object) -> None:
    rows = [
        {"id": at, "price": at % 7, "qty": 1 + at % 3, "at": f"2026-01-{1 + at % 4:02}", **more}
        for at in range(start, end)
    ]
    lake.append(name, rows, schema_mode="merge" if more else None)


def wide_rows(start: int, end: int) -> list[dict[str, object]]:
    texts = random.Random(start)
    return [
        {"id": at, "price": 2, "qty": 3, "at": "2026-01-01", "total": 0.5, "text": texts.randbytes(600).hex()}
        for at in range(start, end)
    ]


def come(lake: Lake, name: str, column: str, kind: str) -> None:
    """Add a column to a table."""
    DeltaTable(lake.path(name)).alter.add_columns([Field(column, PrimitiveType(kind))])


def assert_exact(lake: Lake, view: str, query: str, columns: list[str], *names: str) -> None:
    found = lake.found(view, columns)
    assert found == lake.expected(view, query, *names, columns=KNOWN) != Counter()
    outcomes = {check: lake.project.check(view, check) for check in CHECKS}
    assert all(outcome.passed for outcome in outcomes.values()), outcomes


@pytest.mark.parametrize("strategy", one_in_gate("snapshot", "arrangement", "rearranged"))
def test_an_alias_keeps_its_meaning_in_the_middle_of_history_and_after_it(lake: Lake, strategy: str) -> None:
    lake.view("taxed", TAXED, lake.table("orders"), strategy=strategy, refresh_mode="incremental")
    assert not lake.project.refresh("taxed", CHUNK).report.record.live
    come(lake, "orders", "total", "double")
    add(lake, "orders", 20, 25, total=0.5)
    assert lake.project.refresh("taxed").report.record.live
    assert_exact(lake, "taxed", TAXED, ["id", "total", "tax"], "orders")

    lake.sql("orders", "UPDATE {t} SET qty = 9, total = 1.5 WHERE id % 3 = 0", "DELETE FROM {t} WHERE id % 5 = 0")
    assert lake.project.refresh("taxed").report.record.rows_updated
    assert_exact(lake, "taxed", TAXED, ["id", "total", "tax"], "orders")


@pytest.mark.full
def test_a_new_column_named_as_a_group_changes_no_group(lake: Lake) -> None:
    lake.view("by_day", BY_DAY, lake.table("orders"))
    lake.project.refresh("by_day")
    come(lake, "orders", "day", "string")
    add(lake, "orders", 20, 30, day="never")
    lake.sql("orders", "DELETE FROM {t} WHERE id % 5 = 0")
    assert lake.project.refresh("by_day").report.epochs
    assert_exact(lake, "by_day", BY_DAY, ["day", "n", "qty"], "orders")


@pytest.mark.full
def test_all_columns_of_a_later_part_stay_in_their_order(lake: Lake) -> None:
    add(lake, "returns", 100, 110)
    lake.view("both", BOTH, lake.table("orders"), lake.table("returns"))
    lake.project.refresh("both")
    for name in ("orders", "returns"):
        lake.sql(name, "ALTER TABLE {t} ADD COLUMNS (reason STRING FIRST)")
        add(lake, name, 200 if name == "orders" else 300, 310, reason="late")
    assert lake.project.refresh("both").report.epochs
    assert_exact(lake, "both", BOTH, KNOWN, "orders", "returns")


@pytest.mark.full
def test_a_view_that_is_replaced_in_full_keeps_its_columns(lake: Lake) -> None:
    lake.view("taxed", TAXED, lake.table("orders"))
    lake.project.refresh("taxed")
    come(lake, "orders", "total", "double")
    lake.append("orders", wide_rows(20, 2_000), schema_mode="merge")  # views with many changes are replaced in full
    for change in range(4):
        lake.sql("orders", f"UPDATE {{t}} SET qty = qty + {change}, total = {change}")
    (epoch,) = lake.project.refresh("taxed").report.epochs
    assert epoch.engine == "overwrite"
    assert lake.found("taxed", ["id", "total", "tax"]) == lake.expected("taxed", TAXED, "orders", columns=KNOWN)


@pytest.mark.full
@pytest.mark.parametrize("by_spark", [True, pytest.param(False, marks=pytest.mark.full)], ids=["by Spark", "few"])
def test_a_natural_join_keeps_the_columns_by_which_it_joins(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    lake.append("rates", [{"id": at, "rate": at * 10} for at in range(0, 40, 2)])
    query = "SELECT qty, rate FROM orders NATURAL JOIN rates"
    tables = lake.table("orders", None), lake.table("rates", None)
    lake.view("rated", query, *tables, refresh_mode="incremental_strict")
    lake.project.refresh("rated")
    assert lake.found("rated", ["qty", "rate"]) == joined_by(lake, "id") != Counter()

    # Versions with and without a change data feed are read apart: of these, only some have the column.
    alter = "ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.appendOnly' = '{}', 'delta.enableChangeDataFeed' = '{}')"
    lake.sql("orders", alter.format("true", "false"))
    add(lake, "orders", 20, 25)
    lake.sql("orders", alter.format("false", "true"))
    come(lake, "orders", "zone", "string")
    come(lake, "rates", "zone", "string")
    add(lake, "orders", 25, 30, zone="here")
    lake.append("rates", [{"id": at, "rate": at, "zone": "here" if at < 26 else "there"} for at in range(20, 30)])
    assert lake.project.refresh("rated").report.epochs
    by_id, by_both = joined_by(lake, "id"), joined_by(lake, "id, zone")
    assert lake.found("rated", ["qty", "rate"]) == by_id != by_both
    assert lake.project.check("rated").passed
    reset(lake.project.workspace(), "rated")
    lake.project.refresh("rated")
    assert lake.found("rated", ["qty", "rate"]) == by_both != Counter()


def joined_by(lake: Lake, columns: str) -> Counter[tuple[object, ...]]:
    return lake.expected("rated", f"SELECT qty, rate FROM orders JOIN rates USING ({columns})", "orders", "rates")


@pytest.mark.full
@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT one, two FROM orders PIVOT (sum(qty) FOR price IN (1 AS one, 2 AS two))", KNOWN),
        # Its order is completed by columns that it names.
        ("SELECT qty, lag(price) OVER (PARTITION BY qty ORDER BY price % 2) AS before FROM orders", ["price", "qty"]),
        ("SELECT sum(h) AS total FROM (SELECT hash(*) AS h FROM orders)", KNOWN),
    ],
)
def test_columns_that_a_query_means_without_their_names_are_read(lake: Lake, query: str, read: list[str]) -> None:
    view = lake.view("unnamed", query, lake.table("orders", None))
    lake.project.refresh("unnamed")
    columns = [name for name in columns_of(lake, "unnamed") if not name.startswith("__")]
    assert lake.found("unnamed", columns) == lake.expected("unnamed", view.text, "orders", columns=read) != Counter()
    come(lake, "orders", "more", "string")
    add(lake, "orders", 20, 30, more="x")
    lake.project.refresh("unnamed")
    assert lake.found("unnamed", columns) == lake.expected("unnamed", view.text, "orders", columns=read)


@pytest.mark.full
def test_a_reset_takes_the_new_columns(lake: Lake) -> None:
    lake.view("taxed", TAXED.replace("price * qty AS total", "qty"), lake.table("orders"))
    come(lake, "orders", "total", "double")
    add(lake, "orders", 20, 25, total=0.5)
    query = lake.declared("taxed").text
    lake.project.refresh("taxed")
    assert lake.found("taxed", ["id", "qty", "tax"]) == lake.expected("taxed", query, "orders")

    lake.view("all", "SELECT * FROM orders", lake.table("orders"))
    lake.project.refresh("all")
    come(lake, "orders", "more", "string")
    add(lake, "orders", 25, 30, total=0.5, more="x")
    lake.project.refresh("all")
    assert "more" not in columns_of(lake, "all")
    reset(lake.project.workspace(), "all")
    lake.project.refresh("all")
    assert columns_of(lake, "all")[-1] == "more"
    assert lake.found("all", ["*"]) == lake.expected("all", "SELECT * FROM orders", "orders") != Counter()


def columns_of(lake: Lake, view: str) -> list[str]:
    schema = DeltaTable(lake.location(view)).schema()
    assert isinstance(schema, Schema)
    return [field.name for field in schema.fields]
