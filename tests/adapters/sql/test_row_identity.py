"""Rows without a key are identified by their contents, if Spark can compare them exactly."""

import pytest
from pyspark.sql import types as T  # noqa: N812 # the name that Spark's users know

from backfill_assets.adapters.sql.apply_relational import check_columns
from backfill_assets.adapters.sql.floats import one_form
from backfill_assets.errors import QueryError

NUMBER = T.StructField("a", T.LongType())
INSIDE = T.ArrayType(T.StructType([NUMBER, T.StructField("b", T.VariantType())]))


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (T.MapType(T.LongType(), T.LongType()), "a map"),
        (T.VariantType(), "a VARIANT"),
        (T.StringType("UTF8_LCASE"), "a text with a collation"),
        (INSIDE, "a VARIANT"),
    ],
)
def test_what_cannot_be_compared_needs_a_key(kind: T.DataType, what: str) -> None:
    fields = [NUMBER, T.StructField("found", kind)]
    with pytest.raises(QueryError, match=f"column 'found' has {what}") as caught:
        check_columns(fields, keyed=False)
    assert caught.value.reason == "TYPE"
    check_columns(fields, keyed=True)


def test_what_can_be_compared_needs_none() -> None:
    kinds = (T.StringType(), T.BinaryType(), T.DoubleType(), T.DecimalType(38, 0), T.ArrayType(T.StructType([NUMBER])))
    check_columns([T.StructField(f"c{at}", kind) for at, kind in enumerate(kinds)], keyed=False)


@pytest.mark.parametrize(
    ("name", "reason"), [("A", "DUPLICATE_COLUMN"), ("__copy", "COLUMN_NAME"), ("b c", "COLUMN_NAME")]
)
def test_names_that_depend_on_spark_are_checked(name: str, reason: str) -> None:
    with pytest.raises(QueryError) as caught:
        check_columns([NUMBER, T.StructField(name, T.LongType())], keyed=True)
    assert caught.value.reason == reason


def test_structs_without_floats_are_compared_as_they_are() -> None:
    plain = T.StructType([NUMBER, T.StructField("b", T.StructType([NUMBER]))])
    assert one_form("x", plain) == "x"
    mixed = T.StructType([NUMBER, T.StructField("b", T.DoubleType())])
    assert one_form("x", mixed).startswith("IF(x IS NULL, NULL, named_struct('a', x.a, 'b', CASE WHEN isnan(x.b)")
