"""Only Spark's own functions may be called, whatever else a query has before brackets."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.spark_functions import SPARK_FUNCTIONS
from backfill_assets.query.text_checks import check_text
from tests.support.nexmark import QUERIES as NEXMARK
from tests.support.queries_world import QUERIES as WORLD
from tests.support.tpch import QUERIES as TPCH

CALLED = [
    ("SELECT rate(x) AS y FROM t", "rate() in line 1, column 8"),
    ("SELECT id,\n  `my own`(x) AS y FROM t", "my own() in line 2, column 3"),
    ("SELECT default.rate() AS y FROM t", "rate() in line 1, column 16"),
    ("SELECT default.abs(x) AS y FROM t", "abs() in line 1, column 16"),
    ("SELECT other.system.builtin.abs(x) AS y FROM t", "abs()"),
    ("SELECT safe_divide(x, 2) AS y FROM t", "safe_divide() in line 1, column 8"),
    ("SELECT iff(x > 1, 1, 2) AS y FROM t", "iff()"),
    ("SELECT x FROM t LATERAL VIEW numbers(y) q AS x", "numbers()"),
    ("SELECT transform(a, x -> rate(x)) AS y FROM t", "rate()"),
    ("SELECT sum(rate(x)) OVER (PARTITION BY k) AS y FROM t", "rate()"),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE rate(u.x) = t.x)", "rate()"),
    ("WITH list(a) AS (SELECT list(id) FROM t) SELECT a FROM list", "list() in line 1, column 25"),
    ("FROM t |> EXTEND rate(x) AS y", "rate()"),
    ("SELECT rate(x).y AS y FROM t", "rate()"),
    ("SELECT default.window(at, '1 hour').start AS y FROM t", "window()"),
]


@pytest.mark.parametrize(("query", "called"), CALLED)
def test_a_function_of_somebodys_own_is_refused_where_it_is_called(query: str, called: str) -> None:
    with pytest.raises(QueryError) as found:
        check_text(query)
    assert found.value.reason == "UNKNOWN_FUNCTION"
    assert f"the query calls {called}" in found.value.message
    assert "nobody can tell what it reads" in found.value.hint


def test_a_name_that_is_nearly_one_of_sparks_is_told_so() -> None:
    with pytest.raises(QueryError) as found:
        check_text("SELECT cont(*) AS n FROM t")
    assert found.value.hint.startswith("did you mean count()?")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT builtin.abs(x) AS y, system.builtin.abs(x) AS z, `abs`(x) AS w, ABS(x) AS v FROM t",
        "WITH list(a) AS (SELECT id FROM t) SELECT a FROM list",
        "SELECT q.a FROM (SELECT id FROM t) AS format(a) JOIN (SELECT 1) AS q(a)",
        "SELECT columns.x FROM t LATERAL VIEW explode(arr) columns AS x",
        "SELECT timestampdiff(DAY, a, b) AS y, timestampadd(DAY, 1, a) AS c, try_cast(x AS INT) AS z, int(x) AS w FROM t",
        "SELECT extract(YEAR FROM a) AS q, overlay(a PLACING 'b' FROM 1) AS o, trim(BOTH FROM a) AS tt FROM t",
        "SELECT position('a' IN b) AS p, date_add(DAY, 1, d) AS x, dateadd(DAY, 1, d) AS y, x >>> 1 AS z FROM t",
        "SELECT CAST(x AS DECIMAL(10, 2)) AS d, CAST(x AS VARCHAR(3)) AS v, struct(a, b).a AS y, a:b::INT AS c FROM t",
        "SELECT count(*) FILTER (WHERE x > 1) AS c, sum(x) OVER (PARTITION BY k) AS s, list FROM t WHERE list IN (1, 2)",
        "SELECT t.x FROM t LEFT JOIN search ON (t.x = search.x) JOIN secret USING (x)",
        "SELECT x FROM t WHERE x LIKE ANY ('a', 'b') AND x NOT IN (1) AND (y) = (1) GROUP BY GROUPING SETS ((x), (x, y))",
        "FROM t |> EXTEND (x + 1) AS y |> WHERE (y > 1)",
        "SELECT window(at, '1 hour').start AS s, builtin.from_xml(x, 'a STRUCT<b: INT>').a.b AS b FROM t",
        *NEXMARK.values(),
        *TPCH.values(),
        *WORLD.values(),
    ],
)
def test_what_else_stands_before_brackets_is_no_function(query: str) -> None:
    check_text(query)


def test_names_are_small() -> None:
    assert len(SPARK_FUNCTIONS) > 500
    assert all(each == each.lower() for each in SPARK_FUNCTIONS)


@pytest.mark.parametrize("aggregates", ["sum(id) AS t, count(*) AS n", "sum(id) AS t", "sum(id)"])
def test_a_pivot_by_values_that_differ_in_case_alone_is_refused(aggregates: str) -> None:
    query = f"SELECT * FROM (SELECT k, s, id FROM a) PIVOT ({aggregates} FOR s IN ('a', {{}}))"
    with pytest.raises(QueryError, match="a second time") as found:
        check_text(query.format("'A'"))
    assert found.value.reason == "DUPLICATE_COLUMN"
    check_text(query.format("'A' AS large"))
    check_text("SELECT * FROM (SELECT k, s, id FROM a) PIVOT (sum(id) FOR (k, s) IN ((1, 'a'), (1, 'A')))")
