"""Whether a query can be computed for some values of a key alone: every row of the result then belongs to one of its values.

A cover names a column for some of the places where a query reads tables: the same key, wherever it stands. The query is
partitioned by it if its result is the disjoint union, over the key's values, of its results over the covered rows of each
value. That is so where every operator above a covered place that looks at several rows together (a join, groups, a window,
DISTINCT, a set operation) has the key among what it compares by: its carriers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import Token, exp

from backfill_assets.query.computed_keys import ComputedKeys
from backfill_assets.query.conditions import closed, conjuncts, either_way, equalities, is_set, with_not
from backfill_assets.query.functions import REFUSED_FUNCTIONS
from backfill_assets.query.grouping import aggregates_in
from backfill_assets.query.kinds import kind_of, kinds_given
from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import (
    has_grouping_sets,
    joins_of,
    may_lose_left,
    merges,
    sources_of,
    spelled_alias,
    spelled_node,
    unwrapped,
)

__all__ = [
    "PLACE",
    "Partition",
    "Shape",
    "all_aggregates_known",
    "has_aggregates",
    "is_aggregate_call",
    "is_grouped",
    "output_names",
    "partition",
    "subqueries_of",
]

PLACE: Final = "place"
"""The entry in a table's `meta` that says which of the tree's tables it is."""

_AROUND_CALL: Final = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
"""What stands around the function of a window in the tree."""


@dataclass(frozen=True)
class Partition:
    """A cover by which a query is partitioned: the column of each place, spelled as in the tree; what `carries` the key where
    the query gives its rows, spelled alike; and in which `outputs` it does, from 0.

    Places `apart` are in subqueries of NOT IN. With them it is partitioned if the column is null in no row of `nulls`: a null
    among what NOT IN compares with refuses the rows of every value, and one that is compared stays if there is nothing.
    """

    cover: Mapping[int, str]
    carriers: frozenset[str]
    outputs: tuple[int, ...]
    apart: frozenset[int] = frozenset()
    nulls: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Rows:
    """What is known of rows that a part of a query gives. `covered`: they are of the key's values. `carriers` hold these;
    `outputs` are the positions of those that the part gives. `linked`: each row of the query outside asks for one value."""

    covered: bool = False
    carriers: frozenset[str] = frozenset()
    outputs: tuple[int, ...] = ()
    linked: bool = False


_ALL_ROWS: Final = _Rows()


class _UnfitError(Exception):
    """Some places cannot be covered where they are."""

    def __init__(self, places: set[int]) -> None:
        self.places = places


class Shape:
    """The query for analysis (`resolved`), with the number of each table in `meta[PLACE]` and its computed keys. It does not
    change, so what is found of its parts is found once for all covers."""

    def __init__(self, tree: exp.Expr, computed: ComputedKeys) -> None:
        self.tree = tree
        self.computed = computed
        self._spelled: dict[int, str] = {}
        self._equal: dict[int, list[tuple[str, str]]] = {}
        self._queries: dict[int, list[exp.Query]] = {}

    def spelled(self, nodes: Sequence[exp.Expr]) -> list[str]:
        """The spelling of each node."""
        for node in nodes:
            if id(node) not in self._spelled:
                self._spelled[id(node)] = spelled_node(node)
        return [self._spelled[id(node)] for node in nodes]

    def equal(self, condition: exp.Expr | None) -> list[tuple[str, str]]:
        """What a condition says is equal."""
        if id(condition) not in self._equal:
            self._equal[id(condition)] = list(equalities(condition))
        return self._equal[id(condition)]

    def queries(self, select: exp.Select) -> list[exp.Query]:
        """The queries inside of a SELECT."""
        if id(select) not in self._queries:
            self._queries[id(select)] = subqueries_of(select)
        return self._queries[id(select)]

    def kept(self, carriers: frozenset[str], by: Sequence[exp.Expr]) -> frozenset[str]:
        """The carriers of which rows that are equal in all of `by` have one value."""
        return self.computed.kept(carriers, dict(zip(self.spelled(by), (each.unalias() for each in by), strict=True)))


def partition(shape: Shape, target: int, cover: Mapping[int, str]) -> Partition | None:
    """The largest part of a cover by which a query is partitioned; None if that leaves the `target` out."""
    left = dict(cover)
    while target in left:
        try:
            check = _Check(left, target, shape)
            rows = check.query(shape.tree, frozenset())
        except _UnfitError as unfit:
            if not unfit.places & left.keys():
                return None
            for place in unfit.places:
                left.pop(place, None)
        else:
            apart, nulls = frozenset(check.apart), frozenset(check.nulls)
            return Partition(left, rows.carriers, rows.outputs, apart, nulls) if rows.covered else None
    return None


def is_grouped(select: exp.Select) -> bool:
    """Whether a SELECT aggregates, with GROUP BY or without."""
    return bool(select.args.get("group") or select.args.get("having")) or any(map(has_aggregates, select.expressions))


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node calls a function that aggregates rows, be it over a window."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, exp.AggFunc) or REFUSED_FUNCTIONS.get(name) == "AGGREGATE"


def all_aggregates_known(root: exp.Expr, tokens: Sequence[Token]) -> bool:
    """Whether all functions that aggregate rows are seen as such in the tree; those of windows alone do so nowhere else."""
    calls = [node for node in root.walk() if is_aggregate_call(node)]
    of_windows = [
        node
        for node in calls
        if isinstance(node, exp.Func) and REFUSED_FUNCTIONS.get(node.sql_name().lower()) == "WINDOW"
    ]
    return len(calls) - len(of_windows) == sum(1 for _ in aggregates_in(tuple(tokens)))


def has_aggregates(node: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own SELECT."""
    if isinstance(node, exp.Query | exp.Window):
        return isinstance(node, exp.Window) and any(map(has_aggregates, _arguments(node)))
    return is_aggregate_call(node) or any(map(has_aggregates, node.iter_expressions()))


def output_names(source: exp.Expr) -> list[str]:
    """The name of the column that each expression of a subquery gives; empty for one that gives several."""
    inner = unwrapped(source)
    while isinstance(inner, exp.SetOperation):
        inner = unwrapped(inner.left)
    given = inner.expressions if isinstance(inner, exp.Select) else []
    return ["" if isinstance(each, exp.Aliases) else str(each.output_name) for each in given]


def subqueries_of(select: exp.Select) -> list[exp.Query]:
    """The queries inside of the expressions of a SELECT, those within them aside."""
    found: list[exp.Query] = []
    sources = {id(each) for each in sources_of(select)}
    for name, value in select.args.items():
        if name != "from_":
            for node in value if isinstance(value, list) else [value]:
                found += _outermost(node, sources) if isinstance(node, exp.Expr) else []
    return found


class _Check:
    """Looks at a query from its tables to its result. Errors: `_UnfitError` with places that cannot be covered."""

    def __init__(self, cover: Mapping[int, str], target: int, shape: Shape) -> None:
        self.cover = cover
        self.target = target
        self.shape = shape
        self.computed = shape.computed
        self.apart: set[int] = set()
        self.nulls: set[int] = set()

    def covered(self, *nodes: exp.Expr) -> set[int]:
        """The covered places within nodes."""
        tables = (table for node in nodes for table in all_of(node, exp.Table))
        return {int(table.meta.get(PLACE, -1)) for table in tables} & self.cover.keys()

    def refuse(self, *nodes: exp.Expr) -> None:
        """Say that nothing in these nodes may be covered."""
        if places := self.covered(*nodes):
            raise _UnfitError(places)

    def query(self, node: exp.Expr, outer: frozenset[str]) -> _Rows:
        """What a query gives, within one whose rows have the carriers `outer`."""
        inner = unwrapped(node)
        if isinstance(inner, exp.SetOperation):
            return self._set_operation(inner)
        if isinstance(inner, exp.Select):
            return self._select(inner, outer)
        self.refuse(inner)
        return _ALL_ROWS

    def _set_operation(self, node: exp.SetOperation) -> _Rows:
        if any(node.args.get(name) for name in ("limit", "offset", "by_name", "side", "kind", "on")):
            self.refuse(node)
        left, right = (self.query(each, frozenset()) for each in (node.left, node.right))
        if not left.covered and not right.covered:
            return _ALL_ROWS
        both = tuple(sorted({*left.outputs} & {*right.outputs}))
        outputs = both
        if isinstance(node, exp.Except | exp.Intersect):
            outputs = left.outputs if both or not right.covered else ()
        # What is given of two kinds is of a third: it does not tell the hash.
        kinds = kinds_given(node)
        outputs = tuple(at for at in outputs if at < len(kinds) and kinds[at])
        if not outputs:
            self.refuse(node)
        return _Rows(covered=True, carriers=frozenset({""}), outputs=outputs)

    def _select(self, select: exp.Select, outer: frozenset[str]) -> _Rows:
        rows = self._joined(select)
        single = self.computed.of_one_value(rows.carriers)
        self._check_subqueries(select, replace(rows, carriers=single), outer)
        if not rows.covered:
            return rows
        if any(a in single and b in outer for a, b in either_way(self.shape.equal(select.args.get("where")))):
            return _Rows(covered=True, linked=True)
        carriers = self._grouped(select, rows.carriers)
        self._check_windows(select, self.computed.of_one_value(carriers))
        outputs = tuple(at for at, each in enumerate(self.shape.spelled(select.expressions)) if each in carriers)
        compares = any(select.args.get(name) for name in ("limit", "offset", "kind"))
        given = self.shape.kept(carriers, select.expressions)
        if compares or (select.args.get("distinct") and not given):
            self.refuse(select)
        return _Rows(covered=True, carriers=carriers, outputs=outputs)

    def _source(self, source: exp.Expr) -> _Rows:
        if any(source.args.get(name) for name in ("pivots", "joins", "laterals", "sample")):
            self.refuse(source)
        if isinstance(source, exp.Table):
            column = self.cover.get(source.meta.get(PLACE, -1))
            return _Rows(covered=True, carriers=frozenset({column})) if column else _ALL_ROWS
        if not isinstance(source, exp.Subquery):
            self.refuse(source)
            return _ALL_ROWS
        rows, names = self.query(source.this, frozenset()), output_names(source)
        if not rows.covered:
            return rows
        alias = spelled_alias(source)
        given = frozenset(f"{alias}.{names[at]}" for at in rows.outputs)
        return _Rows(covered=True, carriers=given | self.computed.outer(alias, rows.carriers))

    def _joined(self, select: exp.Select) -> _Rows:
        """What FROM and WHERE give."""
        for each in select.args.get("laterals") or []:
            self.refuse(each)
        sources = sources_of(select)
        if not sources:
            return _ALL_ROWS
        where = [] if may_lose_left(select) else self._equal(select.args.get("where"))
        rows = self._source(sources[0])
        for number, join in enumerate(joins_of(select), 1):
            rows = self._join(rows, self._source(sources[number]), join, (sources[:number], where))
        return _Rows(covered=rows.covered, carriers=closed(rows.carriers, where))

    def _join(
        self, left: _Rows, right: _Rows, join: exp.Join, context: tuple[list[exp.Expr], list[tuple[str, str]]]
    ) -> _Rows:
        """What a join gives; `context` are the sources on its left side and what WHERE says is equal."""
        before, where = context
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        is_inner = not side and kind in {"", "INNER", "CROSS"}
        on = self._equal(join.args.get("on"))
        keeps_left = side == "LEFT" or kind in {"SEMI", "ANTI"}
        known = is_inner or (keeps_left and kind in {"", "OUTER", "SEMI", "ANTI"}) or side in {"RIGHT", "FULL"}
        if merges(join) or not known:
            self.refuse(*before, join)
        here = closed(left.carriers, where) if left.covered else frozenset()
        links = [
            (a, b) for a, b in either_way([*on, *(where if is_inner else ())]) if a in here and b in right.carriers
        ]
        if left.covered and right.covered and not links:
            self._unlinked(before, join)
        if right.covered and not left.covered and not (is_inner or side == "RIGHT"):
            self.refuse(join)
        if left.covered and not right.covered and side in {"RIGHT", "FULL"}:
            self.refuse(*before)
        either = frozenset(f"COALESCE({x}, {y})" for a, b in links for x, y in ((a, b), (b, a)))
        carriers = either if side == "FULL" else right.carriers | either if side == "RIGHT" else left.carriers | either
        if is_inner:
            carriers = closed(carriers | right.carriers, on)
        return _Rows(covered=left.covered or right.covered, carriers=carriers)

    def _equal(self, condition: exp.Expr | None) -> list[tuple[str, str]]:
        """What a condition says is equal, of values of which rows have one: for others, Spark makes several rows of each."""
        return [pair for pair in self.shape.equal(condition) if not self.computed.hops.keys() & {*pair}]

    def _unlinked(self, before: list[exp.Expr], join: exp.Join) -> None:
        """Two sides are covered that are not joined by the key: the one without the target is to be left out."""
        left, right = self.covered(*before), self.covered(join)
        raise _UnfitError(left if self.target in right else right)

    def _check_subqueries(self, select: exp.Select, rows: _Rows, outer: frozenset[str]) -> None:
        top = {id(each) for each in conjuncts(select.args.get("where"))}
        for inner in self.shape.queries(select):
            found = self.query(inner, rows.carriers | outer)
            holder = inner.parent
            around = with_not(holder)
            alike = (
                isinstance(holder, exp.In)
                and id(around) in top
                and self.shape.spelled([holder.this])[0] in rows.carriers
                and 0 in found.outputs
                and kinds_given(inner)[0] == kind_of(holder.this)
            )
            if found.covered and not found.linked and not alike:
                self.refuse(inner)
            if found.covered and alike and isinstance(around, exp.Not):
                self._take_away(select, inner)

    def _take_away(self, select: exp.Select, inner: exp.Query) -> None:
        """Note what NOT IN with this subquery asks of nulls."""
        assert inner.parent is not None
        compared, taken = inner.find_ancestor(exp.In), unwrapped(inner)
        places = self.covered(inner)
        self.apart |= places
        if not isinstance(taken, exp.Select) or not is_set(taken.expressions[0], taken):
            self.nulls |= places
        if not isinstance(compared, exp.In) or not is_set(compared.this, select):
            self.nulls |= self.cover.keys() - places

    def _grouped(self, select: exp.Select, carriers: frozenset[str]) -> frozenset[str]:
        """What still holds the key after GROUP BY."""
        if not is_grouped(select):
            return carriers
        group = select.args.get("group") or exp.Group()
        if has_grouping_sets(group):
            self.refuse(select)
        by_all = [each.unalias() for each in select.expressions if not has_aggregates(each)]
        keys = by_all if group.args.get("all") else group.expressions
        left = self.shape.kept(carriers, keys)
        if not left:
            self.refuse(select)
        return left

    def _check_windows(self, select: exp.Select, carriers: frozenset[str]) -> None:
        for part in (*select.expressions, *(select.args.get(name) for name in ("qualify", "order"))):
            for window in all_of(part, exp.Window) if isinstance(part, exp.Expr) else ():
                if not self.shape.kept(carriers, window.args.get("partition_by") or []):
                    self.refuse(select)


def _arguments(window: exp.Window) -> Iterator[exp.Expr]:
    """What a window function takes, and what its window is made of: all of it may be an aggregate of groups."""
    called: exp.Expr = window
    while called is window or isinstance(called, _AROUND_CALL):
        yield from (each for name, each in _nodes(called) if name != "this")
        called = called.this
    yield from called.iter_expressions()


def _nodes(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for name, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield name, each


def _outermost(node: exp.Expr, sources: set[int]) -> list[exp.Query]:
    if id(node) in sources:
        return []
    if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
        return [node]
    return [found for child in node.iter_expressions() for found in _outermost(child, sources)]
