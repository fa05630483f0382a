"""Types with structs that may get more fields."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

__all__ = ["keeps_fields"]

_STRUCT: Final = exp.DataType.Type.STRUCT
_ARRAY: Final = exp.DataType.Type.ARRAY
_MAP: Final = exp.DataType.Type.MAP


def keeps_fields(now: str, was: str) -> bool:
    """Whether a type still has all fields that another one had, each with its type, in any order. Keys of maps must be the
    same, as two of them may differ in a new field alone.

    Example:
        >>> keeps_fields("ARRAY<STRUCT<b: INT, a: INT>>", "ARRAY<STRUCT<a: INT>>")
        True
        >>> keeps_fields("STRUCT<a: BIGINT>", "STRUCT<a: INT>")
        False
    """
    there, wanted = _parsed(now), _parsed(was)
    return now == was or (there is not None and wanted is not None and _keeps(there, wanted))


def _parsed(kind: str) -> exp.DataType | None:
    """A type as a tree, if it can have fields and sqlglot knows it."""
    if "STRUCT<" not in kind.upper():
        return None
    try:
        return parse_one(kind, into=exp.DataType, dialect="spark")
    except SqlglotError:
        return None


def _keeps(now: exp.DataType, was: exp.DataType) -> bool:
    if now.this != was.this or now.this not in {_STRUCT, _ARRAY, _MAP}:
        return now == was
    if now.this == _STRUCT:
        there, wanted = _fields(now), _fields(was)
        return all(name in there and _keeps(there[name], kind) for name, kind in wanted.items())
    *keys, inside = now.expressions
    *wanted_keys, wanted_inside = was.expressions
    return keys == wanted_keys and _keeps(inside, wanted_inside)


def _fields(struct: exp.DataType) -> Mapping[str, exp.DataType]:
    return {each.name: each.args["kind"] for each in struct.expressions}
