"""Words that Spark alone has, and the standard ones that are put in their places."""

import pytest

from backfill_assets.declare.declarations import delta_table, materialized_view
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import analyze
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.standard import standard
from backfill_assets.query.text_checks import check_text

STANDARD = [
    ("SELECT a FROM t -- |> WHERE x", "SELECT a FROM t -- |> WHERE x"),
    (
        "SELECT '|>' AS pipe, table FROM t WHERE (table IS NULL)",
        "SELECT '|>' AS pipe, table FROM t WHERE (table IS NULL)",
    ),
    ("TABLE t", "SELECT * FROM t"),
    *((text, text) for text in ("TABLE t x", "TABLE t.", "SELECT a FROM t WHERE a IN (TABLE t x)")),
    ("(TABLE a.b) UNION ALL TABLE `c d` ORDER BY x", "(SELECT * FROM a.b) UNION ALL SELECT * FROM `c d` ORDER BY x"),
    ("WITH w AS (TABLE t) TABLE w", "WITH w AS (SELECT * FROM t) SELECT * FROM w"),
    ("SELECT f(TABLE t) FROM t WHERE x IN (TABLE u)", "SELECT f(TABLE t) FROM t WHERE x IN (SELECT * FROM u)"),
    (
        "SELECT X 'F0' AS b, x.x FROM t WHERE a = 'x ' AND x\n'00' = x",
        "SELECT X'F0' AS b, x.x FROM t WHERE a = 'x ' AND x'00' = x",
    ),
    ("SELECT IDENTIFIER('a') x FROM Identifier(\"c.t\")", "SELECT `a` x FROM `c`.`t`"),
    ("FROM t |> AGGREGATE IDENTIFIER('max')(IDENTIFIER('`x y`.z')) AS m", "SELECT `max`(`x y`.`z`) AS m FROM t"),
    ("SELECT identifier, IDENTIFIER('a') !> 3 FROM t", "SELECT identifier, `a` <= 3 FROM t"),
    *(
        (text, text)
        for text in (
            f"SELECT IDENTIFIER({name}) FROM t" for name in ("'a' || 'b'", "'a b'", "'.a'", "'a.'", "'a`b`'", "b")
        )
    ),
    ("SELECT a FROM t WHERE a !> 1 AND b !< 2 AND c !=3", "SELECT a FROM t WHERE a <= 1 AND b >= 2 AND c !=3"),
    ("FROM t |> WHERE a = 1 |> WHERE b OR c", "SELECT * FROM t WHERE (a = 1) AND (b OR c)"),
    ("TABLE t |> SELECT a AS x |> WHERE x > 1", "SELECT * FROM (SELECT a AS x FROM t) WHERE (x > 1)"),
    ("FROM t |> EXTEND a + 1 AS b, b + 1 AS c", "SELECT *, a + 1 AS b, b + 1 AS c FROM t"),
    ("FROM t |> SELECT * EXCEPT (a) |> DROP b", "SELECT * EXCEPT (b) FROM (SELECT * EXCEPT (a) FROM t)"),
    ("FROM t |> AS x |> JOIN u AS y ON x.a = y.a |> SELECT y.b", "SELECT y.b FROM t AS x JOIN u AS y ON x.a = y.a"),
    ("FROM t AS x |> AS y |> SELECT y.a", "SELECT y.a FROM (SELECT * FROM t AS x) AS y"),
    ("FROM a, b |> JOIN c USING (k)", "SELECT * FROM (SELECT * FROM a, b) JOIN c USING (k)"),
    (
        "FROM t |> WHERE a > 1 |> LEFT JOIN u USING (a)",
        "SELECT * FROM (SELECT * FROM t WHERE (a > 1)) AS `t` LEFT JOIN u USING (a)",
    ),
    ("FROM t |> AGGREGATE count(*) AS n", "SELECT count(*) AS n FROM t"),
    ("FROM t |> AGGREGATE GROUP BY a", "SELECT a FROM t GROUP BY a"),
    (
        "FROM t |> AGGREGATE sum(x) AS s, count(*) n GROUP BY a % 3 AS k, upper(b) u, c",
        "SELECT a % 3 AS k, upper(b) AS u, c, sum(x) AS s, count(*) n FROM t GROUP BY a % 3, upper(b), c",
    ),
    ("FROM t |> ORDER BY a |> LIMIT 3", "SELECT * FROM t ORDER BY a LIMIT 3"),
    ("FROM t |> SELECT a, b ORDER BY c LIMIT 3", "SELECT a, b FROM t ORDER BY c LIMIT 3"),
    ("FROM t |> SELECT a |> ORDER BY a |> LIMIT 3", "SELECT * FROM (SELECT a FROM t) ORDER BY a LIMIT 3"),
    ("FROM t |> ORDER BY a |> OFFSET 2 |> LIMIT 3", "SELECT * FROM t ORDER BY a LIMIT 3 OFFSET 2"),
    (
        "FROM t |> ORDER BY a |> LIMIT 9 |> ORDER BY b |> LIMIT 3",
        "SELECT * FROM (SELECT * FROM t ORDER BY a LIMIT 9) AS `t` ORDER BY b LIMIT 3",
    ),
    (
        "FROM t |> SELECT row_number() OVER w AS n WINDOW w AS (ORDER BY a)",
        "SELECT row_number() OVER w AS n FROM t WINDOW w AS (ORDER BY a)",
    ),
    ("FROM t |> UNION ALL FROM u |> SELECT a", "SELECT a FROM ((SELECT * FROM t) UNION ALL SELECT * FROM u)"),
    (
        "SELECT a FROM t UNION SELECT a FROM u |> WHERE a > 1",
        "SELECT * FROM (SELECT a FROM t UNION SELECT a FROM u) WHERE (a > 1)",
    ),
    (
        "FROM t |> WHERE a > 1 EXCEPT TABLE u |> SELECT a",
        "SELECT a FROM ((SELECT * FROM t WHERE (a > 1)) EXCEPT SELECT * FROM u)",
    ),
    (
        "FROM t |> PIVOT (sum(x) FOR c IN ('a')) |> WHERE a > 1",
        "SELECT * FROM t PIVOT (sum(x) FOR c IN ('a')) WHERE (a > 1)",
    ),
    (
        "FROM t |> JOIN u USING (a) |> PIVOT (sum(x) FOR c IN ('a'))",
        "SELECT * FROM (SELECT * FROM t JOIN u USING (a)) PIVOT (sum(x) FOR c IN ('a'))",
    ),
    ("FROM t |> WHERE a", "SELECT * FROM t WHERE ((a))"),
    ("FROM t |> WHERE (a) |> WHERE b", "SELECT * FROM t WHERE (((a))) AND ((b))"),
    ("FROM t LATERAL VIEW explode(x) v AS e |> SELECT e", "SELECT e FROM t LATERAL VIEW explode(x) v AS e"),
    (
        "WITH w (k) AS (FROM t |> SELECT a), z AS (TABLE w) FROM z |> WHERE k IN (FROM u |> AGGREGATE max(b) AS m)",
        "WITH w (k) AS (SELECT a FROM t), z AS (SELECT * FROM w) SELECT * FROM z WHERE (k IN (SELECT max(b) AS m FROM u))",
    ),
]


@pytest.mark.parametrize(("query", "expected"), STANDARD)
def test_words_of_spark_are_put_in_standard_words(query: str, expected: str) -> None:
    assert standard(query) == expected
    assert standard(expected) == expected


ALIASES = [
    "t WHERE (flag)", "(SELECT flag FROM t) WHERE (flag)", "t CROSS JOIN u WHERE (flag)", "t, u WHERE ( flag )",
    "t HAVING (flag)",
]  # fmt: skip
CONDITIONS = [
    "t AS x WHERE (flag)", "t WHERE ((flag))", "t WHERE (t.flag)", "t WHERE (flag) AND id > 1", "t WHERE flag",
    "t WHERE (NOT flag)", "t JOIN u USING (id) WHERE (flag)",
]  # fmt: skip


@pytest.mark.parametrize("source", ALIASES)
def test_a_name_alone_in_brackets_is_refused_where_spark_reads_an_alias(source: str) -> None:
    with pytest.raises(QueryError, match="which Spark reads as an alias of the table") as caught:
        check_text(f"SELECT 1 AS one FROM {source}")
    assert caught.value.reason == "SYNTAX"
    assert "leave the brackets out: " in caught.value.hint


@pytest.mark.parametrize("source", CONDITIONS)
def test_conditions_in_other_brackets_are_conditions(source: str) -> None:
    check_text(f"SELECT 1 AS one FROM {source}")


REFUSED = [
    ("SYNTAX", "FROM t |> RENAME a AS b", "'RENAME' in line 1, column 11 after |>"),
    ("SYNTAX", "FROM t |>", "nothing on one side of |>"),
    ("SYNTAX", "|> WHERE a", "nothing on one side of |>"),
    ("SYNTAX", "FROM t |> WHERE", "'WHERE' in line 1, column 11 after |>"),
    ("SYNTAX", "FROM t |> AGGREGATE sum(a) AS s GROUP BY a,", "a comma too many"),
    (
        "SYNTAX",
        "FROM t |> WHERE a UNION TABLE t INTERSECT TABLE u",
        "several set operations follow each other in line 1, column 19",
    ),
    ("GROUP_POSITION", "FROM t |> AGGREGATE sum(a) AS s GROUP BY 1", "GROUP BY 1 in line 1, column 42 after |>"),
    ("GROUP_POSITION", "FROM t |> AGGREGATE sum(a) AS s GROUP BY 2 AS two", "GROUP BY 2 in line 1, column 42 after |>"),
    ("UNSUPPORTED", "FROM t\n|> SET a = 1", "SET in line 2, column 4 after |>"),
    ("NOT_DETERMINISTIC", "FROM t |> TABLESAMPLE (1 ROWS)", "TABLESAMPLE in line 1, column 11"),
    ("ORDER_NOT_TOTAL", "FROM t |> LIMIT 3", "LIMIT"),
    ("ORDER_NOT_TOTAL", "FROM t |> ORDER BY id |> LIMIT 5 |> OFFSET 2", "OFFSET"),
    ("NOT_DETERMINISTIC", "FROM t |> EXTEND rand() AS r", "rand()"),
    ("UNNAMED_COLUMN", "FROM t |> AGGREGATE count(*) GROUP BY id", "has no name"),
    ("SYNTAX", "WITH x AS (FROM t) AS y |> SELECT id", "read as: SELECT id FROM (WITH x AS (FROM t) AS y)"),
    ("SYNTAX", "FROM t JOIN |> SELECT id", "read as: SELECT id FROM (FROM t JOIN)"),
    (
        "SYNTAX",
        "FROM t |> AGGREGATE max(x) AS m GROUP BY a b c",
        "read as: SELECT a b c, max(x) AS m FROM t GROUP BY a b c",
    ),
]


LOST = [
    "FROM w |> JOIN v AS s ON w.a = s.a |> EXTEND 1 AS one |> SELECT s.a, one",
    "FROM w |> JOIN v AS s ON w.a = s.a |> WHERE w.b > 1 |> ORDER BY w.b |> LIMIT 3 |> SELECT s.a",
    "FROM v AS s |> JOIN w USING (a) |> DROP d |> SELECT `S`.a",
    "FROM w AS s |> AGGREGATE count(*) AS n GROUP BY a, s |> WHERE s.a > 5",
    "FROM t |> AGGREGATE max(struct(b AS a)) AS t GROUP BY a |> SELECT t.*",
    "FROM w AS s |> UNION ALL TABLE w |> SELECT s.a",
    "SELECT * FROM v WHERE EXISTS (FROM v |> JOIN t ON v.a = t.a |> EXTEND 1 AS one |> WHERE v.e = 100)",
    "SELECT * FROM v WHERE EXISTS (FROM v |> JOIN t ON v.a = t.a |> LIMIT 5 |> WHERE v.e = 100)",
    "SELECT * FROM v WHERE e IN (FROM v |> JOIN t ON v.a = t.a |> ORDER BY v.a |> LIMIT 1 |> SELECT v.e)",
    "SELECT a FROM u WHERE EXISTS (FROM u |> UNION ALL SELECT 7, 'z' |> WHERE u.a = 7)",
    "SELECT a FROM u WHERE EXISTS (VALUES (1) AS u(a) |> ORDER BY a |> LIMIT 1 |> WHERE u.a = 1)",
    "SELECT a FROM u WHERE EXISTS (SELECT a FROM u |> WHERE u.a = 1)",
    "SELECT a, (FROM v |> AGGREGATE max(e) AS m GROUP BY a |> WHERE v.a = 2 |> SELECT m) AS q FROM v",
    "FROM t |> SELECT a + 0 AS a, struct(b AS a) AS t |> SELECT t.a",
    "FROM t |> EXTEND struct(b AS k) AS t |> WHERE t.k > 2",
    "FROM t |> SELECT a + 1 AS k, struct(b AS k) AS t |> ORDER BY t.k DESC, k",
    "SELECT a, b FROM t WHERE EXISTS (FROM t |> SELECT a + 1 AS b |> WHERE b = t.b)",
    "SELECT * FROM u AS t WHERE EXISTS (FROM v AS t |> SELECT e AS a |> WHERE t.a = 2)",
    "FROM t |> EXTEND 1 AS one |> AS x |> WHERE t.a = 1",
    "FROM t |> EXTEND 1 AS one |> WHERE a IN (SELECT u.a FROM u WHERE u.b = t.b)",
    "FROM t |> EXTEND 1 AS one |> JOIN LATERAL (SELECT t.a + 1 AS q)",
    "FROM lake.t |> EXTEND 1 AS one |> SELECT lake.t.a",
    "FROM t |> UNPIVOT (v FOR k IN (a, b)) AS q |> EXTEND 1 AS one |> SELECT q.v",
    "FROM t |> EXTEND 1 AS one |> WHERE one = 1 ORDER BY t.a",
    "FROM t |> EXTEND 1 AS one |> WHERE (t.a = 1",
    "FROM t |> EXTEND 1 AS one |> WHERE a IN (SELECT t.a FROM v AS t WHERE)",
    "FROM t JOIN v s x |> AS y |> WHERE s.a = 1",
]
"""Spark knows of which table these columns are; a subquery does not, and the name may be a struct's, or one around it."""


@pytest.mark.parametrize("query", LOST)
def test_a_column_is_not_named_by_a_table_that_what_comes_before_it_is_not_of(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        standard(query)
    assert caught.value.reason == "UNSUPPORTED"
    assert "of no such table" in caught.value.message
    assert "|> AS" in caught.value.hint


@pytest.mark.parametrize("value", ["(1)", "((1))", "a, (2)", "(2) AS g", "( /* x */ 3) g", "1"])
def test_a_number_in_brackets_is_a_place_too(value: str) -> None:
    with pytest.raises(QueryError) as caught:
        standard(f"FROM t |> AGGREGATE sum(b) AS s GROUP BY {value}")
    assert caught.value.reason == "GROUP_POSITION"


def test_an_order_and_a_limit_are_two_operators_where_others_follow() -> None:
    with pytest.raises(QueryError, match=r"a limit without \|> in an ORDER BY in line 1, column 11"):
        standard("FROM t |> ORDER BY a, b LIMIT 3 |> OFFSET 1")


@pytest.mark.parametrize(("reason", "query", "said"), REFUSED)
def test_pipes_without_a_meaning_are_refused(reason: str, query: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        materialized_view("v", query=query, upstreams=[delta_table("t", path="lake/t", primary_key="id")])
    assert caught.value.reason == reason
    assert said in caught.value.message


def test_an_error_in_a_pipeline_shows_the_text_that_it_is_about() -> None:
    with pytest.raises(QueryError) as caught:
        materialized_view("v", query="FROM t |> SELECT a, b AS A", upstreams=[delta_table("t", path="lake/t")])
    assert "'A' in line 1, column 11 a second time" in caught.value.message
    assert "SELECT a, b AS A FROM t" in caught.value.message


def test_a_pipeline_follows_changes_by_the_rules_for_what_it_means() -> None:
    tables = {
        "t": (Column("id", "BIGINT"), Column("x", "BIGINT")),
        "u": (Column("id", "BIGINT"), Column("y", "BIGINT")),
    }
    query = "FROM t |> WHERE x > 1 |> JOIN u ON t.id = u.id |> SELECT t.id, x + y AS z"
    found = analyze(standard(query), tables, {"t": ("id",), "u": ("id",)})
    assert isinstance(found, RelationalQuery)
    assert found.steps(["t", "u"]).rule == "linear"


@pytest.mark.parametrize("name", ["not", "Select", "drop", "returning", "grant", "update", "glob"])
def test_words_of_statements_are_names_in_a_query(name: str) -> None:
    view = materialized_view("v", query=f"SELECT id AS {name} FROM t", upstreams=[delta_table("t", path="lake/t")])
    assert view.text == f"select id as {name} from t"


def test_a_name_that_is_a_word_of_a_clause_is_told_how_to_be_written() -> None:
    with pytest.raises(QueryError) as caught:
        materialized_view("v", query="SELECT id, outer FROM t", upstreams=[delta_table("t", path="lake/t")])
    assert caught.value.reason == "SYNTAX"
    assert "backquotes" in caught.value.hint
