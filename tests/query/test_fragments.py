"""Where in a query's text a fragment is that Spark names."""

import pytest

from backfill_assets.query.fragments import placed
from backfill_assets.query.refusals import refused_by_spark

FOUND = [
    ("SELECT t.id, u.missing\nFROM t JOIN u USING (id)", "u.missing", "line 1, column 14"),
    ("SELECT t.id,\n  u . MISSING\nFROM t JOIN u USING (id)", "u.missing", "line 2, column 3"),
    ("SELECT t.id,\n /* u.missing */ t.a  + array(1) AS s FROM t", "t.a + array ( 1 )", "line 2, column 18"),
    ("SELECT 'u.missing' AS a, u.missing FROM u", "u.missing", "line 1, column 26"),
]
LEFT = [
    ("SELECT missing, missing AS m FROM t", "missing"),
    ("SELECT id FROM t", "other"),
    ("SELECT id FROM t", ""),
    ("SELECT id FROM t", "'open"),
]


@pytest.mark.parametrize(("query", "fragment", "where"), FOUND)
def test_a_fragment_is_found_whatever_its_spaces_and_case(query: str, fragment: str, where: str) -> None:
    error = placed(refused_by_spark("[CODE] no", fragment), query)
    assert (error.message, error.reason) == (f"Spark refuses {fragment} in {where}: [CODE] no", "SPARK")


@pytest.mark.parametrize(("query", "fragment"), LEFT)
def test_one_that_the_text_has_twice_or_never_has_no_place(query: str, fragment: str) -> None:
    error = refused_by_spark("[CODE] no", fragment)
    assert placed(error, query) is error
