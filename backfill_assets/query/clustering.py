"""By which column the files of a view are laid out whose rows have no key of their own.

Rows that change together should lie together, as a file is written again where one of its rows changes. Where the query is
computed again for values of a key, these are the rows with one value. Elsewhere nothing tells which rows change together; as
in most tables, those with near values in the first column are assumed to.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from backfill_assets.query.key_classes import KeyClasses
from backfill_assets.query.kinds import are_typed, kinds_given
from backfill_assets.query.resolved import unwrapped

__all__ = ["clustering_column"]

_BOUNDED: Final = frozenset({"INTEGER", "STRING", "DATE"})
"""Kinds of values of which the log has exact bounds."""


def clustering_column(
    tree: exp.Expr, names: Sequence[str], types: Sequence[Mapping[str, str]], classes: KeyClasses
) -> str:
    """The column by which a view's files are laid out; empty if none is known to have bounds.

    Args:
        tree: The query for analysis (`resolved`).
        names: The view's columns.
        types: The types of the columns of each occurrence, by small names.
        classes: The keys by which the view may be computed in part.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.key_classes import NO_CLASSES
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> from backfill_assets.query.resolved import resolved
        >>> text = "SELECT a.v, a.x FROM a JOIN b ON a.x = b.x"
        >>> root = parse(text, tokenize(text))
        >>> tables = {"a": parse_schema("x INT, v DOUBLE"), "b": parse_schema("x INT")}
        >>> tree = resolved(root, occurrences(root, ["a", "b"]), tables)
        >>> clustering_column(tree, ["v", "x"], [{"x": "INT", "v": "DOUBLE"}, {"x": "INT"}], NO_CLASSES)
        'x'
    """
    shown = [each.output for each in classes.classes if each.output in names and each.kind in _BOUNDED]
    if shown:
        return shown[0]
    kinds = kinds_given(tree) if are_typed(tree, types) else []
    if len(kinds) != len(names):
        return ""
    read = _are_read(tree)
    plain = (name for name, kind, is_read in zip(names, kinds, read, strict=True) if is_read and kind in _BOUNDED)
    return next(plain, "")


def _are_read(tree: exp.Expr) -> list[bool]:
    """Whether each column of a query is one of what it reads, in all parts of set operations. Of what is computed, only Spark
    knows the type."""
    inner = unwrapped(tree)
    if isinstance(inner, exp.SetOperation):
        # Parts of different sizes, which `*` may have, are left to Spark to refuse.
        both = zip(_are_read(inner.left), _are_read(inner.right), strict=False)
        return [left and right for left, right in both]
    assert isinstance(inner, exp.Select)
    return [isinstance(each.unalias(), exp.Column) for each in inner.expressions]
