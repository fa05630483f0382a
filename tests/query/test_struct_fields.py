"""Types that have got more fields, and values with just those that a view knows."""

import pytest

from backfill_assets.query.struct_fields import keeps_fields, with_fields

PLAIN = "STRUCT<a: INT, t: TIMESTAMP_NTZ>"
LISTED = "ARRAY<STRUCT<`x y`: DECIMAL(38,2)>>"
DEEP = "STRUCT<m: MAP<STRING, ARRAY<STRUCT<s: STRUCT<v: VARIANT>>>>>"


@pytest.mark.parametrize(
    ("now", "was"),
    [
        (PLAIN, PLAIN),
        ("INT", "INT"),
        ("STRUCT<new: DATE, t: TIMESTAMP_NTZ, a: INT>", PLAIN),
        ("ARRAY<STRUCT<b: STRUCT<c: INT>, `x y`: DECIMAL(38,2)>>", LISTED),
        ("STRUCT<m: MAP<STRING, ARRAY<STRUCT<s: STRUCT<v: VARIANT, w: INT>>>>>", DEEP),
        ("MAP<STRUCT<a: INT>, STRUCT<a: INT, b: INT>>", "MAP<STRUCT<a: INT>, STRUCT<a: INT>>"),
    ],
)
def test_a_type_keeps_its_fields_though_others_come(now: str, was: str) -> None:
    assert keeps_fields(now, was)


@pytest.mark.parametrize(
    ("now", "was"),
    [
        ("", PLAIN),
        ("BIGINT", "INT"),
        ("STRUCT<a: INT>", PLAIN),
        ("STRUCT<a: INT, t: TIMESTAMP>", PLAIN),
        ("STRUCT<A: INT, t: TIMESTAMP_NTZ>", PLAIN),
        ("ARRAY<STRUCT<`x y`: DECIMAL(38,3)>>", LISTED),
        ("STRUCT<`x y`: DECIMAL(38,2)>", LISTED),
        ("STRUCT<m: MAP<STRING, ARRAY<STRUCT<s: STRUCT<v: STRING>>>>>", DEEP),
        ("MAP<STRUCT<a: INT, b: INT>, INT>", "MAP<STRUCT<a: INT>, INT>"),
        ("STRUCT<a: INT, t: TIMESTAMP_NTZ", PLAIN),
    ],
)
def test_a_field_that_goes_or_is_another_one_is_a_change(now: str, was: str) -> None:
    assert not keeps_fields(now, was)


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        (PLAIN, PLAIN, "`c`"),
        ("STRUCT<a: BIGINT>", "STRUCT<a: INT>", "`c`"),
        (
            "STRUCT<a: INT, `b``c`: INT>",
            "STRUCT<`b``c`: INT>",
            "IF(`c` IS NULL, NULL, named_struct('b`c', `c`.`b``c`))",
        ),
        (
            "ARRAY<STRUCT<a: INT, b: INT>>",
            "ARRAY<STRUCT<b: INT>>",
            "transform(`c`, _1 -> IF(_1 IS NULL, NULL, named_struct('b', _1.`b`)))",
        ),
        (
            "MAP<STRING, ARRAY<STRUCT<a: INT, b: INT>>>",
            "MAP<STRING, ARRAY<STRUCT<b: INT>>>",
            "transform_values(`c`, (_key, _1) -> transform(_1, _2 -> IF(_2 IS NULL, NULL, named_struct('b', _2.`b`))))",
        ),
    ],
)
def test_values_get_just_the_fields_that_are_wanted(there: str, wanted: str, expected: str) -> None:
    assert with_fields("`c`", there, wanted) == expected
