"""From which columns of its upstreams each column of a view is computed."""

from collections.abc import Mapping

from sqlglot import exp

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.inlined import inlined
from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import occurrences
from backfill_assets.query.parsing import parse, tokenize
from backfill_assets.query.resolved import OCCURRENCE, resolved, sources_of, unwrapped

__all__ = ["column_lineage"]

_Columns = set[tuple[str, str]]


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
    tree = resolved(root, found, tables)
    if tree is None:
        return {}
    names = [each.upstream for each in found]
    spelled = {name: {column.name.lower(): column.name for column in columns} for name, columns in tables.items()}
    return {
        output: sorted((name, spelled[name][column]) for name, column in columns if column in spelled[name])
        for output, columns in _given(tree, names)
    }


def _given(node: exp.Expr, names: list[str]) -> list[tuple[str, _Columns]]:
    """The name of each output of a query, and the columns that it takes."""
    inner = unwrapped(node)
    if isinstance(inner, exp.SetOperation):
        left, right = _given(inner.left, names), _given(inner.right, names)
        return [(name, some | other) for (name, some), (_, other) in zip(left, right, strict=False)]
    if not isinstance(inner, exp.Select):
        return []
    known = {
        source.alias_or_name: dict(_given(source.this, names))
        for source in sources_of(inner)
        if isinstance(source, exp.Subquery)
    }
    tables = {
        source.alias_or_name: names[source.meta[OCCURRENCE]]
        for source in all_of(inner, exp.Table)
        if OCCURRENCE in source.meta
    }
    return [(name, _taken(each, tables, known)) for each in inner.expressions for name in _names_of(each)]


def _names_of(item: exp.Expr) -> list[str]:
    """The columns that an expression of a SELECT list gives: `inline(all) AS (a, b)` gives two."""
    return [each.name for each in item.aliases] if isinstance(item, exp.Aliases) else [str(item.output_name)]


def _taken(node: exp.Expr, tables: Mapping[str, str], known: Mapping[str, Mapping[str, _Columns]]) -> _Columns:
    """The columns that an expression takes, those of subqueries in it included."""
    found: _Columns = set()
    for column in all_of(node, exp.Column):
        if column.table in tables:
            found.add((tables[column.table], column.name))
        found |= known.get(column.table, {}).get(column.name, set())
    return found
