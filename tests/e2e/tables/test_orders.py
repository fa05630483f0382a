"""Orders that are completed by columns that the text does not name: Spark gives one result, and views follow it."""

import re
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
from tests.support.settings import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

SCHEMAS = {
    "t": "id BIGINT, name STRING, at TIMESTAMP, many MAP<STRING, INT>",
    "u": "id BIGINT, x INT",
    "p": "id STRING",
}
T = [(at, f"n{at % 5}", datetime(2026, 1, 1, at % 3), {"k": at}) for at in range(30)]
U = [(at % 10, at % 2) for at in range(30)]
P = [(f"{'0' * (at % 3)}{at}",) for at in range(9)]
FORMS = [
    "SELECT id, name, s.x FROM t JOIN (SELECT * FROM u WHERE id < 9 ORDER BY x DESC LIMIT 5) AS s USING (id)",
    "SELECT o.name, x FROM t AS o JOIN u USING (id) QUALIFY ntile(3) OVER w = 1 WINDOW w AS (ORDER BY at)",
]
MORE = [
    "SELECT date(at) AS day, name, row_number() OVER (ORDER BY max(at)) AS n FROM t GROUP BY day, name",
    "SELECT name, row_number() OVER (PARTITION BY name ORDER BY at) AS n FROM t",
    "SELECT p.id AS other, row_number() OVER (ORDER BY u.id) AS n FROM u JOIN p USING (id)",
    "SELECT sum(id) OVER v AS s FROM u WINDOW w AS (ORDER BY x ROWS 1 PRECEDING), v AS w",
    "SELECT id, nth_value(x, 2) OVER (PARTITION BY id ORDER BY x) AS s, first(id) OVER (ORDER BY x) AS f FROM u",
    "SELECT sum(max(x)) OVER (ORDER BY x ROWS 1 PRECEDING) AS id FROM u GROUP BY x, id",
    "SELECT posexplode(array(x, 1)) AS (p, v) FROM u ORDER BY p LIMIT 9",
    "SELECT * FROM u ORDER BY x LIMIT 4",
    "SELECT * EXCEPT (many) FROM t NATURAL JOIN u ORDER BY at LIMIT 7",
    "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY name ORDER BY at) = 1",
    "SELECT name FROM (SELECT id, name, at FROM t) QUALIFY lag(id, 1, 9) OVER (ORDER BY at) < 9",
    "SELECT sum(id) OVER w AS s, rank() OVER v AS r FROM u WINDOW w AS (ORDER BY x ROWS 2 PRECEDING), v AS (ORDER BY x)",
    "SELECT name, count(*) AS n FROM t GROUP BY name QUALIFY row_number() OVER (ORDER BY n DESC) < 3",
    "SELECT name, row_number() OVER (DISTRIBUTE BY name SORT BY at) AS n FROM t",
    "SELECT id, many FROM t ORDER BY at LIMIT 3",
    "SELECT id, map_filter(many, (k, v) -> v % 2 = 0) AS even FROM t ORDER BY at LIMIT 3",
    "SELECT id, parse_json(to_json(many)) AS many FROM t ORDER BY at LIMIT 3",
    "SELECT id, lag(id, 1, 0) OVER (ORDER BY at) AS n FROM (SELECT id, at, parse_json(string(id % 3)) AS many FROM t)",
    "SELECT id, sum(x) OVER (PARTITION BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM u",
]


@pytest.mark.parametrize("query", [*FORMS, *(pytest.param(each, marks=pytest.mark.full) for each in MORE)])
def test_spark_gives_one_result_however_the_rows_come(spark: "SparkSession", query: str) -> None:
    named = {
        name: rows for name, rows in (("t", T), ("u", U), ("p", P)) if re.search(rf"\b(FROM|JOIN) {name}\b", query)
    }
    key = ("id",) if "many" in query and query.startswith("SELECT id, ") else ()
    analyzed = analyze_relational(query, {name: parse_schema(SCHEMAS[name]) for name in named}, key)
    results = []
    for seed in range(3):
        frames = {
            name: spark.createDataFrame(Random(seed).sample(rows, len(rows)), SCHEMAS[name]).repartition(seed + 1)
            for name, rows in named.items()
        }
        results.append(Counter(repr(row) for row in apply_relational(analyzed, frames).collect()))
    assert results[0] == results[1] == results[2] != Counter()


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_a_view_of_the_latest_rows_follows_changes(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("orders", [{"id": at, "amount": at % 3, "note": f"n{at % 4}"} for at in range(1, 30)])
    query = "SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY note ORDER BY amount DESC) = 1"
    lake.view("latest", query, lake.table("orders"), refresh_mode="incremental")
    lake.project.refresh("latest")
    assert lake.found("latest", ["id", "amount", "note"]) == latest(lake)
    for change in (
        "UPDATE {t} SET amount = 9 WHERE id IN (5, 9, 13)",
        "DELETE FROM {t} WHERE id = 5",
        "UPDATE {t} SET note = 'n2' WHERE id = 9",
    ):
        lake.sql("orders", change)
        before = lake.found("latest", ["id", "amount", "note"])
        assert lake.project.refresh("latest").report.record.rule == "restricted"
        assert before != lake.found("latest", ["id", "amount", "note"]) == latest(lake)
    lake.passes("latest", CHECKS)


def latest(lake: Lake) -> Counter[tuple[object, ...]]:
    """The row of each note with the largest amount, and of these with the smallest number, without Spark."""
    found: dict[str, tuple[int, int, str]] = {}
    for row in lake.rows(lake.path("orders")).collect():
        best = found.get(row.note)
        if best is None or (-row.amount, row.id) < (-best[1], best[0]):
            found[row.note] = (row.id, row.amount, row.note)
    return Counter(found.values())
