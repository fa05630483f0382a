"""Outer joins that are inner ones to a result: which are, and that the result is the same in another engine."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from random import Random

import pytest
from sqlglot import exp

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.inner_joins import read_trees
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.relational import analyze_relational
from tests.query.test_histories_are_exact import SCHEMA, WIDTHS
from tests.support.drawn_queries import COLUMNS, Rows
from tests.support.exercised import Exercised, first_seed
from tests.support.settings import FULL
from tests.support.table_histories import first_rows
from tests.support.wide_queries import wide_query

TABLES = {name: parse_schema("id BIGINT, k BIGINT, x INT, flag BOOLEAN") for name in "abc"}
LEFT = "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k"
LEFT_OF_THREE = "SELECT a.id, b.x, a.x FROM a LEFT JOIN b ON a.k = b.k"
LEFT_OF_ITS_OWN = "SELECT posexplode(array(a.x)), b.x FROM a LEFT JOIN b ON a.k = b.k"
GROUPS = "SELECT b.id, count(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY"
INNER = [
    f"{LEFT} WHERE b.x > 1",
    f"{LEFT} WHERE a.x < b.x + 1 AND a.id > 1",
    f"{LEFT} WHERE b.x IS NOT NULL",
    f"{LEFT} WHERE b.x IN (1, 2)",
    f"{LEFT} WHERE NOT b.x IN (1, 2)",
    f"{LEFT} WHERE b.x IN (SELECT c.x FROM c)",
    f"{LEFT} WHERE NOT (b.x = 1)",
    f"{LEFT} WHERE b.x BETWEEN 1 AND 2 OR b.x = 7",
    f"{LEFT} JOIN c ON c.k = b.x",
    f"{LEFT} LEFT SEMI JOIN c ON c.k = b.x",
    "SELECT b.id FROM a RIGHT OUTER JOIN b ON a.k = b.k WHERE a.x = 1",
    "SELECT c.id FROM c JOIN (SELECT b.x AS y FROM a LEFT JOIN b ON a.k = b.k) AS s ON s.y = c.x",
    "SELECT c.id FROM c LEFT JOIN (SELECT b.x AS y FROM a LEFT JOIN b ON a.k = b.k) AS s ON s.y = c.x",
    f"SELECT c.id, s.n FROM c LEFT JOIN ({GROUPS} b.id) AS s ON s.id = c.x",
    f"SELECT s.id FROM ({GROUPS} ALL) AS s WHERE s.id = 1",
    "SELECT s.y FROM (SELECT b.x AS y FROM a LEFT JOIN b ON a.k = b.k UNION SELECT x FROM c) AS s WHERE s.y = 1",
    "SELECT DISTINCT s.y FROM (SELECT DISTINCT b.x AS y FROM a LEFT JOIN b USING (k)) AS s WHERE s.y = 1",
    "SELECT c.id FROM c WHERE c.id IN (SELECT b.id FROM a LEFT JOIN b ON a.k = b.k WHERE b.x = c.x)",
]
OUTER = [
    LEFT,
    f"{LEFT} WHERE a.x > 1",
    f"{LEFT} WHERE b.x IS NULL",
    f"{LEFT} WHERE b.x <=> a.x",
    f"{LEFT} WHERE coalesce(b.x, 1) = 1",
    f"{LEFT} WHERE b.x = 1 OR a.x = 1",
    f"{LEFT} WHERE b.x NOT IN (SELECT c.x FROM c)",
    f"{LEFT} WHERE NOT (b.x <=> 1)",
    f"{LEFT} LEFT JOIN c ON c.k = b.x",
    f"{LEFT} FULL JOIN c ON c.k = b.x",
    f"{LEFT} RIGHT JOIN c ON coalesce(b.x, 1) = c.k",
    f"{LEFT} LEFT ANTI JOIN c ON c.k = b.x",
    "SELECT a.id FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.x > 1",
    "SELECT a.id FROM a FULL JOIN b ON a.k = b.k WHERE b.x > 1 AND a.x > 1",
    "SELECT c.id FROM (SELECT b.x AS y FROM a LEFT JOIN b ON a.k = b.k) AS s LEFT JOIN c ON s.y = c.x",
    f"SELECT s.id FROM ({GROUPS} b.id) AS s WHERE s.n = 1",
    f"SELECT s.id FROM ({GROUPS} ROLLUP (b.id)) AS s WHERE s.id = 1",
    "SELECT s.y FROM (SELECT b.x AS y FROM a LEFT JOIN b ON a.k = b.k ORDER BY b.x LIMIT 3) AS s WHERE s.y = 1",
    "SELECT s.y FROM (SELECT b.x AS y, rank() OVER (ORDER BY b.x) AS r FROM a LEFT JOIN b ON a.k = b.k) AS s WHERE s.y = 1",
    "SELECT s.n FROM (SELECT count(*) AS n FROM a LEFT JOIN b ON a.k = b.k) AS s WHERE s.n = 1",
    "SELECT b.id FROM a RIGHT JOIN b USING (k) WHERE k = 1",
    f"SELECT s.y FROM (SELECT posexplode(array(9)), x AS y FROM c UNION ALL {LEFT_OF_THREE}) AS s WHERE s.y = 1",
    f"SELECT s.y FROM (SELECT stack(1, 2, 3) AS (p, q), x AS y FROM c UNION ALL {LEFT_OF_THREE}) AS s WHERE s.y = 1",
    f"SELECT s.y FROM (SELECT id, x AS y, k FROM c UNION ALL {LEFT_OF_ITS_OWN}) AS s WHERE s.y = 1",
    "SELECT s.m FROM (SELECT max(b.x) AS m FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.id) AS s WHERE s.m = 1",
]


def outer_joins(query: str) -> tuple[int, int]:
    """How many outer joins a query has as it is, and as it is read."""
    root = parse(query, tokenize(query))
    found = occurrences(root, [name for name in TABLES if re.search(rf"(FROM|JOIN) {name}\b", query)])
    same, tree = read_trees(root, found, {each.upstream: TABLES[each.upstream] for each in found})
    assert tree is not None
    sides = [
        sum(bool(join.side) and join.kind in {"", "OUTER"} for join in each.find_all(exp.Join))
        for each in (root, same, tree)
    ]
    assert sides[1] == sides[2]
    return sides[0], sides[1]


@pytest.mark.parametrize("query", INNER)
def test_a_join_is_an_inner_one_where_rows_without_a_partner_are_dropped(query: str) -> None:
    before, after = outer_joins(query)
    assert after == before - 1


@pytest.mark.parametrize("query", OUTER)
def test_it_stays_an_outer_one_where_they_matter(query: str) -> None:
    before, after = outer_joins(query)
    assert after == before


def test_what_is_dropped_further_out_makes_changes_of_both_sides_followed() -> None:
    query = f"SELECT c.id, s.n FROM c LEFT JOIN ({GROUPS} b.id) AS s ON s.id = c.id"
    found = analyze_relational(query, TABLES)
    assert {name: found.steps([name]).rule for name in "abc"} == dict.fromkeys("abc", "restricted")
    assert analyze_relational(f"{LEFT} WHERE b.x > 1", {name: TABLES[name] for name in "ab"}).linearity.linear == {0, 1}


def test_the_join_of_the_text_is_told_by_more_than_its_first_table() -> None:
    inner = "SELECT max(c.x) FROM range(3) AS r LEFT JOIN c ON c.k = r.id WHERE c.x > 1"
    found = analyze_relational(
        f"SELECT a.id, s.m FROM a LEFT JOIN (SELECT k, ({inner}) AS m FROM b) AS s USING (k)", TABLES
    )
    assert found.linearity.linear == {0}
    assert found.steps(["b"]).rule != "linear"


def test_a_subquery_for_one_value_is_found_with_its_text() -> None:
    inner = "SELECT max(b.x) FROM b LEFT JOIN c ON b.k = c.k WHERE c.x > 1"
    found = analyze_relational(f"SELECT a.id FROM a WHERE a.x > ({inner})", TABLES)
    assert len(found.parameters) == 1


@pytest.mark.drawn
def test_results_are_the_same_in_another_engine(record_property: Callable[[str, object], None]) -> None:
    first = first_seed()
    seen = Exercised(range(first, first + (2000 if FULL else 300)))
    for seed in seen.seeds:
        random = Random(seed)
        query = wide_query(random, SCHEMA)
        used = {
            name: parse_schema(", ".join(f"{each} BIGINT" for each in columns)) for name, columns in COLUMNS.items()
        }
        root = parse(query, tokenize(query))
        found = occurrences(root, [name for name in used if f" {name} " in query])
        same, _ = read_trees(root, found, {each.upstream: used[each.upstream] for each in found})
        if same is root:
            continue
        try:
            for _ in range(5):
                rows = first_rows(random, WIDTHS, nulls=True)
                expected = answer(root, rows)
                assert answer(same, rows) == expected, (seed, query, rows)
                seen.note("results", "rows" if expected else "no rows")
            seen.note("queries", "with inner joins for outer ones")
        except sqlite3.OperationalError:
            seen.note("queries", "that SQLite refuses")
    seen.show(record_property)
    seen.assert_all({"results": ["rows"], "queries": ["with inner joins for outer ones"]})


def answer(query: exp.Expr, rows: Rows) -> Counter[tuple[object, ...]]:
    """What a query gives in SQLite."""
    with closing(sqlite3.connect(":memory:")) as database:
        for name, columns in COLUMNS.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows[name])
        return Counter(database.execute(query.sql("sqlite")))
