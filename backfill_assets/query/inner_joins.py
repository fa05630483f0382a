"""Outer joins of whose rows those without a partner are left out afterwards: to the result they are inner joins.

`a LEFT JOIN b ON a.k = b.k WHERE b.x > 1` drops every row without a `b`, as a comparison with null is not true. So does a
join further out, by a column that is null there. What must not be null is taken from WHERE and ON down to the joins below.
See Galindo-Legaria and Rosenthal, "Outerjoin Simplification and Reordering for Query Optimization" (ACM TODS, 1997).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from sqlglot import exp

from backfill_assets.query.conditions import conjuncts
from backfill_assets.query.ddl import Column
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence
from backfill_assets.query.partition import has_aggregates, is_grouped, output_names, subqueries_of
from backfill_assets.query.resolved import (
    has_grouping_sets,
    joins_of,
    resolved,
    sources_of,
    spelled_alias,
    spelled_node,
    unwrapped,
)
from backfill_assets.query.text_checks import gives_several

__all__ = ["read_trees"]

_STRICT: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)
"""Conditions that are not true, and whose opposite is not, where what they compare first is null."""
_BOTH: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
"""Those of which this holds for both sides."""
_OF_VALUES: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Cast)
"""What is null where one of its values is."""
_TOGETHER: Final = ("limit", "offset", "qualify", "kind", "by_name")
"""Clauses for which a row that is dropped afterwards matters to others."""
_NUMBER: Final = "join"
"""The entry in the `meta` of a join that says which of the text's joins it is."""


def read_trees(
    root: exp.Expr, found: tuple[Occurrence, ...], tables: Mapping[str, tuple[Column, ...]]
) -> tuple[exp.Expr, exp.Expr | None]:
    """A query and its tree for analysis (`resolved`), both with inner joins for outer ones where these give the same."""
    for number, join in enumerate(all_of(root, exp.Join)):
        join.meta[_NUMBER] = number
    tree = resolved(root, found, tables)
    numbers = frozenset[int]() if tree is None else _made_inner(tree)
    if not numbers:
        return root, tree
    same = root.copy()
    for join in all_of(same, exp.Join):
        if join.meta[_NUMBER] in numbers:
            _make_inner(join)
    return same, tree


def _made_inner(tree: exp.Expr) -> frozenset[int]:
    """Make outer joins of a tree inner ones where that gives the same; returns their numbers."""
    changed: set[int] = set()
    _query(tree, frozenset(), changed)
    return frozenset(changed)


def _make_inner(join: exp.Join) -> None:
    join.set("side", None)
    join.set("kind", None)


def _query(query: exp.Expr, needed: frozenset[int], changed: set[int]) -> None:
    """Look at a query of whose rows only those matter that have no null in the outputs at these positions."""
    inner = unwrapped(query)
    together = any(inner.args.get(name) for name in _TOGETHER)
    needed = frozenset() if together or not _is_listed(inner) else needed
    if isinstance(inner, exp.SetOperation):
        _query(inner.left, needed, changed)
        _query(inner.right, needed, changed)
    elif isinstance(inner, exp.Select):
        _select(inner, needed, changed)


def _is_listed(query: exp.Expr) -> bool:
    """Whether each expression of the SELECT lists of a query gives one column."""
    inner = unwrapped(query)
    if isinstance(inner, exp.SetOperation):
        return _is_listed(inner.left) and _is_listed(inner.right)
    return isinstance(inner, exp.Select) and not any(
        each.is_star or isinstance(each, exp.Aliases) or gives_several(each.unalias()) for each in inner.expressions
    )


def _select(select: exp.Select, needed: frozenset[int], changed: set[int]) -> None:
    sources = sources_of(select)
    wanted = frozenset((*_of_outputs(select, needed), *_of_conditions(select.args.get("where"))))
    for number, join in reversed(list(enumerate(joins_of(select), 1))):
        left, right = sources[:number], [sources[number]]
        lost = {"LEFT": right, "RIGHT": left}.get((join.side or "").upper(), [])
        if _of(wanted, lost) and (join.kind or "").upper() in {"", "OUTER"} and _NUMBER in join.meta:
            changed.add(join.meta[_NUMBER])
            _make_inner(join)
        to_left, to_right = _below(join, wanted)
        _source(sources[number], _of(to_right, right), changed)
        wanted = _of(to_left, left)
    if sources:
        _source(sources[0], wanted, changed)
    for inner in subqueries_of(select):
        _query(inner, frozenset(), changed)


def _below(join: exp.Join, wanted: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """What must not be null in the rows of the left and the right side of a join, if it must not be in those of the join."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    on = frozenset(_of_conditions(join.args.get("on")))
    if kind in {"SEMI", "ANTI"}:
        return (wanted | on if kind == "SEMI" else wanted), on
    if side == "LEFT":
        return wanted, on
    if side == "RIGHT":
        return on, wanted
    return (wanted | on, wanted | on) if not side and kind in {"", "INNER", "CROSS"} else (frozenset(), frozenset())


def _source(source: exp.Expr, wanted: frozenset[str], changed: set[int]) -> None:
    """Look at what a SELECT reads from, if it is a query."""
    if not isinstance(source, exp.Subquery) or isinstance(source.this, exp.Table):
        return
    alias, prefix = source.args.get("alias"), f"{spelled_alias(source)}."
    names = [] if alias is None or alias.columns else output_names(source)
    _query(source.this, frozenset(at for at, name in enumerate(names) if prefix + name in wanted), changed)


def _of(columns: frozenset[str], sources: Collection[exp.Expr]) -> frozenset[str]:
    """Those columns that are of some sources."""
    prefixes = tuple(f"{spelled_alias(each)}." for each in sources)
    return frozenset(each for each in columns if each.startswith(prefixes)) if prefixes else frozenset()


def _of_outputs(select: exp.Select, needed: frozenset[int]) -> Iterator[str]:
    """The columns of a SELECT's sources that must not be null for its outputs at these positions not to be."""
    items = select.expressions
    if any(each.is_star or each.find(exp.Window) for each in items):
        return
    group = select.args.get("group") or exp.Group()
    keys = {spelled_node(each) for each in group.expressions}
    sets = has_grouping_sets(group)
    for item in (items[at].unalias() for at in needed if at < len(items)):
        is_key = not sets and (spelled_node(item) in keys or (group.args.get("all") and not has_aggregates(item)))
        if is_key or not is_grouped(select):
            yield from _values(item)


def _of_conditions(condition: exp.Expr | None) -> Iterator[str]:
    """The columns that are not null where a condition is true."""
    for each in conjuncts(condition):
        yield from _of_condition(each)


def _of_condition(condition: exp.Expr) -> Iterator[str]:
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    if isinstance(condition, exp.Or):
        yield from {*_of_conditions(condition.left)} & {*_of_conditions(condition.right)}
    elif isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        yield from _values(inner.this)
    elif isinstance(condition, exp.In) or (isinstance(inner, exp.In) and not inner.args.get("query")):
        yield from _values((inner or condition).this)
    else:
        yield from _of_comparison(inner or condition)


def _of_comparison(condition: exp.Expr) -> Iterator[str]:
    if isinstance(condition, _STRICT):
        yield from _values(condition.this)
    if isinstance(condition, _BOTH):
        yield from _values(condition.expression)


def _values(value: exp.Expr) -> Iterator[str]:
    """The columns of which none is null where a value is not."""
    if isinstance(value, exp.Column):
        yield spelled_node(value)
    elif isinstance(value, _OF_VALUES):
        for each in value.iter_expressions():
            yield from _values(each)
