"""What a query compares as equal: for each place where it reads a table, the columns and expressions that may be a key."""

import re
from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from backfill_assets.query.computed_keys import ComputedKeys, may_be_key
from backfill_assets.query.conditions import equalities
from backfill_assets.query.nodes import all_of
from backfill_assets.query.partition import PLACE, output_names, subqueries_of
from backfill_assets.query.resolved import OCCURRENCE, sources_of, spelled_alias, spelled_node, unwrapped

__all__ = ["covers"]

_CONSTANT: Final = re.compile(r"'|, \d+[,)]")
"""What shows that a `coalesce` has a constant in it: its value is another one than that of its first column."""


def covers(tree: exp.Expr, computed: ComputedKeys) -> Iterator[tuple[int, dict[int, str]]]:
    """For each place, the covers that may partition the query: by each class that it has a column or an expression in.

    `tree` is the query for analysis (`resolved`), with places and types; `computed` are its expressions.
    """
    union = _Union()
    _connect(tree, union)
    for spelled in computed.nodes:
        union.join(spelled, computed.inner.get(spelled, spelled))
    owners = {spelled_alias(table): table.meta[PLACE] for table in all_of(tree, exp.Table) if OCCURRENCE in table.meta}
    classes: dict[str, dict[int, str]] = {}
    for column in sorted(union.nodes):
        place = owners.get(computed.alias(column))
        if place is not None:
            classes.setdefault(union.find(column), {}).setdefault(place, column)
    for cover in sorted(classes.values(), key=lambda each: (-len(each), sorted(each.items()))):
        for place in sorted(cover):
            yield place, cover


class _Union:
    """Columns that are equal, as disjoint sets."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}

    def find(self, node: str) -> str:
        self.nodes.setdefault(node, node)
        while self.nodes[node] != node:
            node = self.nodes[node]
        return node

    def join(self, some: str, other: str) -> None:
        if some and other:
            self.nodes[self.find(some)] = self.find(other)


def _connect(node: exp.Expr, union: _Union) -> list[str]:
    """Join all that a query compares as equal; the columns that it gives, nothing for what is none."""
    inner = unwrapped(node)
    if isinstance(inner, exp.SetOperation):
        left, right = _connect(inner.left, union), _connect(inner.right, union)
        for some, other in zip(left, right, strict=False):
            union.join(some, other)
        return left
    if not isinstance(inner, exp.Select):
        return []
    for source in sources_of(inner):
        _connect_source(source, union)
    for condition in (inner.args.get("where"), inner.args.get("having"), *_on(inner)):
        for some, other in equalities(condition):
            union.join(_first(some), _first(other))
    for query in subqueries_of(inner):
        _connect_nested(query, union)
    for column in all_of(inner, exp.Column):
        union.find(spelled_node(column))
    return [_first(spelled_node(each)) if may_be_key(each) else "" for each in inner.expressions]


def _connect_source(source: exp.Expr, union: _Union) -> None:
    if isinstance(source, exp.Subquery):
        alias = spelled_alias(source)
        for name, column in zip(output_names(source), _connect(source.this, union), strict=False):
            union.join(f"{alias}.{name}", column)


def _connect_nested(query: exp.Query, union: _Union) -> None:
    given = _connect(query, union)
    holder = query.parent
    if isinstance(holder, exp.In) and may_be_key(holder.this) and given:
        union.join(_first(spelled_node(holder.this)), given[0])


def _on(select: exp.Select) -> list[exp.Expr | None]:
    return [join.args.get("on") for join in select.args.get("joins") or []]


def _first(spelled: str) -> str:
    """The first column of a `coalesce` of columns, as which those of USING are known."""
    inner = spelled.removeprefix("COALESCE(")
    return spelled if inner == spelled or _CONSTANT.search(inner) else inner.partition(",")[0].rstrip(")")
