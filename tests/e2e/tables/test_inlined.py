"""Queries with WITH, and what is made of them, are one query to Spark."""

from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.inlined import inlined
from tests.support.local_rows import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.full]

QUERIES = [
    "WITH t AS (SELECT * FROM t WHERE id > 1) SELECT * FROM t JOIN t AS other USING (id)",
    "WITH a(k, v) AS (SELECT id, x FROM t), b AS (SELECT k, sum(v) AS s FROM a GROUP BY k) SELECT * FROM a JOIN b USING (k)",
    "WITH p AS (SELECT * FROM t), t AS (SELECT 1 AS id) SELECT p.x, t.id FROM p JOIN t USING (id)",
    "WITH p AS (SELECT * FROM t) SELECT * FROM (WITH t AS (SELECT 2 AS id) SELECT p.x FROM p JOIN t USING (id)) AS s",
    "WITH p AS (SELECT id FROM t), q AS (WITH p AS (SELECT 1 AS id) SELECT * FROM p) SELECT p.id, q.id AS one FROM p, q",
    "WITH `left` AS (SELECT id FROM t), `two words` AS (SELECT id FROM u) SELECT * FROM `left` JOIN `two words` USING (id)",
    "WITH first AS (SELECT id, x FROM t ORDER BY x, id LIMIT 2), last AS (SELECT id FROM u) SELECT * FROM first, last l",
    "WITH p (SELECT id, x FROM t) SELECT id, e FROM P LATERAL VIEW explode(array(x)) v AS e WHERE p.id IN (SELECT id FROM p)",
    "WITH p AS (SELECT id FROM t UNION ALL SELECT id FROM u) SELECT id FROM p EXCEPT SELECT id FROM p WHERE id < 2",
    "WITH p AS (SELECT id, x FROM t) SELECT * FROM p PIVOT (sum(x) FOR id IN (1, 2))",
    "WITH p AS (SELECT id, x FROM t) (SELECT id FROM p ORDER BY id LIMIT 1) UNION ALL (SELECT x FROM p ORDER BY x LIMIT 1)",
    "SELECT id, (WITH m AS (SELECT max(x) AS x FROM t) SELECT x FROM m) AS most FROM u",
    "SELECT id FROM u WHERE EXISTS (WITH m AS (SELECT id FROM t) SELECT 1 FROM m WHERE m.id = u.id)",
    "WITH s AS (SELECT id, sum(x) AS n FROM t GROUP BY id) SELECT id FROM s WHERE n = (SELECT max(n) FROM s)",
    "WITH p AS (/* ) */ SELECT id, ')' AS b FROM t -- )\n) SELECT * FROM p AS q(x, y) WHERE q.y = ')'",
    "WITH v AS (SELECT * FROM VALUES (1, 'a'), (2, 'b') AS w(id, name)) SELECT t.x, v.name FROM t JOIN v USING (id)",
    "WITH p AS (FROM t SELECT id, x) SELECT id, rank() OVER (PARTITION BY id ORDER BY x) AS r FROM p",
    "WITH a AS (SELECT id FROM t), b AS (SELECT id FROM a), c AS (SELECT a.id FROM a JOIN b USING (id)) SELECT * FROM c, b",
]


@pytest.mark.parametrize("query", QUERIES)
def test_spark_gives_the_same(spark: "SparkSession", query: str) -> None:
    local_rows(spark, [(1, 5), (2, 6), (2, 7), (3, None)], "id INT, x INT").createOrReplaceTempView("t")
    local_rows(spark, [(2,), (3,), (9,)], "id INT").createOrReplaceTempView("u")
    plain = inlined(query)
    assert plain != query
    expected, found = (spark.sql(each) for each in (query, plain))
    assert (found.columns, found.dtypes) == (expected.columns, expected.dtypes)
    rows = expected.collect()
    assert sorted(map(repr, found.collect())) == sorted(map(repr, rows)) != []
