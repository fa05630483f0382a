"""Column lists: which are accepted, their canonical text, and the message of each refusal."""

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.query.ddl import Column, ddl, parse_schema


def test_types_come_back_under_sparks_own_names() -> None:
    columns = parse_schema(
        "a LONG, b decimal(12, 2), `odd-name` ARRAY<STRUCT<x: INT, y MAP<STRING, SHORT>>>, at TIMESTAMP_LTZ"
    )
    assert columns == (
        Column("a", "BIGINT"),
        Column("b", "DECIMAL(12,2)"),
        Column("odd-name", "ARRAY<STRUCT<x: INT, y: MAP<STRING, SMALLINT>>>"),
        Column("at", "TIMESTAMP"),
    )


@pytest.mark.parametrize(
    "written", ["a INT, b STRING", "a: INT, b: STRING", " a  integer ,\n b string ", "`a` INT, `b` STRING"]
)
def test_lists_that_mean_the_same_have_equal_text(written: str) -> None:
    assert ddl(parse_schema(written)) == "a INT, b STRING"


def test_the_text_reads_back_as_the_same_columns() -> None:
    columns = parse_schema("n NUMERIC, d DEC(3), `from` INT, t TIMESTAMP_NTZ, nested STRUCT<`x.y`: ARRAY<BINARY>>")
    assert parse_schema(ddl(columns)) == columns


REFUSED = [
    ("", "no columns"),
    ("   ", "no columns"),
    ("a", "cannot be read"),
    ("a FOO", "cannot be read"),
    ("a INT b INT", "cannot be read"),
    ("INT, b STRING", "'INT' is not a column with a name and a type"),
    ("a STRUCT<INT, STRING>", "'INT' is not a column with a name and a type"),
    ("a INT) USING csv --", "cannot be read"),
    ("a INT>, b STRUCT<c INT", "cannot be read"),
    ("a STRUCT<>", "cannot be read"),
    ("a INT, PRIMARY KEY (a)", "cannot be read"),
    ("a INT, A STRING", "'A' occurs twice"),
    ("s STRUCT<x INT, X INT>", "'s.X' occurs twice"),
    ("a INT NOT NULL", "'NOT NULL'"),
    ("s STRUCT<x INT NOT NULL>", "'s.x' has more than a name and a type"),
    ("a INT COMMENT 'x'", "COMMENT"),
    ("a INT DEFAULT 3", "DEFAULT"),
    ("a INTERVAL DAY", "type INTERVAL DAY, which a source cannot have"),
    ("a VARIANT", "type VARIANT, which a source cannot have"),
    ("a VARCHAR(3)", "type VARCHAR\\(3\\), which a source cannot have"),
    ("a ARRAY", "type ARRAY, which a source cannot have"),
    ("a DECIMAL(39,2)", "DECIMAL\\(39, 2\\), which does not exist"),
    ("a DECIMAL(5,6)", "DECIMAL\\(5, 6\\), which does not exist"),
    ("a DECIMAL(1e2,0)", "DECIMAL\\(1e2, 0\\), which does not exist"),
    ("a MAP<INT, INT>", "keys of type INT"),
    ("`a b` INT", "characters in its name that Delta does not accept"),
]


@pytest.mark.parametrize(("written", "says"), REFUSED)
def test_what_cannot_be_a_schema_is_refused_with_what_to_do(written: str, says: str) -> None:
    with pytest.raises(DeclarationError, match=says) as raised:
        parse_schema(written)
    assert raised.value.hint
