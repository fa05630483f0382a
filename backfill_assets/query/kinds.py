"""The kinds of values that may be a key: families of types within which values that are equal have equal hashes."""

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import OCCURRENCE, unwrapped

__all__ = ["TIMES", "are_typed", "kind_of", "kind_of_type", "kinds_given"]

TIMES: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
"""The kinds of days and moments."""

_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"})
_EXACT: Final = re.compile(r"BOOLEAN|DATE|TIMESTAMP|TIMESTAMP_NTZ|BINARY|DECIMAL\(\d+, ?\d+\)")
_TEXTS: Final = re.compile(r"STRING|(VAR)?CHAR\(\d+\)")


def kind_of_type(name: str) -> str:
    """The kind of a type's values; nothing for one whose values may be equal with different hashes.

    Example:
        >>> kind_of_type("INT"), kind_of_type("CHAR(3)"), kind_of_type("DECIMAL(9, 2)"), kind_of_type("DOUBLE")
        ('INTEGER', 'STRING', 'DECIMAL(9,2)', '')
    """
    if name in _INTEGERS:
        return "INTEGER"
    if _TEXTS.fullmatch(name):
        return "STRING"
    return name.replace(" ", "") if _EXACT.fullmatch(name) else ""


def are_typed(tree: exp.Expr, types: Sequence[Mapping[str, str]]) -> bool:
    """Note in all nodes of a tree (`resolved`) of which types they are, as far as that can be told without Spark; `types` are
    those of the columns of each occurrence. False where the types cannot be read."""
    schema: dict[str, object] = {
        table.name: dict(types[table.meta[OCCURRENCE]]) for table in all_of(tree, exp.Table) if OCCURRENCE in table.meta
    }
    try:
        annotate_types(tree, schema=schema, dialect="spark")
        if _say_types(tree):
            annotate_types(tree, schema=schema, dialect="spark")
    except SqlglotError:
        return False
    return True


def _say_types(tree: exp.Expr) -> bool:
    """Put a cast, which changes nothing, around calls of whose types sqlglot knows less than Spark. Returns whether there was
    such a call."""
    calls = all_of(tree, exp.DateTrunc, exp.Dot, exp.TimestampTrunc)
    found = [node for node in calls if _type(node) and not isinstance(node.parent, exp.Cast)]
    for node in found:
        node.replace(exp.Cast(this=node.copy(), to=exp.DataType.build(_type(node), dialect="spark")))
    return bool(found)


def _type(node: exp.Expr) -> str:
    """The type of a time that is cut; nothing for what is none."""
    if isinstance(node, exp.DateTrunc):
        return "DATE"
    if isinstance(node, exp.TimestampTrunc):
        return "TIMESTAMP"
    call = node.this
    is_window = isinstance(call, exp.Anonymous) and call.name.lower() == "window" and call.expressions
    return "TIMESTAMP" if is_window and kind_of(call.expressions[0]) == "TIMESTAMP" else ""


def kind_of(node: exp.Expr) -> str:
    """The kind of an expression's values; nothing where it is not known."""
    found = node.unalias().type
    if not isinstance(found, exp.DataType):
        return ""
    is_bare = not any(value for name, value in found.args.items() if name != "this")
    return _kind_of_bare(found.this) if is_bare else kind_of_type(found.sql("spark"))


@cache
def _kind_of_bare(kind: Hashable) -> str:
    """The kind of a type without parameters: a query has many values of few such types."""
    return kind_of_type(exp.DataType(this=kind).sql("spark"))


def kinds_given(query: exp.Expr) -> list[str]:
    """The kind of each column that a query gives; nothing where set operations put different kinds into one."""
    inner = unwrapped(query)
    if isinstance(inner, exp.SetOperation):
        both = zip(kinds_given(inner.left), kinds_given(inner.right), strict=False)
        return [left if left == right else "" for left, right in both]
    return list(map(kind_of, inner.expressions)) if isinstance(inner, exp.Select) else []
