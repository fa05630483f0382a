"""Types that have got more fields: whether a type still has all fields of another one, and how values get just these."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from backfill_assets.query.ddl import literal
from backfill_assets.query.spelling import backquoted

__all__ = ["keeps_fields", "with_fields"]

_STRUCT: Final = exp.DataType.Type.STRUCT
_ARRAY: Final = exp.DataType.Type.ARRAY
_MAP: Final = exp.DataType.Type.MAP


def keeps_fields(now: str, was: str) -> bool:
    """Whether a type has all fields of another one, each with its type, in any order. Keys of maps must be the same: two of
    them may differ in a new field alone.

    Example:
        >>> keeps_fields("ARRAY<STRUCT<b: INT, a: INT>>", "ARRAY<STRUCT<a: INT>>")
        True
        >>> keeps_fields("STRUCT<a: BIGINT>", "STRUCT<a: INT>")
        False
    """
    there, wanted = _parsed(now), _parsed(was)
    return now == was or (there is not None and wanted is not None and _keeps(there, wanted))


def with_fields(value: str, there: str, wanted: str) -> str:
    """SQL that gives a value of the type `there` with just the fields of the type `wanted`, by their names.

    Example:
        >>> with_fields("`s`", "STRUCT<a: INT, b: INT>", "STRUCT<b: INT>")
        "IF(`s` IS NULL, NULL, named_struct('b', `s`.`b`))"
        >>> with_fields("`s`", "STRUCT<b: INT>", "STRUCT<b: INT>")
        '`s`'
    """
    has, needs = _parsed(there), _parsed(wanted)
    if there == wanted or has is None or needs is None or not _keeps(has, needs):
        return value
    return _narrowed(value, has, needs, 1)


@lru_cache(maxsize=256)
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


def _narrowed(value: str, there: exp.DataType, wanted: exp.DataType, depth: int) -> str:
    if there == wanted:
        return value
    name = f"_{depth}"
    match wanted.this:
        case exp.DataType.Type.ARRAY:
            inside = _narrowed(name, there.expressions[0], wanted.expressions[0], depth + 1)
            return f"transform({value}, {name} -> {inside})"
        case exp.DataType.Type.MAP:
            inside = _narrowed(name, there.expressions[1], wanted.expressions[1], depth + 1)
            return f"transform_values({value}, (_key, {name}) -> {inside})"
        case _:
            kinds = _fields(there)
            parts = (
                f"{literal(each)}, {_narrowed(f'{value}.{backquoted(each)}', kinds[each], kind, depth)}"
                for each, kind in _fields(wanted).items()
            )
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
