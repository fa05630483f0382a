"""Keys of Delta tables according to the log: whether they can be sorted, and the range of the key in each file.

Values are strings that Spark casts to the column's type; instants are microseconds since 1970, so they do not depend on
a session's time zone.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from backfill_assets.adapters.delta.log_replay import DataFile
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.core.epoch.bounds import are_trusted
from backfill_assets.core.strategies.key_cuts import Span
from backfill_assets.errors import UpstreamRefusedError
from backfill_assets.query.ddl import Column

__all__ = ["SORTABLE", "sortable_key", "spans"]

WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
SORTABLE = re.compile(
    r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL\(\d+,\s*\d+\)|BOOLEAN|STRING|DATE|TIMESTAMP|TIMESTAMP_NTZ"
)
DAY = re.compile(r"\d{4}-\d\d-\d\d")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def spans(upstream: DeltaUpstream, version: int, leading: Column) -> list[Span] | None:
    """The range of the leading key column in each file that has rows; None if it is unknown for one of them."""
    files = zip(upstream.version(version).files, upstream.rows(version), strict=True)
    found = [_span(file, rows, leading) for file, rows in files if rows]
    known = [span for span in found if span is not None]
    return known if len(known) == len(found) else None


def sortable_key(upstream: DeltaUpstream) -> tuple[Column, ...]:
    """The key of a table. Errors: `UpstreamRefusedError` with reason `NO_KEY` or `KEY_NOT_SORTABLE`."""
    columns = {each.name: each for each in upstream.columns()}
    key = tuple(columns[name] for name in upstream.key())
    if not key:
        raise UpstreamRefusedError(
            f"table {upstream.name!r} has no key; strategy 'arrangement' reads a table in the order of its key",
            hint=f"declare delta_table({upstream.name!r}, primary_key=...), or use strategy='snapshot'",
            reason="NO_KEY",
        )
    for column in key:
        if not SORTABLE.fullmatch(column.type):
            raise UpstreamRefusedError(
                f"table {upstream.name!r}: strategy 'arrangement' cannot sort by key column {column.name!r}: "
                f"expected numbers, strings, booleans, dates or times, found {column.type}",
                hint="use strategy='snapshot', which needs no order",
                reason="KEY_NOT_SORTABLE",
                column=column.name,
            )
    return key


def _span(file: DataFile, rows: int, leading: Column) -> Span | None:
    """The range of the leading key column in a file's statistics; None if it is missing or inexact, or if the column
    has nulls."""
    stats = file.stats if are_trusted(leading.type) else {}
    low, high = (_ordered(leading, (stats.get(kind) or {}).get(leading.name)) for kind in ("minValues", "maxValues"))
    if low is None or high is None or (stats.get("nullCount") or {}).get(leading.name) != 0:
        return None
    return Span(low=low, high=high, text=str(high), rows=rows)


def _ordered(column: Column, value: object) -> Any:
    """A value of the statistics in a form that Python orders like Spark, and whose text Spark can cast; otherwise None."""
    match value:
        case bool():
            return None
        case int() if column.type in WHOLE or column.type.startswith("DECIMAL"):
            return value
        case Decimal() if column.type.startswith("DECIMAL"):
            return value
        case str() if column.type == "STRING" or (column.type == "DATE" and DAY.fullmatch(value)):
            return value
        case str() if column.type == "TIMESTAMP":
            return _micros(value)
        case _:
            return None


def _micros(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at - EPOCH) // timedelta(microseconds=1) if at.tzinfo else None
