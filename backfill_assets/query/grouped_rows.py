"""Cuts a query that groups joined tables in two: the joined rows, which follow changes, and the groups made of them.

`SELECT c.region, sum(o.amount) AS total FROM orders o JOIN customers c ON … GROUP BY c.region` becomes a query for rows,
`SELECT c.region AS __c0, o.amount AS __c1 FROM orders o JOIN customers c ON …`, and one for groups over these,
`SELECT __c0 AS region, sum(__c1) AS total FROM joined GROUP BY __c0`, whose sums and counts take rows in and give them back.
The user's text is kept but for the columns' names outside of FROM and WHERE.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import Token, TokenType, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.aggregate import AggregateQuery, Call, analyze_aggregate
from backfill_assets.query.ddl import Column
from backfill_assets.query.exact import sums_are_kept
from backfill_assets.query.nodes import all_of
from backfill_assets.query.resolved import joins_of, spelled_node

__all__ = ["Cut", "cut_at_groups"]

COLUMN: Final = "__c"
"""The columns of the joined rows, by their number: no name that a user gives is like these."""
ROWS: Final = "joined"
"""The name of the joined rows in the query for groups."""

HERE: Final = "__here"
"""The column that is 1 in every joined row, of a query that makes one group of them all. Where there is no row at all that
group is still there: it has a row of nulls."""


@dataclass(frozen=True)
class Cut:
    """The text of the query for rows, and the query for groups over what it gives; `of_all` if that is one group of all."""

    rows: str
    groups: AggregateQuery
    of_all: bool


_AFTER_GROUPS = ("having", "windows", "qualify", "order", "sort", "cluster", "distribute", "limit", "offset")


def cut_at_groups(
    query: str, tokens: Sequence[Token], root: exp.Expr, tree: exp.Expr, tables: Mapping[str, tuple[Column, ...]]
) -> Cut | None:
    """The two queries that a query is.

    None where a query does not group rows, or in a way for which there is no rule. `tree` is the query for analysis
    (`resolved`), `tables` are the columns of each table by the name that the query has for it.
    """
    if not isinstance(root, exp.Select) or not isinstance(tree, exp.Select) or root.args.get("with_"):
        return None
    # Sessions of a subquery are merged by the GROUP BY around it: groups are then not made of rows with equal values.
    if any(token.text.lower() == "session_window" for token in tokens):
        return None
    span = None if _ends_within_rows(root) else _span(tokens)
    if span is None or not sums_are_kept(tree, tables):
        return None
    first, last = span
    of_all = not root.args.get("group")
    edits = list(_edits(query, root, _columns(tree), range(first.start, last.end)))
    chosen = {name: f"{COLUMN}{number}" for number, name in enumerate(dict.fromkeys(name for _, _, name, _ in edits))}
    text = _edited(
        query, [*((at, end, chosen[name], alias) for at, end, name, alias in edits)], (first.start, last.end + 1)
    )
    written = {name: query[at:end] for at, end, name, _ in reversed(edits)}
    rows = [f"{written[spelled]} AS {name}" for spelled, name in chosen.items()] + [f"1 AS {HERE}"]
    kinds = _kinds(tree, tables)
    given = (*(Column(name, kinds.get(spelled, "")) for spelled, name in chosen.items()), Column(HERE, "INT"))
    try:
        groups = analyze_aggregate(f"{text} GROUP BY 'all'" if of_all else text, {ROWS: given}, records=False)
    except QueryError:
        return None
    if of_all and not groups.calls:
        return None  # constants for each row: without an aggregate there is no group of all
    body = query[first.start : last.end + 1]
    return Cut(f"SELECT {', '.join(rows)} {body}", _of_all(groups) if of_all else groups, of_all)


def _ends_within_rows(root: exp.Select) -> bool:
    """Whether a query without GROUP BY goes on behind the rows of its group, with what is said of the group."""
    return not root.args.get("group") and any(root.args.get(name) for name in _AFTER_GROUPS)


def _of_all(groups: AggregateQuery) -> AggregateQuery:
    """A query for one group, in which the row of nulls counts for nothing."""
    every = Call("count", len(groups.arguments))
    return replace(
        groups,
        columns=tuple({column.name: column for column in (*groups.columns, Column(HERE, "INT"))}.values()),
        arguments=(*(f"CASE WHEN {HERE} = 1 THEN {each} END" for each in groups.arguments), HERE),
        calls=tuple(every if call.argument is None else call for call in groups.calls),
    )


def _span(tokens: Sequence[Token]) -> tuple[Token, Token] | None:
    """The first and last token of FROM, joins and WHERE: what comes before GROUP BY, or the end."""
    depth, first = 0, None
    for at, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        compares = at and tokens[at - 1].token_type == TokenType.DISTINCT
        if depth == 0 and token.token_type == TokenType.FROM and not compares:
            first = first or token
        if depth == 0 and token.token_type == TokenType.GROUP_BY:
            return None if first is None else (first, tokens[at - 1])
    return None if first is None else (first, tokens[-1])


def _columns(tree: exp.Select) -> dict[int, str]:
    """The columns in SELECT and GROUP BY, spelled as in the tree, by where in the text their own name begins."""
    places = [*tree.expressions, *([tree.args["group"]] if tree.args.get("group") else [])]
    found = [column for place in places for column in all_of(place, exp.Column) if column.table]
    return {int(each.this.meta["start"]): spelled_node(each) for each in found if "start" in each.this.meta}


def _edits(
    query: str, root: exp.Select, columns: Mapping[int, str], kept: range
) -> Iterator[tuple[int, int, str, str]]:
    """Where columns stand outside of FROM and WHERE: from and to, which column, and what the result's column is called."""
    shared = {name.name.lower() for join in joins_of(root) for name in join.args.get("using") or []}
    for column in all_of(root, exp.Column):
        parts = list(column.parts)
        if parts[0].meta.get("start", kept.start) in kept:
            continue
        own = next((part for part in parts if part.meta.get("start") in columns), None)
        if own is None and len(parts) == 1 and parts[0].name.lower() in shared:
            own = parts[0]
        if own is not None:
            start, end = own.meta["start"], own.meta["end"] + 1
            gives = own is parts[-1] and column.parent is root and column.arg_key == "expressions"
            yield parts[0].meta["start"], end, columns.get(start, own.name.lower()), query[start:end] if gives else ""


def _edited(query: str, edits: Sequence[tuple[int, int, str, str]], span: tuple[int, int]) -> str:
    """The text with columns replaced, and FROM to WHERE by the name of the joined rows."""
    every = sorted([*edits, (*span, f"FROM {ROWS}", "")])
    parts, at = [], 0
    for start, end, new, alias in every:
        parts.append(query[at:start] + new + (f" AS {alias}" if alias else ""))
        at = end
    return "".join([*parts, query[at:]])


def _kinds(tree: exp.Select, tables: Mapping[str, tuple[Column, ...]]) -> dict[str, str]:
    """The types of all columns of tables, by their spelling in the tree."""
    named = {name.lower(): columns for name, columns in tables.items()}
    return {
        spelled_node(exp.column(column.name.lower(), table.alias_or_name)): column.type
        for table in all_of(tree, exp.Table)
        for column in named.get(table.name, ())
    }
