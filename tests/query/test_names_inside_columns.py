"""Names of what is in a column, and of columns that a query does not write: their case counts, and none is missed."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import analyze, spelled
from backfill_assets.query.relational import RelationalQuery, analyze_relational

M = {"m": (Column("id", "BIGINT"), Column("tags", "MAP<STRING, STRING>"), Column("place", "STRUCT<City: STRING>"))}
TABLES = {
    "a": (Column("id", "BIGINT"), Column("x", "BIGINT"), Column("who", "STRING")),
    "c": (Column("id", "BIGINT"), Column("x", "BIGINT"), Column("who", "STRING")),
}
ONE = {"a": TABLES["a"]}
KEYS = {"a": ("id",), "c": ("id",), "m": ("id",)}


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT ID, Tags.Country AS c FROM m", "select id, tags.Country as c from m"),
        ("SELECT ID FROM m AS T WHERE T.Tags.Country = 'DE'", "select ID from m as t where t.tags.Country = 'DE'"),
        ("SELECT T.Id AS a FROM m AS T WHERE T.Id > 1", "select t.id as a from m as t where t.id > 1"),
        (
            "SELECT id FROM m UNION ALL SELECT id FROM m WHERE Tags.Country = 'A'",
            "select id from m union all select id from m where tags.Country = 'A'",
        ),
    ],
)
def test_keys_of_maps_keep_their_case_and_columns_do_not(query: str, kept: str) -> None:
    assert spelled(query, ["m"]).replace("ID", "id") == kept.replace("ID", "id")


def test_names_of_columns_that_a_query_gives_to_a_table_keep_their_case() -> None:
    query = "WITH s(Ident) AS (SELECT id FROM a) SELECT to_json(struct(*)) AS j FROM s JOIN a AS B ON s.Ident = b.id"
    assert "s (Ident)" in spelled(query, ["a"], whole=True)


def test_keys_of_maps_are_groups_of_their_own_and_fields_of_structs_are_not() -> None:
    both = "SELECT {0} AS c, {1} AS d, count(*) AS n FROM m GROUP BY {0}, {1}"
    for names, count in ((("tags.Country", "tags.country"), 2), (("place.City", "place.city"), 1)):
        query = analyze(both.format(*names), M)
        assert isinstance(query, AggregateQuery)
        assert len(query.groups) == count


@pytest.mark.parametrize("query", ["FROM c", "SELECT id FROM (FROM a EXCEPT FROM c)", "FROM a UNION ALL FROM c"])
def test_from_without_select_uses_all_columns(query: str) -> None:
    used = {name: columns for name, columns in TABLES.items() if f"FROM {name}" in query}
    made = analyze(query, used, KEYS)
    assert isinstance(made, RelationalQuery)
    assert made.used["c"] == {"id", "x", "who"}


def test_rows_are_not_told_apart_by_a_collation() -> None:
    for query in (
        "SELECT id, who COLLATE UTF8_LCASE AS w FROM a",
        "SELECT id, CAST(who AS STRING COLLATE UNICODE) AS w FROM a",
    ):
        with pytest.raises(QueryError, match="collation"):
            analyze(query, TABLES, KEYS)
    analyze("SELECT id, who COLLATE UTF8_BINARY AS w FROM a", ONE, KEYS)
    analyze("SELECT id FROM a WHERE who COLLATE UTF8_LCASE = 'ABC'", ONE, KEYS)


def test_parts_of_a_set_operation_with_other_numbers_of_columns_are_left_to_spark() -> None:
    made = analyze("SELECT id, x, who FROM a EXCEPT SELECT id FROM c", TABLES, KEYS)
    assert isinstance(made, RelationalQuery)


def test_a_query_that_is_nested_too_deeply_is_refused() -> None:
    many = " OR ".join(f"a.x = {number}" for number in range(1_000))
    assert analyze(f"SELECT a.id FROM a JOIN c ON a.id = c.id WHERE {many}", TABLES, KEYS).output_columns == ("id",)
    with pytest.raises(QueryError, match="nested too deeply"):
        analyze(f"SELECT a.id FROM a JOIN c ON a.id = c.id WHERE {'(' * 5_000}a.x = 1{')' * 5_000}", TABLES, KEYS)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT all, id FROM t", ("all", "id")),
        ("SELECT all AS x FROM t", ("x",)),
        ("SELECT all, id, count(*) AS n FROM t GROUP BY all, id", ("all", "id", "n")),
        ("SELECT ALL id FROM t", ("id",)),
    ],
)
def test_a_column_may_have_the_name_of_a_quantifier(query: str, names: tuple[str, ...]) -> None:
    columns = (Column("id", "BIGINT"), Column("all", "STRING"))
    assert analyze(query, {"t": columns}, {"t": ()}).output_columns == names


@pytest.mark.parametrize(("column", "rule"), [("all", "full"), ("every", "restricted")])
def test_all_groups_by_the_column_of_that_name_if_there_is_one(column: str, rule: str) -> None:
    columns = (Column("id", "BIGINT"), Column("k", "INT"), Column(column, "STRING"))
    query = analyze_relational("SELECT k, median(id) AS m FROM t GROUP BY ALL", {"t": columns})
    assert query.steps(["t"]).rule == rule
