"""Columns of one name that joins make one column of are the first of them, if the others equal it or are missing."""

import pytest

from tests.support.three_tables import analyzed

WINDOW = "SELECT a.d, row_number() OVER (PARTITION BY {} ORDER BY a.d, a.s, a.f) AS r FROM {}"
FIRST = [
    ("id", "a JOIN b USING (id) JOIN c USING (id)"),
    ("id", "a LEFT JOIN b USING (id) LEFT JOIN c USING (id)"),
    ("id", "a JOIN b USING (id) LEFT JOIN c USING (id)"),
    ("id", "a LEFT JOIN b USING (k, id) LEFT JOIN c USING (id, k)"),
    ("coalesce(a.id, b.id, c.id)", "a LEFT JOIN b ON a.id = b.id LEFT JOIN c ON b.id = c.id"),
]
NOT_FIRST = [
    ("id", "a FULL JOIN b USING (id) JOIN c USING (id)", "it may be missing"),
    ("coalesce(a.id, b.id, c.id)", "a RIGHT JOIN b ON a.id = b.id LEFT JOIN c ON b.id = c.id", "it may be missing"),
    ("coalesce(a.id, b.id, c.id)", "a LEFT JOIN b ON a.id = b.id LEFT JOIN c ON c.id > b.id", "one is not equal"),
    ("coalesce(a.id, b.k)", "a LEFT JOIN b ON a.id = b.id", "another column"),
    ("coalesce(a.id, c.k)", "a LEFT JOIN c ON a.k = c.k", "it equals another column"),
    ("coalesce(b.id, c.id)", "a LEFT JOIN b ON a.id = b.id LEFT JOIN c ON a.id = c.id", "only the first is missing"),
]


@pytest.mark.parametrize(("key", "tables"), FIRST)
def test_a_merged_column_is_that_of_the_first_table(key: str, tables: str) -> None:
    query = analyzed(WINDOW.format(key, tables))
    assert query.steps(["a"]).rule == "restricted"
    assert query.classes.classes[0].columns[0] == "id"


@pytest.mark.parametrize(("key", "tables", "why"), NOT_FIRST)
def test_no_merged_column_is_that_of_the_first_table_if(key: str, tables: str, why: str) -> None:
    query = analyzed(WINDOW.format(key, tables))
    assert query.steps(["a"]).rule == "full", why


def test_a_merged_column_of_a_full_join_is_that_of_both_tables() -> None:
    query = analyzed(WINDOW.format("id", "a FULL JOIN b USING (id)"))
    assert dict(query.classes.classes[0].columns) == {0: "id", 1: "id"}
    assert query.steps(["a", "b"]).rule == "restricted"
