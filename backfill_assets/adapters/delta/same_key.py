"""Which rows have the same key, and where in a table they lie, in the SQL of delta-rs (DataFusion), with the same result as
in Spark."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from deltalake import Schema
from deltalake.schema import PrimitiveType

from backfill_assets.core.epoch.touched_spans import Span

__all__ = ["column", "lies_in", "same_key"]

_FLOATING = {"float": "FLOAT", "double": "DOUBLE"}


def same_key(schema: Schema, key: Sequence[str]) -> str:
    """SQL for whether `t` and `s` have the same key; null is equal to null."""
    kinds = {each.name: each.type.type for each in schema.fields if isinstance(each.type, PrimitiveType)}
    # In brackets: DataFusion parses an AND after IS NOT DISTINCT FROM as part of the right side.
    return " AND ".join(
        f"({_one_form(column('t', name), kinds.get(name))} IS NOT DISTINCT FROM "
        f"{_one_form(column('s', name), kinds.get(name))})"
        for name in key
    )


def lies_in(side: str, spans: Mapping[str, Sequence[Span]]) -> list[str]:
    """SQL for whether a row of one side has its values within these spans, for each column."""
    return [f"({' OR '.join(_between(column(side, name), span) for span in each)})" for name, each in spans.items()]


def column(side: str, name: str) -> str:
    """A column of one side in DataFusion's SQL."""
    escaped = name.replace('"', '""')
    return f'{side}."{escaped}"'


def _one_form(value: str, kind: str | None) -> str:
    """A value in the one form for all equal values: DataFusion compares the bits of NaN, which has many."""
    if kind not in _FLOATING:
        return value
    nan, zero = (f"CAST('{number}' AS {_FLOATING[kind]})" for number in ("NaN", "0"))
    return f"(CASE WHEN isnan({value}) THEN {nan} WHEN {value} = {zero} THEN {zero} ELSE {value} END)"


def _between(column: str, span: Span) -> str:
    low, high = map(_literal, span)
    return f"({column} >= {low} AND {column} <= {high})"


def _literal(value: Any) -> str:
    """A whole number, a text or a day."""
    match value:
        case str():
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case _:
            return str(int(value))
