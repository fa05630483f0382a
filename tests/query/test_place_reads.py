"""How Spark may read what a query names: only some of its rows."""

import pytest

from tests.query.test_relational import analyzed


@pytest.mark.parametrize(
    ("condition", "in_part"),
    [
        ("t.id IN (SELECT id FROM u)", ""),
        ("EXISTS (SELECT 1 FROM u)", "u"),
        ("NOT EXISTS (SELECT 1 FROM u WHERE id = 3)", "u"),
        ("t.id = 1 OR EXISTS (SELECT 1 FROM T AS x JOIN u ON x.id = u.id)", "tu"),
        ("EXISTS (SELECT 1 FROM best)", "u"),
    ],
)
def test_of_what_a_query_only_asks_whether_it_exists_some_rows_may_be_read(condition: str, in_part: str) -> None:
    query = f"WITH best AS (SELECT id FROM u) SELECT t.id FROM t JOIN best USING (id) WHERE {condition}"
    assert analyzed(query).read_in_part == set(in_part)
