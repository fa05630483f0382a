"""Which aggregates are exact: their result is the same in whatever order their addends come, and can be taken back."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from backfill_assets.query.ddl import Column
from backfill_assets.query.functions import REFUSED_FUNCTIONS
from backfill_assets.query.nodes import all_of
from backfill_assets.query.partition import is_aggregate_call

__all__ = ["are_exact", "sums_are_kept"]

_WHOLE: Final = frozenset(exp.DataType.INTEGER_TYPES)
_SUMMED: Final = frozenset({*_WHOLE, *exp.DataType.FLOAT_TYPES, exp.DataType.Type.DECIMAL})


def sums_are_kept(tree: exp.Expr, tables: Mapping[str, tuple[Column, ...]]) -> bool:
    """Whether the sums and averages in the SELECT list of a tree (`resolved`) are of types for which groups can keep them
    (`apply_aggregate`).

    `tables` are the columns of each table, by the name that the query has for it.
    """
    typed = _typed(tree, tables)
    if typed is None:
        return False
    calls = (call for call in all_of(typed, exp.Sum, exp.Avg) if call.find_ancestor(exp.Query) is typed)
    return all(map(_is_kept, calls))


def are_exact(tree: exp.Expr, tables: Mapping[str, tuple[Column, ...]]) -> bool:
    """Whether all aggregates of a tree give the same value whenever they are computed again: sums of floats do not."""
    typed = _typed(tree, tables)
    return typed is not None and all(_is_exact(call) for call in typed.walk() if is_aggregate_call(call))


def _typed(tree: exp.Expr, tables: Mapping[str, tuple[Column, ...]]) -> exp.Expr | None:
    schema: dict[str, object] = {
        name.lower(): {column.name.lower(): column.type for column in columns} for name, columns in tables.items()
    }
    try:
        return annotate_types(tree.copy(), schema=schema, dialect="spark")
    except SqlglotError:
        return None


def _is_kept(call: exp.Expr) -> bool:
    kind = call.this.type
    return isinstance(kind, exp.DataType) and kind.this in _SUMMED


def _is_exact(call: exp.Expr) -> bool:
    if isinstance(call, exp.Count | exp.Max | exp.Min):
        return True
    if isinstance(call, exp.Sum | exp.Avg):
        kind = call.this.type
        exact = {exp.DataType.Type.DECIMAL, *(_WHOLE if isinstance(call, exp.Sum) else ())}
        return isinstance(kind, exp.DataType) and kind.this in exact
    return isinstance(call, exp.Func) and REFUSED_FUNCTIONS.get(call.sql_name().lower()) == "WINDOW"
