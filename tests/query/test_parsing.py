"""What a text is read as, and what is said of one that lacks a part."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import analyze

TABLES = {"one": parse_schema("id INT, code STRING, a INT")}


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UTF8_BINARY", "`UNICODE_CI`"])
def test_the_name_of_a_collation_is_no_column(collation: str) -> None:
    query = (
        f"SELECT id FROM one WHERE CAST(code AS STRING COLLATE {collation}) = CAST('x' AS STRING COLLATE {collation})"
    )
    assert analyze(query, TABLES, {"one": ("id",)}).output_columns == ("id",)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT a FROM one WHERE", "line 1, column 19, at 'WHERE': something is missing after it"),
        ("SELECT a FROM one GROUP BY", "GROUP BY names nothing to group by"),
    ],
)
def test_a_clause_that_lacks_what_belongs_to_it_is_named(query: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        analyze(query, TABLES)
    error = caught.value
    assert (error.reason, said in error.message, "backquotes" in error.hint) == ("SYNTAX", True, False)
