"""Subqueries that give one value: which are found, with their text, and what follows for changes of their tables."""

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import RelationalQuery, analyze_relational

TABLES = {name: parse_schema(columns) for name, columns in {"a": "id INT, k INT", "b": "id INT, k INT"}.items()}
MOST = "(SELECT max(k) FROM b)"


def analyzed(query: str) -> RelationalQuery:
    return analyze_relational(query, {name: each for name, each in TABLES.items() if f" {name}" in query})


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        (f"SELECT id FROM a WHERE k > {MOST}", ["SELECT max(k) FROM {occurrence_1} AS `b`"]),
        (f"SELECT id, {MOST} AS most FROM a", ["SELECT max(k) FROM {occurrence_0} AS `b`"]),
        (f"SELECT id, coalesce({MOST}, 0) AS m FROM a", ["SELECT max(k) FROM {occurrence_0} AS `b`"]),
        (f"SELECT a.id FROM a JOIN a AS c ON a.k + {MOST} = c.k", ["SELECT max(k) FROM {occurrence_2} AS `b`"]),
        (f"SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) < {MOST}", ["SELECT max(k) FROM {occurrence_1} AS `b`"]),
        ("SELECT id FROM a WHERE k > (SELECT count(*) FROM (SELECT k FROM b) AS c)",
         ["SELECT count(*) FROM (SELECT k FROM {occurrence_1} AS `b`) AS c"]),
        ("SELECT id FROM a WHERE k > (SELECT avg(k) FROM a) OR id = (SELECT min(id) FROM b WHERE k > (SELECT max(k) FROM b))",
         ["SELECT avg(k) FROM {occurrence_1} AS `a`",
          "SELECT min(id) FROM {occurrence_2} AS `b` WHERE k > (SELECT max(k) FROM {occurrence_3} AS `b`)"]),
        ("SELECT id FROM a WHERE k > (SELECT coalesce((SELECT max(k) FROM b), 0))",
         ["SELECT coalesce((SELECT max(k) FROM {occurrence_1} AS `b`), 0)"]),
        ("SELECT id FROM a WHERE concat(k, '{occurrence_1}') > (SELECT max(concat(k, '{x}')) FROM b)",
         ["SELECT max(concat(k, '{{x}}')) FROM {occurrence_1} AS `b`"]),
        ("SELECT id FROM a WHERE k BETWEEN (SELECT min(k) FROM b AS x) AND (SELECT max(x.k) FROM b AS x)",
         ["SELECT min(k) FROM {occurrence_1} AS x", "SELECT max(x.k) FROM {occurrence_2} AS x"]),
        ("WITH c AS (SELECT k, id FROM b) SELECT a.id FROM a JOIN c USING (k) WHERE c.id = (SELECT max(id) FROM c)",
         ["SELECT max(id) FROM (SELECT k, id FROM {occurrence_2} AS `b`) AS `c`"]),
    ],
)  # fmt: skip
def test_subqueries_for_one_value_are_found_with_their_text(query: str, texts: list[str]) -> None:
    assert [each.template for each in analyzed(query).parameters] == texts


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM a WHERE k > (SELECT max(b.k) FROM b WHERE b.id = a.id)",
        "SELECT id FROM a WHERE k > (SELECT max(b.k + a.k) FROM b)",
        "SELECT id FROM a WHERE k IN (SELECT k FROM b)",
        "SELECT id FROM a WHERE EXISTS (SELECT k FROM b)",
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k > (SELECT max(x) FROM VALUES (1) AS v(x) WHERE x < b.id))",
        "SELECT a.id FROM a JOIN (SELECT max(k) AS k FROM b) AS c ON a.k = c.k",
        "SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b WHERE b.id > (SELECT a.id))",
        "SELECT k FROM a UNION (SELECT max(k) FROM b)",
    ],
)
def test_others_are_none(query: str) -> None:
    assert analyzed(query).parameters == ()


@pytest.mark.parametrize(
    ("query", "changed", "rule", "asked"),
    [
        (f"SELECT id FROM a WHERE k > {MOST}", "a", "linear", ()),
        (f"SELECT id FROM a WHERE k > {MOST}", "b", "linear", (0,)),
        (f"SELECT id FROM a WHERE k > {MOST}", "ab", "linear", (0,)),
        (f"SELECT count(*) AS n FROM a WHERE id > {MOST}", "b", "additive", (0,)),
        ("SELECT id FROM a WHERE k > (SELECT avg(k) FROM a)", "a", "linear", (0,)),
        (f"SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) < {MOST}", "ab", "restricted", (0,)),
        (f"SELECT a.id, b.k FROM a LEFT JOIN b ON a.id > b.k WHERE a.k > {MOST}", "b", "full", ()),
        (f"SELECT id FROM a WHERE k > {MOST} AND id < (SELECT max(id) FROM a)", "a", "linear", (1,)),
    ],
)
def test_a_query_follows_changes_beside_them(query: str, changed: str, rule: str, asked: tuple[int, ...]) -> None:
    steps = analyzed(query).steps([*changed])
    assert (steps.rule, steps.parameters) == (rule, asked)
    assert steps.are_certain == (rule != "full" and not asked)
