"""Structs of an upstream that get more fields, while views follow it that read them in whole or in part."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from backfill_assets.app.table_checks import CHECKS
from backfill_assets.errors import UpstreamChangedError
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = [pytest.mark.e2e]

KNOWN = """CASE WHEN st IS NOT NULL THEN named_struct('a', st.a, 'more',
    transform(st.more, e -> CASE WHEN e IS NOT NULL THEN named_struct('x', e.x) END)) END"""
QUERIES = {
    "fields": ("SELECT id, st.a AS a, st.more[0].x AS x FROM orders", "orders"),
    "whole": ("SELECT id, to_json(st) AS st FROM orders", f"(SELECT id, {KNOWN} AS st FROM orders)"),
    "kinds": (
        "SELECT to_json(st) AS st, n FROM (SELECT st, count(DISTINCT qty) AS n FROM orders GROUP BY st)",
        f"(SELECT qty, {KNOWN} AS st FROM orders)",
    ),
    "raw": ("SELECT id, st FROM orders", ""),
}
SETTINGS = "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true'"
PARTS = "named_struct('a', {0}, 'more', array(named_struct('x', {0} + 1), NULL))"
MORE_PARTS = "named_struct('b', 'b', 'a', {0}, 'more', array(named_struct('x', {0} + 1, 'y', 5)))"


def refreshed(lake: Lake, views: Sequence[str], strategy: str) -> None:
    for name in views:
        query, rows = QUERIES[name]
        lake.project.refresh(name)
        if rows:
            found = lake.shown(name)
            assert found
            assert found == lake.expected(name, query.replace("FROM orders", f"FROM {rows}"), "orders"), (
                name,
                strategy,
            )
        lake.passes(name, CHECKS if FULL else ("exactly_once",))


@pytest.mark.parametrize(
    ("strategy", "views"),
    [
        ("snapshot", ["whole"]),
        *(pytest.param(each, [*QUERIES], marks=pytest.mark.full) for each in ("snapshot", "arrangement", "rearranged")),
    ],
)
def test_views_keep_the_fields_that_they_know(tmp_path: Path, strategy: str, views: list[str]) -> None:
    lake = Lake(tmp_path)
    columns = "id BIGINT, qty INT, st STRUCT<a: BIGINT, more: ARRAY<STRUCT<x: BIGINT>>>"
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('orders')}` ({columns}) USING delta TBLPROPERTIES ({SETTINGS})")
    lake.sql(
        "orders",
        f"INSERT INTO {{t}} SELECT id, id % 3, IF(id % 4 = 0, NULL, {PARTS.format('id % 5')}) FROM range(20)",
        spark=True,
    )
    for name in views:
        lake.view(
            name, QUERIES[name][0], lake.table("orders"), strategy="snapshot_once" if name == "kinds" else strategy
        )
    refreshed(lake, views, strategy)
    lake.sql(
        "orders",
        "UPDATE {t} SET qty = qty + 1 WHERE id % 6 = 1",
        "ALTER TABLE {t} ADD COLUMNS (st.b STRING FIRST, st.more.element.y INT)",
        "DELETE FROM {t} WHERE id = 7",
        f"INSERT INTO {{t}} SELECT id, 1, {MORE_PARTS.format('id % 5')} FROM range(20, 30)",
        f"UPDATE {{t}} SET st = {MORE_PARTS.format('3L')} WHERE id IN (1, 4, 22)",
        spark=True,
    )
    refreshed(lake, views, strategy)
    if FULL:
        more = ("UPDATE {t} SET qty = 7, st.b = 'c' WHERE id % 3 = 1", "DELETE FROM {t} WHERE id = 21")
        lake.sql("orders", *more, spark=True)
        refreshed(lake, views, strategy)
    lake.sql("orders", "ALTER TABLE {t} RENAME COLUMN st.a TO c", spark=True)
    with pytest.raises(UpstreamChangedError, match="changed column 'st'"):
        lake.project.refresh(views[0])
