"""The columns of the rows of a query's parts, where its text does not name them: those that `*` gives, and those that a
SELECT reads."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from backfill_assets.query.ddl import Column
from backfill_assets.query.occurrences import Occurrence

__all__ = ["RowColumns", "name_subqueries"]

_UNNAMED: Final = "__auto_generated_subquery_name"
"""What Spark calls a subquery in FROM that has no name; two of them in one FROM are not told apart."""
_PART: Final = "part"
"""The entry in the `meta` of the part of a query whose columns are asked for."""


class RowColumns:
    """The columns of each part of a query over tables.

    Args:
        root: The query.
        found: Where it names tables (`occurrences`).
        tables: The columns of each upstream.

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> text = "SELECT *, x + 1 AS y FROM (SELECT x, z FROM t) AS s"
        >>> root = parse(text, tokenize(text))
        >>> rows = RowColumns(root, occurrences(root, ["t"]), {"t": parse_schema("x INT, z INT, w INT")})
        >>> rows.given(root), rows.seen(root)
        (('x', 'z', 'y'), (('s', 'x'), ('s', 'z')))
    """

    def __init__(self, root: exp.Expr, found: Sequence[Occurrence], tables: Mapping[str, Sequence[Column]]) -> None:
        self._root = root
        self._schema: dict[str, object] = {
            each.written: {column.name: column.type for column in tables[each.upstream]}
            for each in found
            if each.written
        }

    def given(self, query: exp.Query) -> tuple[str, ...]:
        """The names of the columns that a part of the query gives; none where only Spark can tell them."""
        names = [each.alias_or_name for each in _selected(self._part(query), self._schema)]
        return () if "*" in names else tuple(names)

    def seen(self, select: exp.Select) -> tuple[tuple[str, str], ...]:
        """The columns that the expressions of a SELECT can use, after their tables' names; none where only Spark can tell."""
        part = self._part(select)
        name_subqueries(part.root())
        own = len(_selected(part, self._schema))
        part = self._part(select)
        name_subqueries(part.root())
        part.set("expressions", [exp.Star(), *part.expressions])
        every = _selected(part, self._schema)
        columns = [column for item in every[: len(every) - own] for column in item.find_all(exp.Column)]
        if any(not each.table or each.is_star for each in columns):
            return ()
        return tuple(dict.fromkeys((each.table, each.name) for each in columns))

    def _part(self, query: exp.Query) -> exp.Query:
        """The part of the query in a copy of the whole."""
        query.meta[_PART] = True
        root = self._root.copy()
        del query.meta[_PART]
        return _marked(root)


def name_subqueries(root: exp.Expr) -> None:
    """Give subqueries in FROM that have no name the one that Spark gives them."""
    for subquery in root.find_all(exp.Subquery):
        if isinstance(subquery.parent, exp.From | exp.Join) and not subquery.alias:
            subquery.set("alias", exp.TableAlias(this=exp.to_identifier(_UNNAMED)))


def _selected(part: exp.Query, schema: dict[str, object]) -> list[exp.Expr]:
    """The SELECT list of a part of a query, with columns in the places of stars, as far as they are known."""
    try:
        root = qualify(part.root(), schema=schema, dialect="spark", validate_qualify_columns=False)
    except SqlglotError:
        return [exp.Star()]
    return list(_marked(root).selects)


def _marked(root: exp.Expr) -> exp.Query:
    return next(each for each in root.find_all(exp.Query) if _PART in each.meta)
