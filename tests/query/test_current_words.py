"""Words that call functions of the session without parentheses, and columns that are called so."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze

T = parse_schema("id BIGINT, k BIGINT")

CALLED = [
    "SELECT user AS name, t.id FROM t JOIN t AS s USING (id)",
    "WITH p(x) AS ((SELECT id AS user FROM t)) SELECT user AS name FROM p",
    "WITH RECURSIVE r(n) AS (SELECT id AS user FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT user AS name FROM r",
    "WITH RECURSIVE r AS (SELECT id AS n FROM t UNION ALL SELECT user FROM r) SELECT n FROM r",
    "WITH p AS (VALUES (1)) SELECT user AS name, t.id FROM p JOIN t ON true",
    "SELECT user AS name, t.id FROM (VALUES (1)) JOIN t ON true",
    "SELECT user AS name, x.id FROM (t JOIN t AS s USING (id)) AS x",
]
COLUMNS = [
    "SELECT user FROM (SELECT id AS user FROM t) AS p",
    "WITH p(user) AS ((SELECT id FROM t)) SELECT user FROM p",
    "WITH p AS ((SELECT id AS user, k FROM t)) SELECT P.k FROM p WHERE user > 1",
    "WITH RECURSIVE r(user) AS (SELECT id FROM t UNION ALL SELECT user + 1 FROM r WHERE user < 5) SELECT user FROM r",
    "WITH RECURSIVE r AS (SELECT id AS user FROM t UNION ALL SELECT user + 1 FROM r WHERE user < 5) SELECT user FROM r",
]


@pytest.mark.parametrize("query", CALLED)
def test_a_word_that_no_source_has_as_a_column_is_refused(query: str) -> None:
    with pytest.raises(QueryError, match="the query has user in line 1") as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert (caught.value.reason, caught.value.hint) == (
        "NOT_DETERMINISTIC",
        "if a column is meant, name its table: t.user",
    )


@pytest.mark.parametrize("query", COLUMNS)
def test_a_word_that_is_a_column_of_a_source_is_taken(query: str) -> None:
    assert analyze(query, {"t": T}, {"t": ("id",)}).output_columns


def test_a_recursive_definition_does_not_give_a_column_by_reading_itself() -> None:
    query = "WITH RECURSIVE r AS (SELECT * FROM r UNION ALL SELECT id FROM t) SELECT user AS name FROM r"
    with pytest.raises(QueryError) as caught:
        analyze(query, {"t": T}, {"t": ("id",)})
    assert caught.value.reason == "NOT_DETERMINISTIC"
