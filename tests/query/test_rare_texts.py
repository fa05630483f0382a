"""Texts that sqlglot reads, and that are rarely meant: types with commas after `::`, and clauses of other systems."""

import pytest

from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column, parse_schema
from backfill_assets.query.query import analyze, spelled
from backfill_assets.query.relational import analyze_relational
from backfill_assets.query.rowwise import RowwiseQuery

T = (
    *METADATA_COLUMNS,
    *parse_schema("a INT, x STRING, at TIMESTAMP, items ARRAY<STRUCT<Name: STRING>>"),
    *ERROR_COLUMNS,
)


def refused(query: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        analyze(query, {"t": T})
    return caught.value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT *, x::STRUCT<p: INT, q: INT> AS s FROM t",
        "SELECT count(*) AS n, x::STRUCT<p: INT, q: INT> AS s FROM t GROUP BY 2",
        "SELECT count(*) AS n, a FROM t GROUP BY a, x::MAP<STRING, INT>['k']",
    ],
)
def test_a_type_with_commas_is_written_into_a_cast(query: str) -> None:
    error = refused(query)
    assert (error.reason, "cannot be split at its commas" in error.message) == ("SYNTAX", True)
    assert error.hint == "write CAST(x AS type) for x::type"


def test_a_type_with_commas_changes_nothing_where_nothing_is_cut() -> None:
    query = analyze("SELECT a, x::STRUCT<p: INT, q: INT> AS s FROM t", {"t": T})
    assert isinstance(query, RowwiseQuery)
    assert "SELECT a, x::STRUCT<p: INT, q: INT> AS s, " in query.branches[0].sql


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("SELECT a FROM t FOR UPDATE", "LOCKS"),
        ("SELECT a INTO b FROM t", "INTO"),
        ("SELECT a FROM t CONNECT BY a = 1", "CONNECT"),
        ("SELECT a FROM t UNION ALL (SELECT a FROM t WITH ORDINALITY)", "ORDINALITY"),
    ],
)
def test_a_clause_of_another_system_is_refused_by_its_name(query: str, clause: str) -> None:
    error = refused(query)
    assert (error.reason, error.message) == (
        "UNSUPPORTED",
        f"the query has a clause that cannot be maintained: {clause}",
    )
    assert error.hint


@pytest.mark.parametrize("query", ["(t) UNION ALL SELECT a FROM t", "SELECT a FROM t UNION ALL (PIVOT t ON a)"])
def test_what_is_put_together_is_made_of_queries(query: str) -> None:
    error = refused(query)
    assert (error.reason, error.message) == ("NOT_A_QUERY", "a part of the query is not a SELECT")
    with pytest.raises(QueryError, match="the query cannot be read") as caught:
        spelled(query, ["t"], whole=True)
    assert caught.value.reason == "SYNTAX"


@pytest.mark.parametrize("part", ["(FROM t)", "SELECT * FROM t JOIN t AS u ON t.a = u.a"])
def test_parts_of_which_a_star_gives_more_columns_are_left_to_spark(part: str) -> None:
    query = f"SELECT t.at FROM t JOIN t AS u ON t.a > u.a UNION ALL {part}"
    found = analyze(query, {"t": parse_schema("at TIMESTAMP, a INT")}, {"t": ("a",)})
    assert found.output_columns == ("at",)


def test_a_semicolon_ends_a_query_and_begins_no_other() -> None:
    query = "SELECT a FROM t"
    assert analyze(f"{query};", {"t": T}) == analyze(f"{query} ; ;", {"t": T}) == analyze(query, {"t": T})
    assert refused(f"{query}; {query}").message == "the query has several statements"
    assert refused(";").message == "the query is empty"


def test_a_field_of_what_is_computed_gives_its_own_name() -> None:
    query = analyze("SELECT items[0].Name, struct(a AS b).b FROM t", {"t": T})
    assert isinstance(query, RowwiseQuery)
    assert query.output_columns == ("Name", "b")


@pytest.mark.parametrize(
    ("query", "name"), [("SELECT * EXCEPT (_error) FROM t", "_error"), ("SELECT t.* EXCEPT (b) FROM t", "b")]
)
def test_a_star_is_without_columns_that_it_has(query: str, name: str) -> None:
    error = refused(query)
    assert (error.reason, f"has no column {name!r}" in error.message) == ("UNKNOWN_COLUMN", True)


def test_columns_of_a_key_that_would_be_hidden_under_one_name_are_refused() -> None:
    columns = tuple(Column(name, "INT") for name in ("_id", "__id", "x"))
    with pytest.raises(QueryError, match=r"the key's columns \(_id, __id\) would have the same hidden name") as caught:
        analyze("SELECT x FROM t", {"t": columns}, {"t": ("_id", "__id")})
    assert caught.value.reason == "COLUMN_NAME"
    query = "SELECT _id AS one, `__id` AS other, x FROM t"
    assert analyze(query, {"t": columns}, {"t": ("_id", "__id")}, ("one", "other")).key_columns == ("one", "other")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT :p AS p FROM t", "the parameter :p in line 1, column 8"),
        ("SELECT a, @@x FROM t", "the parameter @@x in line 1, column 11"),
        ("SELECT a, @x, b FROM t", "the parameter @x in line 1, column 11"),
        ("SELECT a FROM t\nWHERE a > ${least}", "the parameter ${least} in line 2, column 11"),
        ("SELECT abs({x}) FROM t", "the parameter {x} in line 1, column 12"),
        ("SELECT a FROM t WHERE a IN (?, ?)", "the parameter ? in line 1, column 29"),
        ("SELECT a FROM t WHERE a = :y", "the parameter :y in line 1, column 27"),
        ("SELECT a, from_json(x, 'x INT'):y, :z FROM t", "the parameter :z in line 1, column 36"),
    ],
)
def test_a_parameter_is_refused_as_it_is_written_with_its_place(query: str, said: str) -> None:
    error = refused(query)
    assert (error.reason, said in error.message) == ("UNSUPPORTED", True), error.message
    with pytest.raises(QueryError) as followed:
        analyze_relational(query, {"t": T})
    assert followed.value.message == error.message
