"""The kinds of values that may be a key: families of types within which values that are equal have equal hashes."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from backfill_assets.query.resolved import OCCURRENCE, unwrapped

__all__ = ["are_typed", "kind_of", "kind_of_type", "kinds_given"]

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
        table.name: dict(types[table.meta[OCCURRENCE]])
        for table in tree.find_all(exp.Table)
        if OCCURRENCE in table.meta
    }
    try:
        annotate_types(tree, schema=schema, dialect="spark")
    except SqlglotError:
        return False
    return True


def kind_of(node: exp.Expr) -> str:
    """The kind of an expression's values; nothing where it is not known."""
    value = node.unalias()
    return kind_of_type(value.type.sql("spark")) if isinstance(value.type, exp.DataType) else ""


def kinds_given(query: exp.Expr) -> list[str]:
    """The kind of each column that a query gives; nothing where set operations put different kinds into one."""
    inner = unwrapped(query)
    if isinstance(inner, exp.SetOperation):
        both = zip(kinds_given(inner.left), kinds_given(inner.right), strict=False)
        return [left if left == right else "" for left, right in both]
    return list(map(kind_of, inner.expressions)) if isinstance(inner, exp.Select) else []
