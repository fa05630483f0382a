"""Which columns of an upstream a query may refer to: with these alone it has the same meaning as with all of them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import analyze, input_columns, key_of_text, named_in
from backfill_assets.query.rowwise import RowwiseQuery

NAMES = ["id", "price", "qty", "total", "day", "At", "odd name", "a`b", "s", "left"]
ALL = tuple(Column(name, "STRUCT<p: INT, q: INT>" if name == "s" else "BIGINT") for name in NAMES)

ALL_OF_T = re.compile(r"\(SELECT [^()]* FROM `t`\)")
"""The places where the SQL of a part names all columns of the upstream."""

ROWWISE = [
    "SELECT id, price * qty AS total, total * 2 AS tax FROM t",
    "SELECT id, t.price AS p FROM t WHERE QTY > 1 /* total */",
    "SELECT `odd name` AS odd, `a``b` AS b FROM t",
    "SELECT s.p AS p, transform(array(price), qty -> qty + 1) AS x FROM t",
    "SELECT id AS day, DAY + 1 AS next FROM t WHERE `at` = 1",
    "SELECT 1 AS one FROM t",
]
STARS = [
    *("SELECT * FROM t", "SELECT t.* FROM t", "SELECT id AS key, * FROM t", "SELECT ALL * FROM t"),
    *("SELECT hash(*) AS h FROM t", "SELECT to_json(struct(*)) AS h FROM t", "SELECT id FROM (FROM t UNION FROM t)"),
    *("SELECT count(DISTINCT *) AS n FROM t", "SELECT count(t.*) AS n FROM t"),
    "SELECT lag(id) OVER (ORDER BY day, struct(*)) AS n FROM t",
    *("SELECT price FROM t NATURAL JOIN t AS u", "SELECT price FROM t NATURAL LEFT JOIN t AS u"),
    "SELECT one FROM t PIVOT (sum(qty) FOR id IN (1 AS one))",
    "SELECT b FROM t AS x(a, b)",
]
GROUPED = [
    "SELECT day AS d, count(*) AS n FROM t GROUP BY d",
    "SELECT date(at) AS day, sum(price * qty) AS total FROM t GROUP BY 1",
    "SELECT qty * 2 AS left, count(*) AS n FROM t GROUP BY qty * 2",
]


@pytest.mark.parametrize("query", [*ROWWISE, *GROUPED])
@given(present=st.sets(st.sampled_from(NAMES)), data=st.data())
def test_columns_that_come_and_are_not_named_change_nothing(query: str, present: set[str], data: st.DataObject) -> None:
    """Also if only some of the columns exist: a query that is refused is refused in the same way."""
    columns = tuple(column for column in ALL if column.name in present | {"id"})
    named = named_in(query, columns, ("id",))
    unnamed = [column for column in columns if column not in named]
    fewer = tuple(column for column in columns if column not in unnamed or data.draw(st.booleans()))
    assert told(query, columns) == told(query, fewer) == told(query, named)


def told(query: str, columns: tuple[Column, ...]) -> object:
    try:
        analyzed = analyze(query, {"t": columns}, {"t": ("id",)})
    except Exception as error:
        return type(error)
    if isinstance(analyzed, RowwiseQuery):
        parts = [ALL_OF_T.sub("t", branch.sql) for branch in analyzed.branches]
        return (parts, analyzed.key_columns, analyzed.output_columns)
    assert isinstance(analyzed, AggregateQuery)
    return (analyzed.groups, analyzed.arguments, analyzed.outputs, analyzed.columns)


@pytest.mark.parametrize("query", STARS)
def test_a_star_means_all_columns_in_their_order(query: str) -> None:
    assert named_in(query, ALL) == ALL


@pytest.mark.parametrize(
    "query",
    [
        "SELECT price * qty AS x FROM t",
        "SELECT qty AS q, count(*) AS n FROM t GROUP BY q",
        "SELECT count(*) FILTER (WHERE qty > 1) AS n FROM t JOIN t AS u USING (id)",
        "SELECT k, v FROM t UNPIVOT (v FOR k IN (price, qty))",
    ],
)
def test_a_product_a_count_and_joins_by_names_are_not_a_star(query: str) -> None:
    assert Column("total", "BIGINT") not in named_in(query, ALL)


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT id, qty FROM t WHERE price > 1", ("id",)),
        ("SELECT day, count(*) AS n FROM t GROUP BY day", ("day",)),
        ("SELECT id, qty FROM u", None),
        ("SELECT day, first(qty) AS q FROM t GROUP BY day", None),
        ("SELECT qty + 1 FROM t", None),
    ],
)
def test_a_text_tells_the_key_of_its_rows_or_none_if_it_is_wrong(query: str, key: tuple[str, ...] | None) -> None:
    assert key_of_text(query, (("t", ("id",)),)) == key


@pytest.mark.parametrize("name", ["st", "elect", "a", "ric", "i", "summe", "é", "1", "pricelist"])
def test_a_name_within_a_word_or_in_a_comment_is_not_named(name: str) -> None:
    assert not named_in("SELECT DISTINCT sum(price) AS total, `café` FROM t -- pricelist", [Column(name, "INT")])


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT t.Price*2 FROM t", "pRICE"),
        ("SELECT 'x'AS a,`a``b`FROM t", "a`b"),
        ("SELECT `a b` FROM t", "a b"),
        ("SELECT date'2020-01-01'>day FROM t", "day"),
        ("SELECT 1+1a FROM t", "1a"),
        ("SELECT größe FROM t", "Größe"),
        ("SELECT id FROM t GROUP BY id", "by"),
        ("SELECT `größe` FROM t", "größe"),
    ],
)
def test_a_name_is_found_in_any_case_and_spelling(query: str, name: str) -> None:
    assert named_in(query, [Column(name, "INT")]) == (Column(name, "INT"),)


@pytest.mark.parametrize(("query", "name"), [(ROWWISE[0], "total"), (ROWWISE[4], "day")])
def test_a_name_that_the_query_gives_may_be_a_column_too(query: str, name: str) -> None:
    """Where it occurs again, Spark takes a column of the upstream before the one that the query gives."""
    assert Column(name, "BIGINT") in named_in(query, ALL)


def test_the_key_is_meant_though_the_query_does_not_name_it() -> None:
    assert [column.name for column in named_in("SELECT price FROM t", ALL, ("day",))] == ["price", "day"]


def test_inputs_have_the_columns_that_the_query_was_analyzed_over() -> None:
    known = named_in(ROWWISE[0], ALL, ("id",))
    assert input_columns(analyze(ROWWISE[0], {"t": known}, {"t": ("id",)})) == {"t": known}
    grouped = analyze(GROUPED[1], {"t": ALL}, {"t": ("id",)})
    assert [column.name for column in input_columns(grouped)["t"]] == ["price", "qty", "At"]
