"""Which columns of a query are columns of what it reads, as they are."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from backfill_assets.query.partition import output_names
from backfill_assets.query.resolved import OCCURRENCE, sources_of, unwrapped

__all__ = ["origins"]

_Origin = tuple[int, str]


def origins(tree: exp.Expr) -> dict[str, _Origin]:
    """The place and the column, in small letters, of each column of a query that is read as it is; of the parts of a set
    operation, those of the first.

    Args:
        tree: The query for analysis (`resolved`).

    Example:
        >>> from backfill_assets.query.ddl import parse_schema
        >>> from backfill_assets.query.occurrences import occurrences
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> from backfill_assets.query.resolved import resolved
        >>> text = "SELECT t.k, t.v + 1 AS more FROM (SELECT b.x AS k, b.y AS v FROM a JOIN b ON a.x = b.x) AS t"
        >>> root = parse(text, tokenize(text))
        >>> tables = {"a": parse_schema("x INT"), "b": parse_schema("x INT, y INT")}
        >>> origins(resolved(root, occurrences(root, ["a", "b"]), tables))
        {'k': (1, 'x')}
    """
    found = zip(output_names(tree), _read(tree), strict=False)
    return {name: origin for name, origin in found if origin is not None}


def _read(node: exp.Expr) -> Sequence[_Origin | None]:
    inner = unwrapped(node)
    if isinstance(inner, exp.SetOperation):
        return _read(inner.left)
    if not isinstance(inner, exp.Select):
        return []
    tables = {each.alias_or_name: each.meta[OCCURRENCE] for each in sources_of(inner) if OCCURRENCE in each.meta}
    derived = {
        each.alias_or_name: dict(zip(output_names(each), _read(each.this), strict=False))
        for each in sources_of(inner)
        if isinstance(each, exp.Subquery)
    }
    return [_origin(each.unalias(), tables, derived) for each in inner.expressions]


def _origin(
    node: exp.Expr, tables: Mapping[str, int], derived: Mapping[str, Mapping[str, _Origin | None]]
) -> _Origin | None:
    if not isinstance(node, exp.Column):
        return None
    if node.table in tables:
        return tables[node.table], node.name.lower()
    return derived.get(node.table, {}).get(node.name)
