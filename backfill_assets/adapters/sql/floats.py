"""The one form of floats that are equal: in SQL, zero has no sign, and NaN equals NaN, although it can have many bit
patterns.

Spark compares, groups and joins by this form; other engines compare bits, at least in structs and lists.
"""

from typing import Final

from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructType

from backfill_assets.query.ddl import literal, quoted

__all__ = ["one_form"]

_EACH: Final = "__each"


def one_form(value: str, kind: DataType) -> str:
    """SQL for a value in the form that all equal values have; the given SQL if the type contains no floats."""
    match kind:
        case FloatType() | DoubleType():
            nan, zero = (f"CAST('{number}' AS {kind.simpleString()})" for number in ("NaN", "0"))
            return f"CASE WHEN isnan({value}) THEN {nan} WHEN {value} = {zero} THEN {zero} ELSE {value} END"
        case StructType():
            return _of_struct(value, kind)
        case ArrayType():
            inner = one_form(_EACH, kind.elementType)
            return value if inner == _EACH else f"transform({value}, {_EACH} -> {inner})"
        case _:
            return value


def _of_struct(value: str, kind: StructType) -> str:
    parts = {field.name: f"{value}.{quoted(field.name)}" for field in kind.fields}
    forms = {field.name: one_form(parts[field.name], field.dataType) for field in kind.fields}
    if forms == parts:
        return value
    made = ", ".join(f"{literal(name)}, {form}" for name, form in forms.items())
    return f"IF({value} IS NULL, NULL, named_struct({made}))"
