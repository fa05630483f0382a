"""A view's query of whichever kind: what it means over its upstreams, and its text in one spelling."""

from collections.abc import Mapping, Sequence

from backfill_assets.query.aggregate import CLAUSES, AggregateQuery, analyze_aggregate, is_aggregate
from backfill_assets.query.ddl import Column
from backfill_assets.query.expressions import check_used, scope_of
from backfill_assets.query.parsing import parse_parts, tokenize
from backfill_assets.query.rowwise import RowwiseQuery, analyze_rowwise
from backfill_assets.query.spelling import canonical_text

__all__ = ["Query", "analyze", "spelled"]

Query = RowwiseQuery | AggregateQuery


def analyze(
    query: str, tables: Mapping[str, tuple[Column, ...]], keys: Mapping[str, tuple[str, ...]] | None = None
) -> Query:
    """Read a view's query over `tables`, all columns of each upstream by its name.

    Without `keys` the upstreams are shared sources; with it they are Delta tables with these key columns. Errors:
    `QueryError` with a `reason`.
    """
    if is_aggregate(query):
        return analyze_aggregate(query, tables, records=keys is None)
    return analyze_rowwise(query, tables, keys)


def spelled(query: str, upstreams: Sequence[str]) -> str:
    """The query in one spelling, after checking as much of it as can be told without the upstreams' columns.

    Errors: `QueryError`.
    """
    tokens = tokenize(query)
    parts = parse_parts(query, tokens, clauses=CLAUSES if is_aggregate(query) else ())
    tables: dict[str, tuple[Column, ...]] = dict.fromkeys(upstreams, ())
    check_used(tuple(dict.fromkeys(scope_of(part, tables).upstream for part in parts)), tables)
    return canonical_text(query, tokens, parts)
