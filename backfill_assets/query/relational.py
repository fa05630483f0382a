"""Reads a query of any shape: joins, subqueries, windows, set operations, groups of groups.

There are rules for single rows (`rowwise`) and for groups of one upstream (`aggregate`). Any other deterministic query
is computed over whole upstreams, and the view is updated by the differences. The user's text is kept: only the places
where it names upstreams are bound to rows.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import Token, exp

from backfill_assets.errors import QueryError
from backfill_assets.query import record_columns
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.clustering import clustering_column
from backfill_assets.query.ddl import Column
from backfill_assets.query.determinism import check_deterministic
from backfill_assets.query.exact import are_exact
from backfill_assets.query.expressions import check_used
from backfill_assets.query.grouped_rows import Cut, cut_at_groups
from backfill_assets.query.inlined import inlined
from backfill_assets.query.inner_joins import read_trees
from backfill_assets.query.key_classes import (
    NO_CLASSES,
    KeyClass,
    KeyClasses,
    Lookup,
    can_hide,
    key_classes,
    with_hidden,
)
from backfill_assets.query.lifting import with_lifts
from backfill_assets.query.limited import By, ending
from backfill_assets.query.linear import NOWHERE, Linearity, linearity
from backfill_assets.query.merged_columns import take_first
from backfill_assets.query.named_outputs import named_outputs
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence, occurrences
from backfill_assets.query.origins import origins
from backfill_assets.query.parameters import Parameter, parameters
from backfill_assets.query.place_reads import read_in_part
from backfill_assets.query.refusals import refusal
from backfill_assets.query.relational_text import named_upstreams, read_text, spelled_text, template_of
from backfill_assets.query.resolved import renames_columns
from backfill_assets.query.steps import Steps, asked_of_nulls, lookups, steps_by_places
from backfill_assets.query.used_columns import used_columns

__all__ = [
    "COPY",
    "ERROR",
    "ROW_HASH",
    "RelationalQuery",
    "Written",
    "analyze_relational",
]

ROW_HASH: Final = "__row_hash"
COPY: Final = "__copy"
"""The number of a row among those with the same hash (and the same value of the column by which files are laid out), from 1;
together with these, it is the key of a view without another key."""

ERROR: Final = Column(record_columns.ERROR, "STRING")
"""Why a record is bad; null in good records."""

_LATERAL = re.compile(r"\blateral (?!view\b)")
_LIMIT = re.compile(r"\b(?:limit|fetch)\b", re.IGNORECASE)


@dataclass(frozen=True)
class RelationalQuery:
    """A query of any shape, ready to run.

    `text` is the query with one spelling. `template` is the user's text with `{occurrence_<n>}` where it names upstreams, and
    with the definitions of WITH in the places of their names; with them as they are, it is `written`.
    `occurrences` the upstream of each, `linearity` in which of them the query is linear. `columns` are those of each
    upstream that `*` stands for. `output_columns` are empty where only Spark can tell them. `key_columns` are the
    view's own key, or the hash of a row and its copy's number; before these the column by which files are laid out, if there
    is one. Of the upstreams in `good` only rows without `ERROR` are seen,
    and of those in `read_in_part` Spark may read only some: it looks for a row that exists.
    `classes` are the keys by which it may be computed in part; the template gives their hidden columns last. A query that is
    `grouped` is kept by its groups. `used` are the columns of each upstream that it may use. `partners` are the keys by
    which its places have to do with each other, whether or not its result tells them. `first` is the query of which it
    gives the first rows.
    """

    text: str
    upstreams: tuple[str, ...]
    key_columns: tuple[str, ...]
    output_columns: tuple[str, ...]
    columns: Mapping[str, tuple[Column, ...]] = field(repr=False)
    template: str = field(repr=False)
    occurrences: tuple[str, ...] = field(repr=False)
    primary_key: tuple[str, ...] = ()
    good: frozenset[str] = frozenset()
    linearity: Linearity = NOWHERE
    classes: KeyClasses = NO_CLASSES
    grouped: "Grouped | None" = None
    read_in_part: frozenset[str] = frozenset()
    used: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    partners: KeyClasses = field(default=NO_CLASSES, repr=False)
    parameters: tuple[Parameter, ...] = field(default=(), repr=False)
    origins: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False)
    """The place, and the column in it, of each column of the view that is read as it is, in small letters."""
    first: "FirstRows | None" = None
    written: "Written | None" = field(default=None, repr=False)

    @property
    def read(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns that are read of each upstream."""
        return {name: (*each, ERROR) if name in self.good else each for name, each in self.columns.items()}

    @property
    def ends_early(self) -> bool:
        """Whether Spark may stop reading before it has all rows: where the values that a LIMIT orders by are constants."""
        return _LIMIT.search(self.text) is not None

    def steps(self, changed: Collection[str]) -> Steps:
        """How the view follows changes of these upstreams."""
        if self.first is not None:
            before = self.first.query.steps(changed)
            return before if before.rule == "full" else replace(before, first=True)
        places = [number for number, name in enumerate(self.occurrences) if name in changed]
        steps = self._steps(places)
        asked = tuple(at for at, each in enumerate(self.parameters) if not each.places.isdisjoint(places))
        if steps.rule != "full" or not asked:
            return steps
        inside = frozenset[int]().union(*(each.places for each in self.parameters))
        beside = self._steps([number for number in places if number not in inside])
        return beside if beside.rule == "full" else replace(beside, parameters=asked)

    def _steps(self, places: Sequence[int]) -> Steps:
        rows = self.grouped.rows if self.grouped else self
        steps = steps_by_places(rows.linearity, rows.classes, places)
        if steps is not None and (self.grouped or not steps.by_class):
            return replace(steps, rule="additive" if self.grouped else "linear")
        if self.grouped:
            by_class = self.classes.touched_by(places)
            if by_class is None:
                return Steps("full")
            return Steps("restricted", (), by_class, asked_of_nulls(self.classes, by_class))
        return steps or Steps("full")

    def chunk_steps(self, places: Sequence[int]) -> Steps:
        """How rows of history come to the view that are bound to these places, in which the query is linear."""
        return Steps("additive" if self.grouped else "linear", tuple(places))

    def driving(self, rows: Mapping[str, int]) -> dict[int, str]:
        """The places, with their tables, by whose rows the query can be computed in chunks, if each table has so many `rows`;
        empty if it cannot."""
        linear = (self.grouped.rows if self.grouped else self).linearity
        return {at: self.occurrences[at] for at in linear.driving([rows[name] for name in self.occurrences])}

    def partitioning_key(self, rows: Mapping[str, int]) -> KeyClass | None:
        """The key by whose values the query can be computed in parts, if each table has so many `rows`: the one that covers
        most of them. None if there is no key of which each row has one value."""
        fit = [key for key in self.classes.classes if not key.hops]
        return max(fit, key=lambda key: sum(rows[self.occurrences[at]] for at in key.columns), default=None)

    def lookups(self, place: int) -> list[Lookup]:
        """How rows of other places are found that have to do with rows of a place (`steps.lookups`)."""
        return lookups(self.partners, self.linearity, place)

    @property
    def is_lateral(self) -> bool:
        """Whether LATERAL may join subqueries or functions in it, which Spark's analyzer cannot have twice in a plan."""
        return _LATERAL.search(self.text) is not None

    @property
    def by_copies(self) -> bool:
        """Whether rows are known by what they hold and the number of the copy."""
        return self.key_columns[-2:] == (ROW_HASH, COPY)

    @property
    def branch_column(self) -> str:
        """Empty: its parts are not distinguished."""
        return ""


@dataclass(frozen=True)
class Written:
    """The text of a query with WITH as its author wrote it: a template like that of the query, and the upstream of each place
    in it."""

    template: str
    occurrences: tuple[str, ...]


@dataclass(frozen=True)
class FirstRows:
    """A query whose changes can be followed, and of whose result a view holds the first `rows`, in the order of `by`."""

    query: RelationalQuery
    rows: int
    by: tuple[By, ...]


@dataclass(frozen=True)
class Grouped:
    """A query that groups rows, in two: the query for the `rows`, whose changes follow from those of its tables, and the one
    for the `groups` over what that gives; `of_all` rows, if they make one group, which is always there."""

    rows: RelationalQuery
    groups: AggregateQuery
    of_all: bool


def analyze_relational(
    query: str,
    tables: Mapping[str, tuple[Column, ...]],
    primary_key: tuple[str, ...] = (),
    records: Collection[str] = (),
) -> RelationalQuery:
    """Read a query over `tables`, all columns of each upstream by its name. `primary_key` are columns of the view;
    `records` are the tables that belong to a source, of which only good records are read.

    Errors: `QueryError` with a `reason` if the query is wrong, or would not return the same rows again.
    """
    plain = inlined(query)
    if plain == query:
        return _with_end(query, tables, primary_key, records)
    try:
        found = _with_end(plain, tables, primary_key, records)
    except QueryError:
        _with_end(query, tables, primary_key, records)  # its errors name places in the text as it is
        raise
    text, tokens, root = read_text(query, found.columns)
    places = occurrences(root, list(found.columns))
    written = Written(template_of(text, places), tuple(each.upstream for each in places))
    return replace(found, text=spelled_text(text, tokens, root), written=written)


def _with_end(
    query: str, tables: Mapping[str, tuple[Column, ...]], primary_key: tuple[str, ...], records: Collection[str]
) -> RelationalQuery:
    """A query as it is, with the one of which it gives the first rows."""
    found = _analyzed(query, tables, primary_key, records)
    ended = ending(*read_text(query, found.columns), found.output_columns) if _LIMIT.search(query) else None
    if ended is None:
        return found
    before = _analyzed(ended.query, tables, primary_key, records, kept=False)
    has_rule = bool(before.linearity.linear or before.classes.of)
    return replace(found, first=FirstRows(before, ended.rows, ended.by)) if has_rule else found


def _analyzed(
    query: str,
    tables: Mapping[str, tuple[Column, ...]],
    primary_key: tuple[str, ...],
    records: Collection[str],
    *,
    kept: bool = True,
) -> RelationalQuery:
    """The same of a query as it is. If it is not `kept`, as no view holds all that it gives, it has neither groups nor hidden
    columns."""
    visible = {name: _visible(query, each, records=name in records) for name, each in tables.items()}
    query, tokens, root = read_text(query, visible)
    found = occurrences(root, list(tables))
    upstreams = tuple(dict.fromkeys(each.upstream for each in found))
    if not found:
        raise refusal("UNKNOWN_UPSTREAM", "the query reads no upstream")
    check_used(upstreams, tables)
    check_deterministic(root, tokens, tables)
    visible = {name: visible[name] for name in upstreams}
    as_it_is = root
    root, tree = read_trees(root, found, visible)
    bare = RelationalQuery(
        text=spelled_text(query, tokens, root),
        upstreams=upstreams,
        key_columns=primary_key or (ROW_HASH, COPY),
        output_columns=named_outputs(root, found, visible),
        columns=visible,
        template=template_of(query, found),
        occurrences=tuple(each.upstream for each in found),
        primary_key=primary_key,
        good=frozenset(name for name in records if any(each.name == ERROR.name for each in tables[name])),
        linearity=linearity(root, tokens, found),
        read_in_part=read_in_part(root, found),
        used={name: _used(root, tokens, [each.name for each in visible[name]]) for name in upstreams},
    )
    if tree is None:
        return bare
    known = replace(bare, parameters=parameters(query, tokens, as_it_is, tree, found), origins=origins(tree))
    return _with_rules(known, (query, tokens, root), tree, found, kept=kept)


def _with_rules(
    bare: RelationalQuery,
    read: tuple[str, list[Token], exp.Expr],
    tree: exp.Expr,
    found: tuple[Occurrence, ...],
    *,
    kept: bool,
) -> RelationalQuery:
    """A query with the rules by which it follows changes, besides those of places in which it is linear."""
    query, tokens, root = read
    types = [{column.name.lower(): column.type.upper() for column in bare.columns[each.upstream]} for each in found]
    take_first(tree, types)
    if bare.linearity.linear:
        bare = replace(bare, partners=key_classes(root, tokens, tree, types, carried=False))
    named = {each.written: bare.columns[each.upstream] for each in found}
    cut = cut_at_groups(query, tokens, root, tree, named) if kept else None
    whole = None if cut is None else _grouped(bare, cut)
    if whole is None and bare.linearity.linear == set(range(len(found))):
        return _clustered(bare, tree, types)
    classes = with_lifts(key_classes(root, tokens, tree, types), tree, types, bare.linearity.linear)
    if not kept:
        classes = classes.told
    if classes.hidden and (whole is not None or not can_hide(tokens)):
        classes = NO_CLASSES
    if whole is not None:
        return replace(whole, classes=classes)
    if classes.hidden:
        text = with_hidden(query, tokens, classes)
        bare = replace(bare, template=template_of(text, named_upstreams(text, bare.columns)))
    return _clustered(replace(bare, classes=classes), tree, types)


def _used(root: exp.Expr, tokens: Sequence[Token], columns: Sequence[str]) -> frozenset[str]:
    """The columns of an upstream that a query may use: all of them where it gives them other names, by their order, or where
    FROM without SELECT stands for all."""
    given = (each for select in all_of(root, exp.Select) for each in select.expressions)
    every = renames_columns(root) or any(isinstance(each, exp.Star) for each in given)
    return frozenset(columns) if every else used_columns(tokens, columns)


def _clustered(query: RelationalQuery, tree: exp.Expr, types: Sequence[Mapping[str, str]]) -> RelationalQuery:
    """The query, with the column by which files are laid out before what else identifies rows without a key."""
    column = clustering_column(tree, query.output_columns, types, query.classes) if query.by_copies else ""
    return replace(query, key_columns=(column, *query.key_columns)) if column else query


def _grouped(query: RelationalQuery, cut: Cut) -> RelationalQuery | None:
    """A query that groups rows, kept by its groups; None where that is no rule for any change, or another key is wanted."""
    _, tokens, root = read_text(cut.rows)
    found = occurrences(root, query.upstreams)
    named = {each.written: query.columns[each.upstream] for each in found}
    types = [{column.name.lower(): column.type.upper() for column in query.columns[each.upstream]} for each in found]
    root, tree = read_trees(root, found, query.columns)
    exact = tree is not None and are_exact(tree, named)
    partners, linear = NO_CLASSES, linearity(root, tokens, found)
    if tree is not None:
        partners = key_classes(root, tokens, tree, types, carried=False)
        partners = with_lifts(partners, tree, types, linear.linear)
    rows = replace(
        query,
        text=cut.rows,
        primary_key=(),
        output_columns=tuple(root.named_selects) if isinstance(root, exp.Query) else (),
        template=template_of(cut.rows, named_upstreams(cut.rows, query.upstreams)),
        linearity=linear,
        # Rows that are given back are computed from older versions: they are to be the same as when they were taken in.
        classes=partners if exact else NO_CLASSES,
        partners=partners,
    )
    is_other = tuple(each.upstream for each in found) != query.occurrences
    has_rule = bool(rows.linearity.linear or rows.classes.of)
    if is_other or not has_rule or set(query.primary_key) not in (set(), set(cut.groups.key_columns)):
        return None
    return replace(
        query, key_columns=cut.groups.key_columns, primary_key=(), grouped=Grouped(rows, cut.groups, cut.of_all)
    )


def _visible(query: str, columns: tuple[Column, ...], *, records: bool) -> tuple[Column, ...]:
    """The columns that a user sees: no columns for bad records, and those that begin with `__` only if they are named."""
    hidden = record_columns.UNSEEN if records else frozenset()
    text = query.lower()
    return tuple(
        each
        for each in columns
        if each.name not in hidden and (not each.name.startswith("__") or each.name.lower() in text)
    )
