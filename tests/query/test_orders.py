"""Orders that are completed: by columns that the text does not name, in QUALIFY, and by the WINDOW clause."""

import re

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze, spelled

M = parse_schema("id INT, k INT, m MAP<STRING, INT>, deep ARRAY<MAP<STRING, INT>>")
TABLES = {
    "t": parse_schema("id BIGINT, name STRING, at TIMESTAMP"),
    "u": parse_schema("id BIGINT, x INT, __c BIGINT"),
    "o": parse_schema("id BIGINT, offset BIGINT, limit INT, all INT"),
    "m": M,
    "n": parse_schema("_1 INT, _2 INT"),
}
"""A column whose name begins with two underscores is a hidden one of a view."""

COMPLETED = [
    ("SELECT * FROM t ORDER BY name LIMIT 2", "ORDER BY name, 1, 2, 3 LIMIT 2"),
    ("SELECT u.* FROM t JOIN u USING (id) ORDER BY at DESC LIMIT 2", "ORDER BY at DESC, 1, 2 LIMIT 2"),
    ("SELECT * FROM t JOIN u USING (id) ORDER BY at LIMIT 2", "ORDER BY at, 1, 2, 3, 4 LIMIT 2"),
    ("SELECT * FROM t NATURAL JOIN u ORDER BY at LIMIT 2", "ORDER BY at, 1, 2, 3, 4 LIMIT 2"),
    ("SELECT * EXCEPT (at), id + 1 AS more FROM t ORDER BY more LIMIT 2", "ORDER BY more, 1, 2, 3 LIMIT 2"),
    ("SELECT * FROM t LEFT ANTI JOIN u ON t.id = u.x ORDER BY at LIMIT 2", "ORDER BY at, 1, 2, 3 LIMIT 2"),
    ("WITH w AS (SELECT *, 1 AS one FROM u) SELECT * FROM w ORDER BY x LIMIT 2", "ORDER BY x, 1, 2, 3 LIMIT 2"),
    ("SELECT id FROM (SELECT * FROM u ORDER BY x LIMIT 5) LEFT JOIN t USING (id)", "ORDER BY x, 1, 2 LIMIT 5"),
    ("SELECT id FROM t WHERE id IN (SELECT x FROM u ORDER BY x LIMIT 1) ORDER BY ALL LIMIT 2", "ORDER BY ALL LIMIT 2"),
    ("SELECT * FROM u UNION ALL SELECT id, 1 FROM t ORDER BY x OFFSET 2", "ORDER BY x, 1, 2 OFFSET 2"),
    (
        "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY name ORDER BY at) = 1",
        "ORDER BY at, `t`.`id`, `t`.`name`, `t`.`at`)",
    ),
    ("SELECT id FROM t o QUALIFY 1 < lag(id) OVER (ORDER BY id)", "ORDER BY id, `o`.`id`)"),
    (
        "SELECT s.x FROM t JOIN u s USING (id) QUALIFY first(s.id) OVER (ORDER BY x) = 1",
        "ORDER BY x, `t`.`id`, `s`.`id`, `s`.`x`)",
    ),
    (
        "SELECT x FROM (SELECT x, id + 1 AS y FROM u) QUALIFY row_number() OVER (ORDER BY x) = 1",
        "ORDER BY x, `__auto_generated_subquery_name`.`x`, `__auto_generated_subquery_name`.`y`)",
    ),
    (
        "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM u",
        "ORDER BY x, struct(*) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ),
    (
        "SELECT o.id FROM (SELECT id, sum(id) OVER w AS s FROM t WINDOW w AS (ORDER BY at ROWS 1 PRECEDING)) AS o "
        "JOIN (SELECT sum(id) OVER w AS s FROM u WINDOW w AS (ORDER BY x ROWS 2 PRECEDING)) AS p ON o.s = p.s",
        "OVER (ORDER BY x, struct(*) ROWS 2 PRECEDING)",
    ),
    (
        "SELECT sum(x) OVER v AS s FROM u WINDOW w AS (ORDER BY x ROWS 1 PRECEDING), v AS w",
        "sum(x) OVER (ORDER BY x, struct(*) ROWS 1 PRECEDING) AS s",
    ),
    (
        "SELECT sum(x) OVER v AS s FROM u WINDOW w AS (ORDER BY x ROWS 1 PRECEDING), v AS (w)",
        "sum(x) OVER (ORDER BY x, struct(*) ROWS 1 PRECEDING) AS s",
    ),
    ("SELECT nth_value(x, 2) OVER (PARTITION BY id ORDER BY x) AS n FROM u", "OVER (PARTITION BY id ORDER BY x)"),
    ("SELECT last(id) IGNORE NULLS OVER (PARTITION BY id ORDER BY x) AS n FROM u", "OVER (PARTITION BY id ORDER BY x)"),
    ("SELECT first(id) OVER (PARTITION BY x ORDER BY x) AS n FROM u", "OVER (PARTITION BY x ORDER BY x, struct(*))"),
    (
        "SELECT u.id, row_number() OVER (ORDER BY x) AS n FROM t JOIN u USING (id)",
        "OVER (ORDER BY x, `t`.`id`, `u`.`id`, `u`.`x`)",
    ),
    (
        "SELECT x, sum(max(id)) OVER (PARTITION BY x ORDER BY x ROWS 1 PRECEDING) AS id FROM u GROUP BY x, id",
        "OVER (PARTITION BY x ORDER BY x, x, id ROWS 1 PRECEDING)",
    ),
    ("SELECT id FROM o ORDER BY all LIMIT 3", "ORDER BY all, 1 LIMIT 3"),
    ("SELECT id + 1 AS all FROM u ORDER BY all LIMIT 3", "ORDER BY all, 1 LIMIT 3"),
    ("SELECT x AS all FROM u UNION ALL SELECT id FROM t ORDER BY all LIMIT 3", "ORDER BY all, 1 LIMIT 3"),
    ("SELECT offset, id FROM o ORDER BY offset LIMIT 3", "ORDER BY offset, 1, 2 LIMIT 3"),
    ("SELECT offset, id FROM o ORDER BY id, o.offset DESC OFFSET 3", "ORDER BY id, o.offset DESC, 1, 2 OFFSET 3"),
    ("SELECT _1 FROM n QUALIFY row_number() OVER (ORDER BY _2) = 1", "ORDER BY _2, `n`.`_1`, `n`.`_2`)"),
    ("SELECT limit FROM o ORDER BY id + limit LIMIT 3", "ORDER BY id + limit, 1 LIMIT 3"),
    (
        "SELECT offset, row_number() OVER (ORDER BY count(*)) AS n FROM o GROUP BY offset",
        "OVER (ORDER BY count(*), offset)",
    ),
    ("SELECT limit all FROM o GROUP BY limit HAVING count(*) > 1", "select limit all from o"),
    (
        "SELECT id FROM (SELECT id, x FROM u ORDER BY x LIMIT 3) WHERE id IN (SELECT 1 ORDER BY 1 LIMIT 1)",
        "FROM u ORDER BY x, 1, 2 LIMIT 3)",
    ),
    (
        "SELECT id, rank() OVER w AS r FROM u ORDER BY x WINDOW w AS (ORDER BY x) LIMIT 3",
        "ORDER BY x, 1, 2 WINDOW w AS (ORDER BY x) LIMIT 3",
    ),
    ("SELECT posexplode(array(id)) AS (p, v) FROM u ORDER BY p LIMIT 2", "ORDER BY p, 1, 2 LIMIT 2"),
    ("SELECT id, x FROM u LIMIT 2 ORDER BY x", "LIMIT 2 ORDER BY x, 1, 2"),
    (
        "SELECT id, kk FROM m LATERAL VIEW explode(m) e AS kk, vv ORDER BY id LIMIT 3",
        "ORDER BY id, 1, 2 LIMIT 3",
    ),
    ("SELECT id, row_number() OVER (ORDER BY at) AS n FROM t QUALIFY n = 1", "ORDER BY at, struct(*))"),
    ("SELECT x FROM u GROUP BY x QUALIFY ntile(2) OVER (ORDER BY count(*)) = 1", "ORDER BY count(*), x)"),
    ("SELECT max(x) AS m FROM u QUALIFY row_number() OVER (ORDER BY max(id)) = 1", "ORDER BY max(id))"),
    (
        "SELECT row_number() OVER w AS n, rank() OVER w AS r FROM u WINDOW w AS (PARTITION BY id ORDER BY x)",
        "row_number() OVER (PARTITION BY id ORDER BY x, struct(*)) AS n, rank() OVER (PARTITION BY id ORDER BY x) AS r",
    ),
    (
        "SELECT sum(x) OVER (w) AS n FROM u WINDOW v AS (ORDER BY id), w AS (ORDER BY x rows 1 PRECEDING)",
        "sum(x) OVER (ORDER BY x, struct(*) rows 1 PRECEDING) AS n",
    ),
    (
        "SELECT x FROM u QUALIFY row_number() OVER w = 1 WINDOW w AS (ORDER BY x)",
        "QUALIFY row_number() OVER (ORDER BY x, `u`.`x`) = 1 WINDOW",
    ),
    (
        "SELECT sum(x) OVER (DISTRIBUTE BY id SORT BY x ROWS 1 PRECEDING) AS n FROM u",
        "OVER (DISTRIBUTE BY id SORT BY x, struct(*) ROWS 1 PRECEDING)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "part"), COMPLETED)
def test_an_order_is_completed_by_what_tells_rows_apart(query: str, part: str) -> None:
    tables = {name: each for name, each in TABLES.items() if re.search(rf"\b(FROM|JOIN) {name}\b", query)}
    keys = dict.fromkeys(tables, ("id",))
    analyzed = analyze(query, tables, keys)
    assert squeezed(part) in squeezed(analyzed.text)
    # What is declared is completed as far as it is known then, and completed once.
    declared = spelled(query, list(tables))
    assert analyze(declared, tables, keys).text == analyzed.text
    assert spelled(declared, list(tables)) == declared
    assert analyze(analyzed.text, tables, keys).text == analyzed.text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT id AS over FROM u ORDER BY over",
        "SELECT DISTINCT max(id) over FROM u",
        "SELECT id, first_value(x) OVER (ORDER BY over, struct(*)) AS over FROM (SELECT id, x, (id) over FROM u) AS s",
        "SELECT DISTINCT id FROM (SELECT id AS over, id FROM u) AS s WHERE (id) > over",
    ],
)
def test_a_column_may_be_called_over(query: str) -> None:
    assert squeezed(spelled(query, ["u"])) == squeezed(query)


OF_MAPS = [
    ("SELECT id, m FROM m ORDER BY id LIMIT 2", "ORDER BY id, 1, array_sort(map_entries(`m`)) LIMIT 2"),
    ("SELECT * EXCEPT (deep) FROM m ORDER BY id LIMIT 2", "ORDER BY id, 1, 2, array_sort(map_entries(`m`)) LIMIT 2"),
    (
        "SELECT row_number() OVER (ORDER BY id) AS n FROM (SELECT id, m AS n FROM m) AS s",
        "OVER (ORDER BY id, `s`.`id`, array_sort(map_entries(`s`.`n`)))",
    ),
    (
        "SELECT lag(id) OVER w AS n FROM (SELECT id, m FROM m) s WINDOW w AS (ORDER BY id)",
        "OVER (ORDER BY id, `s`.`id`, array_sort(map_entries(`s`.`m`)))",
    ),
    (
        "SELECT lag(id) OVER (ORDER BY id) AS n, row_number() OVER (ORDER BY k) AS k, m FROM m",
        "OVER (ORDER BY id, `m`.`id`, `m`.`k`, array_sort(map_entries(`m`.`m`)))",
    ),
    (
        "SELECT id, map_filter(m, (a, b) -> b > 1) AS f FROM m ORDER BY k LIMIT 2",
        "ORDER BY k, 1, array_sort(map_entries(`f`)) LIMIT 2",
    ),
    (
        "SELECT id, parse_json('1') AS j, variant_get(parse_json('1'), '$', 'int') AS i FROM m ORDER BY k LIMIT 2",
        "ORDER BY k, 1, to_json(`j`), schema_of_variant(`j`), 3 LIMIT 2",
    ),
    (
        "SELECT id FROM (SELECT id, variant_get(parse_json('1'), '$') AS v FROM m) s QUALIFY lag(id) OVER (ORDER BY id) = 1",
        "OVER (ORDER BY id, `s`.`id`, to_json(`s`.`v`), schema_of_variant(`s`.`v`))",
    ),
    (
        "SELECT id FROM m QUALIFY row_number() OVER (ORDER BY m['x']) = 1",
        "ORDER BY m['x'], `m`.`id`, array_sort(map_entries(`m`.`m`)))",
    ),
]


@pytest.mark.parametrize(("query", "part"), OF_MAPS)
def test_maps_are_ordered_by_their_entries(query: str, part: str) -> None:
    found = analyze(query, {"m": M}, {"m": ("id",)}, ("n",) if " AS n" in query else ("id",)).text
    assert squeezed(part) in squeezed(found)
    declared = spelled(query, ["m"])
    assert analyze(declared, {"m": M}, {"m": ("id",)}).text == found == analyze(found, {"m": M}, {"m": ("id",)}).text


@pytest.mark.parametrize(
    "query", ["SELECT * FROM m ORDER BY id LIMIT 2", "SELECT lag(id) OVER (ORDER BY id) AS n, size(deep) FROM m"]
)
def test_maps_within_other_types_are_refused(query: str) -> None:
    with pytest.raises(
        QueryError, match="rows cannot be ordered by the column deep, which has a map or a VARIANT"
    ) as caught:
        analyze(query, {"m": M}, {"m": ("id",)})
    assert caught.value.reason == "ORDER_NOT_TOTAL"


@pytest.mark.parametrize(
    "window",
    [
        "PARTITION BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "PARTITION BY x ORDER BY id rows between unbounded PRECEDING and unbounded FOLLOWING",
        "PARTITION BY x ORDER BY id",
        "PARTITION BY x",
    ],
)
def test_a_sum_of_all_rows_of_a_window_needs_no_order(window: str) -> None:
    query = f"SELECT id, sum(id) OVER ({window}) AS s FROM u"
    assert squeezed(spelled(query, ["u"])) == squeezed(query)


def squeezed(text: str) -> str:
    return "".join(text.lower().split())


@pytest.mark.parametrize("clause", ["LIMIT 3", "OFFSET 3"])
def test_the_clause_that_takes_some_rows_is_named(clause: str) -> None:
    with pytest.raises(QueryError, match=f"the query has {clause[:-2]} in line 1"):
        spelled(f"SELECT id FROM t {clause}", ["t"])
