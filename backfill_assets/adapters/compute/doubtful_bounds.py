"""Reading tables of others without trusting what their files state of columns whose bounds may not be exact.

Spark hands filters on to Delta's reader, which leaves out files, and to Parquet's, which leaves out parts of files. A column
that goes through `coalesce` with itself is what it was, but no reader knows what a filter on it means.
"""

from typing import TYPE_CHECKING

from backfill_assets.core.epoch.bounds import are_trusted
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["unfiltered"]


def unfiltered(rows: "DataFrame") -> "DataFrame":
    """The same rows; no filter on a doubtful column, or such a part of a struct, gets to the files."""
    from pyspark.sql import functions as F  # noqa: N812

    found = {each.name: _opaque(F.col(quoted(each.name)), each.dataType) for each in rows.schema.fields}
    changed = {name: column for name, column in found.items() if column is not None}
    return rows.withColumns(changed) if changed else rows


def _opaque(column: "Column", kind: "DataType") -> "Column | None":
    """A column that no filter gets past; None for one that may stay as it is. Of structs only the parts that must be so,
    as Spark reads no others than the query names."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if are_trusted(kind.simpleString()) or isinstance(
        kind, ArrayType | MapType
    ):  # files state nothing of lists and maps
        return None
    if not isinstance(kind, StructType):
        return F.coalesce(column, column)
    for each in kind.fields:
        part = _opaque(column.getField(each.name), each.dataType)
        column = column if part is None else column.withField(quoted(each.name), part)
    return column
