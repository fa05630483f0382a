"""How Spark may read what a query names: only some of its rows, or several times."""

import pytest

from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.place_reads import reads_again
from tests.query.test_relational import analyzed


@pytest.mark.parametrize(
    ("condition", "in_part"),
    [
        ("t.id IN (SELECT id FROM u)", ""),
        ("EXISTS (SELECT 1 FROM u)", "u"),
        ("NOT EXISTS (SELECT 1 FROM u WHERE id = 3)", "u"),
        ("t.id = 1 OR EXISTS (SELECT 1 FROM T AS x JOIN u ON x.id = u.id)", "tu"),
        ("EXISTS (SELECT 1 FROM best)", "tu"),
    ],
)
def test_of_what_a_query_only_asks_whether_it_exists_some_rows_may_be_read(condition: str, in_part: str) -> None:
    query = f"WITH best AS (SELECT id FROM u) SELECT t.id FROM t JOIN best USING (id) WHERE {condition}"
    assert analyzed(query).read_in_part == set(in_part)


@pytest.mark.parametrize(
    "query",
    [
        "WITH w AS (SELECT id FROM t) SELECT x.id FROM w AS x JOIN W AS y USING (id)",
        "WITH w AS (SELECT id FROM t), v AS (SELECT id FROM w) SELECT id FROM v UNION ALL SELECT id FROM w",
        "SELECT id, (SELECT max(id) FROM u WHERE u.id > t.id) AS m FROM t",
        "SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE u.name > t.name)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "SELECT t.id, l.m FROM t, LATERAL (SELECT max(id) AS m FROM u WHERE u.id > t.id) AS l",
        "SELECT id FROM (SELECT id, (SELECT max(id) FROM u WHERE u.id > t.id) AS m FROM t) AS s",
    ],
)
def test_a_name_that_is_used_twice_and_a_subquery_in_an_expression_may_be_read_again(query: str) -> None:
    assert reads_again(parse(query, tokenize(query)))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.id FROM t AS x JOIN t AS y USING (id)",
        "WITH w AS (SELECT id FROM t) SELECT id FROM w",
        "SELECT id FROM (SELECT id FROM t) AS s JOIN (SELECT id FROM u) AS v USING (id)",
        "(SELECT id FROM t) UNION ALL (SELECT id FROM u)",
        "SELECT id, e FROM t LATERAL VIEW explode(tags) AS e",
    ],
)
def test_what_is_named_once_for_each_place_is_read_once(query: str) -> None:
    assert not reads_again(parse(query, tokenize(query)))
