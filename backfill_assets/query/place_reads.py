"""Which upstreams of a query Spark may read only in part."""

from collections.abc import Sequence

from sqlglot import exp

from backfill_assets.query.nodes import all_of
from backfill_assets.query.occurrences import Occurrence

__all__ = ["read_in_part"]


def read_in_part(root: exp.Expr, found: Sequence[Occurrence]) -> frozenset[str]:
    """The upstreams of which Spark may read only some rows, as EXISTS looks for one: all of them, if it names something else,
    as of WITH."""
    places = {each.start: each.upstream for each in found}
    tables = [table for exists in all_of(root, exp.Exists) for table in all_of(exists, exp.Table)]
    named = {places.get(table.parts[0].meta.get("start", -1)) for table in tables}
    return frozenset(places.values() if None in named else filter(None, named))
