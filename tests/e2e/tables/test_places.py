"""Places of a query that follow their changes one after the other, beside places that did not change, with Spark."""

from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

COLUMNS = {"a": "id INT, k INT, m INT", "b": "id INT, s STRING", "c": "id INT, n INT"}
OLD: Tables = {"a": [(1, 1, 1), (2, 2, 2)], "b": [(1, "x"), (2, "y")], "c": [(1, 10), (2, 20), (3, 30)]}


@pytest.mark.parametrize(
    ("query", "rule", "changes", "rows"),
    [
        pytest.param(
            "SELECT a.id, b.s, c.n FROM a JOIN b ON a.k = b.id JOIN c ON c.id = b.id",
            "linear",
            {"a": [(1, 1, 1), (3, 3, 3), (4, 2, 2)], "b": [(2, "y"), (3, "z"), (1, "v")]},
            3,
            id="two of three tables",
        ),
        pytest.param(
            "SELECT a.id, b.s, c.n FROM a JOIN b ON a.k <= b.id LEFT JOIN c ON c.id = a.m",
            "restricted",
            {"a": [*OLD["a"], (3, 1, 1), (4, 1, 3)], "b": [*OLD["b"], (3, "z")], "c": [(1, 10), (3, 31)]},
            11,
            id="a row of a key goes while linear places change, too",
        ),
        pytest.param(
            "SELECT a.id, b.s, c.n FROM a LEFT JOIN b ON a.k = b.id LEFT JOIN c ON c.id = a.m",
            "restricted",
            {"b": [(1, "new"), (2, "y")], "c": [(1, 11), (2, 21), (3, 30)]},
            2,
            id="a row of two touched keys",
        ),
        pytest.param(
            "SELECT a.id, b.s FROM a JOIN b ON a.k = b.id UNION ALL SELECT c.n, b.s FROM c JOIN b ON c.id = b.id",
            "linear",
            {"a": [*OLD["a"], (3, 2, 2)]},
            5,
            id="a table of one part of UNION ALL",
        ),
        pytest.param(
            "SELECT x.m, y.m AS other FROM a AS x JOIN a AS y ON x.k = y.k AND x.id < y.id",
            "linear",
            {"a": [(1, 1, 1), (3, 1, 1), (4, 1, 1), (5, 3, 1)]},
            3,
            id="both places of one table, equal rows",
        ),
        pytest.param(
            "SELECT b.s, count(*) AS n, max(a.id) AS most FROM a JOIN b ON a.k >= b.id "
            "WHERE a.id <= (SELECT max(c.n) FROM c WHERE c.id = a.m) GROUP BY b.s",
            "additive",
            {"a": [(2, 2, 2), (3, 3, 1), (4, 1, 3)], "b": [(1, "x"), (3, "z")], "c": [(1, 10), (2, 1), (3, 30)]},
            2,
            id="groups of rows whose key is touched",
        ),
        pytest.param(
            "SELECT count(*) AS n, sum(c.n) AS total FROM a JOIN c ON a.k = c.id",
            "additive",
            {"a": [(1, None, 1), (5, 9, 1)]},
            1,
            id="one group of no rows",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "SELECT 1 AS one, 'x' AS same FROM a JOIN b ON a.k = b.id",
            "linear",
            {"a": [(1, 1, 1), (2, 2, 2), (3, 2, 3)]},
            3,
            id="the same constants for each row",
        ),
        pytest.param(
            "SELECT c.id, c.n FROM c WHERE c.id IN (SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.m))",
            "restricted",
            {"b": [(2, "y"), (3, "z")]},
            1,
            id="a row goes that leads to a key",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "SELECT DISTINCT c.n FROM b JOIN a ON a.k = b.id JOIN c ON c.id = a.m WHERE b.s <> 'v'",
            "restricted",
            {"a": [(1, 1, 3), (2, 2, 2)], "b": [(1, "x"), (2, "v")]},
            1,
            id="rows between lead to a key as they were and as they are",
        ),
    ],
)
def test_tables_change_at_once(spark: "SparkSession", query: str, rule: str, changes: Tables, rows: int) -> None:
    tables = {name: parse_schema(schema) for name, schema in COLUMNS.items() if f" {name} " in f"{query} "}
    made = analyze_relational(query, tables)
    assert made.steps([*changes]).rule == rule
    with frames(spark, OLD, COLUMNS) as before, frames(spark, OLD | changes, COLUMNS) as now:
        expected = visible(made, now)
        assert expected.total() == rows
        assert after(made, before, now, [*changes]) == expected
