"""From which columns a view's columns are computed."""

import re

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.lineage import column_lineage

TABLES = {"a": parse_schema("Id INT, x INT"), "b": parse_schema("id INT, y INT")}
OF_A = [("a", "Id"), ("a", "x")]

CASES = [
    ("SELECT id, x + 1 AS more FROM a WHERE x > 2", {"id": [("a", "Id")], "more": [("a", "x")]}),
    ("SELECT * FROM a", {"id": [("a", "Id")], "x": [("a", "x")]}),
    ("SELECT count(*) AS n, 1 AS one FROM a", {"n": [], "one": []}),
    ("SELECT f.z FROM ((SELECT x AS z FROM a) ORDER BY z LIMIT 3) AS f", {"z": [("a", "x")]}),
    ("(SELECT id FROM a) ORDER BY id LIMIT 3", {"id": [("a", "Id")]}),
    ("SELECT y FROM (b)", {"y": [("b", "y")]}),
    ("SELECT f.x, f.y FROM (a JOIN b USING (id)) AS f", {"x": [("a", "x")], "y": [("b", "y")]}),
    ("SELECT x FROM a UNION ALL SELECT y FROM b", {"x": [("a", "x"), ("b", "y")]}),
    (
        "WITH m AS (SELECT id, max(y) AS y FROM b GROUP BY id) SELECT a.x + m.y AS s FROM a JOIN m USING (id)",
        {"s": [("a", "x"), ("b", "y")]},
    ),
    (
        "SELECT (SELECT max(y) FROM b WHERE b.id = a.id) AS most FROM a",
        {"most": [("a", "Id"), ("b", "id"), ("b", "y")]},
    ),
    ("SELECT id FROM a FULL JOIN b USING (id)", {"id": [("a", "Id"), ("b", "id")]}),
    ("SELECT percentile(x, 0.5, id) AS p FROM a", {"p": [("a", "Id"), ("a", "x")]}),
    ("SELECT date_trunc(id, x) AS d, trunc(x, id) AS m FROM a", {key: [("a", "Id"), ("a", "x")] for key in "dm"}),
    ("SELECT date_trunc('day', x) AS d, trunc(x, 'MM') AS m FROM a", {key: [("a", "x")] for key in "dm"}),
    (
        "SELECT s.* FROM (SELECT posexplode(array(x)) AS (p, e), id FROM a) AS s",
        {"p": [("a", "x")], "e": [("a", "x")], "id": [("a", "Id")]},
    ),
    ("SELECT window.start AS s FROM a GROUP BY window(x, '1 hour')", {"s": [("a", "x")]}),
    ("SELECT id, e FROM a LATERAL VIEW explode(array(x)) v AS e", {"id": [("a", "Id")], "e": [("a", "x")]}),
    ("SELECT e FROM a, LATERAL explode(array(x)) AS v(e)", {"e": [("a", "x")]}),
    (
        "SELECT s.z FROM (SELECT x AS w FROM a) AS c, LATERAL (SELECT max(y) + c.w AS m FROM b) AS s(z)",
        {"z": [("a", "x"), ("b", "y")]},
    ),
    (
        "SELECT * FROM a PIVOT (sum(x) FOR id IN (1 AS one, 2 AS two))",
        {"one": OF_A, "two": OF_A},
    ),
    (
        "SELECT p.id, p.one FROM (SELECT id, x, x + id AS k FROM a) PIVOT (max(x) FOR k IN (1 AS one)) AS p",
        {"id": [("a", "Id")], "one": OF_A},
    ),
    ("SELECT id, k, v FROM a UNPIVOT (v FOR k IN (x))", {"id": [("a", "Id")], "k": [], "v": [("a", "x")]}),
    ("SELECT to_json(struct(*)) AS j, count(*) OVER () AS n FROM a", {"j": OF_A, "n": []}),
    (
        "SELECT struct(a.*) AS s, count(DISTINCT *) OVER () AS n FROM a JOIN b ON x = y",
        {"s": OF_A, "n": [*OF_A, ("b", "id"), ("b", "y")]},
    ),
    ("SELECT (SELECT max(z) FROM (SELECT y AS z FROM b)) AS most FROM a", {"most": [("b", "y")]}),
    ("SELECT x FROM a WHERE CAST(x AS STRING) COLLATE UTF8_LCASE = 'x'", {"x": [("a", "x")]}),
]


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_a_column_comes_from_the_columns_that_its_expression_takes(
    query: str, expected: dict[str, list[tuple[str, str]]]
) -> None:
    assert (
        column_lineage(query, {name: TABLES[name] for name in "ab" if re.search(rf"(FROM|JOIN) \(?{name}\b", query)})
        == expected
    )


@pytest.mark.parametrize("query", ["SELECT id FROM", "SELECT window.start AS s FROM a"])
def test_nothing_is_said_of_what_only_spark_can_resolve(query: str) -> None:
    assert column_lineage(query, {"a": TABLES["a"]}) == {}
