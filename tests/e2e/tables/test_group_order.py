"""Windows over groups whose counts are equal, on real Spark: one result, however the rows come, and views that keep it."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.sql.apply_relational import apply_relational
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational
from tests.support.lake import Lake
from tests.support.local_rows import local_rows
from tests.support.queries_world import churn, fill
from tests.support.settings import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP, part STRUCT<k: INT>"
PLACE = "row_number() OVER (ORDER BY count(*) DESC)"
FORMS = [
    f"SELECT name, {PLACE} AS n FROM t GROUP BY name",
    f"SELECT name, {PLACE} AS n FROM t GROUP BY t.name, id % 3",
    f"SELECT upper(name) AS u, {PLACE} AS n FROM t GROUP BY 1",
    f"SELECT upper(name) AS u, id % 2 AS odd, {PLACE} AS n FROM t GROUP BY u, odd HAVING count(*) > 1",
    f"SELECT part.k AS k, {PLACE} AS n FROM t GROUP BY part.k",
    f"SELECT t.name AS name, {PLACE} AS n FROM t GROUP BY name ORDER BY 1 LIMIT 3",
    f"SELECT coalesce(1 + {PLACE}, 0) AS n, id IS DISTINCT FROM 4 AS x FROM t GROUP BY id IS DISTINCT FROM 4, 'k'",
    "SELECT name, sum(count(*)) OVER (ORDER BY max(at) ROWS 1 PRECEDING) AS n FROM t GROUP BY name",
    "SELECT name, lag(name) OVER (PARTITION BY id % 2 ORDER BY count(*)) AS n FROM t GROUP BY name, id % 2",
    f"SELECT window.start AS begins, {PLACE} AS n FROM t GROUP BY window(at, '1 hour'), name",
    f"SELECT count(*) AS n, {PLACE} AS m FROM t",
    f"WITH x AS (SELECT name, {PLACE} AS n FROM t GROUP BY name) SELECT x.n, t.id FROM x JOIN t ON t.name = x.name",
    f"SELECT name, n FROM (SELECT name, {PLACE} AS n FROM t GROUP BY name UNION ALL "
    f"SELECT name, {PLACE} FROM t GROUP BY name, id)",
]


@pytest.mark.parametrize("query", FORMS)
def test_spark_takes_what_was_completed_and_gives_one_result(spark: "SparkSession", query: str) -> None:
    analyzed = analyze_relational(query, {"t": parse_schema(SCHEMA)})
    rows = [(at, f"n{at % 5}", datetime(2026, 1, 1, at % 3), (at % 4,)) for at in range(40)]
    results = []
    for seed in range(3):
        Random(seed).shuffle(rows)
        frame = local_rows(spark, rows, SCHEMA).repartition(seed + 1)
        results.append(Counter(tuple(row) for row in apply_relational(analyzed, {"t": frame}).collect()))
    assert results[0] == results[1] == results[2] != Counter()


def test_a_view_follows_places_among_groups(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    fill(lake, seed=1)
    query = (
        "SELECT customer, item, count(*) AS n, row_number() OVER (PARTITION BY customer ORDER BY count(*) DESC) AS place "
        "FROM orders WHERE customer IS NOT NULL GROUP BY 1, item"
    )
    lake.view("places", query, lake.table("orders"), refresh_mode="incremental")
    lake.project.refresh("places")
    assert lake.found("places", ["customer", "item", "n", "place"]) == placed(lake)
    for step in range(3):
        churn(lake, Random(step), 100 + 10 * step)
        assert lake.project.refresh("places").report.record.rule == "restricted"
        assert lake.found("places", ["customer", "item", "n", "place"]) == placed(lake)
    for check in CHECKS:
        assert lake.project.check("places", check).passed


def placed(lake: Lake) -> Counter[tuple[object, ...]]:
    """The places of a customer's items, computed without Spark: more orders first, then by item."""
    orders = lake.rows(lake.path("orders")).select("customer", "item").collect()
    counts = Counter((row.customer, row.item) for row in orders if row.customer is not None)
    found: Counter[tuple[object, ...]] = Counter()
    for customer in {customer for customer, _ in counts}:
        items = sorted((-n, item) for (each, item), n in counts.items() if each == customer)
        found.update((customer, item, -n, place) for place, (n, item) in enumerate(items, 1))
    return found
