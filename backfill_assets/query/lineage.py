"""From which columns of its upstreams each column of a view is computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.inlined import inlined
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.resolved import OCCURRENCE, named, sources_of, unwrapped

__all__ = ["column_lineage"]

_Columns = set[tuple[str, str]]
_Given = dict[str, _Columns]


def column_lineage(query: str, tables: Mapping[str, tuple[Column, ...]]) -> dict[str, list[tuple[str, str]]]:
    """For each column of a view, in small letters, the upstreams and columns whose values its expression takes.

    `tables` are the columns of each upstream that the query may see. Conditions do not count. Nothing is returned where names
    cannot be resolved without Spark.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> tables = {"a": parse_schema("id INT, x INT"), "b": parse_schema("id INT, y INT")}
        >>> column_lineage("SELECT a.id, sum(x + y) AS total FROM a JOIN b ON a.id = b.id GROUP BY a.id", tables)
        {'id': [('a', 'id')], 'total': [('a', 'x'), ('b', 'y')]}
    """
    try:
        query = inlined(query)
        root = parse(query, tokenize(query))
        found = occurrences(root, list(tables))
    except QueryError:
        return {}
    tree = named(root, found, tables)
    if tree is None:
        return {}
    spelled = {name: {column.name.lower(): column.name for column in columns} for name, columns in tables.items()}
    names = {
        each.alias_or_name: found[each.meta[OCCURRENCE]].upstream
        for each in all_of(tree, exp.Table)
        if OCCURRENCE in each.meta
    }
    known = {alias: {column: {(name, column)} for column in spelled[name]} for alias, name in names.items()}
    return {
        output: sorted((name, spelled[name][column]) for name, column in columns)
        for output, columns in _Lineage(known).given(tree)
    }


@dataclass
class _Lineage:
    """What each name of a query's sources stands for; no two of them have the same name (see `named`).

    Attributes:
        known: The columns of upstreams that each column takes, for the sources that were met.
    """

    known: dict[str, _Given]
    _met: set[int] = field(default_factory=set)

    def given(self, node: exp.Expr) -> list[tuple[str, _Columns]]:
        """The name of each output of a query, and the columns that it takes."""
        inner = unwrapped(node)
        if isinstance(inner, exp.SetOperation):
            left, right = self.given(inner.left), self.given(inner.right)
            return [(name, some | other) for (name, some), (_, other) in zip(left, right, strict=False)]
        if isinstance(inner, exp.Subquery):
            return self.given(inner.this)  # with an ORDER BY or LIMIT of its own
        if not isinstance(inner, exp.Select):
            return []
        self._meet_sources(inner)
        return [(name, self._taken(each)) for each in inner.expressions for name in _names_of(each)]

    def _meet_sources(self, select: exp.Select) -> None:
        if id(select) not in self._met:
            self._met.add(id(select))
            for source in (*sources_of(select), *(select.args.get("laterals") or [])):
                self._meet(source)

    def _meet(self, source: exp.Expr) -> None:
        """Find out what the columns of a source take."""
        alias = source.alias_or_name
        if isinstance(source, exp.Subquery) or isinstance(source.this, exp.Subquery):
            given = self.given(source.this)
            names = [each.name for each in _alias_columns(source)] or [name for name, _ in given]
            self.known[alias] = {name: taken for name, (_, taken) in zip(names, given, strict=False)}
        elif isinstance(source, exp.Lateral):
            self.known[alias] = {each.name: self._taken(source.this) for each in _alias_columns(source)}
        for pivot in source.args.get("pivots") or []:
            self.known[alias] = self.known[pivot.alias] = self._pivoted(pivot, self.known.get(alias, {}))

    def _pivoted(self, pivot: exp.Expr, given: _Given) -> _Given:
        """What the columns of a PIVOT or UNPIVOT take of the columns that it is given."""
        taken = set().union(*(given.get(each.name, set()) for each in all_of(pivot, exp.Column)))
        if not pivot.args.get("unpivot"):
            return {**given, **{each.name: taken for each in pivot.args.get("columns") or []}}
        return {**given, **{each.name: taken for value in pivot.expressions for each in all_of(value, exp.Identifier)}}

    def _taken(self, node: exp.Expr) -> _Columns:
        """The columns that an expression takes, those of subqueries in it included."""
        for each in all_of(node, exp.Select):
            self._meet_sources(each)
        named = (self.known.get(each.table, {}).get(each.name, set()) for each in all_of(node, exp.Column))
        return set().union(*named, *(self._all_of(star) for star in all_of(node, exp.Star)))

    def _all_of(self, star: exp.Star) -> Iterator[tuple[str, str]]:
        """What a `*` takes: the columns of all sources, or of one; that of `count(*)` and of a struct take none."""
        around, select = star.parent, star.find_ancestor(exp.Select)
        if isinstance(around, exp.Count | exp.Dot) or select is None:
            return
        sources = (
            [around.table] if isinstance(around, exp.Column) else [each.alias_or_name for each in sources_of(select)]
        )
        for name in sources:
            for taken in self.known.get(name, {}).values():
                yield from taken


def _alias_columns(source: exp.Expr) -> list[exp.Expr]:
    """The names that an alias gives to columns."""
    alias = source.args.get("alias")
    return [] if alias is None else list(alias.columns)


def _names_of(item: exp.Expr) -> list[str]:
    """The columns that an expression of a SELECT list gives: `inline(all) AS (a, b)` gives two."""
    return [each.name for each in item.aliases] if isinstance(item, exp.Aliases) else [str(item.output_name)]
