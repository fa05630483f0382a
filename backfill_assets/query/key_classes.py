"""The keys by which a query may be computed in part: where only some of a key's values are touched, only these are computed.

A class is a key that stands in several places: columns that a query compares as equal, through joins, subqueries and set
operations. A change of a table touches the values of its class that stand in the changed rows, old and new. If the class
partitions the query (see `partition`), all other rows of the result stay as they are; those of the touched values are taken
out of the view and computed again from the new rows of these values. For that each row of the view must tell its value:
by a column of the query, or by a hidden one.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp

from backfill_assets.query.computed_keys import ComputedKeys, Hops, note_constants
from backfill_assets.query.covers import covers
from backfill_assets.query.kinds import are_typed, kind_of, kind_of_type
from backfill_assets.query.nodes import all_of
from backfill_assets.query.partition import (
    PLACE,
    Partition,
    Shape,
    all_aggregates_known,
    output_names,
    partition,
)
from backfill_assets.query.resolved import OCCURRENCE, alias_of
from backfill_assets.query.spelling import backquoted

__all__ = [
    "CLASS",
    "NO_CLASSES",
    "KeyClass",
    "KeyClasses",
    "Lookup",
    "can_hide",
    "key_classes",
    "partitions",
    "with_hidden",
]

CLASS: Final = "__class_"
"""The hidden columns that hold a class, by its number: the hash of its value."""

_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class KeyClass:
    """One class: the column that holds its value in each occurrence which it covers, or SQL for it in those of `computed`;
    and the column of the view's rows, the `output`, which holds it or, if `is_hidden`, its hash; empty if none does. `kind`
    is the family of types that the value is of.

    With occurrences `apart` it is a key only if the column is null in no row of those of `nulls` (`partition`). Rows of the
    occurrences in `hops` have several values of it: their SQL makes so many rows of each.
    """

    columns: Mapping[int, str]
    output: str
    kind: str
    is_hidden: bool = False
    apart: frozenset[int] = field(default=frozenset(), repr=False)
    nulls: frozenset[int] = field(default=frozenset(), repr=False)
    computed: frozenset[int] = field(default=frozenset(), repr=False)
    hops: Mapping[int, Hops] = field(default_factory=dict, repr=False)

    @property
    def carrier(self) -> str:
        """SQL for the hash of the value in the rows of the view; empty if they do not tell it."""
        if not self.output:
            return ""
        return backquoted(self.output) if self.is_hidden else self.hashed(backquoted(self.output))

    def of_occurrence(self, number: int) -> str:
        """SQL for the hash of the value in the rows of an occurrence."""
        return self.hashed(self.value(number))

    def value(self, number: int) -> str:
        """SQL for the value itself."""
        value = self.columns[number]
        return value if number in self.computed else backquoted(value)

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

    @property
    def told(self) -> "KeyClasses":
        """The same without classes that the view would tell by hidden columns."""
        numbers = [number for number, each in enumerate(self.classes) if not each.is_hidden]
        of = {place: numbers.index(number) for place, number in self.of.items() if number in numbers}
        lifts = {place: steps for place, steps in self.lifts.items() if place in of}
        return KeyClasses(tuple(self.classes[number] for number in numbers), of, (), lifts)


NO_CLASSES: Final = KeyClasses()


@dataclass(frozen=True)
class _Option:
    """A partition that has what is needed: its columns by occurrence, and where its value stands in the view's rows."""

    columns: Mapping[int, str]
    kind: str
    output: str = ""
    hidden: str = ""
    apart: frozenset[int] = frozenset()
    nulls: frozenset[int] = frozenset()
    computed: frozenset[int] = frozenset()
    hops: Mapping[int, Hops] = field(default_factory=dict)

    def worth(self, left: Collection[int]) -> tuple[int, int, bool, int]:
        """How good a key it is where these occurrences are left. Rows are found by columns without a scan of all."""
        return len(self.columns.keys() & {*left}), -len(self.computed), bool(self.output), len(self.columns)


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
    places = all_of(tree, exp.Table)
    if len(places) > _MAX_PLACES or not all_aggregates_known(root, tokens) or not are_typed(tree, types):
        return NO_CLASSES
    for place, table in enumerate(places):
        table.meta[PLACE] = place
    note_constants(tree, tokens)
    return _chosen(list(_options(tree, types, carried=carried)))


_MAX_PLACES: Final = 40
"""Queries that read tables in more places than this are not looked at: each place is tried with each of its columns."""


def partitions(scope: exp.Expr, types: Sequence[Mapping[str, str]]) -> Iterator[KeyClass]:
    """The keys that partition a part of a tree that `key_classes` has looked at, also where they ask of nulls."""
    for each in _options(scope, types, carried=False, asking=True):
        yield KeyClass(each.columns, "", each.kind, apart=each.apart, nulls=each.nulls, computed=each.computed)


def with_hidden(query: str, tokens: Sequence[Token], classes: KeyClasses) -> str:
    """The query's text with the hidden columns at the end of its SELECT list."""
    start = tokens[_from(tokens)].start
    return f"{query[:start]}{''.join(f', {each}' for each in classes.hidden)} {query[start:]}"


def can_hide(tokens: Sequence[Token]) -> bool:
    """Whether the SELECT list of a query ends where its FROM begins, so that hidden columns can be put there: not in
    `FROM t SELECT a`."""
    return _outermost(tokens, TokenType.SELECT) < _from(tokens)


def _from(tokens: Sequence[Token]) -> int:
    """Where the FROM of the outermost SELECT is."""
    return _outermost(tokens, TokenType.FROM)


def _outermost(tokens: Sequence[Token], kind: TokenType) -> int:
    """Where the first token of a kind is that no brackets are around; that of IS DISTINCT FROM aside."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        compares = at and tokens[at - 1].token_type == TokenType.DISTINCT
        if depth == 0 and token.token_type == kind and not compares:
            return at
    raise AssertionError("a query that reads tables has a SELECT and a FROM")


def _options(
    tree: exp.Expr, types: Sequence[Mapping[str, str]], *, carried: bool, asking: bool = False
) -> Iterator[_Option]:
    """All ways to cover some place of a tree; with `asking` also those that ask of nulls."""
    seen: set[frozenset[tuple[int, str]]] = set()
    computed = ComputedKeys.of(
        tree, several=carried
    )  # what else is computed of these rows has to be left out of the result
    whole = _Whole(tree, types, computed, carried)
    shape = Shape(tree, computed)
    for target, cover in covers(tree, computed):
        for found in _found(shape, target, cover):
            option = whole.option(found) if asking or not found.apart else None
            if option is not None and frozenset(option.columns.items()) not in seen:
                seen.add(frozenset(option.columns.items()))
                yield option


def _found(shape: Shape, target: int, cover: Mapping[int, str]) -> Iterator[Partition]:
    """The partition by a cover; where it has places apart, also that without these, and itself only if both tell the same."""
    found = partition(shape, target, cover)
    if found is None:
        return
    if not found.apart:
        yield found
        return
    left = {place: column for place, column in found.cover.items() if place not in found.apart}
    plain = partition(shape, target if target in left else min(left, default=-1), left)
    if plain is not None and not plain.apart:
        if (plain.cover, plain.carriers, plain.outputs) == (left, found.carriers, found.outputs):
            yield found
        if target in left:
            yield plain


class _Held(NamedTuple):
    """How rows of a place tell a key: by a column, or by SQL if it `is_computed`. Places without the key have no column."""

    column: str
    kind: str
    is_apart: bool
    is_computed: bool = False
    hops: Hops | None = None


@dataclass(frozen=True)
class _Whole:
    """Makes an option of a partition of a tree; `types` are those of the columns of each occurrence."""

    tree: exp.Expr
    types: Sequence[Mapping[str, str]]
    computed: ComputedKeys
    carried: bool

    def option(self, found: Partition) -> _Option | None:
        """A partition by occurrence, if it takes some of them, with values of one kind."""
        held: dict[int, _Held] = {}
        nulls: set[int] = set()
        for table in all_of(self.tree, exp.Table):
            number = table.meta.get(OCCURRENCE)
            if number is not None:
                place = table.meta[PLACE]
                held[number] = self._held(number, found.cover.get(place, ""), place in found.apart)
                nulls |= {number} if place in found.nulls else set()
        one = {number: each for number, each in held.items() if each.column}
        kinds = [*{each.kind for each in one.values()}]
        computed = frozenset(number for number, each in one.items() if each.is_computed)
        if len(kinds) != 1 or "" in kinds or (found.apart and computed):
            return None
        columns = {number: each.column for number, each in one.items()}
        apart = frozenset(number for number, each in one.items() if each.is_apart)
        hops = {number: each.hops for number, each in one.items() if each.hops is not None}
        option = _Option(columns, kinds[0], apart=apart, nulls=frozenset(nulls), computed=computed, hops=hops)
        return self._carried(option, found)

    def _held(self, number: int, spelled: str, is_apart: bool) -> "_Held":
        if spelled in self.computed.nodes:
            kind, hops = kind_of(self.computed.nodes[spelled]), self.computed.hops.get(spelled)
            return _Held(self.computed.over_rows(spelled), kind, is_apart, is_computed=True, hops=hops)
        column = alias_of(spelled)[1]
        return _Held(column, kind_of_type(self.types[number].get(column, "")), is_apart)

    def _carried(self, option: _Option, found: Partition) -> _Option | None:
        """The option with what tells the key in rows of the result; None if nothing does."""
        if not self.carried:
            return option
        if found.outputs:
            return replace(option, output=output_names(self.tree)[found.outputs[0]])
        carriers = self.computed.of_one_value(found.carriers)
        hidden = sorted(filter(None, map(self._as_written, carriers)), key=lambda each: (len(each), each))
        return replace(option, hidden=hidden[0]) if hidden else None

    def _as_written(self, carrier: str) -> str:
        """SQL for a carrier of the outermost SELECT with the user's own names; nothing where it cannot be told there."""
        if not isinstance(self.tree, exp.Select) or self.tree.args.get("distinct"):
            return ""
        if carrier in self.computed.nodes:
            # Beside groups Spark would have to see that it is the one that the query groups by.
            return "" if self.tree.args.get("group") else self.computed.as_written(carrier)
        plain = carrier.replace("`", "").removeprefix("COALESCE(").rstrip(")").split(", ")
        columns = [alias_of(each) for each in plain]
        if not all(_NAME.fullmatch(alias) and _NAME.fullmatch(column) for alias, column in columns):
            return ""
        names = [f"{backquoted(alias)}.{backquoted(column)}" for alias, column in columns]
        return names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"


def _chosen(options: Sequence[_Option]) -> KeyClasses:
    """A class for each occurrence that has one: that which covers most of those that are still without."""
    left = {number for option in options for number in option.columns}
    classes: list[KeyClass] = []
    of: dict[int, int] = {}
    hidden: list[str] = []
    while left:
        best = max(options, key=lambda each: each.worth(left))
        of |= dict.fromkeys(left & best.columns.keys(), len(classes))
        left -= best.columns.keys()
        name = f"{CLASS}{len(classes)}" if best.hidden else best.output
        key = KeyClass(best.columns, name, best.kind, bool(best.hidden), computed=best.computed, hops=best.hops)
        classes.append(key)
        if best.hidden:
            hidden.append(f"{classes[-1].hashed(best.hidden)} AS {name}")
    return KeyClasses(tuple(classes), of, tuple(hidden))
