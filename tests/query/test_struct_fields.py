"""Types with structs that may get more fields."""

import pytest

from backfill_assets.query.struct_fields import keeps_fields

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
