"""Words that call functions of the clock or the session without parentheses, such as `user`, if no column has that
name.

Spark reads such a word as a column of the SELECT's inputs, otherwise as the function, before it considers names of the
SELECT list or columns of the outer query.
"""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from backfill_assets.query.functions import CURRENT_WORDS
from backfill_assets.query.nodes import all_of

__all__ = ["called_words"]


def called_words(root: exp.Expr, tables: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The words of a query that call functions. `tables`: the columns of each upstream, all names in lower case."""
    named = {each.alias.lower(): each for each in all_of(root, exp.CTE)}
    for column in all_of(root, exp.Column):
        name = column.name.lower()
        if (
            not column.table
            and name in CURRENT_WORDS
            and not _reads(column.find_ancestor(exp.Select), name, tables, named)
        ):
            yield name


def _reads(
    query: exp.Expr | None, name: str, tables: Mapping[str, Collection[str]], named: Mapping[str, exp.CTE]
) -> bool:
    """Whether a SELECT reads a column of this name."""
    return query is not None and any(_has(source, name, tables, named) for source in _sources(query))


def _sources(query: exp.Expr) -> Iterator[exp.Expr]:
    source = query.args.get("from_")
    if source is not None:
        yield source.this
    for join in query.args.get("joins") or []:
        yield join.this


def _has(source: exp.Expr, name: str, tables: Mapping[str, Collection[str]], named: Mapping[str, exp.CTE]) -> bool:
    """Whether an item of FROM has a column of this name; False if that is not certain."""
    renamed = [each.lower() for each in source.alias_column_names]
    if renamed:
        return name in renamed
    match source:
        case exp.Table() if source.name.lower() in named and not source.args.get("db"):
            # A recursive query does not read itself before its columns are known.
            cte = named[source.name.lower()]
            others = {key: each for key, each in named.items() if each is not cte}
            columns = [each.lower() for each in cte.alias_column_names]
            return name in columns if columns else _gives(cte.this, name, tables, others)
        case exp.Table():
            return name in tables.get(".".join(part.name for part in source.parts).lower(), ())
        case exp.Subquery():
            return _gives(source.this, name, tables, named)
    return False


def _gives(query: exp.Expr, name: str, tables: Mapping[str, Collection[str]], named: Mapping[str, exp.CTE]) -> bool:
    if not isinstance(query, exp.Query):
        return False
    names = [each.lower() for each in query.named_selects]
    return name in names or ("*" in names and _reads(query.find(exp.Select), name, tables, named))
