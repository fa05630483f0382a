"""Reads tables of other writers without relying on bounds in their files that may not be exact.

Spark pushes filters down to Delta's reader, which skips files, and to Parquet's reader, which skips row groups.
`coalesce` of a column with itself keeps its values, but prevents filters on it from being pushed down.
"""

from typing import TYPE_CHECKING

from backfill_assets.core.epoch.bounds import are_trusted
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["unfiltered"]


def unfiltered(rows: "DataFrame") -> "DataFrame":
    """The same rows; filters on a column with doubtful bounds, or on such a field of a struct, are not pushed down to
    the files."""
    from pyspark.sql import functions as F  # noqa: N812

    found = {each.name: _opaque(F.col(quoted(each.name)), each.dataType) for each in rows.schema.fields}
    changed = {name: column for name, column in found.items() if column is not None}
    return rows.withColumns(changed) if changed else rows


def _opaque(column: "Column", kind: "DataType") -> "Column | None":
    """A column whose filters are not pushed down; None if that is not needed. In structs, only the fields for which it
    is needed, because Spark reads only the fields that the query names."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if are_trusted(kind.simpleString()) or isinstance(
        kind, ArrayType | MapType
    ):  # files have no bounds for lists and maps
        return None
    if not isinstance(kind, StructType):
        return F.coalesce(column, column)
    for each in kind.fields:
        part = _opaque(column.getField(each.name), each.dataType)
        column = column if part is None else column.withField(quoted(each.name), part)
    return column
