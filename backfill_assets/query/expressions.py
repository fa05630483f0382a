"""Checks the expressions of one part of a query, and names the columns that it returns.

It resolves names like Spark: without case, first as a column of the upstream, then as a name given further left in the
same SELECT list. Types are left to Spark.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from backfill_assets.query.clock_texts import CLOCK_NODES, holds_times, reads_clock
from backfill_assets.query.column_names import check_column_name
from backfill_assets.query.ddl import Column
from backfill_assets.query.determinism import check_collations, check_parameters, check_words, refused_calls
from backfill_assets.query.functions import CURRENT_WORDS
from backfill_assets.query.nodes import all_of
from backfill_assets.query.parsing import Part, upstream_named
from backfill_assets.query.record_columns import UNSEEN
from backfill_assets.query.refusals import nearest, place, refusal, refused_call, refused_text, refused_word

__all__ = [
    "Output",
    "Scope",
    "check_expressions",
    "check_stars",
    "check_used",
    "checked_columns",
    "lambda_parameters",
    "name_parts",
    "named_columns",
    "outputs",
    "scope_of",
]


@dataclass(frozen=True)
class Output:
    """One column of the result; `source` is the upstream's column that it returns unchanged, or empty."""

    name: str
    source: str = ""


@dataclass(frozen=True)
class Scope:
    """The meaning of names in one part of a query."""

    upstream: str
    qualifier: str
    columns: tuple[Column, ...]
    records: bool = True
    """Whether it is a shared source, whose rows may be records that could not be parsed."""

    def column(self, name: str) -> Column | None:
        """The upstream's column of that name, if there is one."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    @property
    def visible(self) -> tuple[Column, ...]:
        """The columns that `*` stands for: all except those for bad records, which are null in all rows of a view, and
        the hidden ones of a view."""
        if self.records:
            return tuple(column for column in self.columns if column.name not in UNSEEN)
        return tuple(column for column in self.columns if not column.name.startswith("__"))

    def resolve(self, parts: list[str]) -> tuple[Column, list[str]] | None:
        """The upstream's column that a dotted name begins with, and the struct fields after it."""
        if len(parts) > 1 and parts[0].lower() == self.qualifier.lower():
            column = self.column(parts[1])
            if column:
                return column, parts[2:]
        column = self.column(parts[0])
        return (column, parts[1:]) if column else None


def scope_of(part: Part, tables: Mapping[str, tuple[Column, ...]], *, records: bool = True) -> Scope:
    """The upstream columns that are visible to a part, which reads one of `tables`: sources of `records`, or Delta
    tables.

    Errors: `QueryError`.
    """
    name = upstream_named(part.table, tables)
    return Scope(name, part.qualifier, tables[name], records=records)


def check_expressions(part: Part, scope: Scope, *, aggregates: Collection[str] = ()) -> None:
    """Refuse expressions that are not computed from one record alone, and unknown names; calls of `aggregates` are
    allowed.

    Errors: `QueryError`.
    """
    if part.select.find(exp.Window):
        raise refusal("WINDOW", "the query has a window function (OVER)")
    _check_calls(part, aggregates)
    check_parameters(part.select, part.tokens)
    check_words(part.select, part.tokens)
    for node in all_of(part.select, *CLOCK_NODES):
        if reads_clock(node, partial(_has_no_time, scope)):
            raise refused_text(node.sql("spark"), place(node))
    for item in part.select.expressions:
        check_collations(item)
    check_stars(part)
    aliases: set[str] = set()
    for item in part.select.expressions:
        _check_names(item, scope, aliases)
        if isinstance(item, exp.Alias):
            aliases.add(item.alias.lower())
    if part.select.args.get("where"):
        _check_names(part.select.args["where"], scope, ())


def check_stars(part: Part) -> None:
    """Refuse `*` that is more than all columns of the upstream, as far as the text shows. Errors: `QueryError`."""
    for star in all_of(part.select, exp.Star):
        column = star.parent if isinstance(star.parent, exp.Column) else star
        if isinstance(star.parent, exp.Count):
            continue
        changed = any(value for name, value in star.args.items() if name != "except_")
        if changed or column.parent is not part.select or column.arg_key != "expressions":
            raise refusal("STAR", "the query has * inside an expression")
        names = [each.lower() for each in name_parts(column)[:-1]] if isinstance(column, exp.Column) else []
        if names not in ([], [part.qualifier.lower()]):
            raise refusal("STAR", f"the query has {column.sql('spark')}, all fields of a struct")


def outputs(part: Part, scope: Scope, *, named: bool) -> list[list[Output]]:
    """The columns that each expression of the SELECT list returns: one, or several for `*`.

    `named`: they are the view's columns, so they need valid names; UNION ALL uses the names of its first part. Errors:
    `QueryError`.
    """
    return [_outputs(item, scope, named=named) for item in part.select.expressions]


def checked_columns(result: list[list[Output]]) -> tuple[str, ...]:
    """The names of the view's columns. Errors: `QueryError` if one occurs twice."""
    names = [output.name for item in result for output in item]
    small = [name.lower() for name in names]
    twice = [name for name in names if small.count(name.lower()) > 1]
    if twice:
        raise refusal("DUPLICATE_COLUMN", f"the query returns the column {twice[0]!r} more than once")
    return tuple(names)


def check_used(upstreams: tuple[str, ...], tables: Mapping[str, tuple[Column, ...]]) -> None:
    """Refuse a query that does not read all of its upstreams. Errors: `QueryError`."""
    unused = [name for name in tables if name not in upstreams]
    if unused:
        raise refusal("UNUSED_UPSTREAM", f"the query does not read {', '.join(map(repr, unused))}")


def named_columns(part: Part, scope: Scope) -> set[str]:
    """The upstream's columns that the part names, except by `*`."""
    found = (scope.resolve(name_parts(column)) for column in all_of(part.select, exp.Column) if not _is_star(column))
    return {resolved[0].name for resolved in found if resolved}


def _check_calls(part: Part, accepted: Collection[str]) -> None:
    for name, reason in refused_calls(part.tokens):
        if name not in accepted:
            raise refused_call(reason, name)


def _has_no_time(scope: Scope, column: exp.Column) -> bool:
    found = scope.resolve(name_parts(column))
    return found is not None and not holds_times(found[0].type)


def _check_names(expression: exp.Expr, scope: Scope, aliases: Collection[str]) -> None:
    for column in all_of(expression, exp.Column):
        if _is_star(column):
            continue
        parts = name_parts(column)
        if scope.resolve(parts) or parts[0].lower() in aliases or parts[0].lower() in lambda_parameters(column):
            continue
        if len(parts) == 1 and parts[0].lower() in CURRENT_WORDS:
            raise refused_word(parts[0], place(column))
        raise _unknown_column(".".join(parts), scope, aliases, place(column))


def _unknown_column(name: str, scope: Scope, aliases: Collection[str], where: str = "") -> Exception:
    plain = [*(column.name for column in scope.columns), *sorted(aliases)]
    dotted = [f"{scope.qualifier}.{each}" for each in plain]
    hint = nearest(name, plain, dotted if "." in name else [])
    return refusal(
        "UNKNOWN_COLUMN",
        f"the upstream {scope.upstream!r} has no column {name!r}, which the query names{where}",
        hint=hint,
    )


def lambda_parameters(node: exp.Expr) -> set[str]:
    """The parameter names of the lambdas around the node, in lower case."""
    names: set[str] = set()
    parent = node.parent
    while parent is not None:
        if isinstance(parent, exp.Lambda):
            names.update(parameter.name.lower() for parameter in parent.expressions)
        parent = parent.parent
    return names


def _outputs(item: exp.Expr, scope: Scope, *, named: bool) -> list[Output]:
    star = item if isinstance(item, exp.Star) else item.this if _is_star(item) else None
    if star is not None:
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        for name in left_out - {column.name.lower() for column in scope.visible}:
            raise _unknown_column(name, scope, (), place(item))
        return [Output(each.name, each.name) for each in scope.visible if each.name.lower() not in left_out]
    output = _output(item, scope)
    if named and not output.name:
        raise refusal("UNNAMED_COLUMN", f"the query's column {item.sql('spark')}{place(item)} has no name")
    if named:
        check_column_name(output.name, place(item))
    return [output]


def _output(item: exp.Expr, scope: Scope) -> Output:
    alias = item.alias if isinstance(item, exp.Alias) else ""
    value = (item.this if isinstance(item, exp.Alias) else item).unnest()
    if isinstance(value, exp.Column):
        found = scope.resolve(name_parts(value))
        if found and not found[1]:
            # In the upstream's own spelling, whatever the case in the query.
            return Output(alias or found[0].name, found[0].name)
        return Output(alias or value.name)
    if not alias and isinstance(value, exp.Cast):
        return Output(_cast_name(value, scope))
    if not alias and isinstance(value, exp.Dot) and isinstance(value.expression, exp.Identifier):
        return Output(value.expression.name)
    return Output(alias)


def _cast_name(cast: exp.Cast, scope: Scope) -> str:
    """The name that Spark gives to a cast: that of the column which it casts; none to a cast of anything else."""
    value = cast.this.unnest()
    found = scope.resolve(name_parts(value)) if isinstance(value, exp.Column) else None
    return found[0].name if found and not found[1] else ""


def name_parts(column: exp.Column) -> list[str]:
    """The parts of a dotted name."""
    return [part.name for part in column.parts]


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
