"""Reads a row-wise query: its upstreams, the columns that it returns, the key of its rows, and the SQL to run for each
part.

A row-wise query is `SELECT expressions FROM one upstream [WHERE condition]`, or UNION ALL of such parts. Everything
else is refused with a `QueryError` whose `reason` is stable. Spark is not needed here; errors that only Spark can
detect (types, functions that do not exist) are raised when the query is first run.

`*` stands for every column that a user can see: the source's own (`_partition` … `_headers`) and those of the schema,
but not `_error` and `_value`, which are null in every good record. A plain column keeps the upstream's spelling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from sqlglot import exp

from backfill_assets.query.ddl import Column, invalid_name_characters, quoted
from backfill_assets.query.expressions import (
    Output,
    Scope,
    check_expressions,
    check_used,
    checked_columns,
    named_columns,
    outputs,
    scope_of,
)
from backfill_assets.query.parsing import Part, parse_parts, tokenize
from backfill_assets.query.record_columns import ERROR, RECORD_KEY
from backfill_assets.query.refusals import refusal
from backfill_assets.query.spelling import backquoted, canonical_text, sliced
from backfill_assets.query.working_columns import WORKING

__all__ = ["CARRIED_CHANGE", "CHANGE", "Branch", "RowwiseQuery", "analyze_rowwise"]

CHANGE: Final = Column("_change_type", "STRING")
"""The change type of each row in Delta's change data feed; the parts of a query over Delta tables return it as
`CARRIED_CHANGE`."""
CARRIED_CHANGE: Final = f"__{CHANGE.name}"

_BRANCH: Final = "__branch"


@dataclass(frozen=True)
class Branch:
    """One part of the query: `sql` reads a table with the upstream's name, keeps good records and adds hidden columns.

    `columns` are the upstream's, so that the part's types are known even if there are no rows.
    """

    upstream: str
    sql: str
    columns: tuple[Column, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class RowwiseQuery:
    """A row-wise query, ready to run.

    `text` is the query with one spelling: equal for queries that differ only in white space, comments and case (except
    the case of names after AS, which are column names). `output_columns` are those that users see. `key_columns`
    identify the upstream row from which a row was made, and its part of UNION ALL (`branch_column`, empty if there is
    one part); they are hidden columns if the query leaves them out. Changes are merged by them. `primary_key` is the
    view's own key, empty if it has none: a constraint, and the key that readers of the view use. `copied_key` is the
    upstreams' key, if `key_columns` are copies of it (and the part of UNION ALL); otherwise it is empty.
    """

    text: str
    branches: tuple[Branch, ...]
    upstreams: tuple[str, ...]
    key_columns: tuple[str, ...]
    output_columns: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    branch_column: str = ""
    copied_key: tuple[str, ...] = ()


def analyze_rowwise(
    query: str,
    tables: Mapping[str, tuple[Column, ...]],
    keys: Mapping[str, tuple[str, ...]] | None = None,
    primary_key: tuple[str, ...] = (),
) -> RowwiseQuery:
    """Read a view's query over `tables`, all columns of each upstream by its name.

    Without `keys`, the upstreams are shared sources, keyed by partition and offset. With it, they are Delta tables with
    these key columns (none: rows are only ever added), and the parts also have `CHANGE`, the change type of each row in
    Delta's change data feed. `primary_key` are columns of the view that identify its rows; they replace the upstreams'
    key if the parts have no common one, or one that cannot be kept in hidden columns.

    Errors: `QueryError` with a `reason` (see `refusals`) if the query is wrong or not row-wise.
    """
    tokens = tokenize(query)
    parts = parse_parts(query, tokens)
    scopes = [scope_of(part, tables, records=keys is None) for part in parts]
    results: list[list[list[Output]]] = []
    for part, scope in zip(parts, scopes, strict=True):
        check_expressions(part, scope)
        results.append(outputs(part, scope, named=not results))
    _check_widths(results)
    columns = checked_columns(results[0])
    upstreams = tuple(dict.fromkeys(scope.upstream for scope in scopes))
    check_used(upstreams, tables)
    key = _checked_key(scopes, keys, replaceable=bool(primary_key))
    hidden = _hidden_columns(results, key)
    branch = hidden[0] if hidden and len(parts) > 1 else ""
    carried = (CHANGE,) if keys is not None else ()
    names = (*columns, *hidden, *(CARRIED_CHANGE for _ in carried))
    branches = tuple(
        Branch(
            scope.upstream,
            _branch_sql(query, part, scope, _Result(number, results[number], names, branch, key)),
            (*scope.columns, *carried),
        )
        for number, (part, scope) in enumerate(zip(parts, scopes, strict=True))
    )
    return RowwiseQuery(
        text=canonical_text(query, tokens, parts),
        branches=branches,
        upstreams=upstreams,
        key_columns=hidden or key or primary_key,
        output_columns=columns,
        primary_key=primary_key,
        branch_column=branch,
        copied_key=key,
    )


def _check_widths(results: list[list[list[Output]]]) -> None:
    widths = [sum(len(item) for item in result) for result in results]
    if len(set(widths)) > 1:
        counts = ", ".join(map(str, widths))
        raise refusal("UNION_MISMATCH", f"the parts of UNION ALL have different numbers of columns: {counts}")


def _checked_key(
    scopes: list[Scope], keys: Mapping[str, tuple[str, ...]] | None, *, replaceable: bool
) -> tuple[str, ...]:
    """The key columns of the upstreams, which must be the same for all parts; none if they cannot be used and are
    `replaceable`."""
    if keys is None:
        return RECORD_KEY
    found = {keys[scope.upstream] for scope in scopes}
    if replaceable and (len(found) > 1 or not _can_be_carried(*found)):
        return ()
    if len(found) > 1:
        named = " and ".join(sorted(f"({', '.join(key)})" if key else "none" for key in found))
        raise refusal(
            "KEY_MISMATCH",
            f"the parts of UNION ALL read tables with different keys: {named}",
            hint="name a primary_key of the view itself; or write SELECT * FROM (…) AS rows around the query: its rows are "
            "then told apart by what they hold",
        )
    return found.pop()


def _can_be_carried(key: tuple[str, ...]) -> bool:
    hidden = {_hidden_name(name) for name in key}
    return len(hidden) == len(key) and not any(map(invalid_name_characters, key))


def _hidden_columns(results: list[list[list[Output]]], key: tuple[str, ...]) -> tuple[str, ...]:
    """The key's columns that the query does not return itself; empty if it returns all."""
    hidden = tuple(_hidden_name(name) for name in key)
    unchanged = {output.name for item in results[0] for output in item if output.name == output.source}
    if not key or (len(results) == 1 and unchanged.issuperset(key)):
        return ()
    if len(set(hidden)) < len(hidden):
        raise refusal(
            "COLUMN_NAME",
            f"the key's columns ({', '.join(key)}) would have the same hidden name",
            hint="select them all, or select them under other names and name those in primary_key",
        )
    for column in key:
        if wrong := invalid_name_characters(column):
            raise refusal(
                "COLUMN_NAME",
                f"the key's column {column!r}, which the view has to keep, has characters that Delta does not accept: "
                f"{wrong!r}",
                hint="rename the column upstream, or select it under another name and name that in primary_key",
            )
    return (_branch_column(hidden), *hidden) if len(results) > 1 else hidden


def _branch_column(hidden: tuple[str, ...]) -> str:
    """The column that distinguishes the parts; its name differs from that of an upstream that has parts itself."""
    names = (_BRANCH if number == 1 else f"{_BRANCH}_{number}" for number in count(1))
    return next(name for name in names if name not in hidden)


def _hidden_name(column: str) -> str:
    """`__partition` for `_partition`, `__id` for `id`; a column that is hidden upstream keeps its name. Working columns have
    theirs already: `__op_` for `op`."""
    name = column if column.startswith("__") else f"_{column}" if column.startswith("_") else f"__{column}"
    return f"{name}_" if name.lower() in WORKING else name


@dataclass(frozen=True)
class _Result:
    """The results of one part: its number, its own columns, the names of all columns of the view, the one with the
    number (empty: none), and the upstream's key."""

    number: int
    outputs: list[list[Output]]
    names: tuple[str, ...]
    branch: str
    key: tuple[str, ...]


def _branch_sql(query: str, part: Part, scope: Scope, result: _Result) -> str:
    qualifier = backquoted(scope.qualifier)
    carried = (*scope.columns, *(() if scope.records else (CHANGE,)))
    hidden = {
        **{_hidden_name(name): f"{qualifier}.{quoted(name)} AS {quoted(_hidden_name(name))}" for name in result.key},
        CARRIED_CHANGE: f"{qualifier}.{CHANGE.name} AS {CARRIED_CHANGE}",
        result.branch: f"{result.number} AS {result.branch}",
    }
    own = sum(len(item) for item in result.outputs)
    added = [hidden[name] for name in result.names[own:]]
    projection = [_projection(query, part, scope, result), *added]
    named = named_columns(part, scope)
    read = ", ".join(
        backquoted(each.name) for each in carried if each.name in named or each in scope.visible or not scope.records
    )
    good = f" WHERE {ERROR} IS NULL" if scope.records and scope.column(ERROR) else ""
    where = f" WHERE {sliced(query, part.condition)}" if part.condition else ""
    source = f"(SELECT {read} FROM {backquoted(scope.upstream)}{good}) AS {qualifier}"
    inner = f"SELECT {', '.join(projection)} FROM {source}{where}"
    return f"SELECT * FROM ({inner}) AS __part({', '.join(map(backquoted, result.names))})"


def _projection(query: str, part: Part, scope: Scope, result: _Result) -> str:
    """The user's SELECT list, with each `*` replaced by its columns."""
    if not part.select.find(exp.Star):
        return sliced(query, part.projection)
    items = part.projection_items()
    if len(items) != len(result.outputs):
        raise refusal(
            "SYNTAX", "the SELECT list cannot be split at its commas", hint="write CAST(x AS type) for x::type"
        )
    texts: list[str] = []
    for item, given, tokens in zip(part.select.expressions, result.outputs, items, strict=True):
        is_star = isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
        columns = [f"{backquoted(scope.qualifier)}.{backquoted(output.name)}" for output in given]
        texts.extend(columns if is_star else [sliced(query, tokens)])
    return ", ".join(texts)
