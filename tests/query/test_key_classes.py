"""By which keys a query may be computed in part, and where it may not."""

import pytest

from backfill_assets.query.ddl import Column
from backfill_assets.query.key_classes import KeyClasses
from backfill_assets.query.relational import analyze_relational
from tests.support.three_tables import analyzed

COVERED = [
    (
        "SELECT a.id, b.k FROM a LEFT JOIN b ON a.s = b.s LEFT JOIN c ON c.id = a.id AND c.id = b.id",
        [{0: "id", 2: "id"}, {0: "s", 1: "s"}],
    ),
    ("SELECT a.id FROM a JOIN c ON a.k > c.k RIGHT JOIN b ON b.k = a.id", [{0: "id", 2: "k"}]),
    ("SELECT a.id FROM a LEFT JOIN b ON a.id = b.k", [{0: "id", 1: "k"}]),
    ("SELECT a.s FROM a LEFT JOIN b ON a.s = b.s", [{0: "s", 1: "s"}]),
    ("SELECT a.id FROM a LEFT JOIN b USING (id)", [{0: "id", 1: "id"}]),
    ("SELECT id FROM a FULL JOIN b USING (id)", [{0: "id", 1: "id"}]),
    ("SELECT a.id FROM a RIGHT JOIN b ON a.id = b.id", [{0: "id", 1: "id"}]),
    ("SELECT a.id FROM a LEFT SEMI JOIN b ON a.id = b.id", [{0: "id", 1: "id"}]),
    ("SELECT a.id FROM a LEFT ANTI JOIN b ON a.id = b.id", [{0: "id", 1: "id"}]),
    ("SELECT a.id FROM a LEFT JOIN b ON a.id <=> b.id", [{0: "id", 1: "id"}]),
    ("SELECT a.id FROM a JOIN b ON a.id = b.id LEFT JOIN c ON c.k = b.id", [{0: "id", 1: "id", 2: "k"}]),
    ("SELECT a.id FROM a, b LEFT JOIN c ON c.k = b.id WHERE a.id = b.id", [{0: "id", 1: "id", 2: "k"}]),
    ("SELECT DISTINCT k FROM a", [{0: "k"}]),
    (
        "SELECT s.k, max(b.s) AS n FROM (SELECT posexplode(array(s)) AS (p, e), k, id FROM a) AS s JOIN b ON s.k = b.k "
        "GROUP BY s.k",
        [{0: "k", 1: "k"}],
    ),
    ("SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1", [{0: "k"}]),
    ("SELECT k AS n, percentile(id, 0.5) AS p FROM a GROUP BY 1", [{0: "k"}]),
    ("SELECT k, median(id) AS n FROM a GROUP BY ALL", [{0: "k"}]),
    ("SELECT k, window.start AS x, count(*) AS n FROM a GROUP BY k, window(at, '10 seconds')", [{0: "k"}]),
    (
        "SELECT max(Window.end) AS x FROM a GROUP BY k, WINDOW(at, '9 seconds') HAVING max(`window`.start) > at",
        [{0: "k"}],
    ),
    ("SELECT session_window AS x, k FROM a GROUP BY session_window(at, '10 seconds'), k", [{0: "k"}]),
    (
        "SELECT session_window.k FROM a AS session_window GROUP BY session_window.k, session_window(at, '9 seconds')",
        [{0: "k"}],
    ),
    ("SELECT k, s.end AS x FROM (SELECT k, session_window(at, '1 hour') AS s FROM a) GROUP BY k, s", [{0: "k"}]),
    ("SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM a", [{0: "k"}]),
    ("SELECT id, lag(id) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS r FROM a", [{0: "k"}]),
    ("SELECT k, d, row_number() OVER (PARTITION BY k ORDER BY count(*)) AS r FROM a GROUP BY k, d", [{0: "k"}]),
    ("SELECT id FROM a QUALIFY count(*) OVER (PARTITION BY id) > 1", [{0: "id"}]),
    ("SELECT id FROM a UNION SELECT k FROM b", [{0: "id", 1: "k"}]),
    ("SELECT id, k FROM a EXCEPT SELECT k, id FROM b", [{0: "id", 1: "k"}]),
    ("SELECT id FROM a INTERSECT SELECT id FROM b", [{0: "id", 1: "id"}]),
    ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.id)", [{0: "id", 1: "k"}]),
    ("SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.id AND b.id > 3)", [{0: "id", 1: "k"}]),
    ("SELECT id FROM a WHERE id IN (SELECT k FROM b)", [{0: "id", 1: "k"}]),
    ("SELECT id, (SELECT max(id) FROM b WHERE b.k = a.id) AS m FROM a", [{0: "k", 1: "id"}]),
    (
        "SELECT x.k, x.n FROM (SELECT k, count(*) AS n FROM a GROUP BY k) x LEFT JOIN b ON b.id = x.k",
        [{0: "k", 1: "id"}],
    ),
    (
        "WITH m AS (SELECT k, max(id) AS p FROM a GROUP BY k) SELECT m.p FROM m JOIN m AS n ON m.k = n.k",
        [{0: "k", 1: "k"}],
    ),
    ("SELECT a.d FROM a LEFT JOIN a AS again ON a.d = again.d", [{0: "d", 1: "d"}]),
]
DAY = "CAST(`at` AS DATE)"
CHOSEN = "CASE WHEN `f` > 1.5 AND NOT `s` IN ('a', 'b') OR `d` IS NULL THEN 'one' ELSE `s` END"
COMPUTED: list[tuple[str, dict[int, str], str]] = [
    ("SELECT date(at) AS x, median(k) AS m FROM a GROUP BY date(at)", {0: DAY}, "x"),
    ("SELECT date(at) AS x, median(k) AS m FROM a GROUP BY 1", {0: DAY}, "x"),
    ("SELECT date(at) AS x, median(k) AS m FROM a GROUP BY x", {0: DAY}, "x"),
    ("SELECT CAST(at AS DATE) AS x, median(k) AS m FROM b GROUP BY ALL", {0: DAY}, "x"),
    ("SELECT x, median(k) AS m FROM (SELECT k, date(at) AS x FROM a) GROUP BY x", {0: DAY}, "x"),
    ("WITH w AS (SELECT * FROM a WHERE k > 1) SELECT DISTINCT date(w.at) AS x FROM w", {0: DAY}, "x"),
    (
        "WITH w AS (SELECT at, id FROM a GROUP BY at, id) SELECT date(at) AS x, median(id) AS m FROM w GROUP BY 1",
        {0: DAY},
        "x",
    ),
    (
        "SELECT year(x) AS y, median(k) AS m FROM (SELECT k, date(at) AS x FROM a) GROUP BY 1",
        {0: f"YEAR(({DAY}))"},
        "y",
    ),
    ("SELECT trunc(at, 'MM') AS x, median(k) AS m FROM a GROUP BY 1", {0: "CAST(TRUNC(`at`, 'MM') AS DATE)"}, "x"),
    (
        "SELECT TRUNC(date(at), 'MM') AS x, median(k) AS m FROM a GROUP BY 1",
        {0: "CAST(TRUNC(CAST(`at` AS DATE), 'MM') AS DATE)"},
        "x",
    ),
    (
        "SELECT date_trunc('week', at) AS x, median(k) AS m FROM b GROUP BY 1",
        {0: "CAST(DATE_TRUNC('WEEK', `at`) AS TIMESTAMP)"},
        "x",
    ),
    (
        "SELECT x, median(k) AS m FROM (SELECT k, date_format(at, 'yyyy-MM-dd HH:mm') AS x FROM a) GROUP BY x",
        {0: "DATE_FORMAT(`at`, 'yyyy-MM-dd HH:mm')"},
        "x",
    ),
    (
        "SELECT window.start AS x, median(k) AS m FROM a GROUP BY window(at, '10 seconds')",
        {0: "CAST(WINDOW(`at`, '10 seconds').start AS TIMESTAMP)"},
        "x",
    ),
    (
        "SELECT x, median(k) AS m FROM (SELECT k, window(at, '9 minutes').end AS x FROM a) GROUP BY x",
        {0: "CAST(WINDOW(`at`, '9 minutes').end AS TIMESTAMP)"},
        "x",
    ),
    ("SELECT id, rank() OVER (PARTITION BY lower(s) ORDER BY id) AS r FROM a", {0: "LOWER(`s`)"}, "__class_0"),
    ("SELECT x.id FROM a AS x LEFT JOIN b ON x.k % 9 = b.k", {0: "`k` % 9", 1: "k"}, "__class_0"),
    (
        "SELECT a.id, b.k FROM a RIGHT JOIN b ON lower(a.s) = b.s AND a.id > b.id",
        {0: "LOWER(`s`)", 1: "s"},
        "__class_0",
    ),
    ("SELECT id FROM a WHERE k DIV 3 IN (SELECT k FROM c)", {0: "`k` DIV 3", 1: "k"}, "__class_0"),
    ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE date(b.at) = date(a.at))", {0: DAY, 1: DAY}, "__class_0"),
    ("SELECT upper(s) AS s FROM a EXCEPT SELECT s FROM b", {0: "UPPER(`s`)", 1: "s"}, "s"),
    (f"SELECT {CHOSEN} AS x, median(k) AS m FROM a GROUP BY 1", {0: CHOSEN}, "x"),
    ("SELECT coalesce(s, 'none') AS x, median(k) AS m FROM a GROUP BY ALL", {0: "COALESCE(`s`, 'none')"}, "x"),
    (
        "SELECT x, median(k) AS m FROM (SELECT k, CASE k WHEN 1 THEN s ELSE 'more' END AS x FROM a) GROUP BY x",
        {0: "CASE `k` WHEN 1 THEN `s` ELSE 'more' END"},
        "x",
    ),
    ("SELECT b.id FROM a RIGHT JOIN b ON coalesce(a.s, 'x') = b.s", {0: "COALESCE(`s`, 'x')", 1: "s"}, "__class_0"),
]
"""Queries with the one key by which they may be computed in part, which they compute, and the column that tells it."""
NOT_A_KEY = [
    ("SELECT k + 1 AS x, median(id) AS m FROM a GROUP BY 1", "it may overflow"),
    ("SELECT CAST(id AS INT) AS x, median(k) AS m FROM a GROUP BY 1", "it may overflow"),
    ("SELECT CAST(s AS INT) AS x, median(k) AS m FROM a GROUP BY 1", "a text may be no number"),
    ("SELECT date(s) AS x, median(k) AS m FROM a GROUP BY 1", "a text may be no day"),
    ("SELECT year(s) AS x, median(k) AS m FROM a GROUP BY 1", "a text may be no day"),
    ("SELECT lower(f) AS x, median(k) AS m FROM a GROUP BY 1", "zeros that are equal differ as texts"),
    ("SELECT k % id AS x, median(k) AS m FROM a GROUP BY 1", "it may divide by zero"),
    ("SELECT k % 0 AS x, median(k) AS m FROM a GROUP BY 1", "it divides by zero"),
    ("SELECT f % 2 AS x, median(k) AS m FROM a GROUP BY 1", "floats that are equal may differ in their bits"),
    ("SELECT CAST(f AS STRING) AS x, median(k) AS m FROM a GROUP BY 1", "zeros that are equal differ as texts"),
    ("SELECT d % 2 AS x, median(k) AS m FROM a GROUP BY 1", "decimals are of other types when they are computed"),
    ("SELECT trunc(at, 'Q') AS x, median(k) AS m FROM a GROUP BY 1", "a unit that is written in full elsewhere"),
    ("SELECT date_trunc(s, at) AS x, median(k) AS m FROM a GROUP BY 1", "a unit that is a column"),
    ("SELECT trunc(date(at), s) AS x, median(k) AS m FROM a GROUP BY 1", "a unit that is a column"),
    ("SELECT date_trunc(lower('WEEK'), at) AS x, median(k) AS m FROM a GROUP BY 1", "a unit that is computed"),
    ("SELECT id, rank() OVER (PARTITION BY date_trunc(a.s, at) ORDER BY id) AS r FROM a", "a unit that is a column"),
    ("SELECT date_format(at, 'E') AS x, median(id) AS m FROM a GROUP BY 1", "a pattern that is not known"),
    ("SELECT date_format(at, 'y') AS x, median(id) AS m FROM a GROUP BY 1", "not as yyyy in the year 905"),
    ("SELECT x, median(k) AS m FROM (SELECT k, window(at, '9 hours').end AS x FROM b) GROUP BY x", "local times"),
    (
        "SELECT x, median(k) AS m FROM (SELECT k, CAST(session_window(at, '1 h').end AS TIMESTAMP) AS x FROM a) GROUP BY x",
        "sessions are merged",
    ),
    (
        "SELECT a.k % 9 AS x, median(b.k) AS m FROM b LEFT JOIN a ON a.id = b.id GROUP BY 1",
        "a side that may be missing",
    ),
    ("SELECT CASE WHEN k + 1 > 2 THEN 'a' END AS x, median(id) AS m FROM a GROUP BY 1", "it may overflow"),
    ("SELECT CASE WHEN s > 1 THEN 'a' END AS x, median(id) AS m FROM a GROUP BY 1", "a text may be no number"),
    ("SELECT CASE WHEN at > '2024-01-01' THEN 'a' END AS x, median(id) AS m FROM a GROUP BY 1", "a text is converted"),
    ("SELECT CASE WHEN k > 1 THEN f ELSE 1 END AS x, median(id) AS m FROM a GROUP BY 1", "floats"),
    ("SELECT CASE WHEN k > 1 THEN k + 1 ELSE 1 END AS x, median(id) AS m FROM a GROUP BY 1", "it may overflow"),
    (
        "SELECT coalesce(s, 'it\\tis') AS x, median(id) AS m FROM a GROUP BY 1",
        "a text that is written with a backslash",
    ),
    ("SELECT coalesce(f, 0) AS x, median(id) AS m FROM a GROUP BY 1", "floats"),
    ("SELECT CASE WHEN a.k > 1 THEN b.s END AS x, median(a.k) AS m FROM a JOIN b USING (id) GROUP BY 1", "two tables"),
    (
        "SELECT CASE WHEN a.k > 1 THEN 'x' ELSE 'y' END AS x, median(b.k) AS m FROM b LEFT JOIN a ON a.id = b.id GROUP BY 1",
        "a side that may be missing",
    ),
    (
        "SELECT CASE WHEN s LIKE 'a%' THEN 'x' ELSE s END AS x, median(k) AS m FROM a GROUP BY 1",
        "no comparison of values",
    ),
    ("SELECT DISTINCT a.id FROM a JOIN b ON a.k % 9 = b.k", "DISTINCT without the key"),
    ("SELECT DISTINCT at FROM a WHERE date(at) IN (SELECT date(at) FROM b)", "DISTINCT has no place for what tells it"),
    ("SELECT k % 9 AS x, rank() OVER (PARTITION BY f ORDER BY k) AS r FROM a", "windows of other rows"),
    ("SELECT date(x) AS y, median(k) AS m FROM (SELECT max(at) AS x, max(k) AS k FROM a) GROUP BY 1", "of all rows"),
]
NOT_COVERED: list[tuple[str, set[int], str]] = [
    ("SELECT b.id FROM a RIGHT JOIN b ON a.id > b.k", {1}, "no key"),
    ("SELECT a.id FROM a FULL JOIN b ON a.id > b.k", set(), "no key"),
    ("SELECT b.k FROM a LEFT JOIN b ON a.id = b.id GROUP BY b.k", set(), "the key of a side that may be missing"),
    ("SELECT b.id FROM a LEFT JOIN b ON a.id = b.id GROUP BY b.id", set(), "the key of a side that may be missing"),
    ("SELECT DISTINCT b.k FROM a LEFT JOIN b ON a.id = b.id", set(), "DISTINCT without the key"),
    ("SELECT k + 1 AS x FROM a EXCEPT SELECT id FROM b", set(), "what is taken away does not tell what stays"),
    ("SELECT a.f FROM a LEFT JOIN b ON a.f = b.f", set(), "floats that are equal may differ in their bits"),
    ("SELECT a.d FROM a LEFT JOIN b ON a.d = b.d", {0}, "decimals of two scales are compared as a third one"),
    ("SELECT a.at FROM a LEFT JOIN b ON a.at = b.at", {0}, "moments and local times are compared by the time zone"),
    ("SELECT a.s FROM a LEFT JOIN c ON a.s = c.id", {0}, "texts and numbers are compared as one of them"),
    ("SELECT a.id FROM a LEFT JOIN b ON a.id > b.k", {0}, "no key at all"),
    ("SELECT a.id FROM a LEFT JOIN b ON a.id = b.k OR a.k = b.k", {0}, "not equal in each pair"),
    ("SELECT a.id FROM a LEFT JOIN b ON NOT a.id = b.k", {0}, "not equal"),
    ("SELECT a.id FROM a LEFT JOIN b ON a.id = b.k + 1", {0}, "no column"),
    ("SELECT a.s FROM a LEFT JOIN b ON +a.s = +b.s", {0}, "a plus makes numbers of texts"),
    ("SELECT id FROM a WHERE id = 1 OR id IN (SELECT k FROM b)", {0}, "a null may stand beside it"),
    ("SELECT id, id IN (SELECT k FROM b) AS known FROM a", {1}, "a null shows in the result"),
    ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k > a.id)", {0}, "no key"),
    (
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b GROUP BY b.k HAVING b.k = a.id)",
        {0},
        "the key is compared after groups",
    ),
    ("SELECT x.id FROM a AS x WHERE x.k = (SELECT max(b.k) FROM b)", {0}, "a subquery over everything"),
    ("SELECT id FROM a UNION ALL SELECT n FROM (SELECT count(*) AS n FROM b)", set(), "one side is about all rows"),
    ("SELECT id FROM a UNION SELECT k + 1 FROM b", set(), "no column"),
    ("SELECT id FROM a UNION ((SELECT k FROM b) ORDER BY k LIMIT 3)", set(), "the first rows of all"),
    ("SELECT id FROM a WHERE id IN ((SELECT k FROM b) ORDER BY k LIMIT 3)", {0}, "the first rows of all"),
    (
        "SELECT x.id FROM ((SELECT id, k FROM a) ORDER BY k LIMIT 3) x LEFT JOIN b USING (id)",
        set(),
        "the first rows of all",
    ),
    ("SELECT a.id FROM a JOIN (b) ON a.id = b.id", {0}, "tables in brackets are not looked into"),
    ("SELECT a.id FROM (a LEFT JOIN c USING (k)) JOIN b ON a.id = b.id", {2}, "joins in brackets are not looked into"),
    ("SELECT a.id FROM a OUTER JOIN b ON a.id = b.id", set(), "a join that is not known"),
    ("SELECT b.id FROM a JOIN range(4) r ON a.s = r.id LEFT JOIN b ON b.s = r.id", {0}, "texts that mean one number"),
    (
        "SELECT id FROM a WHERE s IN (SELECT r.id FROM range(4) r JOIN b ON b.s = r.id)",
        {0},
        "texts that mean one number",
    ),
]
TOGETHER = [
    "SELECT count(*) AS n FROM a",
    "SELECT k, count(*) AS n FROM a GROUP BY ROLLUP (k)",
    "SELECT k, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), ())",
    "SELECT k, count(*) AS n FROM a GROUP BY k WITH ROLLUP",
    "SELECT k, count(*) AS n FROM a GROUP BY k GROUPING SETS ((k), ())",
    "SELECT k + 1 AS l, count(*) AS n FROM a GROUP BY k + 1 HAVING count(*) > 1",
    "SELECT DISTINCT k + 1 AS l FROM a",
    "SELECT +s AS l, count(DISTINCT id) AS n FROM a GROUP BY +s",
    "SELECT s.end AS x, count(*) AS n FROM (SELECT session_window(at, '1 hour') AS s FROM a) GROUP BY s",
    "SELECT id, rank() OVER (ORDER BY id) AS r FROM a",
    "SELECT id, sum(id) OVER w AS r FROM a WINDOW v AS (ORDER BY k), w AS v",
    "SELECT id, sum(id) OVER (PARTITION BY k) AS r, sum(id) OVER (PARTITION BY s) AS q FROM a",
    "SELECT k FROM a ORDER BY k LIMIT 3",
    "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n",
    "SELECT * FROM (SELECT id, k FROM a) PIVOT (sum(id) FOR k IN (1 AS one))",
    "SELECT s FROM a EXCEPT SELECT id + 1 FROM b",
    "SELECT d FROM a INTERSECT SELECT max(d) FROM b",
    "SELECT d FROM a EXCEPT (SELECT max(a.d) FROM a UNION SELECT max(d) FROM b)",
    "SELECT id FROM a EXCEPT SELECT max(f) FROM b",
]
"""Queries that look at rows of different keys together, or give the key as values of another type."""


def classes_of(query: str) -> KeyClasses:
    return analyzed(query).classes


@pytest.mark.parametrize(("query", "covers"), COVERED)
def test_columns_that_are_compared_as_equal_are_one_key(query: str, covers: list[dict[int, str]]) -> None:
    assert [dict(each.columns) for each in classes_of(query).classes] == covers


@pytest.mark.parametrize(("query", "columns", "output"), COMPUTED)
def test_a_key_may_be_computed(query: str, columns: dict[int, str], output: str) -> None:
    (key,) = (each for each in classes_of(query).classes if each.computed)
    assert (dict(key.columns), key.output) == (columns, output)
    assert key.computed == {at for at, column in columns.items() if not column.isidentifier()}


@pytest.mark.parametrize(("query", "why"), NOT_A_KEY)
def test_what_a_query_computes_is_no_key_if(query: str, why: str) -> None:
    assert not any(each.computed for each in classes_of(query).classes), why


def test_what_spark_pads_where_it_is_compared_chooses_no_key() -> None:
    columns = (Column("c", "CHAR(4)"), Column("s", "STRING"), Column("k", "INT"))
    query = "SELECT CASE WHEN {} = 'x' THEN 'a' ELSE 'b' END AS x, median(k) AS m FROM t GROUP BY 1"
    found = [analyze_relational(query.format(name), {"t": columns}).classes.of for name in ("s", "c")]
    assert found == [{0: 0}, {}]


@pytest.mark.parametrize(("query", "places", "why"), NOT_COVERED)
def test_no_key_covers_tables_whose_rows_may_meet_others_than_those_of_their_value(
    query: str, places: set[int], why: str
) -> None:
    assert set(classes_of(query).of) == places, why


@pytest.mark.parametrize("query", TOGETHER)
def test_no_key_covers_what_rows_of_several_values_meet_in(query: str) -> None:
    assert not classes_of(query).classes


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT DISTINCT d FROM a WHERE f = d", "d"),
        ("SELECT DISTINCT s FROM a WHERE id = s", "s"),
        ("SELECT x.m, count(*) AS n FROM a JOIN (SELECT max(d) AS m FROM b) x ON a.d = x.m GROUP BY x.m, a.d", None),
    ],
)
def test_a_column_of_another_type_does_not_tell_the_key(query: str, key: str | None) -> None:
    found = classes_of(query).classes
    assert [dict(each.columns) for each in found] == ([{0: key}] if key else [])
    assert all(f"`{key}`" in each.carrier for each in found)


@pytest.mark.parametrize(
    ("condition", "nulls"),
    [
        ("id NOT IN (SELECT k FROM b)", {(0, "id"), (1, "k")}),
        ("NOT (id IN (SELECT k FROM b))", {(0, "id"), (1, "k")}),
        ("id NOT IN (SELECT k FROM b WHERE id IS NOT NULL)", {(0, "id"), (1, "k")}),
        ("id NOT IN (SELECT k FROM b WHERE k IS NOT NULL)", {(0, "id")}),
        ("id NOT IN (SELECT k FROM b) AND id IS NOT NULL", {(1, "k")}),
        ("id NOT IN (SELECT k FROM b WHERE k IS NOT NULL OR s IS NULL) AND (id IS NOT NULL)", {(1, "k")}),
        ("id NOT IN (SELECT k FROM b WHERE k IS NOT NULL) AND id IS NOT NULL", set()),
    ],
)
def test_not_in_leads_to_a_key_but_is_none(condition: str, nulls: set[tuple[int, str]]) -> None:
    """A null in what it compares with refuses every row; null itself stays where there is nothing."""
    query = analyzed(f"SELECT id FROM a WHERE {condition}")
    assert [dict(each.columns) for each in query.classes.classes] == [{0: "id"}]
    assert set(query.steps(["b"]).nulls) == nulls
    assert query.steps(["a"]).nulls == ()


def test_a_key_that_the_query_gives_needs_no_column_of_its_own() -> None:
    query = analyzed("SELECT a.id AS number, b.s FROM a LEFT JOIN b ON a.id = b.k")
    assert query.classes.hidden == ()
    assert query.classes.classes[0].carrier == "xxhash64(CAST(`number` AS BIGINT))"
    assert "__class" not in query.template


def test_a_key_that_the_query_leaves_out_is_a_hidden_column() -> None:
    query = analyzed(
        "SELECT DISTINCT FROM_ FROM (SELECT b.s IS DISTINCT FROM a.s AS from_ FROM a LEFT JOIN b ON a.id = b.k)"
    )
    assert query.classes.classes == ()
    nameless = "SELECT id FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY d) AS place FROM a) WHERE place = 1"
    assert "`__auto_generated_subquery_name`.`k` AS BIGINT)) AS __class_0" in analyzed(nameless).template
    query = analyzed("SELECT a.s IS DISTINCT FROM 'x' AS odd FROM a LEFT JOIN b ON a.s = b.s")
    assert query.classes.classes[0].carrier == "`__class_0`"
    assert query.partners.classes[0].carrier == "", (
        "rows of the view do not tell keys by which only tables are compared"
    )
    assert "AS odd , xxhash64(rtrim(`a`.`s`)) AS __class_0 FROM {occurrence_0}" in query.template
    assert query.output_columns == ("odd",)


@pytest.mark.parametrize(("value", "key"), [("parse_json(s)", "s"), ("to_char(k, '999')", "CAST(k AS STRING)")])
def test_what_sqlglot_spells_as_a_key_does_not_tell_it(value: str, key: str) -> None:
    query = analyzed(f"SELECT {value} AS x, id, rank() OVER (PARTITION BY {key} ORDER BY id) AS r FROM a")
    assert query.classes.classes[0].carrier == "`__class_0`"


def test_two_keys_cover_what_one_does_not() -> None:
    query = analyzed("SELECT a.id, a.k FROM a LEFT JOIN b ON b.id = a.id LEFT JOIN c ON c.id = a.k")
    assert [dict(each.columns) for each in query.classes.classes] == [{0: "id", 1: "id"}, {0: "k", 2: "id"}]
    assert query.classes.of == {0: 0, 1: 0, 2: 1}
    assert query.classes.touched_by([1, 2]) == {0: [1], 1: [2]}


def test_what_changes_where_no_key_is_known_is_computed_in_full() -> None:
    query = analyzed("SELECT a.id FROM a LEFT JOIN b ON a.id = b.k LEFT JOIN c ON c.id > a.k")
    assert query.steps(["b"]).rule == "restricted"
    assert query.steps(["c"]).rule == query.steps(["b", "c"]).rule == "full"


def test_linear_places_follow_their_changes_beside_a_key() -> None:
    query = analyzed("SELECT a.id FROM a JOIN c ON a.k > c.k LEFT JOIN b ON b.id = a.id")
    assert query.steps(["c"]).rule == "linear"
    steps = query.steps(["a", "b", "c"])
    assert (steps.rule, steps.linear, steps.by_class) == ("restricted", (1,), {0: [0, 2]})


@pytest.mark.parametrize("query", ["FROM a SELECT {}", "WITH w AS (SELECT * FROM a) FROM w SELECT {}"])
def test_a_query_that_begins_with_from_has_no_place_for_hidden_columns(query: str) -> None:
    ranked = "rank() OVER (PARTITION BY id ORDER BY k) AS r"
    hidden = analyzed(query.format(f"k, {ranked}"))
    assert (hidden.classes.classes, hidden.steps(["a"]).rule) == ((), "full")
    assert analyzed(query.format(f"id, k, {ranked}")).steps(["a"]).rule == "restricted"
