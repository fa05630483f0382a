"""Where in a query something is refused, as its author wrote it."""

import pytest

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import QueryError

REFUSED = [
    ("SELECT id,\n  rand() AS r FROM a", "calls rand() in line 2, column 3"),
    ("SELECT a.id, uuid() AS u FROM a JOIN a b USING (id)", "calls uuid() in line 1, column 14"),
    ("SELECT id\nFROM a\nWHERE at > now()", "calls now() in line 3, column 12"),
    ("SELECT id,\n max_by(k, v) AS m FROM a GROUP BY id", "calls max_by() in line 2, column 2"),
    ("SELECT id, min_by(k) AS m FROM a GROUP BY id", "calls min_by() in line 1, column 12"),
    ("SELECT unix_timestamp(at) AS a,\n unix_timestamp() AS s FROM a", "calls unix_timestamp() in line 2, column 2"),
    ("SELECT id FROM nope", "reads from 'nope' in line 1, column 16"),
    ("SELECT id, row_number() OVER () AS n FROM a", "rows in no order in line 1, column 25"),
    ("SELECT id,\n  k + 1 FROM a", "column k + 1 in line 2, column 3 has no name"),
    ("SELECT id,\n (SELECT max(k) FROM a) FROM a", "in line 2, column 10 has no name"),
    ("SELECT k,\n CAST(CAST(id AS INT) AS STRING) FROM a", "in line 2, column 12 has no name"),
    ("SELECT k, id COLLATE UTF8_LCASE AS i FROM a", "a collation in line 1, column 11, by"),
    ("SELECT CAST(id AS STRING COLLATE UTF8_LCASE) AS i FROM a", "a collation in line 1, column 13, by"),
    ("SELECT id, k AS\n ID FROM a", "returns 'ID' in line 1, column 12 a second time"),
    ("SELECT id, stack(2, 1, 2, 3, 4) AS (b, Id) FROM a", "returns 'Id' in line 1, column"),
    ("SELECT id AS `a b` FROM a JOIN a AS b USING (id)", "'a b' in line 1, column 8 has characters"),
    ("SELECT id AS __id FROM a", "'__id' in line 1, column 8 begins with"),
    ("SELECT id FROM a\nLIMIT 3", "LIMIT in line 2, column 7 without ORDER BY"),
    ("SELECT id FROM a WHERE at >\n TIMESTAMP '12:30'", "the text '12:30' in line 2, column 12, which"),
    ("SELECT id FROM a UNION ALL\nSELECT id, k FROM a", "different numbers of columns: 1, and 2 in line 2, column 8"),
    ("SELECT id FROM a INTERSECT SELECT id, k FROM a", "the parts of INTERSECT have different numbers"),
    ("SELECT k, count(*) AS n FROM a\nGROUP BY 5", "GROUP BY 5 in line 2, column 10 names none of the 2 columns"),
    ("SELECT current_date AS d FROM a", "has current_date in line 1, column 8, which"),
    (
        "SELECT id FROM a JOIN a AS b USING (id)\nWHERE b.at > current_timestamp",
        "current_timestamp in line 2, column 14",
    ),
    (
        "SELECT * FROM a JOIN a AS b USING (id)\nPIVOT (sum(a.x) FOR b.y IN (1))",
        "the query has PIVOT after a join in line 2",
    ),
    ("SELECT id, v FROM a JOIN a AS b USING (id) UNPIVOT (v FOR n IN (x, y))", "the query has UNPIVOT after a join"),
    ("SELECT id FROM a\n  |> SET x = 1", "SET in line 2, column 6 after |>"),
]


def over_a(query: str) -> MaterializedView:
    return materialized_view("v", query=query, upstreams=[delta_table("a", path="lake/a", primary_key="id")])


@pytest.mark.parametrize(("query", "said"), REFUSED)
def test_a_refusal_says_where(query: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        over_a(query)
    assert said in caught.value.message


OVER_RECORDS = [
    ("SELECT id,\n  nope FROM a", "has no column 'nope', which the query names in line 2, column 3"),
    ("SELECT id FROM a\nWHERE at > 'today'", "the text 'today' in line 2, column 12, which"),
    ("SELECT id,\n  count(*) AS n, at\nFROM a GROUP BY id", "uses `at` in line 2, column 18, which is not grouped"),
    ("SELECT * EXCEPT (nope) FROM a", "has no column 'nope', which the query names in line 1"),
]


@pytest.mark.parametrize(("query", "said"), OVER_RECORDS)
def test_a_refusal_that_takes_the_columns_says_where(query: str, said: str) -> None:
    source = kafka_source("a", topic="a", schema="id LONG, at TIMESTAMP")
    with pytest.raises(QueryError) as caught:
        materialized_view("v", query=query, upstreams=[source])
    assert said in caught.value.message


NO_SQL = [
    "SELECT map(id) AS m FROM a",
    "SELECT FROM a MINUS SELECT id FROM a",
    "SELECT * x FROM a UNION SELECT * FROM a",
    "SELECT 1 AS a, u.x JOIN a ON true",
    "SELECT id -- a \\\n, x\nFROM a",
    "SELECT id FROM a ORDER BY x LIMIT 'all'",
    "SELECT id, max_by(k, struct(v, k) FROM a GROUP BY id",
]


@pytest.mark.parametrize("query", NO_SQL)
def test_what_is_no_sql_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        over_a(query)


ACCEPTED = [
    "SELECT CAST(a.id AS INT), b.k::int FROM a JOIN a AS b ON a.id = b.k",
    "SELECT k, count(*) AS n FROM a GROUP BY 99999999999, k",
    "SELECT 1, 'x', NULL, id FROM a",
    "SELECT explode(ids), k FROM a",
    "SELECT *, k AS k2 FROM a",
    "SELECT a.*, k AS id2 FROM a",
    "SELECT (k), s.f FROM a",
    "SELECT * FROM a UNION ALL SELECT id, k FROM a",
    "SELECT id AS one, k FROM a GROUP BY 2, 1",
    "SELECT id FROM a WHERE k > '12:30'",
]


@pytest.mark.parametrize("query", ACCEPTED)
def test_what_the_text_does_not_tell_is_left_to_the_columns_of_tables(query: str) -> None:
    assert over_a(query).text
