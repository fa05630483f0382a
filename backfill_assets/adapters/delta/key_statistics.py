"""Keys of Delta tables according to the log: whether they can be sorted, and the range of the key in each file.

Values are strings that Spark casts to the column's type; instants are microseconds since 1970, so they do not depend on
a session's time zone.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from backfill_assets.adapters.delta.column_metadata import stored_names
from backfill_assets.adapters.delta.log_replay import DataFile, Version
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.core.epoch import touched_spans
from backfill_assets.core.epoch.bounds import are_trusted
from backfill_assets.core.progress.positions import Key
from backfill_assets.core.progress.reads import KeyRead
from backfill_assets.core.strategies.key_cuts import Span
from backfill_assets.errors import UpstreamRefusedError
from backfill_assets.query.ddl import Column

__all__ = ["SORTABLE", "files_of_keys", "files_with", "may_be_null", "sortable_key", "spans", "spans_of_files"]

WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
SORTABLE = re.compile(
    r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL\(\d+,\s*\d+\)|BOOLEAN|STRING|DATE|TIMESTAMP|TIMESTAMP_NTZ"
)
NO_LETTER = "\ufffd"
"""Stands in statistics for bytes that are no text, which may be less or greater than it."""

DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAX_FILES = 10_000
"""The statistics of no more files are compared with each read; Delta's reader does that in parallel."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def spans(upstream: DeltaUpstream, version: int, leading: Column) -> list[Span] | None:
    """The range of the leading key column in each file that has rows; None if it is unknown for one of them."""
    at = upstream.version(version)
    return _all_known(at, zip(at.files, upstream.rows(version), strict=True), leading)


def spans_of_files(version: Version, files: Sequence[DataFile], leading: Column) -> list[Span] | None:
    """The same of some files of a version; None also if the log does not say how many rows one of them has, or for more files
    than `MAX_FILES`."""
    stated = [(file, file.stated_rows) for file in files] if len(files) <= MAX_FILES else []
    counted = [(file, rows) for file, rows in stated if rows is not None]
    return _all_known(version, counted, leading) if len(counted) == len(files) else None


def _all_known(version: Version, files: Iterable[tuple[DataFile, int]], leading: Column) -> list[Span] | None:
    """The ranges in those files of a version that have rows; None if one is unknown."""
    stored = _stored_name(version, leading)
    found = [_span(file, rows, leading, stored) for file, rows in files if rows]
    known = [span for span in found if span is not None]
    return known if len(known) == len(found) else None


def files_of_keys(upstream: DeltaUpstream, read: KeyRead, leading: Column) -> list[DataFile]:
    """The files that may have one of the keys of a read, by the bounds of the leading key column. A file whose bounds are
    missing or inexact may have any key. All files of a table that has more than `MAX_FILES`."""
    version = upstream.version(read.version)
    if len(version.files) > MAX_FILES:
        return list(version.files)
    stored = _stored_name(version, leading)
    ranges = [
        (_bound(leading, each.after), _bound(leading, each.upto), len(each.after or ()) == 1) for each in read.keys
    ]

    def may_have(span: Span | None) -> bool:
        return span is None or any(span.overlaps(after, upto, beyond=alone) for after, upto, alone in ranges)

    spans = [(file, _span(file, file.stated_rows or 0, leading, stored)) for file in version.files]
    return [file for file, span in spans if may_have(span)]


def files_with(version: Version, column: Column, values: Sequence[touched_spans.Span] | None) -> list[DataFile]:
    """The files of a version that may have a value of a column in some spans of whole numbers, texts or days (in ISO format).
    All of them if there are no spans, if bounds of the column's type do not tell, or for more files than `MAX_FILES`."""
    compared = column.type in WHOLE or column.type in {"STRING", "DATE"}
    if values is None or not compared or len(version.files) > MAX_FILES:
        return list(version.files)
    stored = _stored_name(version, column)
    spans = [(file, _span(file, file.stated_rows or 0, column, stored)) for file in version.files]
    return [
        file for file, span in spans if touched_spans.may_touch(values, None if span is None else (span.low, span.high))
    ]


def may_be_null(version: Version, column: Column) -> bool:
    """Whether a row of a version may have a null in a column, as far as statistics tell."""
    stored = _stored_name(version, column)
    return any((file.stats.get("nullCount") or {}).get(stored) != 0 for file in version.files)


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


def _stored_name(version: Version, column: Column) -> str | None:
    """The name of a column in the statistics of a version's files, which is another one if names are mapped."""
    names = stored_names(str(version.metadata["schemaString"]), version.metadata.get("configuration") or {})
    return str(names[column.name][0]) if column.name in names else None


def _span(file: DataFile, rows: int, leading: Column, stored: str | None) -> Span | None:
    """The range of the leading key column, with this name in the file, in its statistics; None if it is missing or inexact,
    or if the column has nulls."""
    stats = file.stats if are_trusted(leading.type) else {}
    low, high = (_ordered(leading, (stats.get(kind) or {}).get(stored)) for kind in ("minValues", "maxValues"))
    if low is None or high is None or (stats.get("nullCount") or {}).get(stored) != 0:
        return None
    return Span(low=low, high=high, text=str(high), rows=rows)


def _bound(column: Column, key: Key | None) -> Any:
    """The leading value of a bound, in a form that Python compares with those of statistics; None if there is none. Writers
    round instants in statistics to milliseconds, so these are not compared."""
    text = key[0] if key else None
    if text is None:
        return None
    if column.type in WHOLE or column.type.startswith("DECIMAL"):
        return Decimal(text)
    return text if column.type == "STRING" or (column.type == "DATE" and DAY.fullmatch(text)) else None


def _ordered(column: Column, value: object) -> Any:
    """A value of the statistics in a form that Python orders like Spark, and whose text Spark can cast; otherwise None."""
    match value:
        case bool():
            return None
        case int() if column.type in WHOLE or column.type.startswith("DECIMAL"):
            return value
        case Decimal() if column.type.startswith("DECIMAL"):
            return value
        case str() if (column.type == "STRING" and NO_LETTER not in value) or (
            column.type == "DATE" and DAY.fullmatch(value)
        ):
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
