"""Where a query is linear: where its result over changes is the change of its result."""

import pytest

from backfill_assets.query.linear import linearity
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize

BOTH = "SELECT x FROM a UNION ALL SELECT x FROM b"
CASES = [
    ("SELECT a.x FROM a JOIN b ON a.x = b.x", {0, 1}, (0, 0)),
    ("SELECT a.x FROM a, b CROSS JOIN c", {0, 1, 2}, (0, 0, 0)),
    ("SELECT * FROM a NATURAL JOIN b", {0, 1}, (0, 0)),
    ("SELECT a.x FROM a JOIN a AS again USING (x)", {0, 1}, (0, 0)),
    ("SELECT a.x FROM a LEFT JOIN b ON a.x = b.x JOIN c ON c.x = a.x", {0, 2}, (0, 0, 0)),
    ("SELECT b.x FROM a JOIN c ON a.x = c.x RIGHT JOIN b ON a.x = b.x", {2}, (0, 0, 0)),
    ("SELECT a.x FROM a FULL JOIN b ON a.x = b.x", set(), (0, 0)),
    ("SELECT a.x FROM a FULL JOIN b ON a.x = b.x JOIN c ON a.x = c.x", {2}, (0, 0, 0)),
    ("SELECT x FROM a LEFT SEMI JOIN b ON a.x = b.x", {0}, (0, 0)),
    ("SELECT x FROM a LEFT ANTI JOIN b ON a.x = b.x", {0}, (0, 0)),
    ("SELECT x, e FROM a LATERAL VIEW explode(y) AS e", {0}, (0,)),
    ("SELECT a.x FROM a, b UNION ALL (SELECT x FROM c UNION ALL SELECT x FROM a)", {0, 1, 2, 3}, (0, 0, 1, 2)),
    (f"SELECT u.x + 1 AS y FROM ({BOTH} JOIN c USING (x)) AS u WHERE u.x > 1", {0, 1, 2}, (0, 1, 1)),
    (f"SELECT x FROM (SELECT x FROM ({BOTH}) AS u UNION ALL SELECT x FROM c) AS v", {0, 1, 2}, (0, 1, 2)),
    (
        f"SELECT x, e FROM ({BOTH}) LATERAL VIEW explode(array(x)) AS e UNION ALL SELECT x, x FROM c",
        {0, 1, 2},
        (0, 1, 2),
    ),
]
BESIDE = [
    ("SELECT a.x FROM a WHERE x IN (SELECT x FROM b)", {0}, (0, 0)),
    ("SELECT a.x, (SELECT max(x) FROM b) AS m FROM a", {1}, (0, 0)),
    ("SELECT n FROM (SELECT a.x AS n FROM a LEFT JOIN b USING (x)) JOIN c ON c.x = n", {0, 2}, (0, 0, 0)),
    ("SELECT c.x FROM c LEFT JOIN (SELECT a.x FROM a, b) AS d USING (x)", {0}, (0, 0, 0)),
    ("SELECT x FROM a UNION ALL SELECT x FROM b WHERE x = (SELECT max(x) FROM c)", {0, 1}, (0, 1, 1)),
]
NOWHERE = [
    f"SELECT x FROM ({BOTH}) AS u JOIN c USING (x)",
    f"SELECT x FROM ({BOTH}) AS u WHERE x IN (SELECT x FROM c)",
    f"SELECT count(*) AS n FROM ({BOTH}) AS u",
    f"SELECT DISTINCT x FROM ({BOTH}) AS u",
    f"SELECT x FROM ({BOTH} LIMIT 3) AS u",
    f"SELECT x FROM ({BOTH} UNION ALL SELECT 1) AS u",
    "SELECT x FROM (SELECT x FROM a UNION SELECT x FROM b) AS u",
    "SELECT a.x FROM a, b UNION SELECT x FROM c",
    "SELECT a.x FROM a, b UNION ALL SELECT 1",
    "SELECT a.x FROM a, b UNION ALL SELECT r.id FROM range(3) r LEFT JOIN c ON c.x = r.id",
    "SELECT a.x FROM a, b UNION ALL SELECT x FROM (SELECT 1 AS x) LEFT JOIN c USING (x)",
    "SELECT a.x FROM a, b UNION ALL (SELECT 1 UNION SELECT 2)",
    "SELECT a.x FROM a, b UNION ALL (SELECT 1 EXCEPT SELECT 2)",
    "SELECT a.x FROM a, b UNION ALL (SELECT x FROM b EXCEPT SELECT x FROM c)",
    "SELECT a.x FROM a, b UNION ALL ((SELECT x FROM b) ORDER BY x LIMIT 1)",
    "SELECT a.x FROM a, b GROUP BY a.x",
    "SELECT a.x FROM a, LATERAL (SELECT x FROM b WHERE b.x = a.x) AS c",
    "SELECT a.x FROM a JOIN (SELECT x FROM b LIMIT 3) USING (x)",
    "SELECT sum(x) OVER () AS n FROM (SELECT x FROM a) JOIN b USING (x)",
    "SELECT a.x FROM a JOIN (SELECT DISTINCT x FROM b) USING (x)",
    "SELECT a.x FROM a JOIN (b LEFT JOIN c USING (x)) USING (x)",
    "SELECT a.x, count(*) AS n FROM a, b GROUP BY a.x",
    "SELECT count(*) AS n FROM a, b",
    "SELECT DISTINCT a.x FROM a, b",
    "SELECT a.x, rank() OVER (ORDER BY a.x) AS n FROM a, b",
    "SELECT a.x FROM a, b ORDER BY 1 LIMIT 2",
    "SELECT x FROM a EXCEPT ALL SELECT x FROM b",
    "WITH c AS (SELECT x FROM a) SELECT c.x FROM c, b",
]


def found(query: str) -> tuple[set[int], tuple[int, ...]]:
    tokens = tokenize(query)
    root = parse(query, tokens)
    names = [name for name in "abc" if any(token.text == name for token in tokens)]
    each = linearity(root, tokens, occurrences(root, names))
    return set(each.linear), each.parts


@pytest.mark.parametrize(("query", "linear", "parts"), CASES)
def test_each_side_of_a_join_that_is_kept_is_linear(query: str, linear: set[int], parts: tuple[int, ...]) -> None:
    assert found(query) == (linear, parts)


@pytest.mark.parametrize(("query", "linear", "parts"), BESIDE)
def test_tables_of_subqueries_are_linear_in_from_and_not_in_conditions(
    query: str, linear: set[int], parts: tuple[int, ...]
) -> None:
    assert found(query) == (linear, parts)


@pytest.mark.parametrize("query", NOWHERE)
def test_a_query_that_combines_rows_or_returns_rows_for_none_is_not_linear(query: str) -> None:
    assert found(query)[0] == set()


@pytest.mark.parametrize(
    ("query", "rows", "driving"),
    [
        ("SELECT a.x FROM a JOIN b ON a.x = b.x", {"a": 2, "b": 3}, (1,)),
        ("SELECT a.x FROM a LEFT JOIN b ON a.x = b.x", {"a": 2, "b": 3}, (0,)),
        ("SELECT a.x FROM a JOIN a AS again USING (x)", {"a": 2}, (0,)),
        ("SELECT a.x FROM a, b UNION ALL SELECT x FROM c", {"a": 2, "b": 3, "c": 1}, (1, 2)),
        ("SELECT a.x FROM a FULL JOIN b ON a.x = b.x UNION ALL SELECT x FROM c", {"a": 2, "b": 3, "c": 1}, ()),
        ("SELECT DISTINCT a.x FROM a, b", {"a": 2, "b": 3}, ()),
    ],
)
def test_the_largest_table_of_each_part_drives_a_query_if_it_is_linear_there(
    query: str, rows: dict[str, int], driving: tuple[int, ...]
) -> None:
    tokens = tokenize(query)
    root = parse(query, tokens)
    places = occurrences(root, list(rows))
    assert linearity(root, tokens, places).driving([rows[each.upstream] for each in places]) == driving
