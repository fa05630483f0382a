"""Definitions of WITH in the places of their names: the text that follows, and where it stays as it is."""

from random import Random

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.inlined import inlined
from backfill_assets.query.query import analyze
from backfill_assets.query.relational import RelationalQuery
from tests.query.test_histories_are_exact import SCHEMA
from tests.support.wide_queries import wide_query

T = parse_schema("id INT, x INT")

INLINED = [
    ("WITH p AS (SELECT id FROM t) SELECT id FROM p", "SELECT id FROM (SELECT id FROM t) AS `p`"),
    ("WITH p (SELECT id FROM t) SELECT P.id FROM P AS r", "SELECT P.id FROM (SELECT id FROM t) AS r"),
    ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "SELECT * FROM (SELECT * FROM t) AS `t`"),
    (
        "WITH p AS (SELECT * FROM t), t AS (SELECT 1 AS id) SELECT * FROM p JOIN t USING (id)",
        "SELECT * FROM (SELECT * FROM t) AS `p` JOIN (SELECT 1 AS id) AS `t` USING (id)",
    ),
    (
        "WITH a AS (SELECT id FROM t), b(k) AS (SELECT id FROM a -- it\n) SELECT k FROM b, b c, `B` AS d(z)",
        "SELECT k FROM (SELECT id FROM (SELECT id FROM t) AS `a` -- it\n) AS `b`(k), "
        "(SELECT id FROM (SELECT id FROM t) AS `a` -- it\n) c(k), "
        "(SELECT id FROM (SELECT id FROM t) AS `a` -- it\n) AS d(z)",
    ),
    (
        "WITH unused AS (SELECT 1 AS one), p AS (SELECT id FROM t), too AS (SELECT id FROM p) SELECT id FROM p",
        "SELECT id FROM (SELECT id FROM t) AS `p`",
    ),
    ("WITH unused AS (SELECT 1 AS one) SELECT id FROM t", "SELECT id FROM t"),
    (
        "WITH p AS (SELECT * FROM t) SELECT * FROM (WITH t AS (SELECT 1 AS id) SELECT p.* FROM p, t) AS s",
        "SELECT * FROM (SELECT p.* FROM (SELECT * FROM t) AS `p`, (SELECT 1 AS id) AS `t`) AS s",
    ),
    (
        "SELECT id FROM u WHERE id IN (WITH p AS (SELECT x FROM t) SELECT x FROM p UNION SELECT x FROM p AS q)",
        "SELECT id FROM u WHERE id IN (SELECT x FROM (SELECT x FROM t) AS `p` UNION SELECT x FROM (SELECT x FROM t) AS q)",
    ),
    (
        "WITH p AS (SELECT id FROM t) SELECT id, x FROM p LATERAL VIEW explode(array(1)) e AS x",
        "SELECT id, x FROM (SELECT id FROM t) AS `p` LATERAL VIEW explode(array(1)) e AS x",
    ),
]
LEFT = [
    "SELECT id AS with FROM t",
    "SELECT id FROM t -- with\n",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, id FROM r JOIN t ON t.id = n",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 500 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 300) "
    "SELECT n, id FROM r JOIN t ON t.id = n",
    "WITH "
    + ", ".join(f"p{at + 1} AS (SELECT a.id FROM p{at} AS a JOIN p{at} AS b USING (id))" for at in range(9)).replace(
        "p0", "t"
    )
    + " SELECT id FROM p9",
    "WITH " + ", ".join(f"p{at} AS (SELECT id FROM t)" for at in range(65)) + " SELECT id FROM p64",
    "WITH p AS ((SELECT id FROM t)) SELECT id FROM p",
]


@pytest.mark.parametrize(("query", "text"), INLINED)
def test_a_definition_is_in_the_place_of_its_name(query: str, text: str) -> None:
    assert inlined(query) == text
    assert inlined(text) == text


@pytest.mark.parametrize("query", LEFT)
def test_what_cannot_be_put_in_its_place_stays(query: str) -> None:
    assert inlined(query) == query


def test_a_text_that_is_no_query_is_refused() -> None:
    with pytest.raises(QueryError, match="the query has a syntax error in line 1") as caught:
        inlined("WITH p AS (SELECT id FROM) SELECT id FROM p")
    assert caught.value.reason == "SYNTAX"


def test_as_many_names_are_put_in_their_places_as_are_read_in_a_moment() -> None:
    names = ", ".join(f"p{at} AS (SELECT id FROM t)" for at in range(64))
    assert inlined(f"WITH {names} SELECT id FROM p63") == "SELECT id FROM (SELECT id FROM t) AS `p63`"


@pytest.mark.parametrize("limit", ["", "MAX RECURSION LEVEL 500 "])
def test_how_deep_a_recursion_may_be_changes_nothing_else(limit: str) -> None:
    names = f"WITH RECURSIVE r(n) {limit}AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 300)"
    found = analyze(f"{names} SELECT n, id FROM r JOIN t ON t.id = n", {"t": T}, {"t": ("id",)})
    assert isinstance(found, RelationalQuery)
    assert (found.output_columns, found.steps(["t"]).rule) == (("n", "id"), "full")
    assert limit.lower() in found.text
    with pytest.raises(QueryError):
        analyze("SELECT id FROM t MAX RECURSION LEVEL 5", {"t": T}, {"t": ("id",)})


def test_each_time_that_a_table_is_read_is_a_place_of_its_own() -> None:
    query = (
        "WITH p AS (SELECT id, x FROM t WHERE x > 1) SELECT p.id, sum(q.x) AS s FROM p JOIN p q ON p.x < q.x GROUP BY 1"
    )
    found = analyze(query, {"t": T}, {"t": ("id",)})
    assert isinstance(found, RelationalQuery)
    assert (found.occurrences, found.steps(["t"]).rule) == (("t", "t"), "additive")
    assert found.written is not None
    assert found.written.occurrences == ("t",)


def test_random_queries_with_names_are_those_without() -> None:
    named = 0
    for seed in range(1, 200):
        query = wide_query(Random(seed), SCHEMA, named=True)
        plain = inlined(query)
        assert ("WITH" in plain) is False, (seed, query)
        named += plain != query
    assert named > 50
