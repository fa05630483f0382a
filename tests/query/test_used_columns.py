"""The columns that a query may use: never less than it does use."""

import pytest
from sqlglot import exp

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.inlined import inlined
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.resolved import OCCURRENCE, resolved
from backfill_assets.query.used_columns import used_columns
from tests.support.tpch import COLUMNS as SCHEMAS
from tests.support.tpch import QUERIES

TABLES = {name: parse_schema(schema) for name, schema in SCHEMAS.items()}

COLUMNS = ("id", "Amount", "note", "two words")


@pytest.mark.parametrize(
    ("query", "used"),
    [
        ("SELECT id FROM t", {"id"}),
        ("SELECT ID, t.amount AS x FROM t", {"id", "Amount"}),
        ("SELECT id * 2 AS twice, f(id) * id AS y, g[1] * 3 AS z FROM t", {"id"}),
        ("SELECT count(*) AS n FROM t", set()),
        ("SELECT count( * ) FILTER (WHERE id > 0) AS n FROM t", {"id"}),
        ("SELECT a FROM u JOIN t USING (id)", {"id"}),
        ("SELECT 'note' AS a FROM t", {"note"}),
        ("SELECT `note` FROM t", {"note"}),
    ],
)
def test_a_column_is_used_if_its_name_is_a_word(query: str, used: set[str]) -> None:
    assert used_columns(tokenize(query), COLUMNS) == used | {"two words"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT t.* FROM t",
        "SELECT DISTINCT * FROM t",
        "SELECT id, * EXCEPT (id) FROM t",
        "SELECT struct(*) AS s FROM t",
        "SELECT count(t.*) AS n FROM t",
        "SELECT count(DISTINCT *) AS n FROM t",
        "SELECT id FROM t NATURAL JOIN u",
        "SELECT x FROM (TABLE t) AS s",
        "SELECT a FROM t PIVOT (sum(id) FOR k IN (1 AS a))",
        "SELECT id FROM t UNPIVOT (v FOR k IN (id))",
        "SELECT `i.*` FROM t",
    ],
)
def test_every_column_is_used_where_the_words_do_not_tell(query: str) -> None:
    assert used_columns(tokenize(query), COLUMNS) == set(COLUMNS)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_no_column_is_missing_that_the_names_of_a_query_mean(name: str) -> None:
    query = inlined(QUERIES[name])
    tokens = tokenize(query)
    root = parse(query, tokens)
    found = occurrences(root, list(TABLES))
    tree = resolved(root, found, TABLES)
    assert tree is not None
    tables = {table.alias_or_name: found[table.meta[OCCURRENCE]].upstream for table in _tables(tree)}
    meant = {
        (tables[column.table], column.name.lower()) for column in tree.find_all(exp.Column) if column.table in tables
    }
    assert meant
    for table, column in meant:
        assert column in used_columns(tokens, [each.name for each in TABLES[table]])


def _tables(tree: exp.Expr) -> list[exp.Table]:
    return [table for table in tree.find_all(exp.Table) if OCCURRENCE in table.meta]
