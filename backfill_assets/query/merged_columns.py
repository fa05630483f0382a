"""Columns of one name that joins merge into one (USING, NATURAL): which of them the merged one equals."""

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from backfill_assets.query.conditions import equalities
from backfill_assets.query.kinds import are_typed
from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import joins_of, may_lose_left, spelled_alias, spelled_node

__all__ = ["take_first"]


def take_first(tree: exp.Expr, types: Sequence[Mapping[str, str]]) -> None:
    """Put the first column in the place of `coalesce` of it and others, in a tree (`resolved`) of occurrences with columns of
    these types, where each of the others equals it or is missing with the row of its table. So sqlglot spells merged columns.

    Example:
        >>> from sqlglot import parse_one
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.resolved import resolved
        >>> root = parse_one("SELECT k FROM a JOIN b USING (k) LEFT JOIN c USING (k)", dialect="spark")
        >>> tree = resolved(root, occurrences(root, ["a", "b", "c"]), dict.fromkeys("abc", parse_schema("k INT")))
        >>> tree.expressions[0].sql("spark")
        'COALESCE(`a#0`.k, `b#1`.k, `c#2`.k) AS k'
        >>> take_first(tree, [{"k": "INT"}] * 3)
        >>> tree.expressions[0].sql("spark")
        '`a#0`.k AS k'
    """
    if tree.find(exp.Coalesce) is None or not are_typed(tree, types):
        return
    for select in all_of(tree, exp.Select):
        # Joins one after the other: with several names in USING, ON compares with what the joins before have merged.
        for part in () if may_lose_left(select) else (*joins_of(select), select):
            for call in all_of(part, exp.Coalesce):
                _take(call, select)


def _take(call: exp.Coalesce, select: exp.Select) -> None:
    if {spelled_node(each) for each in call.expressions} <= _followers(spelled_node(call.this), select):
        call.replace(call.this)


def _followers(first: str, select: exp.Select) -> set[str]:
    """A column, and those of joined tables that equal it wherever their table has a row, as ON says."""
    found = {first}
    for join in joins_of(select):
        found |= {new for old, new in _equal(join) if old in found}
    return found


def _equal(join: exp.Join) -> Iterator[tuple[str, str]]:
    """Columns of earlier tables, each with one of the joined table that ON says to be equal to it."""
    own = f"{spelled_alias(join.this)}."
    for pair in equalities(join.args.get("on")):
        for old, new in (pair, pair[::-1]):
            if new.startswith(own) and not old.startswith(own):
                yield old, new
