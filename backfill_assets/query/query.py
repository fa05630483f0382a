"""A view's query of any kind: its meaning over its upstreams, and its text in one spelling."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from sqlglot import exp

from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import CLAUSES, AggregateQuery, analyze_aggregate, is_aggregate
from backfill_assets.query.ddl import Column
from backfill_assets.query.determinism import check_calls, check_collations, check_words
from backfill_assets.query.expressions import check_used, name_parts, scope_of
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import parse, parse_parts, tokenize
from backfill_assets.query.refusals import refusal
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from backfill_assets.query.relational_text import spelled_relational
from backfill_assets.query.resolved import renames_columns
from backfill_assets.query.rowwise import CHANGE, RowwiseQuery, analyze_rowwise
from backfill_assets.query.rules_end import is_relational
from backfill_assets.query.spelling import canonical_text
from backfill_assets.query.used_columns import words_of

__all__ = [
    "Query",
    "analyze",
    "input_columns",
    "is_constrained",
    "key_of_text",
    "named_in",
    "reader_key",
    "spelled",
    "unique_keys",
]

_DEEPEST: Final = 20_000
"""How many calls may be within each other while a query is read: some for each operator of a chain, and each bracket."""

Query = RowwiseQuery | AggregateQuery | RelationalQuery


@contextmanager
def _readable() -> Iterator[None]:
    """Refuse a query that is nested more deeply than can be followed here. Errors: `QueryError`."""
    # Python's frames do not lie on the stack of the process: for deeper ones only the limit has to be raised.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
    try:
        yield
    except RecursionError:
        raise refusal(
            "UNSUPPORTED",
            "the query is nested too deeply, or joins too many expressions by operators",
            hint="write many conditions as IN (...), or compute a part of the query in a view of its own",
        ) from None


@_readable()
def analyze(
    query: str,
    tables: Mapping[str, tuple[Column, ...]],
    keys: Mapping[str, tuple[str, ...]] | None = None,
    primary_key: tuple[str, ...] = (),
    records: Collection[str] = (),
) -> Query:
    """Read a view's query over `tables`, all columns of each upstream by its name.

    Without `keys`, the upstreams are shared sources; with it, they are Delta tables with these key columns.
    `primary_key` are columns of the view that identify its rows; groups have a key of their own. `records` are the
    tables that belong to a source. Errors: `QueryError` with a `reason`.
    """
    if keys is not None and (records or is_relational(query)):
        return analyze_relational(query, tables, primary_key, records)
    if is_aggregate(query):
        return analyze_aggregate(query, tables, records=keys is None)
    return analyze_rowwise(query, tables, keys, primary_key)


def reader_key(query: Query) -> tuple[str, ...]:
    """The columns of a view that identify its rows for readers; none if rows are only ever added."""
    return (isinstance(query, RowwiseQuery) and query.primary_key) or query.key_columns


@lru_cache(maxsize=1024)
def key_of_text(
    query: str, keys: tuple[tuple[str, tuple[str, ...]], ...], primary_key: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """The columns by which rows of a view over tables with these `keys` are known, as far as its text shows without the
    tables' other columns; None if it does not.

    Example:
        >>> key_of_text("SELECT city, count(*) AS n FROM t GROUP BY city", (("t", ("id",)),))
        ('city',)
    """
    named = [part for each in all_of(parse(query, tokenize(query)), exp.Column) for part in name_parts(each)]
    tables = {}
    for table, key in keys:
        spelled_as = {name.lower(): name for name in (*named, *key) if name != "*"}
        tables[table] = tuple(Column(name, "STRING") for name in spelled_as.values())
    try:
        return reader_key(analyze(query, tables, dict(keys), primary_key))
    except QueryError:
        return None


def is_constrained(query: Query) -> bool:
    """Whether its rows may get duplicate keys, so that they have to be checked. Groups, and rows that are identified by
    their contents, are unique by themselves."""
    return isinstance(query, RowwiseQuery) or (isinstance(query, RelationalQuery) and bool(query.primary_key))


def unique_keys(query: Query) -> tuple[tuple[str, ...], ...]:
    """All keys that must be unique in a view, beginning with the one by which changes are merged."""
    keys = [query.key_columns]
    if isinstance(query, RowwiseQuery) and not set(query.primary_key).issuperset(query.key_columns):
        keys.append(query.primary_key)
    return tuple(filter(None, keys))


def named_in(query: str, columns: Sequence[Column], key: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of an upstream that a query may refer to: those whose names are words of it, and those of its `key`.

    No other column can change the meaning of the query. `*` refers to all. So do `NATURAL JOIN`, which joins by all columns
    that two tables share, `PIVOT`, which groups by all that it does not name, and other names for a table's columns, which
    come in their order. Keywords and strings count, too: there may be more columns than are read, never fewer.

    Example:
        >>> [column.name for column in named_in("SELECT a FROM t", [Column("A", "INT"), Column("b", "INT")])]
        ['A']
    """
    tokens = tokenize(query)
    if _means_all(parse(query, tokens)):
        return tuple(columns)
    words = words_of(tokens)
    return tuple(column for column in columns if column.name in key or column.name.lower() in words)


def _means_all(root: exp.Expr) -> bool:
    """Whether a query refers to all columns of a table without their names."""
    if renames_columns(root):
        return True
    stars = any(not isinstance(star.parent, exp.Count) for star in all_of(root, exp.Star))
    natural = any(join.method.upper() == "NATURAL" for join in all_of(root, exp.Join))
    return stars or natural or any(not pivot.unpivot for pivot in all_of(root, exp.Pivot))


def input_columns(query: Query) -> dict[str, tuple[Column, ...]]:
    """The columns of each upstream over which a query was analyzed, as far as it needs them."""
    if isinstance(query, AggregateQuery):
        return {query.upstreams[0]: query.columns}
    if isinstance(query, RelationalQuery):
        return dict(query.read)
    return {
        branch.upstream: tuple(column for column in branch.columns if column != CHANGE) for branch in query.branches
    }


@_readable()
def spelled(query: str, upstreams: Sequence[str], *, whole: bool = False, clock: bool = False) -> str:
    """The query in one spelling, after those checks that do not need the upstreams' columns. With `clock`, a query over
    `whole` tables may call functions of the clock.

    Errors: `QueryError`.
    """
    if whole or is_relational(query):
        return spelled_relational(query, upstreams, clock=clock)
    tokens = tokenize(query)
    check_calls(tokens)
    root = parse(query, tokens)
    check_words(root, tokens)
    check_collations(root)
    parts = parse_parts(query, tokens, clauses=CLAUSES if is_aggregate(query) else ())
    tables: dict[str, tuple[Column, ...]] = dict.fromkeys(upstreams, ())
    check_used(tuple(dict.fromkeys(scope_of(part, tables).upstream for part in parts)), tables)
    return canonical_text(query, tokens, parts)
