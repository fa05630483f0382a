"""Groups rows by columns that may hold maps.

Spark 4.2 sorts the entries of a map to group by it, and its generated code then takes a null among the values for a number.
So rows are grouped by the entries of maps, sorted, from which the maps are made again.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["grouped"]


def grouped(rows: "DataFrame", names: Sequence[str], *sums: "Column") -> "DataFrame":
    """Rows grouped by some columns, with aggregates: as `groupBy(...).agg(...)`, except that maps stay what they are."""
    from pyspark.sql import functions as F  # noqa: N812

    held = [field for field in rows.schema.fields if field.name in names and _has_map(field.dataType)]
    if held:
        rows = rows.withColumns({each.name: _entries(F.col(quoted(each.name)), each.dataType) for each in held})
    made = rows.groupBy(*map(quoted, names)).agg(*sums)
    return (
        made.withColumns({each.name: _maps(F.col(quoted(each.name)), each.dataType) for each in held}) if held else made
    )


def _has_map(kind: "DataType") -> bool:
    return "map<" in kind.simpleString()


def _entries(value: "Column", kind: "DataType") -> "Column":
    """A value with sorted entries in the place of each map."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import MapType

    if isinstance(kind, MapType):
        inner = F.transform_values(value, lambda _key, each: _entries(each, kind.valueType))
        return F.array_sort(F.map_entries(inner if _has_map(kind.valueType) else value))
    return _inside(value, kind, _entries)


def _maps(value: "Column", kind: "DataType") -> "Column":
    """The value of which `_entries` made entries."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import MapType

    if isinstance(kind, MapType):
        made = F.map_from_entries(value)
        inner = F.transform_values(made, lambda _key, each: _maps(each, kind.valueType))
        return inner if _has_map(kind.valueType) else made
    return _inside(value, kind, _maps)


def _inside(value: "Column", kind: "DataType", change: "Callable[[Column, DataType], Column]") -> "Column":
    """A value whose elements or fields are changed, if there are maps in them."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, ArrayType) and _has_map(kind):
        return F.transform(value, lambda each: change(each, kind.elementType))
    if isinstance(kind, StructType):
        fields = [field for field in kind.fields if _has_map(field.dataType)]
        return reduce(
            lambda made, field: made.withField(quoted(field.name), change(value.getField(field.name), field.dataType)),
            fields,
            value,
        )
    return value
