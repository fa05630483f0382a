"""Aggregate queries: their results, the SQL into which they are split, their text in one spelling, and every refusal."""

import pytest

from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import AggregateQuery, Call, analyze_aggregate, is_aggregate
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.refusals import AGGREGATE_HINTS, HINTS

COLUMNS = parse_schema("a INT, b INT, x STRING, at TIMESTAMP, ns ARRAY<INT>, st STRUCT<P: STRUCT<q: INT>>")
ORDERS = {"orders": (*METADATA_COLUMNS, *COLUMNS, *ERROR_COLUMNS)}
BOTH = {**ORDERS, "items": COLUMNS}


def analyze(query: str) -> AggregateQuery:
    return analyze_aggregate(query, ORDERS)


def refused(query: str) -> QueryError:
    with pytest.raises(QueryError) as raised:
        analyze_aggregate(query, ORDERS)
    return raised.value


def test_the_query_is_cut_into_a_part_per_row_and_a_part_per_group() -> None:
    query = analyze(
        "SELECT o.X, round(avg(a), 2) AS mean, sum(A) / count(*) AS per -- all\nFROM Orders o WHERE b > 0 GROUP BY x, b"
    )
    assert query.upstreams == ("orders",)
    assert query.output_columns == ("x", "mean", "per")
    assert query.key_columns == ("x", "__group_1")
    assert [column.name for column in query.columns] == ["a", "b", "x", "_error"]
    assert query.groups == ("x", "b")
    assert query.arguments == ("a",)
    assert query.calls == (Call("avg", 0), Call("sum", 0), Call("count", None))
    assert query.outputs == ("__group_0", "round(__call_0, 2)", "__call_1 / __call_2")
    assert query.rows_sql("t", "__sign") == (
        "SELECT x AS __group_0, b AS __group_1, a AS __arg_0, `o`.__sign "
        "FROM (SELECT `a`, `b`, `x`, `_error`, `__sign` FROM t WHERE _error IS NULL) AS `o` WHERE b > 0"
    )


def test_an_upstream_without_errors_is_read_as_it_is() -> None:
    query = analyze_aggregate("SELECT a, count(*) AS n FROM items GROUP BY a", {"items": COLUMNS})
    assert query.rows_sql("t") == "SELECT a AS __group_0 FROM (SELECT `a` FROM t) AS `items`"


def test_a_query_that_names_no_column_reads_none() -> None:
    query = analyze_aggregate("SELECT count(*) AS n FROM items GROUP BY 'all'", {"items": COLUMNS})
    assert query.rows_sql("t") == "SELECT 'all' AS __group_0 FROM (SELECT 1 FROM t) AS `items`"


@pytest.mark.parametrize(
    ("query", "groups", "key", "outputs"),
    [
        ("SELECT a + 1 AS d, sum(b) AS s FROM orders GROUP BY D", ("a + 1",), ("d",), ("__group_0", "__call_0")),
        ("SELECT sum(b) AS s, a + 1 AS d FROM orders GROUP BY 2", ("a + 1",), ("d",), ("__call_0", "__group_0")),
        ("SELECT a AS g, a + 1 AS d FROM orders GROUP BY 1", ("a",), ("g",), ("__group_0", "__group_0 + 1")),
        ("SELECT b AS a, max(x) AS m FROM orders GROUP BY a, b", ("a", "b"), ("__group_0", "a"), ("__group_1", "__call_0")),
        ("SELECT count(x) AS n FROM orders GROUP BY a", ("a",), ("__group_0",), ("__call_0",)),
        ("SELECT A, a AS again FROM orders GROUP BY orders.a, `a`", ("orders.a",), ("a",), ("__group_0", "__group_0")),
        ("SELECT 2 * (a + b) AS d FROM orders GROUP BY a + b", ("a + b",), ("__group_0",), ("2 * (__group_0)",)),
        ("SELECT a + b + 1 AS d FROM orders GROUP BY a + b", ("a + b",), ("__group_0",), ("__group_0 + 1",)),
        ("SELECT 2 * a + b AS d FROM orders GROUP BY a + b, a, b", ("a + b", "a", "b"), None, ("2 * __group_1 + __group_2",)),
        ("SELECT upper(st.P) AS u FROM orders GROUP BY st.p", ("st.p",), None, ("upper(__group_0)",)),
        ("SELECT o.st.p.q AS u FROM orders o GROUP BY st", ("st",), None, ("__group_0.p.q",)),
        ("SELECT 'k' AS k, date_trunc('k', min(at)) AS m FROM orders GROUP BY 'k'", ("'k'",), ("k",), None),
        ("SELECT date_trunc('DAY', at) AS day FROM orders GROUP BY Date_Trunc('DAY', at)", None, ("day",), ("__group_0",)),
        ("SELECT sum(a) AS s, s * 2 AS d FROM orders GROUP BY b", ("b",), None, ("__call_0", "s * 2")),
        ("SELECT `sum`(a) + SUM (A) AS s FROM orders GROUP BY b", None, None, ("__call_0 + __call_0",)),
        ("SELECT sum(size(filter(ns, a -> a > 1))) AS s FROM orders GROUP BY b", None, None, ("__call_0",)),
        ("SELECT filter(ns, a -> a>b) f FROM orders GROUP BY b, ns", None, None, ("filter(__group_1, a -> a>__group_0)",)),
        ("SELECT min(CASE WHEN a > 1 THEN x END) lowest FROM orders GROUP BY b", None, None, ("__call_0",)),
    ],
)  # fmt: skip
def test_groups_are_found_by_expression_name_and_number(
    query: str, groups: tuple[str, ...] | None, key: tuple[str, ...] | None, outputs: tuple[str, ...] | None
) -> None:
    analyzed = analyze(query)
    assert groups is None or analyzed.groups == groups
    assert key is None or analyzed.key_columns == key
    assert outputs is None or analyzed.outputs == outputs


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM orders", False),
        ("SELECT a FROM orders GROUP BY a", True),
        ("SELECT max_by(a, b) AS m FROM orders", True),
        ("SELECT sum(a) AS s FROM orders HAVING sum(a) > 1", True),
        ("SELECT a FROM orders UNION ALL SELECT sum(a) FROM orders", True),
        ("SELECT x LIKE ANY ('a', 'b') AS l FROM orders", False),
        ("SELECT aggregate(ns, 0, (acc, n) -> acc + n) AS s FROM orders", False),
        ("SELECT a, sum(b) AS s FROM orders GROUP BY a ORDER BY a LIMIT 1", True),
        ("SELEC a", False),
    ],
)
def test_a_query_aggregates_if_it_groups_or_calls_an_aggregate(query: str, expected: bool) -> None:
    assert is_aggregate(query) == expected


REFUSED = [
    ("AGGREGATE_DISTINCT", "SELECT count(DISTINCT a) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FILTER", "SELECT count(*) FILTER (WHERE a > 1) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT max_by(a, b) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT first(a) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT grouping(b) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT count(a, b) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT count() AS n FROM orders GROUP BY b"),
    ("AGGREGATE_FUNCTION", "SELECT builtin.sum(a) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_NESTED", "SELECT sum(max(a)) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_NESTED", "SELECT sum(a + count(*)) AS n FROM orders GROUP BY b"),
    ("AGGREGATE_PLACE", "SELECT b FROM orders WHERE sum(a) > 1 GROUP BY b"),
    ("AGGREGATE_PLACE", "SELECT b FROM orders GROUP BY b, sum(a)"),
    ("AGGREGATE_PLACE", "SELECT sum(a) AS s FROM orders GROUP BY s"),
    ("AGGREGATE_PLACE", "SELECT sum(a) AS s FROM orders GROUP BY 1"),
    ("AGGREGATE_UNION", "SELECT a FROM orders GROUP BY a UNION ALL SELECT sum(a) FROM orders"),
    ("GROUPING_SETS", "SELECT a FROM orders GROUP BY ROLLUP (a)"),
    ("GROUPING_SETS", "SELECT a FROM orders GROUP BY a WITH CUBE"),
    ("GROUPING_SETS", "SELECT a FROM orders GROUP BY GROUPING SETS ((a), (a, b))"),
    ("GROUPING_SETS", "SELECT a FROM orders GROUP BY b, CUBE (a)"),
    ("GROUP_POSITION", "SELECT a FROM orders GROUP BY 2"),
    ("GROUP_POSITION", "SELECT a FROM orders GROUP BY 0"),
    ("NO_GROUP_BY", "SELECT count(*) AS n FROM orders"),
    ("UNGROUPED_COLUMN", "SELECT a, b FROM orders GROUP BY a"),
    ("GROUP_FORM", "SELECT 2 * a + b AS d FROM orders GROUP BY a + b"),
    ("GROUP_FORM", "SELECT a - a + b AS d FROM orders GROUP BY a + b"),
    ("UNGROUPED_COLUMN", "SELECT sum(a) + a AS d FROM orders GROUP BY b"),
    ("HAVING", "SELECT a, count(*) AS n FROM orders GROUP BY a HAVING count(*) > 1"),
    ("WINDOW", "SELECT a, sum(b) OVER (PARTITION BY a) AS s FROM orders GROUP BY a, b"),
    ("WINDOW", "SELECT a, sum(sum(b)) OVER (ORDER BY a) AS s FROM orders GROUP BY a"),
    ("NOT_DETERMINISTIC", "SELECT a, sum(rand()) AS s FROM orders GROUP BY a"),
    ("NOT_DETERMINISTIC", "SELECT count(*) AS s FROM orders GROUP BY current_date()"),
    ("NOT_DETERMINISTIC", "SELECT count(*) AS s FROM orders WHERE at < 'today' GROUP BY a"),
    ("NOT_DETERMINISTIC", "SELECT count(*) AS s FROM orders GROUP BY at < 'today'"),
    ("JOIN", "SELECT a FROM orders JOIN items ON TRUE GROUP BY a"),
    ("SUBQUERY", "SELECT a FROM (SELECT a FROM orders) GROUP BY a"),
    ("SUBQUERY", "SELECT a, (SELECT 1) AS s FROM orders GROUP BY a"),
    ("CTE", "WITH t AS (SELECT 1) SELECT a FROM orders GROUP BY a"),
    ("ORDER_LIMIT", "SELECT a FROM orders GROUP BY a ORDER BY a"),
    ("DISTINCT", "SELECT DISTINCT a FROM orders GROUP BY a"),
    ("GENERATOR", "SELECT explode(ns) AS e FROM orders GROUP BY ns"),
    ("GENERATOR", "SELECT count(*) AS n FROM orders GROUP BY posexplode(ns)"),
    ("STAR", "SELECT * FROM orders GROUP BY a"),
    ("STAR", "SELECT a, max(struct(*)) AS m FROM orders GROUP BY a"),
    ("STAR", "SELECT a, count(*) AS n FROM orders WHERE hash(*) % 2 = 0 GROUP BY a"),
    ("UNSUPPORTED", "SELECT x COLLATE UNICODE_CI AS x, count(*) AS n FROM orders GROUP BY x COLLATE UNICODE_CI"),
    ("UNSUPPORTED", "SELECT a, max(CAST(x AS STRING COLLATE UTF8_LCASE)) AS m FROM orders GROUP BY a"),
    ("STAR", "SELECT count(orders.*) AS n FROM orders GROUP BY a"),
    ("SYNTAX", "SELECT a FROM orders GROUP BY"),
    ("UNKNOWN_COLUMN", "SELECT a, sum(zz) AS s FROM orders GROUP BY a"),
    ("UNKNOWN_COLUMN", "SELECT count(*) AS n FROM orders GROUP BY zz"),
    ("UNKNOWN_COLUMN", "SELECT a AS n, sum(n) AS s FROM orders GROUP BY a"),
    ("UNKNOWN_UPSTREAM", "SELECT a FROM oders GROUP BY a"),
    ("UNNAMED_COLUMN", "SELECT a, count(*) FROM orders GROUP BY a"),
    ("COLUMN_NAME", "SELECT count(*) AS __count FROM orders GROUP BY a"),
    ("DUPLICATE_COLUMN", "SELECT a, count(*) AS A FROM orders GROUP BY a"),
    ("UNSUPPORTED", "SELECT a FROM orders GROUP BY ALL"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "query"), REFUSED)
def test_what_is_not_maintained_is_refused_with_its_code_and_a_hint(reason: str, query: str) -> None:
    error = refused(query)
    assert error.reason == reason, error
    assert error.hint


def test_every_reason_has_a_case_but_the_one_that_needs_types() -> None:
    assert {reason for reason, _ in REFUSED} >= set(AGGREGATE_HINTS) - {"AGGREGATE_TYPE"}
    assert not set(HINTS) & set(AGGREGATE_HINTS)


def test_having_is_pointed_to_a_view_over_the_view() -> None:
    assert "row-wise view over this view" in refused("SELECT a FROM orders GROUP BY a HAVING a > 1").hint


def test_an_upstream_that_the_query_does_not_read_is_refused() -> None:
    with pytest.raises(QueryError, match="does not read 'items'"):
        analyze_aggregate("SELECT a FROM orders GROUP BY a", BOTH)


def test_white_space_comments_and_case_do_not_change_the_text() -> None:
    query = analyze("SELECT x, sum(a) AS Total FROM orders WHERE b > 1 GROUP BY x, 'K'")
    other = analyze("select X , SUM( A )\tas Total -- all\nfrom ORDERS where B>1 group  by X, 'K'")
    assert other.text == query.text == "select x, sum (a) as Total from orders where b > 1 group by x, 'K'"
    assert analyze(query.text) == query


MEANINGS = (
    "SELECT x, sum(a) AS s FROM orders GROUP BY x",
    "SELECT x, sum(a) AS S FROM orders GROUP BY x",
    "SELECT x, sum(b) AS s FROM orders GROUP BY x",
    "SELECT x, sum(a) AS s FROM orders GROUP BY x, b",
    "SELECT x, sum(a) AS s FROM orders GROUP BY x, 'b'",
    "SELECT x, sum(a) AS s FROM orders GROUP BY x, 'B'",
)


def test_what_changes_the_result_changes_the_text() -> None:
    assert len({analyze(query).text for query in MEANINGS}) == len(MEANINGS)


def test_collations_that_change_no_group_are_taken() -> None:
    exact = "SELECT x COLLATE UTF8_BINARY AS x, count(*) AS n FROM orders GROUP BY x COLLATE UTF8_BINARY"
    filtered = "SELECT a, count(*) AS n FROM orders WHERE x COLLATE UTF8_LCASE = 'x' GROUP BY a"
    found = [analyze_aggregate(query, {"orders": COLUMNS}) for query in (exact, filtered)]
    assert [each.output_columns for each in found] == [("x", "n"), ("a", "n")]
