"""Chunks of history open only those files of other tables that may have rows for them, where tables lie in the order of what
they are joined by."""

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.adapters.compute import rules, selectable_rows, table_inputs
from backfill_assets.adapters.delta import key_statistics
from tests.e2e.tables.test_joined_history import ONE, expected
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

FILES, ROWS = 4, 10
BY_CUSTOMER = "JOIN customers c ON c.id = o.customer"
QUERIES = {
    "inner": f"SELECT o.id, c.name FROM {{orders}} o {BY_CUSTOMER}",
    "left": f"SELECT o.id, c.name FROM {{orders}} o LEFT {BY_CUSTOMER}",
    "twice": f"SELECT o.id, c.name, f.name AS friend FROM {{orders}} o {BY_CUSTOMER} "
    "LEFT JOIN customers f ON f.id = o.friend",
    "days": "SELECT o.id, d.note FROM {orders} o LEFT JOIN days d ON d.day = o.day",
    "groups": f"SELECT o.customer, c.region, count(*) AS n, sum(o.id) AS s FROM {{orders}} o {BY_CUSTOMER} "
    "GROUP BY o.customer, c.region",
    "anti": "SELECT o.id, o.customer FROM {orders} o WHERE NOT EXISTS "
    "(SELECT 1 FROM customers c WHERE c.id = o.customer AND c.region = 1)",
    "right": "SELECT o.id, c.name FROM customers c RIGHT JOIN {orders} o ON c.id = o.customer",
    "semi": "SELECT o.id FROM {orders} o LEFT SEMI JOIN customers c ON c.id = o.customer AND c.region < 2",
    "in": "SELECT o.id FROM {orders} o WHERE o.customer IN (SELECT c.id FROM customers c WHERE c.region = 1)",
    "both parts": f"SELECT o.id, c.name FROM {{orders}} o {BY_CUSTOMER} UNION ALL "
    "SELECT o.id, c.name FROM {orders} o LEFT JOIN customers c ON c.id = o.friend",
    "nulls": "SELECT o.id, c.name FROM {orders} o LEFT JOIN customers c ON c.id <=> o.some",
    "texts": "SELECT o.id, c.region FROM {orders} o JOIN customers c ON c.name = o.named",
}
ALL_FILES = ("nulls", "texts", "both parts")
"""Nulls have no bounds, those of texts are not compared, and the parts of a `UNION ALL` have no key together."""
PLACED = ("whole", "parted")
IN_GATE = [("twice", "parted"), ("nulls", "whole"), ("groups", "whole")]


def day(number: int) -> date:
    return date(2020, 1, 1) + timedelta(days=number)


def world(root: Path, **placed: Any) -> Lake:
    lake = Lake(root)
    for first in range(0, 20, 4):
        ids = [*range(first, first + 4), first + 1]
        regions = pa.array([each % 3 for each in ids])
        lake.append(
            "customers", pa.table({"id": ids, "name": [f"n{each}" for each in ids], "region": regions}), **placed
        )
        lake.append("days", [{"day": day(each), "note": f"day {each}"} for each in ids])
    lake.append(
        "customers", pa.table({"id": pa.array([None, 3], pa.int64()), "name": ["none", "far"], "region": [1, 2]})
    )
    for file in range(FILES):
        ids = list(range(ROWS * file, ROWS * (file + 1)))
        rows: dict[str, Any] = {
            "id": ids,
            "customer": [each // 2 for each in ids],
            "friend": pa.array([19 - each // 2 for each in ids], pa.int32()),
            "day": [day(each // 2) for each in ids],
            "some": [each // 2 if each % 5 else None for each in ids],
            "named": [f"n{each // 2}" for each in ids],
        }
        lake.append("orders", pa.table(rows))
    return lake


@pytest.mark.parametrize(
    ("name", "placed"), [(name, placed) for name in QUERIES for placed in PLACED] if FULL else IN_GATE
)
def test_chunks_open_the_files_that_may_have_rows_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, placed: str
) -> None:
    lake, query = world(tmp_path, **({"partition_by": ["region"]} if placed == "parted" else {})), QUERIES[name]
    opened = list[tuple[int, int]]()

    def spied(*given: Any) -> Any:
        files = key_statistics.files_with(*given)
        opened.append((len(files), len(given[0].files)))
        return files

    monkeypatch.setattr(table_inputs, "files_with", spied)
    text = query.format(orders="orders")
    names = [each for each in ("customers", "days", "orders") if f" {each} " in text]
    lake.view("joined", text, *(lake.table(each, None) for each in names), strategy="snapshot")
    for chunk in range(FILES):
        record = lake.project.refresh("joined", ONE).report.record
        assert (record.epoch, record.rows_read) == (chunk + 1, ROWS)
        assert lake.shown("joined") == expected(lake, query)
        assert lake.shown("joined").total() > 0
    assert bool(opened) is (name not in ALL_FILES)
    assert all(some < every for some, every in opened)
    lake.passes("joined", ["exactly_once", "rows_conserved"])


def test_the_group_of_nulls_is_found_beside_those_between_two_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many changes, which touch groups of one file between bounds, and that of nulls in another one."""
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    monkeypatch.setattr(rules, "_MANY_GROUPS", 0)
    lake = Lake(tmp_path)
    schema = pa.schema({"id": pa.int64(), "key": pa.int64()})
    query = "SELECT o.key, count(*) AS n, sum(o.id + c.id) AS s FROM orders o JOIN codes c ON c.id = o.id % 2 GROUP BY o.key"
    lake.append("codes", [{"id": 0}, {"id": 1}])
    lake.view("groups", query, lake.table("orders", None), lake.table("codes"), refresh_mode="incremental")
    for keys in ([None, 1, 2], [11, 12], [11, None], [11, 12]):
        rows = [{"id": at, "key": key} for at, key in enumerate(keys)]
        lake.append("orders", pa.Table.from_pylist(rows, schema=schema))
        rule = lake.project.refresh("groups").report.record.rule
        assert lake.shown("groups") == lake.expected("groups", query, "orders", "codes") != Counter()
    assert rule == "additive"
