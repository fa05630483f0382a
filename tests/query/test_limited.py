"""Queries of the first rows: what they are without `ORDER BY … LIMIT`, and how many copies of which rows are the first."""

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest
from sqlglot import exp

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.limited import MOST_ROWS, By, Ending, copies_of_first, ending
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from tests.support.settings import seeds

Row = tuple[int, int]
TABLES = {name: parse_schema(columns) for name, columns in {"t": "id INT, k INT, v INT", "u": "id INT, k INT"}.items()}


def analyzed(query: str) -> RelationalQuery:
    return analyze_relational(query, {name: each for name, each in TABLES.items() if f" {name}" in query})


def ending_of(query: str) -> Ending | None:
    root = parse(query, tokenize(query))
    assert isinstance(root, exp.Query)
    columns = [each.name for each in TABLES["t"]] if root.is_star else root.named_selects
    return ending(query, tokenize(query), root, columns)


@pytest.mark.parametrize(
    ("query", "before", "rows", "by"),
    [
        ("SELECT id, k FROM t ORDER BY 2 DESC, 1 LIMIT 3", "SELECT id, k FROM t", 3,
         [By(1, True, False), By(0, False, True)]),
        ("SELECT id AS a FROM t ORDER BY A NULLS LAST LIMIT 1", "SELECT id AS a FROM t", 1, [By(0, False, False)]),
        ("SELECT id AS a FROM t ORDER BY id DESC NULLS FIRST LIMIT 1", "SELECT id AS a FROM t", 1, [By(0, True, True)]),
        ("SELECT t.id FROM t ORDER BY (t.id) LIMIT 9", "SELECT t.id FROM t", 9, [By(0, False, True)]),
        ("SELECT k, count(*) + 1 AS n FROM t GROUP BY k ORDER BY n DESC, 1 LIMIT 2",
         "SELECT k, count(*) + 1 AS n FROM t GROUP BY k", 2, [By(1, True, False), By(0, False, True)]),
        ("WITH x AS (SELECT id FROM t ORDER BY 1) SELECT id FROM x ORDER BY 1 LIMIT 2",
         "WITH x AS (SELECT id FROM t ORDER BY 1) SELECT id FROM x", 2, [By(0, False, True)]),
        ("SELECT id FROM t UNION SELECT id FROM u ORDER BY id LIMIT 2", "SELECT id FROM t UNION SELECT id FROM u", 2,
         [By(0, False, True)]),
        ("SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS s FROM t ORDER BY s, 1 LIMIT 2",
         "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS s FROM t", 2, [By(1, False, True), By(0, False, True)]),
        ("SELECT * FROM t ORDER BY K DESC, 1, 2, 3 LIMIT 2", "SELECT * FROM t", 2,
         [By(1, True, False), By(0, False, True), By(2, False, True)]),
        ("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY COUNT( * ) DESC, k LIMIT 2",
         "SELECT k, count(*) AS n FROM t GROUP BY k", 2, [By(1, True, False), By(0, False, True)]),
        ("SELECT DISTINCT (id % 2) part, t.k FROM t ORDER BY id % 2 DESC NULLS LAST, k LIMIT 2",
         "SELECT DISTINCT (id % 2) part, t.k FROM t", 2, [By(0, True, False), By(1, False, True)]),
        ("SELECT k AS a, id, k IS DISTINCT FROM id AS b FROM t ORDER BY t.k IS DISTINCT FROM t.id, (t.id) LIMIT 2",
         "SELECT k AS a, id, k IS DISTINCT FROM id AS b FROM t", 2, [By(2, False, True), By(1, False, True)]),
        ("SELECT t.id, u.k FROM t JOIN u ON t.k = u.k ORDER BY u.k, t.id LIMIT 1",
         "SELECT t.id, u.k FROM t JOIN u ON t.k = u.k", 1, [By(1, False, True), By(0, False, True)]),
        ("SELECT * FROM t ORDER BY t.k, 1 LIMIT 3", "SELECT * FROM t", 3, [By(1, False, True), By(0, False, True)]),
        (f"SELECT id FROM t ORDER BY 1 LIMIT {MOST_ROWS}", "SELECT id FROM t", MOST_ROWS, [By(0, False, True)]),
    ],
)  # fmt: skip
def test_the_query_before_the_order_and_the_columns_of_that(query: str, before: str, rows: int, by: list[By]) -> None:
    found = ending_of(query)
    assert found is not None
    assert (found.query, found.rows, [*found.by]) == (before, rows, by)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t",
        "SELECT id FROM t ORDER BY 1",
        "SELECT id FROM t ORDER BY 1 LIMIT 0",
        "SELECT id FROM t ORDER BY 1 LIMIT 3 OFFSET 1",
        "SELECT id FROM t ORDER BY 1 LIMIT 1 + 1",
        "SELECT id FROM t ORDER BY 1 LIMIT ALL",
        f"SELECT id FROM t ORDER BY 1 LIMIT {MOST_ROWS + 1}",
        "SELECT id FROM t ORDER BY k LIMIT 3",
        "SELECT id FROM t ORDER BY id % 2 LIMIT 3",
        "SELECT k, sum(v) AS v FROM t GROUP BY k ORDER BY sum(v) LIMIT 3",
        "SELECT k, percentile(v, 0.5, id) AS p FROM t GROUP BY k ORDER BY percentile(v, 0.5) LIMIT 3",
        "SELECT k, if(k = 1, 'A', 'b') AS c FROM t ORDER BY if(k = 1, 'a', 'b') LIMIT 3",
        "SELECT t.k AS a, u.k AS b, t.id FROM t JOIN u ON t.id = u.id ORDER BY u.id LIMIT 3",
        "SELECT t.k AS a, u.id FROM t JOIN u USING (id) ORDER BY k LIMIT 3",
        "SELECT id FROM t FULL JOIN u USING (id) ORDER BY t.id LIMIT 3",
        "SELECT * FROM t JOIN u USING (id) ORDER BY t.id, 1, 2, 3 LIMIT 3",
        "SELECT k + 1 AS x FROM t ORDER BY k + 1 > (SELECT max(k) FROM u) LIMIT 3",
        "SELECT id, k FROM t ORDER BY +2 LIMIT 3",
        "SELECT id, k FROM t ORDER BY 1, +k LIMIT 3",
        "SELECT id, +k AS more FROM t ORDER BY k LIMIT 3",
        "SELECT id FROM t ORDER BY (SELECT max(k) FROM u), 1 LIMIT 3",
        "SELECT -id AS id, id + 1 AS x FROM t ORDER BY id + 1 LIMIT 3",
        "SELECT k AS id, id + 1 AS x FROM t ORDER BY id + 1 LIMIT 3",
        "SELECT t.k AS a, id AS t FROM t ORDER BY t.k LIMIT 3",
        "SELECT id FROM (SELECT id FROM t ORDER BY 1 LIMIT 3)",
        "SELECT id FROM t ORDER BY ALL LIMIT 3",
    ],
)
def test_others_have_no_such_end(query: str) -> None:
    assert ending_of(query) is None


@pytest.mark.parametrize(
    ("query", "changed", "rule"),
    [
        ("SELECT t.id, u.k FROM t JOIN u ON t.k = u.k ORDER BY u.k LIMIT 3", "t", "linear"),
        ("SELECT id, k FROM t ORDER BY k LIMIT 3", "t", "linear"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n LIMIT 3", "t", "restricted"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n LIMIT 3 OFFSET 1", "t", "full"),
        ("SELECT count(*) AS n FROM t GROUP BY k ORDER BY n LIMIT 3", "t", "full"),
        ("SELECT t.id, (SELECT max(k) FROM u) AS m FROM t ORDER BY m, 1 LIMIT 3", "u", "linear"),
    ],
)
def test_changes_are_followed_as_those_of_the_query_before_the_order(query: str, changed: str, rule: str) -> None:
    steps = analyzed(query).steps([changed])
    assert (steps.rule, steps.first, steps.are_certain) == (rule, rule != "full", False)


def test_the_first_rows_are_told_or_too_few_are_known() -> None:
    """Changes that tell of rows beyond the view, and those that do not; copies of the last row; rows that come and go."""
    seen = Counter(map(told_or_too_few, seeds(4_000, 100_000)))
    assert len(seen) == 6, seen


def told_or_too_few(seed: int) -> tuple[bool, str]:
    """Whether changes go by keys, and whether too few rows are known, or the view stays or changes."""
    random, rows, come = Random(seed), list[Row](), list[Row]()
    for some, most in ((rows, 10), (come, 4)):
        some += [(random.randrange(4), random.randrange(6)) for _ in range(random.randrange(most))]
    stays, wanted, by_keys = [random.random() < 0.7 for _ in rows], random.randint(1, 4), random.random() < 0.5
    after = [each for each, stay in zip(rows, stays, strict=True) if stay] + come
    gone = [each for each, stay in zip(rows, stays, strict=True) if not stay]
    view = first(rows, wanted)
    if by_keys:
        touched = {key for key, _ in come + gone}
        come, gone = ([each for each in some if each[0] in touched] for some in (after, view))
    net, held = Counter(view), Counter(view)
    net.update(come)
    net.subtract(gone)
    listed = sorted((each for each in net if net[each] > 0 or held[each] > 0), key=order)[: 2 * wanted + 1]
    copies = copies_of_first(
        [net[each] for each in listed], [held[each] for each in listed], of_view=len(view), rows=wanted
    )
    if copies is None:
        assert len(view) == wanted, seed
        known = [max(net[each], 0) for each in listed if order(each) <= order(view[-1])]
        assert sum(known) < wanted, f"seed {seed}: enough rows are known"
        return by_keys, "too few"
    found = Counter({each: many for each, many in zip(listed, copies, strict=True) if many})
    assert found == Counter(first(after, wanted)), f"seed {seed}"
    return by_keys, "stays" if found == held else "changes"


def order(row: Row) -> tuple[int, int]:
    return -row[1], row[0]


def first(rows: Iterable[Row], wanted: int) -> list[Row]:
    return sorted(rows, key=order)[:wanted]
