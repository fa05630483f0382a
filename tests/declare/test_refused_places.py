"""Where in a query something is refused, as its author wrote it."""

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.errors import QueryError

REFUSED = [
    ("SELECT id,\n  rand() AS r FROM a", "calls rand() in line 2, column 3"),
    ("SELECT a.id, uuid() AS u FROM a JOIN a b USING (id)", "calls uuid() in line 1, column 14"),
    ("SELECT id\nFROM a\nWHERE at > now()", "calls now() in line 3, column 12"),
    ("SELECT id,\n max_by(k, v) AS m FROM a GROUP BY id", "calls max_by() in line 2, column 2"),
    ("SELECT unix_timestamp(at) AS a,\n unix_timestamp() AS s FROM a", "calls unix_timestamp() in line 2, column 2"),
    ("SELECT id FROM nope", "reads from 'nope' in line 1, column 16"),
    ("SELECT id, row_number() OVER () AS n FROM a", "rows in no order in line 1, column 25"),
    ("SELECT id FROM a\n  |> WHERE x", "the pipe operator |> in line 2, column 3"),
]


@pytest.mark.parametrize(("query", "said"), REFUSED)
def test_a_refusal_says_where(query: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        materialized_view("v", query=query, upstreams=[delta_table("a", path="lake/a", primary_key="id")])
    assert said in caught.value.message
