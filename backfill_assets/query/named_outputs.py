"""The names of the columns that a view has, as its query gives them."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from backfill_assets.query.column_names import check_column_name
from backfill_assets.query.ddl import Column
from backfill_assets.query.occurrences import Occurrence
from backfill_assets.query.refusals import refusal
from backfill_assets.query.row_columns import RowColumns

__all__ = ["check_names", "named_outputs"]


def named_outputs(
    root: exp.Expr, found: tuple[Occurrence, ...], tables: Mapping[str, tuple[Column, ...]]
) -> tuple[str, ...]:
    """The names of the view's columns. Errors: `QueryError` for a name that is missing, duplicate, or not allowed in
    Delta."""
    names = list(root.named_selects) if isinstance(root, exp.Query) else []
    if isinstance(root, exp.Query) and "*" in names:
        for name in names:
            _check_name(name)
        names = [each.name for each in RowColumns(root, found, tables).given(root)]
    check_names(names)
    return tuple(names)


def check_names(names: Sequence[str]) -> None:
    """Check the names of a view's columns. Errors: `QueryError` for one that is missing, duplicate, or not allowed in
    Delta."""
    for name in names:
        _check_name(name)
    small = [name.lower() for name in names]
    if twice := [name for name in names if small.count(name.lower()) > 1]:
        raise refusal("DUPLICATE_COLUMN", f"the query returns the column {twice[0]!r} more than once")


def _check_name(name: str) -> None:
    if not name:
        raise refusal("UNNAMED_COLUMN", "a column of the query has no name")
    if name != "*":
        check_column_name(name)
