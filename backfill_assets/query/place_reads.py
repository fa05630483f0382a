"""How Spark may read an upstream in one place of a query: not to its end, or several times, each time with other columns."""

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp

from backfill_assets.query.occurrences import Occurrence

__all__ = ["read_in_part", "reads_again"]

_IN_FROM = (exp.From, exp.Join, exp.CTE, exp.Subquery, exp.SetOperation)
"""What a subquery stands in that is read once, as a table is."""


def read_in_part(root: exp.Expr, found: Sequence[Occurrence]) -> frozenset[str]:
    """The upstreams of which Spark may read only some rows, as EXISTS looks for one: all of them, if it names something of
    WITH."""
    places = {each.start: each.upstream for each in found}
    tables = [table for exists in root.find_all(exp.Exists) for table in exists.find_all(exp.Table)]
    named = {places.get(table.parts[0].meta.get("start", -1)) for table in tables}
    return frozenset(places.values() if None in named else filter(None, named))


def reads_again(root: exp.Expr) -> bool:
    """Whether Spark may read an upstream several times for one place.

    It puts a name of WITH into each place that uses it, and reads the tables around a correlated subquery, or one after
    LATERAL, for the values that the subquery depends on, too.

    Example:
        >>> from backfill_assets.query.parsing import parse, tokenize
        >>> text = "WITH w AS (SELECT a FROM t) SELECT x.a FROM w AS x JOIN w AS y USING (a)"
        >>> reads_again(parse(text, tokenize(text)))
        True
    """
    defined = {each.alias.lower() for each in root.find_all(exp.CTE)}
    used = Counter(table.name.lower() for table in root.find_all(exp.Table))
    nested = (each.parent for each in root.find_all(exp.Subquery))
    in_expressions = any(parent is not None and not isinstance(parent, _IN_FROM) for parent in nested)
    return in_expressions or any(used[name] > 1 for name in defined) or root.find(exp.Exists) is not None
