"""The Arrow types of Parquet footers, spelled like the types of a Delta table in `query.ddl`."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from backfill_assets.core.epoch.records import Columns
from backfill_assets.query.ddl import quoted

__all__ = ["columns_of_arrow", "widest"]

_SIMPLE: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
}
_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
)


def columns_of_arrow(schema: pa.Schema) -> Columns:
    """Names and types of columns. Nullability, and the names of the parts of lists and maps, differ between writers and
    are ignored. A type that Delta does not have is spelled as in Arrow."""
    return tuple((field.name, _spelled(field.type)) for field in schema)


def _spelled(kind: pa.DataType) -> str:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.unit == "us":  # Spark's legacy timestamps (INT96) have nanoseconds
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return _nested(kind)


def _nested(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"MAP<{_spelled(kind.key_type)}, {_spelled(kind.item_type)}>"
    if any(is_list(kind) for is_list in _LISTS):
        return f"ARRAY<{_spelled(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(part.name)}: {_spelled(part.type)}' for part in kind)}>"
    return str(kind)


def widest(schema: pa.Schema) -> pa.Schema:
    """The same columns in types that hold whatever Delta may have in them: any value may be null, in structs and lists, too,
    and texts may be more than 2 GiB together. Parquet stores both alike."""
    return pa.schema([pa.field(each.name, _wide(each.type)) for each in schema])


def _wide(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_map(kind):
        return pa.map_(_wide(kind.key_type), _wide(kind.item_type))
    if any(is_list(kind) for is_list in _LISTS):
        return pa.list_(_wide(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _wide(part.type)) for part in kind])
    return kind
