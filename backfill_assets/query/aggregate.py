"""Reads an aggregate query: the groups, the aggregates, and the SQL texts that maintain them.

An aggregate query is `SELECT group expressions, aggregates FROM one upstream [WHERE condition] GROUP BY ...`, where the
SELECT list may compute with both. It is split in two. For each row of the upstream, `rows_sql` computes the group
expressions (`__group_<i>`) and the arguments of the aggregates (`__arg_<i>`). For each group, `outputs` computes the
SELECT list from `__group_<i>` and the results of the aggregates (`__call_<i>`). `apply_aggregate` does what is in
between, and handles all types.

Everything else is refused with a `QueryError` whose `reason` is stable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sqlglot import Token, exp

from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import Column
from backfill_assets.query.determinism import check_collations, refused_calls
from backfill_assets.query.expressions import (
    Scope,
    check_expressions,
    check_stars,
    check_used,
    checked_columns,
    name_parts,
    named_columns,
    outputs,
    scope_of,
)
from backfill_assets.query.grouping import FUNCTIONS, Call, GroupedText, Selected, aggregates_in, groups_of
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import Part, parse, parse_parts, tokenize
from backfill_assets.query.record_columns import ERROR
from backfill_assets.query.refusals import refusal
from backfill_assets.query.resolved import has_grouping_sets
from backfill_assets.query.spelling import backquoted, canonical_text, sliced

__all__ = ["CLAUSES", "AggregateQuery", "Call", "analyze_aggregate", "check_forms", "check_groups", "is_aggregate"]

CLAUSES: Final = ("group", "having")
"""The clauses that a part of an aggregate query may have; their contents are checked here."""


@dataclass(frozen=True)
class AggregateQuery:
    """An aggregate query, ready to maintain.

    `text` is the query with one spelling, as for a row-wise query. `key_columns` are the stored columns with the group
    expressions; these are hidden if the query does not return them unchanged. `columns` are the columns of the upstream
    that are read. `groups` and `arguments` are SQL over a row, `outputs` SQL over `__group_<i>` and `__call_<i>` of a
    group.
    """

    text: str
    upstreams: tuple[str, ...]
    key_columns: tuple[str, ...]
    output_columns: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[str, ...] = field(repr=False)
    arguments: tuple[str, ...] = field(repr=False)
    calls: tuple[Call, ...] = field(repr=False)
    outputs: tuple[str, ...] = field(repr=False)
    qualifier: str = field(repr=False)
    condition: str = field(repr=False)
    good: str = field(default="", repr=False)
    """The column that is null in good records; empty for upstreams that have only good ones."""

    def rows_sql(self, table: str, *more: str) -> str:
        """SQL for `__group_<i>`, `__arg_<i>` and the columns `more` of each good row of a table that meets the
        condition."""
        good = f" WHERE {self.good} IS NULL" if self.good else ""
        # A query such as SELECT count(*) AS n FROM t GROUP BY 'all' reads no column at all.
        read = ", ".join(backquoted(name) for name in (*(column.name for column in self.columns), *more)) or "1"
        given = [f"{backquoted(self.qualifier)}.{name}" for name in more]
        return self._select(f"(SELECT {read} FROM {table}{good})", given)

    def _select(self, source: str, more: list[str]) -> str:
        groups = [f"{each} AS __group_{number}" for number, each in enumerate(self.groups)]
        arguments = [f"{each} AS __arg_{number}" for number, each in enumerate(self.arguments)]
        where = f" WHERE {self.condition}" if self.condition else ""
        return f"SELECT {', '.join([*groups, *arguments, *more])} FROM {source} AS {backquoted(self.qualifier)}{where}"


@lru_cache(maxsize=1024)
def is_aggregate(query: str) -> bool:
    """Whether the query groups or aggregates, correctly or not: if so, `analyze_aggregate` accepts or refuses it.

    Queries inside the query count, too: all kinds of views refuse those in the same way.
    """
    try:
        tokens = tokenize(query)
        root = parse(query, tokens)
    except QueryError:
        return False
    return any(aggregates_in(tuple(tokens))) or any(select.args.get("group") for select in all_of(root, exp.Select))


def analyze_aggregate(query: str, tables: Mapping[str, tuple[Column, ...]], *, records: bool = True) -> AggregateQuery:
    """Read an aggregate query over `tables`, all columns of each upstream by its name: sources of `records`, or tables.

    Errors: `QueryError` with a `reason` (see `refusals`) if the query is wrong or cannot be maintained.
    """
    tokens = tokenize(query)
    part = check_groups(query, tokens)
    scope = scope_of(part, tables, records=records)
    check_expressions(part, scope, aggregates=FUNCTIONS)
    given = outputs(part, scope, named=True)
    columns = checked_columns(given)
    check_used((scope.upstream,), tables)
    text = GroupedText(query, part, scope)
    items = text.items(part.projection_items(), part.select.expressions)
    groups = groups_of(text, items, given)
    selected = Selected(text, groups)
    written = tuple(selected.rewritten(item) for item in items)
    named = {*named_columns(part, scope), *([ERROR] if records else [])}
    analyzed = AggregateQuery(
        text=canonical_text(query, tokens, [part]),
        upstreams=(scope.upstream,),
        key_columns=tuple(_key(number, written, columns) for number in range(len(groups))),
        output_columns=columns,
        columns=tuple(column for column in scope.columns if column.name in named),
        groups=tuple(text.of(group) for group in groups),
        arguments=tuple(text.of(argument) for argument in selected.arguments.values()),
        calls=tuple(selected.calls),
        outputs=written,
        qualifier=scope.qualifier,
        condition=sliced(query, part.condition) if part.condition else "",
        good=ERROR if records and scope.column(ERROR) else "",
    )
    _check_rows(analyzed, scope)
    return analyzed


def check_groups(query: str, tokens: list[Token]) -> Part:
    """The one part of a query, as far as its text shows that its groups can be maintained by rules. Errors:
    `QueryError`."""
    parts = parse_parts(query, tokens, clauses=CLAUSES)
    if len(parts) > 1:
        raise refusal("AGGREGATE_UNION", "the query has UNION ALL of parts that aggregate")
    _check_clauses(parts[0])
    check_stars(parts[0])
    group = parts[0].select.args.get("group")
    for each in [*parts[0].select.expressions, *([group] if group else [])]:
        check_collations(each)
    _check_calls(parts[0])
    for name, reason in refused_calls(parts[0].tokens):
        if reason == "GENERATOR":
            raise refusal(reason, f"the query calls {name}()")
    return parts[0]


def check_forms(query: str, part: Part) -> None:
    """Refuse forms of group expressions and calls to which the rules do not apply, as far as the text shows: as if each name
    were a column. Errors: `QueryError`."""
    names = (name_parts(each) for each in all_of(part.select, exp.Column) if not isinstance(each.this, exp.Star))
    bare = (name[1:] if len(name) > 1 and name[0].lower() == part.qualifier.lower() else name for name in names)
    columns = tuple(Column(name, "STRING") for name in dict.fromkeys(each[0] for each in bare))
    scope = Scope(part.table.name, part.qualifier, columns)
    given = outputs(part, scope, named=False)
    groups = {each.name.lower() for each in part.select.args["group"].expressions if isinstance(each, exp.Column)}
    if groups & {each.alias.lower() for each in part.select.expressions if isinstance(each, exp.Alias)}:
        return  # whether the name of an expression or a column is meant is not known without the columns
    text = GroupedText(query, part, scope)
    items = text.items(part.projection_items(), part.select.expressions)
    selected = Selected(text, groups_of(text, items, given))
    for item in items:
        selected.rewritten(item)


def _check_clauses(part: Part) -> None:
    if part.select.find(exp.Window):
        raise refusal("WINDOW", "the query has a window function (OVER)")
    if part.select.args.get("having"):
        hint = "leave it out, and filter the groups in a row-wise view over this view: WHERE conditions"
        raise refusal("HAVING", "the query has HAVING", hint=hint)
    for item in part.select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            raise refusal("STAR", "the query has * beside GROUP BY", hint="name the columns one by one")


def _check_calls(part: Part) -> None:
    for name in aggregates_in((*part.projection, *part.condition)):
        if name not in FUNCTIONS:
            raise refusal("AGGREGATE_FUNCTION", f"the query calls {name}(), which is not maintained")
    if part.select.find(exp.Filter):
        raise refusal("AGGREGATE_FILTER", "the query has an aggregate with FILTER")
    if part.select.find(exp.Distinct):
        raise refusal("AGGREGATE_DISTINCT", "the query has an aggregate with DISTINCT")
    _check_grouping(part.select)
    for clause, tokens in (("WHERE", part.condition), ("GROUP BY", part.groups)):
        for name in aggregates_in(tokens):
            raise refusal("AGGREGATE_PLACE", f"the query calls {name}() in {clause}")


def _check_grouping(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None:
        raise refusal("NO_GROUP_BY", "the query aggregates all rows into one: it has no GROUP BY")
    if group.args.get("all"):
        raise refusal("UNSUPPORTED", "the query has GROUP BY ALL", hint="name the group expressions one by one")
    if has_grouping_sets(group):
        raise refusal("GROUPING_SETS", "the query has GROUPING SETS, ROLLUP or CUBE")


def _check_rows(query: AggregateQuery, scope: Scope) -> None:
    """What is computed for each row is checked again as a query of its own: names of the SELECT list have no meaning
    there."""
    text = query._select(backquoted(scope.upstream), [])
    part = parse_parts(text, tokenize(text))[0]
    check_expressions(part, scope)


def _key(number: int, written: tuple[str, ...], columns: tuple[str, ...]) -> str:
    """The visible column that is exactly the group expression, or a hidden one."""
    name = f"__group_{number}"
    return columns[written.index(name)] if name in written else name
