"""What Spark's grammar has and sqlglot's has not, or reads as something else."""

import pytest
from sqlglot import exp

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.query import analyze, spelled
from backfill_assets.query.resolved import spelled_node

T = {
    "t": (
        *(Column("a", "BIGINT"), Column("b", "BIGINT"), Column("at", "TIMESTAMP"), Column("s", "STRING")),
        *(Column("v", "VARIANT"), Column("from", "INT"), Column("select", "INT")),
    ),
    "u": (Column("a", "BIGINT"),),
}
SALES = "SELECT * FROM (SELECT a, b, s FROM t) PIVOT ({} FOR s IN ('x' AS x))"


def value_of(text: str) -> exp.Expr:
    query = f"SELECT {text} AS v FROM t"
    root = parse(query, tokenize(query))
    assert isinstance(root, exp.Select)
    value: exp.Expr = root.expressions[0].unalias()
    return value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a >>> 1 AS x, a >> 1 AS y, a << 1 AS z FROM t",
        "SELECT a >>> 1 AS x, sum(b) AS n FROM t GROUP BY a >>> 1",
        "SELECT CAST(NULL AS ARRAY<ARRAY<ARRAY<INT>>>) AS x FROM t WHERE a > 1",
        "SELECT timediff(HOUR, at, at) AS x, timestampdiff(DAY, at, at) AS y FROM t",
        "SELECT x.a, x.from AS f, x.select AS s FROM t AS x WHERE EXISTS (SELECT 1 FROM u WHERE u.a = x.a)",
        "SELECT v:A.b::INT AS x, (v:a[0]) AS y, v:`a b`['C'].d::STRING AS z FROM t",
        "SELECT v:A::INT AS x, count(*) AS n FROM t GROUP BY v:A::INT",
        SALES.format("sum(a)"),
        SALES.format("sum(a) AS n, max(b) AS m"),
        SALES.format("sum(a) / 2 + max(b) AS m, 1 AS one"),
    ],
)
def test_it_is_read(query: str) -> None:
    tables = {name: columns for name, columns in T.items() if f" {name}" in query}
    analyze(query, tables, dict.fromkeys(tables, ()))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT A, V:Name.First[0].Date::INT AS Z FROM t", "select a, v : Name.First[0].Date::int as Z from t"),
        ("SELECT T.V:K AS z, T.A FROM t JOIN u USING (A)", "select T.V : K as z, T.A from t join u using (A)"),
        ("SELECT V:`K k`['L'] AS z, A FROM t", "select v : `K k`['L'] as z, a from t"),
        (
            "SELECT CAST(S AS STRUCT<x: INT, y: MAP<INT, DATE>>) AS z FROM t",
            "select cast (s as struct < x : int, y : map < int, date > >) as z from t",
        ),
    ],
)
def test_the_case_of_a_path_into_a_variant_counts(query: str, text: str) -> None:
    assert spelled(query, ["t", "u"] if " u" in query else ["t"]) == text


def test_a_call_in_the_aggregates_of_a_pivot_is_seen() -> None:
    with pytest.raises(QueryError, match=r"rand\(\) in line 1, column 55"):
        analyze(SALES.format("sum(a) + rand()"), {"t": T["t"]}, {"t": ()})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a >> 1", "a >>> 1"),
        ("a", "+a"),
        ("s", "parse_json(s)"),
        ("CAST(a AS STRING)", "to_char(a, '999')"),
        ("to_char(a, '000')", "to_char(a, '999')"),
        ("max_by(a, b)", "max_by(a, b, 2)"),
        ("date_format(at, 'y')", "date_format(at, 'yyyy')"),
        ("from_unixtime(a, 'y')", "from_unixtime(a, 'yyyy')"),
        ("to_date(s, 'y')", "to_date(s, 'yyyy')"),
        ("to_timestamp(s, 'y')", "to_timestamp(s, 'yyyy')"),
        ("unix_timestamp(s, 'y')", "unix_timestamp(s, 'yyyy')"),
        ("to_unix_timestamp(s, 'y')", "to_unix_timestamp(s, 'yyyy')"),
    ],
)
def test_other_values_are_spelled_otherwise(one: str, other: str) -> None:
    assert spelled_node(value_of(one)) != spelled_node(value_of(other))
    assert spelled_node(value_of(one)) == spelled_node(value_of(one))


def test_nothing_is_logged_of_what_sqlglot_cannot_spell(caplog: pytest.LogCaptureFixture) -> None:
    spelled_node(value_of("to_char(a, '999')"))
    assert not caplog.records
