"""Keys as text have one spelling for each value, and text that is not a value is refused."""

import re

import pytest

from backfill_assets.adapters.sql.keys import NAMEABLE, among_keys, one_spelling
from backfill_assets.query.ddl import Column


@pytest.mark.parametrize(
    ("kind", "text", "spelled"),
    [
        ("BIGINT", " +007 ", "7"),
        ("TINYINT", "-128", "-128"),
        ("DECIMAL(5,2)", "1.5", "1.50"),
        ("DECIMAL(5,2)", "-0.00", "0.00"),
        ("DECIMAL(38,0)", "9" * 38, "9" * 38),
        ("BOOLEAN", "True", "true"),
        ("STRING", " a'b ", " a'b "),
        ("DATE", "2024-02-29", "2024-02-29"),
        ("TIMESTAMP", "2024-02-29 01:02:03.5", "2024-02-29 01:02:03.500000"),
        ("TIMESTAMP", "2024-02-29T01:02:03+02:00", "2024-02-28 23:02:03"),
        ("TIMESTAMP_NTZ", "2024-02-29 01:02:03", "2024-02-29 01:02:03"),
    ],
)
def test_a_value_has_one_spelling(kind: str, text: str, spelled: str) -> None:
    assert NAMEABLE.fullmatch(kind)
    assert one_spelling(kind, text) == spelled
    assert one_spelling(kind, spelled) == spelled


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("INT", "seven"),
        ("INT", "2147483648"),
        ("INT", "1.0"),
        ("DECIMAL(5,2)", "1.505"),
        ("DECIMAL(5,2)", "1000"),
        ("DECIMAL(5,2)", "NaN"),
        ("DECIMAL(5,2)", "x"),
        ("BOOLEAN", "1"),
        ("DATE", "2023-02-29"),
        ("TIMESTAMP", "noon"),
        ("TIMESTAMP_NTZ", "2024-02-29T01:02:03Z"),
    ],
)
def test_what_names_no_value_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text) + "|month|Invalid|invalid"):
        one_spelling(kind, text)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "BINARY", "ARRAY<INT>"])
def test_types_whose_values_have_no_one_text_cannot_be_named(kind: str) -> None:
    assert NAMEABLE.fullmatch(kind) is None


def test_the_condition_is_one_set_of_all_keys() -> None:
    columns = [Column("a", "INT"), Column("b", "STRING"), Column("c", "INT")]
    assert among_keys(columns, []) == "FALSE"
    assert among_keys(columns, [(("a", "1"), ("b", None)), (("a", "2"), ("b", "it's"))]) == (
        "struct(`a` AS k0, `b` AS k1) IN (struct(CAST('1' AS INT) AS k0, CAST(NULL AS STRING) AS k1), "
        r"struct(CAST('2' AS INT) AS k0, CAST('it\'s' AS STRING) AS k1))"
    )
