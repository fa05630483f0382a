"""The keys by which a query may be computed in part: where only some of a key's values are touched, only these are computed.

A class is a key that stands in several places: columns that a query compares as equal, through joins, subqueries and set
operations. A change of a table touches the values of its class that stand in the changed rows, old and new. If the class
partitions the query (see `partition`), all other rows of the result stay as they are; those of the touched values are taken
out of the view and computed again from the new rows of these values. For that each row of the view must tell its value:
by a column of the query, or by a hidden one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.conditions import equalities
from backfill_assets.query.kinds import are_typed, kind_of_type
from backfill_assets.query.partition import (
    PLACE,
    Partition,
    all_aggregates_known,
    output_names,
    partition,
    subqueries_of,
)
from backfill_assets.query.resolved import OCCURRENCE, alias_of, sources_of, spelled_node, unwrapped
from backfill_assets.query.spelling import backquoted

__all__ = ["CLASS", "NO_CLASSES", "KeyClass", "KeyClasses", "Lookup", "key_classes", "partitions", "with_hidden"]

CLASS: Final = "__class_"
"""The hidden columns that hold a class, by its number: the hash of its value."""

_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class KeyClass:
    """One class: the column that holds its value in each occurrence which it covers, and the column of the view's rows, the
    `output`, which holds it or, if `is_hidden`, its hash; empty if none does. `kind` is the family of types that the value is
    of.

    With occurrences `apart` it is a key only if the column is null in no row of those of `nulls` (`partition`).
    """

    columns: Mapping[int, str]
    output: str
    kind: str
    is_hidden: bool = False
    apart: frozenset[int] = field(default=frozenset(), repr=False)
    nulls: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def carrier(self) -> str:
        """SQL for the hash of the value in the rows of the view; empty if they do not tell it."""
        if not self.output:
            return ""
        return backquoted(self.output) if self.is_hidden else self.hashed(backquoted(self.output))

    def of_occurrence(self, number: int) -> str:
        """SQL for the hash of the value in the rows of an occurrence."""
        return self.hashed(backquoted(self.columns[number]))

    def hashed(self, value: str) -> str:
        """SQL for the hash of a value. Integers of any width, and texts that differ in spaces at the end (which CHAR pads),
        have one."""
        if self.kind == "INTEGER":
            return f"xxhash64(CAST({value} AS BIGINT))"
        return f"xxhash64(rtrim({value}))" if self.kind == "STRING" else f"xxhash64({value})"


class Lookup(NamedTuple):
    """A step to the rows of other places: those with a value of the key that rows of a known place have."""

    key: KeyClass
    known: int
    others: tuple[int, ...]

    @property
    def nulls(self) -> tuple[tuple[int, str], ...]:
        """The columns, each of a place, that are to hold no null for the step to be right."""
        return tuple((at, self.key.columns[at]) for at in self.key.nulls) if self.known in self.key.apart else ()


@dataclass(frozen=True)
class KeyClasses:
    """The classes of a query, the class `of` each occurrence, by number, which has one, and SQL for the `hidden` columns.

    An occurrence with `lifts` has no column of its class: they lead from its rows to those of a place that has one.
    """

    classes: tuple[KeyClass, ...] = ()
    of: Mapping[int, int] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    lifts: Mapping[int, tuple[Lookup, ...]] = field(default_factory=dict)

    def touched_by(self, occurrences: Iterable[int]) -> dict[int, list[int]] | None:
        """The classes by whose values the changes of these occurrences show, each with those of them that it is for; None if
        one has no class."""
        found: dict[int, list[int]] = {}
        for number in occurrences:
            if number not in self.of:
                return None
            found.setdefault(self.of[number], []).append(number)
        return found


NO_CLASSES: Final = KeyClasses()


@dataclass(frozen=True)
class _Option:
    """A partition that has what is needed: its columns by occurrence, and where its value stands in the view's rows."""

    columns: Mapping[int, str]
    output: str
    hidden: str
    kind: str
    apart: frozenset[int] = frozenset()
    nulls: frozenset[int] = frozenset()


def key_classes(
    root: exp.Expr, tokens: Sequence[Token], tree: exp.Expr, types: Sequence[Mapping[str, str]], *, carried: bool = True
) -> KeyClasses:
    """The classes of a query, the widest first.

    `tree` is the query for analysis (`resolved`), `types` those of the columns of each occurrence, by small names. Where
    values need not be `carried`, rows of the result need not tell them.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> from backfill_assets.query.resolved import resolved
        >>> text = "SELECT a.x, count(*) AS n FROM a LEFT JOIN b ON a.x = b.y GROUP BY a.x"
        >>> tokens = tokenize(text)
        >>> root = parse(text, tokens)
        >>> tables = {"a": parse_schema("x INT"), "b": parse_schema("y INT")}
        >>> tree = resolved(root, occurrences(root, ["a", "b"]), tables)
        >>> key_classes(root, tokens, tree, [{"x": "INT"}, {"y": "INT"}]).classes
        (KeyClass(columns={0: 'x', 1: 'y'}, output='x', kind='INTEGER', is_hidden=False),)
    """
    places = list(tree.find_all(exp.Table))
    if len(places) > _MAX_PLACES or not all_aggregates_known(root, tokens) or not are_typed(tree, types):
        return NO_CLASSES
    for place, table in enumerate(places):
        table.meta[PLACE] = place
    return _chosen(list(_options(tree, types, carried=carried)))


_MAX_PLACES: Final = 40
"""Queries that read tables in more places than this are not looked at: each place is tried with each of its columns."""


def partitions(scope: exp.Expr, types: Sequence[Mapping[str, str]]) -> Iterator[KeyClass]:
    """The keys that partition a part of a tree that `key_classes` has looked at, also where they ask of nulls."""
    for each in _options(scope, types, carried=False, asking=True):
        yield KeyClass(each.columns, "", each.kind, apart=each.apart, nulls=each.nulls)


def with_hidden(query: str, tokens: Sequence[Token], classes: KeyClasses) -> str:
    """The query's text with the hidden columns at the end of its SELECT list."""
    if not classes.hidden:
        return query
    start = tokens[_from(tokens)].start
    return f"{query[:start]}{''.join(f', {each}' for each in classes.hidden)} {query[start:]}"


def _from(tokens: Sequence[Token]) -> int:
    """Where the FROM of the outermost SELECT is; that of IS DISTINCT FROM aside."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        compares = at and tokens[at - 1].token_type == TokenType.DISTINCT
        if depth == 0 and token.token_type == TokenType.FROM and not compares:
            return at
    raise AssertionError("a SELECT that reads tables has a FROM")


def _options(
    tree: exp.Expr, types: Sequence[Mapping[str, str]], *, carried: bool, asking: bool = False
) -> Iterator[_Option]:
    """All ways to cover some place of a tree; with `asking` also those that ask of nulls."""
    seen: set[frozenset[tuple[int, str]]] = set()
    for target, cover in _covers(tree):
        for found in _found(tree, target, cover):
            option = _whole(tree, found, types, carried=carried) if asking or not found.apart else None
            if option is not None and frozenset(option.columns.items()) not in seen:
                seen.add(frozenset(option.columns.items()))
                yield option


def _found(tree: exp.Expr, target: int, cover: Mapping[int, str]) -> Iterator[Partition]:
    """The partition by a cover; where it has places apart, also that without these, and itself only if both tell the same."""
    found = partition(tree, target, cover)
    if found is None:
        return
    if not found.apart:
        yield found
        return
    left = {place: column for place, column in found.cover.items() if place not in found.apart}
    plain = partition(tree, target if target in left else min(left, default=-1), left)
    if plain is not None and not plain.apart:
        if (plain.cover, plain.carriers, plain.outputs) == (left, found.carriers, found.outputs):
            yield found
        if target in left:
            yield plain


def _whole(tree: exp.Expr, found: Partition, types: Sequence[Mapping[str, str]], *, carried: bool) -> _Option | None:
    """A partition by occurrence, if it takes each of them in all places where the tree has it, with values of one kind."""
    columns: dict[int, str] = {}
    apart: dict[int, bool] = {}
    nulls: set[int] = set()
    for table in tree.find_all(exp.Table):
        number = table.meta.get(OCCURRENCE)
        if number is None:
            continue
        place = table.meta[PLACE]
        column = alias_of(found.cover.get(place, "."))[1]
        is_apart = place in found.apart
        if columns.setdefault(number, column) != column or apart.setdefault(number, is_apart) != is_apart:
            return None
        nulls |= {number} if place in found.nulls else set()
    asks = (frozenset(number for number in apart if apart[number]), frozenset(nulls))
    columns = {number: column for number, column in columns.items() if column}
    kinds = {kind_of_type(types[number].get(column, "")) for number, column in columns.items()}
    if len(kinds) != 1 or "" in kinds:
        return None
    (kind,) = kinds
    if not carried:
        return _Option(columns, "", "", kind, *asks)
    names = output_names(tree)
    if found.outputs:
        return _Option(columns, names[found.outputs[0]], "", kind, *asks)
    hidden = sorted(
        filter(None, (_as_written(tree, each) for each in found.carriers)), key=lambda each: (len(each), each)
    )
    return _Option(columns, "", hidden[0], kind, *asks) if hidden else None


def _as_written(tree: exp.Expr, carrier: str) -> str:
    """SQL for a carrier of the outermost SELECT with the user's own names; nothing where it cannot be told there."""
    columns = [alias_of(each.replace("`", "")) for each in carrier.removeprefix("COALESCE(").rstrip(")").split(", ")]
    plain = all(_NAME.fullmatch(alias) and _NAME.fullmatch(column) for alias, column in columns)
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or not plain:
        return ""
    names = [f"{backquoted(alias)}.{backquoted(column)}" for alias, column in columns]
    return names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"


def _covers(tree: exp.Expr) -> Iterator[tuple[int, dict[int, str]]]:
    """For each place, the covers that may partition the query: by each class that it has a column in."""
    union = _Union()
    _connect(tree, union)
    owners = {_alias(table): table.meta[PLACE] for table in tree.find_all(exp.Table) if OCCURRENCE in table.meta}
    classes: dict[str, dict[int, str]] = {}
    for column in sorted(union.nodes):
        place = owners.get(column.rpartition(".")[0])
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
    for column in inner.find_all(exp.Column):
        union.find(spelled_node(column))
    return [_first(spelled_node(each)) if _is_column(each) else "" for each in inner.expressions]


def _connect_source(source: exp.Expr, union: _Union) -> None:
    if isinstance(source, exp.Subquery):
        alias = _alias(source)
        for name, column in zip(output_names(source), _connect(source.this, union), strict=False):
            union.join(f"{alias}.{name}", column)


def _alias(source: exp.Expr) -> str:
    return spelled_node(exp.column("_", source.alias_or_name)).removesuffix("._")


def _connect_nested(query: exp.Query, union: _Union) -> None:
    given = _connect(query, union)
    holder = query.parent
    while isinstance(holder, exp.Subquery):
        holder = holder.parent
    if isinstance(holder, exp.In) and isinstance(holder.this, exp.Column) and given:
        union.join(spelled_node(holder.this), given[0])


def _on(select: exp.Select) -> list[exp.Expr | None]:
    return [join.args.get("on") for join in select.args.get("joins") or []]


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node.unalias(), exp.Column | exp.Coalesce)


def _first(spelled: str) -> str:
    """The first column of a `coalesce`, as which columns of USING are known."""
    return spelled.removeprefix("COALESCE(").partition(",")[0].rstrip(")")


def _chosen(options: Sequence[_Option]) -> KeyClasses:
    """A class for each occurrence that has one: that which covers most of those that are still without."""
    left = {number for option in options for number in option.columns}
    classes: list[KeyClass] = []
    of: dict[int, int] = {}
    hidden: list[str] = []
    while left:
        best = max(options, key=lambda each: (len(left & each.columns.keys()), bool(each.output), len(each.columns)))
        of |= dict.fromkeys(left & best.columns.keys(), len(classes))
        left -= best.columns.keys()
        name = f"{CLASS}{len(classes)}" if best.hidden else best.output
        classes.append(KeyClass(best.columns, name, best.kind, bool(best.hidden)))
        if best.hidden:
            hidden.append(f"{classes[-1].hashed(best.hidden)} AS {name}")
    return KeyClasses(tuple(classes), of, tuple(hidden))
