"""Computes the groups of an aggregate query on Spark: all of them from rows, or those that changes touch from stored
state.

A stored row has the query's columns, hidden keys (`__group_<i>`) if the query leaves out a group expression, and hidden
state: `__count`, the number of rows in the group, and for each argument what the aggregates over it need: `__n_<i>`,
the number of non-null values, `__sum_<i>`, `__min_<i>`, `__max_<i>`. State, row and change have the same form, a
partial state with a sign, and groups are the sum of partial states. So an insert is added, and a delete is subtracted
if that is exact. If it is not, the group is computed again from the upstream's rows: when a sum of floats loses a
value, and when the greatest or least value may have been deleted.

The upstream is only read if there is such a group: adaptive execution detects that no keys are requested. Works on
Spark Connect, too. `changes` is read several times: cache it if it is expensive.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 # the name that Spark's users know

from backfill_assets.adapters.sql.apply_rowwise import REFUSALS, translated
from backfill_assets.adapters.sql.semi_join import semi_join
from backfill_assets.adapters.sql.sql_over import sql_over
from backfill_assets.query.aggregate import AggregateQuery, Call
from backfill_assets.query.refusals import refusal
from backfill_assets.query.spelling import backquoted
from backfill_assets.query.working_columns import OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SIGN", "Reach", "groups_of_rows", "maintained", "of_each_row", "stored"]

SIGN: Final = "__sign"
"""The column of changes with the sign of a row: +1 for an insert, -1 for a delete."""

_OLD: Final = "__old"
_AGAIN: Final = "__again"
_UNTOUCHED: Final = "__untouched"


class Reach(Enum):
    """What changes touch: groups whose keys are many, or fit in memory; or so few rows, with all that are stored, that one
    task takes them without a shuffle."""

    MANY_GROUPS = auto()
    FEW_GROUPS = auto()
    ONE_TASK = auto()


_INTEGRAL: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATING: Final = frozenset({"float", "double", "string", "void"})
# Spark's quotient of whole numbers has no more digits than this before its point.
_LONGEST_QUOTIENT: Final = 32
_MOST_DIGITS: Final = 38
# What has more digits than such a quotient is divided in two halves, of 19 digits each.
_HALF: Final = f"1{'0' * 19}BD"
# Spark's `-` and `abs` round decimals to this many digits.
_LONGEST_NEGATED: Final = 34
# How many months or seconds an interval has, to the microsecond.
_COUNTED: Final = "decimal(20,6)"
_INSERTED: Final = f"{SIGN} > 0"


@dataclass(frozen=True)
class _State:
    """One hidden column: SQL for its value in one row, for the sum of partial values, and for when that sum is not
    sufficient."""

    name: str
    of_row: str
    merged: str
    again: str = "FALSE"


@dataclass(frozen=True)
class _Plan:
    """The query with what its types determine: the states, and SQL for the result of each call."""

    query: AggregateQuery
    states: tuple[_State, ...]
    results: tuple[str, ...]

    @property
    def groups(self) -> list[str]:
        return [f"__group_{number}" for number in range(len(self.query.groups))]

    @property
    def state_names(self) -> list[str]:
        return [state.name for state in self.states]

    @property
    def may_read_again(self) -> bool:
        return any(state.again != "FALSE" for state in self.states)


def stored(query: AggregateQuery, rows: "DataFrame") -> "DataFrame":
    """All groups, with hidden columns, for all rows of the upstream.

    Errors: `QueryError` with reason `SPARK` if Spark refuses the query, and `AGGREGATE_TYPE` if the sum of an argument's
    type cannot be kept.
    """
    try:
        read = _read(query, rows)
        plan = _plan(query, read)
        groups = _finished(plan, _merged(plan, _partial(plan, read, sign="1")))
        # Connect analyses late: asking for the schema makes it refuse here and not at the first write.
        _ = groups.schema
    except REFUSALS as error:
        raise translated(error) from error
    return groups


def maintained(
    query: AggregateQuery,
    changes: "DataFrame",
    old: "DataFrame | None",
    upstream: "Callable[[], DataFrame] | None",
    *,
    reach: Reach = Reach.FEW_GROUPS,
) -> "DataFrame":
    """The new rows of all groups that `changes` touch, with the columns of `stored` and the operation on each (`__op`).

    `changes` are rows of the upstream with `__sign`, `old` the stored rows, None if there are none. `upstream` returns all
    rows of the upstream after the changes, and is called only for a query that may need them; None means that it is
    append-only. In a row of a group that is deleted, only the key is meaningful.

    Errors: those of `stored`; when the rows are computed, Spark's own if rows are deleted that were never counted, or
    that belong to an append-only upstream.
    """
    try:
        read = _read(query, changes, SIGN)
        plan = _plan(query, read)
        partial = _partial(plan, read, sign=SIGN)
        if old is not None:
            partial = partial.unionAll(_stored(plan, old, read, reach))
        merged = _merged(plan, partial.coalesce(1) if reach is Reach.ONE_TASK else partial)
        merged = merged.where(f"{_UNTOUCHED} = 0 AND (__count != 0 OR {_OLD} > 0)")
        if upstream is not None and plan.may_read_again:
            again = merged.where(_AGAIN)
            rows = _partial(plan, _read(query, upstream()), sign="1")
            rows = _only(plan, rows, again.select(*plan.groups), reach)
            merged = merged.where(f"NOT {_AGAIN}").unionAll(_merged(plan, rows.unionAll(_emptied(plan, again))))
        groups = _finished(plan, merged, f"{_op()} AS {OPERATION}")
        _ = groups.schema
    except REFUSALS as error:
        raise translated(error) from error
    return groups


def groups_of_rows(query: AggregateQuery, rows: "DataFrame") -> "DataFrame":
    """The group of each row of the upstream that meets the query's condition, as `__group_<i>`."""
    return _read(query, rows).select(*(f"__group_{number}" for number in range(len(query.groups))))


def of_each_row(query: AggregateQuery, rows: "DataFrame") -> "DataFrame":
    """The expressions that an aggregate computes for each row: its group and the arguments of the aggregates."""
    return _read(query, rows)


def _read(query: AggregateQuery, rows: "DataFrame", *more: str) -> "DataFrame":
    # Spark replaces {name} in the text, so braces of the user's own (in a regular expression) are doubled.
    text = query.rows_sql("__given", *more).replace("{", "{{").replace("}", "}}")
    return sql_over(rows.sparkSession, f"WITH __given AS (SELECT * FROM {{given_rows}}) {text}", given_rows=rows)


def _plan(query: AggregateQuery, read: "DataFrame") -> _Plan:
    types = dict(read.dtypes)
    states = {state.name: state for call in query.calls for state in _states(call, types)}
    results = tuple(_result(call, types) for call in query.calls)
    return _Plan(query, tuple(states.values()), results)


def _states(call: Call, types: dict[str, str]) -> Iterator[_State]:
    if call.argument is None:
        return
    number, value = call.argument, f"__arg_{call.argument}"
    if call.function in {"min", "max"}:
        yield _extreme(call.function, number, types[value])
        return
    yield _State(f"__n_{number}", f"IF({value} IS NULL, 0L, 1L)", f"sum(__n_{number} * {SIGN})")
    if call.function != "count":
        yield _sum(call, types[value])


def _extreme(function: str, number: int, kind: str) -> _State:
    name, value = f"__{function}_{number}", f"__arg_{number}"
    stays = f"{function}(IF({_INSERTED}, {name}, NULL))"
    gone = f"{function}(IF({_INSERTED}, NULL, {name}))"
    # An old or new value beyond all deleted values still exists; a deleted value that is equal to it may have been the
    # last.
    passed = f"{gone} >= {stays}" if function == "max" else f"{gone} <= {stays}"
    of_row = _counted(kind, value) if _unit(kind) else value
    return _State(name, of_row, stays, f"coalesce({passed}, {gone} IS NOT NULL)")


def _sum(call: Call, kind: str) -> _State:
    name, value = f"__sum_{call.argument}", f"__arg_{call.argument}"
    if kind in _FLOATING:
        # NaN and infinity cannot be subtracted, and subtracting floats is not exact.
        gone = f"coalesce(bool_or(NOT {_INSERTED} AND {name} IS NOT NULL), FALSE)"
        return _State(name, f"CAST({value} AS DOUBLE)", f"sum(IF({_INSERTED}, {name}, NULL))", gone)
    if _unit(kind):
        value, kind = _counted(kind, value), _COUNTED
    precision, scale = (19, 0) if kind in _INTEGRAL else _decimal(call, kind)
    gone = f"-{name}" if precision <= _LONGEST_NEGATED else _negative(name, scale)
    # A group without values has no sum, as where it is computed from its rows.
    merged = f"CASE WHEN sum(__n_{call.argument} * {SIGN}) > 0 THEN sum(IF({_INSERTED}, {name}, {gone})) END"
    return _State(name, f"CAST({value} AS DECIMAL(38,{scale}))", merged)


def _unit(kind: str) -> str:
    """The unit of which an interval is so many; empty for other types. Delta keeps no intervals."""
    if not kind.startswith("interval "):
        return ""
    return "MONTH" if re.search("year|month", kind) else "SECOND"


def _counted(kind: str, value: str) -> str:
    """How many months or seconds an interval has."""
    return f"CAST(CAST({value} AS INTERVAL {_unit(kind)}) AS {_COUNTED})"


def _interval(kind: str, value: str) -> str:
    """The interval of so many months or seconds."""
    return f"CAST(CAST({value} AS INTERVAL {_unit(kind)}) AS {kind})"


def _negative(value: str, scale: int) -> str:
    """A decimal of 38 digits with the other sign; a difference of two would have a digit less after the point."""
    text = f"CAST({value} AS STRING)"
    return f"CAST(IF({value} < 0, substring({text}, 2), concat('-', {text})) AS DECIMAL(38,{scale}))"


def _decimal(call: Call, kind: str) -> tuple[int, int]:
    name, _, digits = kind.rstrip(")").partition("(")
    if name != "decimal":
        raise refusal(
            "AGGREGATE_TYPE", f"the query has {call.function}() of a {kind.upper()}, whose sum cannot be maintained"
        )
    precision, scale = map(int, digits.split(","))
    return precision, scale


def _result(call: Call, types: dict[str, str]) -> str:
    """The call's result in Spark's own type."""
    number = call.argument
    if number is None:
        return "__count"
    total, count, kind = f"__sum_{number}", f"__n_{number}", types[f"__arg_{number}"]
    match call.function:
        case "count":
            return count
        case "sum" | "avg":
            value = _total(call, kind, total) if call.function == "sum" else _average(call, kind, total, count)
            return f"CASE WHEN {count} > 0 THEN {value} END"
        case extreme:
            found = f"__{extreme}_{number}"
            return _interval(kind, found) if _unit(kind) else found


def _total(call: Call, kind: str, total: str) -> str:
    if _unit(kind):
        return _interval(kind, total)
    if kind in _FLOATING:
        return total
    if kind in _INTEGRAL:
        return f"CAST({total} AS BIGINT)"
    precision, scale = _decimal(call, kind)
    return f"CAST({total} AS DECIMAL({min(precision + 10, _MOST_DIGITS)},{scale}))"


def _average(call: Call, kind: str, total: str, count: str) -> str:
    if _unit(kind):
        return f"{_interval(kind, total)} / {count}"
    if kind in _FLOATING or kind in _INTEGRAL:
        return f"CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE)"
    precision, scale = _decimal(call, kind)
    # Spark's division of decimals returns fewer digits than its average: so this is a long division in whole numbers,
    # to four more digits where there is room for them, with halves rounded away from zero.
    wider = min(scale + 4, _MOST_DIGITS)
    more = 10 ** (wider - scale)
    whole, divisor = (
        f"CAST(concat(TRIM(LEADING '-' FROM CAST({total} AS STRING)), 'E{scale}') AS DECIMAL(38,0))",
        f"CAST({count} AS DECIMAL(19,0))",
    )
    quotient, rest = _divided(whole, divisor) if precision <= _LONGEST_QUOTIENT else _divided_long(whole, divisor)
    digits = f"CAST(({rest} * {2 * more} + {divisor}) DIV ({divisor} * 2) AS DECIMAL(5,0))"
    text = f"concat(IF({total} < 0, '-', ''), CAST({quotient} * {more} + {digits} AS STRING), 'E-{wider}')"
    return f"CAST({text} AS DECIMAL({min(precision + 4, _MOST_DIGITS)},{wider}))"


def _divided(whole: str, divisor: str) -> tuple[str, str]:
    """The quotient of whole numbers, of up to 32 digits, and the rest."""
    rest = f"CAST({whole} % {divisor} AS DECIMAL(19,0))"
    return f"CAST(({whole} - {rest}) / {divisor} AS DECIMAL({_LONGEST_QUOTIENT},0))", rest


def _divided_long(whole: str, divisor: str) -> tuple[str, str]:
    """The same of a number of up to 38 digits: its first 19 are divided by themselves, then the rest with its last 19."""
    low = f"CAST({whole} % {_HALF} AS DECIMAL(19,0))"
    high = f"CAST(({whole} - {low}) / {_HALF} AS DECIMAL(19,0))"
    first, carried = _divided(high, divisor)
    last, rest = _divided(f"({carried} * {_HALF} + {low})", divisor)
    return f"CAST(concat(CAST({first} AS STRING), lpad(CAST({last} AS STRING), 19, '0')) AS DECIMAL(38,0))", rest


def _partial(plan: _Plan, read: "DataFrame", *, sign: str) -> "DataFrame":
    """Each row as the state of a group with one row."""
    states = [f"{state.of_row} AS {state.name}" for state in plan.states]
    return read.selectExpr(*plan.groups, "1L AS __count", *states, f"{sign} AS {SIGN}", f"0 AS {_OLD}")


def _stored(plan: _Plan, old: "DataFrame", read: "DataFrame", reach: Reach) -> "DataFrame":
    """The states of stored groups: of those that rows touch, or of all, if one task reads them."""
    keys = [
        f"{backquoted(column)} AS {group}" for column, group in zip(plan.query.key_columns, plan.groups, strict=True)
    ]
    states = old.selectExpr(*keys, "__count", *(state.name for state in plan.states), f"1 AS {SIGN}", f"1 AS {_OLD}")
    return states if reach is Reach.ONE_TASK else _only(plan, states, read.select(*plan.groups).distinct(), reach)


def _emptied(plan: _Plan, groups: "DataFrame") -> "DataFrame":
    """The groups with empty states: for those that are computed again, all that is needed is whether they existed
    before."""
    kinds = {field.name: field.dataType for field in groups.schema.fields}
    states = [F.lit(None).cast(kinds[name]).alias(name) for name in plan.state_names]
    kept, signs = (map(F.expr, texts) for texts in ((*plan.groups, "0L AS __count"), (f"1 AS {SIGN}", _OLD)))
    return groups.select(*kept, *states, *signs)


def _only(plan: _Plan, rows: "DataFrame", keys: "DataFrame", reach: Reach) -> "DataFrame":
    """The rows of the groups that `keys` has; null is a group like any other."""
    return semi_join(rows, keys, {group: group for group in plan.groups}, few=reach is not Reach.MANY_GROUPS)


def _merged(plan: _Plan, partials: "DataFrame") -> "DataFrame":
    """One row for each group; `__again` says that its states cannot be derived from partial states."""
    count = f"sum(__count * {SIGN})"
    again = " OR ".join(f"({state.again})" for state in plan.states) or "FALSE"
    return partials.groupBy(*plan.groups).agg(
        F.expr(count).alias("__count"),
        *(F.expr(state.merged).alias(state.name) for state in plan.states),
        F.expr(f"{count} > 0 AND ({again})").alias(_AGAIN),
        F.expr(f"max({_OLD})").alias(_OLD),
        F.expr(f"min({_OLD})").alias(_UNTOUCHED),
    )


def _finished(plan: _Plan, merged: "DataFrame", *more: str) -> "DataFrame":
    """The view's columns, including hidden ones, from the states."""
    query = plan.query
    calls = [f"{result} AS __call_{number}" for number, result in enumerate(plan.results)]
    visible = [
        # A deleted group has no values to compute with: its count is zero, by which a query may divide.
        f"{sql if name in query.key_columns else f'CASE WHEN __count > 0 THEN ({sql}) END'} AS {backquoted(name)}"
        for name, sql in zip(query.output_columns, query.outputs, strict=True)
    ]
    hidden = [group for group in plan.groups if group in query.key_columns]
    return merged.selectExpr("*", *calls).selectExpr(
        *visible, *hidden, "__count", *(state.name for state in plan.states), *more
    )


def _op() -> str:
    lost = "raise_error('the view has a group that cannot be maintained without the rows of its upstream')"
    never = "raise_error('more rows are deleted from a group of the view than it has')"
    return (
        f"CASE WHEN {_AGAIN} THEN {lost} WHEN __count > 0 THEN IF({_OLD} > 0, 'update', 'insert') "
        f"WHEN __count = 0 THEN 'delete' ELSE {never} END"
    )
