"""Few rows that are to be named to somebody."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["named_rows"]


def named_rows(rows: "DataFrame", *, kept: Collection[str] = ()) -> "list[Row]":
    """Rows as Python's values; or, where Python has no such value, as Spark writes them, except the columns `kept`.

    Python has no dates after the year 9999 or before the year 1, and no text of bytes that are not UTF-8: these stand as
    hexadecimal numbers.
    """
    try:
        return rows.collect()
    except (ValueError, OverflowError):
        return rows.selectExpr(
            *(quoted(name) if name in kept else f"{_text(name, kind)} AS {quoted(name)}" for name, kind in rows.dtypes)
        ).collect()


def _text(name: str, kind: str) -> str:
    column = quoted(name)
    if kind == "string":
        return f"IF(is_valid_utf8({column}), {column}, concat('X''', hex({column}), ''''))"
    return f"make_valid_utf8(CAST({column} AS STRING))"
