"""Queries with the pipe operator, and what is made of them, are one query to Spark; views follow them."""

import random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.standard import standard
from tests.support.local_rows import local_rows
from tests.support.settings import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

QUERIES = [
    "TABLE t |> WHERE t.a = 1",
    "FROM t |> WHERE a > 0 |> ORDER BY b, c |> LIMIT 3 |> WHERE t.a < 3 |> DROP c |> SELECT t.b",
    "FROM t AS y |> EXTEND 1 AS one |> AS t |> WHERE t.a IN (SELECT y.a FROM u AS y) |> SELECT t.one",
    "FROM t |> EXTEND 1 AS one |> UNION ALL SELECT t.*, 2 FROM t |> SELECT a, one",
    "FROM t |> AGGREGATE sum(b) s, count(*) AS n GROUP BY a + 1 AS y, c z",
    "FROM t |> AGGREGATE sum(b) AS a GROUP BY a AS g |> ORDER BY a |> LIMIT 2",
    "FROM t |> AGGREGATE GROUP BY a",
    "FROM t |> AGGREGATE sum(b) AS s, max(a) + 1 AS m",
    "FROM t |> WHERE a = 1 UNION ALL FROM t |> SELECT a",
    "TABLE t |> UNION ALL SELECT a, b, c FROM t WHERE a = 4 |> WHERE a > 1",
    "SELECT a FROM t UNION ALL SELECT a FROM u |> WHERE a = 2",
    "FROM t |> SELECT a |> UNION SELECT 3 INTERSECT SELECT a FROM u",
    "FROM t |> MINUS TABLE t |> UNION ALL TABLE t",
    "FROM t |> EXCEPT ALL (FROM t |> WHERE a = 1) |> SELECT a",
    "FROM t |> WHERE a > 0 EXCEPT ALL SELECT 1, 2, 'a' |> SELECT a",
    "FROM t |> JOIN u USING (a) |> SELECT a, t.b, u.d",
    "FROM t |> JOIN u ON t.a = u.a |> WHERE t.b = 2 |> SELECT t.a AS x, u.d",
    "FROM t |> WHERE a = 1 |> JOIN u ON t.a = u.a |> SELECT u.d",
    "FROM t, u |> WHERE t.a = u.a |> SELECT d",
    "FROM t, u |> JOIN t AS w ON w.c = d |> AGGREGATE count(*) AS n",
    "FROM t |> LEFT JOIN u USING (a) |> AS j |> SELECT j.a, j.d",
    "FROM t |> CROSS JOIN u AS k |> SELECT k.d",
    "FROM t |> JOIN LATERAL (SELECT t.a + 1 AS q) |> SELECT q",
    "FROM t AS y |> AS x |> WHERE x.a = 1",
    "FROM t |> DROP b, c",
    "FROM t |> SELECT a AS x, b |> DROP X",
    "FROM t |> SELECT * EXCEPT (b) |> WHERE a = 1",
    "FROM t |> EXTEND a + 1 AS e, e + 1 AS f",
    "FROM t |> EXTEND sum(b) OVER (PARTITION BY a) AS s |> WHERE s > 2",
    "FROM t |> SELECT a, row_number() OVER w AS n WINDOW w AS (PARTITION BY a ORDER BY b) |> WHERE n = 1",
    "FROM t |> SELECT DISTINCT a",
    "FROM t |> SELECT a AS x ORDER BY t.b LIMIT 9",
    "FROM t |> SELECT b AS a |> ORDER BY a + 0 |> LIMIT 2",
    "FROM t |> ORDER BY a, b |> LIMIT 3 |> ORDER BY b DESC |> LIMIT 1",
    "FROM t |> ORDER BY a, b |> OFFSET 1 |> LIMIT 1",
    "FROM t |> ORDER BY a, b |> LIMIT 3 |> OFFSET 1",
    "FROM t |> PIVOT (sum(b) AS s FOR c IN ('a', 'b'))",
    "FROM t |> JOIN u USING (a) |> SELECT a, b, c |> PIVOT (sum(b) FOR c IN ('a' p, 'b' q)) |> WHERE a > 0",
    "FROM t |> SELECT a IS DISTINCT FROM b AS x |> WHERE x",
    "FROM t |> SELECT a = 1 AS x |> WHERE (x)",
    "FROM t |> SELECT a, b |> UNPIVOT INCLUDE NULLS (v FOR k IN (a, b)) |> WHERE v > 1",
    "FROM t LATERAL VIEW explode(array(a, b)) v AS e |> WHERE e > 1 |> SELECT v.e",
    "SELECT a FROM t WHERE a IN (FROM u |> SELECT a) AND a !> 9 AND a !< 1",
    "FROM t |> WHERE EXISTS (FROM u |> WHERE u.a = t.a)",
    "FROM t |> SELECT a |> WHERE a > (FROM u |> AGGREGATE min(a))",
    "WITH w (k) AS (FROM t |> WHERE a = 1 |> SELECT a), z AS (TABLE w) FROM z |> SELECT k",
    "FROM (FROM t |> SELECT a) AS z |> SELECT z.a",
    "VALUES (0), (1) lhs(a) |> JOIN u USING (a) |> SELECT lhs.a, d",
    "FROM t SELECT a |> WHERE a = 1",
]


def _tables(spark: "SparkSession") -> None:
    rows = [(1, 2, "a"), (1, 3, "b"), (2, 2, "a"), (4, None, "z"), (4, None, "z")]
    local_rows(spark, rows, "a INT, b INT, c STRING").createOrReplaceTempView("t")
    local_rows(spark, [(1, "p"), (2, "q"), (2, "r")], "a INT, d STRING").createOrReplaceTempView("u")


def _assert_same(spark: "SparkSession", query: str) -> int:
    written = standard(query)
    assert written != query
    expected, found = (spark.sql(each) for each in (query, written))
    assert (found.columns, found.dtypes) == (expected.columns, expected.dtypes), query
    rows = expected.collect()
    assert sorted(map(repr, found.collect())) == sorted(map(repr, rows)), query
    return len(rows)


@pytest.mark.full
def test_spark_gives_the_same(spark: "SparkSession") -> None:
    _tables(spark)
    empty = [query for query in QUERIES if not _assert_same(spark, query)]
    assert empty == []


def _drawn(draw: random.Random) -> str:
    """A pipeline of some operators, each over the columns that there are: a, b, c."""
    parts = [draw.choice(["FROM t", "TABLE t", "SELECT a, b, c FROM t WHERE a < 9", "FROM t AS s"])]
    for at in range(draw.randint(2, 7)):
        bound = draw.randint(1, 4)
        parts.append(
            draw.choice([
                f"WHERE a {draw.choice(['<', '>=', '!>', '<=>'])} {bound}",
                f"WHERE b > {bound} OR c = 'a'",
                f"SELECT b AS a, a + {bound} AS b, c",
                "SELECT DISTINCT a, b, c",
                f"EXTEND a * {bound} AS e |> DROP b |> SELECT a, e AS b, c",
                "EXTEND max(b) OVER (PARTITION BY c) AS e |> DROP a |> SELECT e AS a, b, c",
                "AGGREGATE sum(b) AS n, max(c) AS c GROUP BY a % 3 AS b |> SELECT n AS a, b, c",
                "AGGREGATE count(*) AS b GROUP BY a, c |> SELECT CAST(a AS BIGINT) AS a, b, c",
                f"JOIN u AS u{at} USING (a) |> SELECT a, b, d AS c",
                f"AS x{at} |> LEFT JOIN u AS u{at} ON x{at}.a = u{at}.a |> SELECT x{at}.a, b, coalesce(d, c) AS c",
                "UNION ALL FROM t",
                "EXCEPT (FROM t |> WHERE b = 2)",
                "INTERSECT ALL (TABLE t |> UNION ALL TABLE t)",
                "WHERE a IN (FROM u |> SELECT a)",
                f"ORDER BY a, b, c |> LIMIT {bound + 2}",
                f"ORDER BY b DESC, a, c |> OFFSET 1 |> LIMIT {bound + 2}",
            ])
        )
    return " |> ".join(parts)


@pytest.mark.parametrize("seed", seeds(4, 400))
def test_spark_gives_the_same_of_a_pipeline_that_is_drawn(spark: "SparkSession", seed: int) -> None:
    _tables(spark)
    _assert_same(spark, _drawn(random.Random(seed)))
