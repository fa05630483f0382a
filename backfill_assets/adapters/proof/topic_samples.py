"""Compares a source's table with records that were read again by another Kafka client and another JSON parser.

Spark's Kafka reader and its `from_json` are used by both product and proof. Here librdkafka reads the records and
Python parses their JSON, and each record must be in the table unchanged: its time, key, headers, and the values of
those types whose meaning is the same in JSON, Python and a table. Other values, and whether a bad record is really bad,
are not checked.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from backfill_assets.adapters.compute.source_compute import SourceReader
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.kafka.log import Record
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.offset_ranges import within
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.query.ddl import Column, quoted
from backfill_assets.query.record_columns import ERROR, OFFSET, PARTITION, RECORD_KEY, VALUE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RecordRow", "comparable_values", "otherwise", "rows_of_records"]

_WHOLE = frozenset({"BIGINT", "INT", "SMALLINT", "TINYINT"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")
_TOLD = re.compile(rf"{'|'.join(sorted(_WHOLE))}|STRING|BOOLEAN|DOUBLE|{_DECIMAL.pattern}")
_EXACT = Context(prec=2_000)
_NOT_COMPARABLE = object()


@dataclass(frozen=True, kw_only=True)
class RecordRow:
    """A record as it is in the source's table; `values` are those of the columns whose types can be compared."""

    timestamp_ms: int
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    error: str | None
    raw_value: bytes | None
    values: Mapping[str, Any]


def rows_of_records(
    runner: SparkRunner, source: SourceReader, version: int, ranges: Mapping[int, OffsetRange]
) -> dict[tuple[int, int], RecordRow]:
    """A source's table at these offsets in a version, as Spark reads it."""
    told = [column.name for column in source.columns if _TOLD.fullmatch(column.type) or source.record_format == "raw"]

    def read(spark: "SparkSession") -> list[dict[str, Any]]:
        rows = rows_at(spark, source.bronze, version).where(within(*RECORD_KEY, ranges))
        fixed = [*RECORD_KEY, "unix_millis(_timestamp) AS _ms", "_key", "_headers", ERROR, VALUE]
        found = rows.selectExpr(*fixed, *map(quoted, told)).toArrow()
        texts = {name: _texts(found[name]) for name in told if pa.types.is_string(found.schema.field(name).type)}
        others = found.drop_columns([*texts]).to_pylist()
        return [{**row, **{name: each[at] for name, each in texts.items()}} for at, row in enumerate(others)]

    return {(row[PARTITION], row[OFFSET]): _record_row(row, told) for row in runner.run(read)}


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Texts that need not be valid UTF-8, as `_decoded` tells them."""
    return [None if each is None else _decoded(each) for each in column.cast(pa.binary()).to_pylist()]


def _decoded(text: bytes) -> str:
    """A text in which each byte that is not UTF-8 stands for itself."""
    return text.decode(errors="surrogateescape")


def _record_row(row: Mapping[str, Any], told: Sequence[str]) -> RecordRow:
    return RecordRow(
        timestamp_ms=row["_ms"],
        key=row["_key"],
        headers=tuple((each["key"], each["value"]) for each in row["_headers"] or ()),
        error=row[ERROR],
        raw_value=row["_value"],
        values={name: row[name] for name in told},
    )


def otherwise(
    records: Sequence[Record], rows: Mapping[tuple[int, int], RecordRow], columns: Sequence[Column], record_format: str
) -> Iterator[str]:
    """Records that are not in the table unchanged, each with what is wrong, as text."""
    for record in records:
        place = f"partition {record.partition}, offset {record.offset}"
        row = rows.get((record.partition, record.offset))
        if row is None:
            yield f"{place}: a record that a Kafka client other than Spark's finds is not in the table"
        else:
            yield from (f"{place}: {wrong}" for wrong in _wrong(record, row, columns, record_format))


def _wrong(record: Record, row: RecordRow, columns: Sequence[Column], record_format: str) -> Iterator[str]:
    pairs = {
        "_timestamp": (record.timestamp_ms, row.timestamp_ms),
        "_key": (record.key, row.key),
        "_headers": (record.headers, row.headers),
        "_value": (None if row.error is None else record.value, row.raw_value),
    }
    if row.error is None:
        meant = _meant(record.value, columns, record_format)
        if meant is None:
            yield "its value is not a JSON object for a parser other than Spark's, but it is one in the table"
            return
        pairs |= {name: (value, row.values[name]) for name, value in meant.items() if value is not _NOT_COMPARABLE}
    for name, (expected, found) in pairs.items():
        if expected != found:
            yield f"{name} is {expected!r} in the record, {found!r} in the table"


def _meant(value: bytes | None, columns: Sequence[Column], record_format: str) -> dict[str, Any] | None:
    """The values of a good record's columns, as far as they can be compared; None if it is not a JSON object."""
    if value is None:
        return None
    if record_format == "raw":
        (column,) = columns
        return {column.name: _decoded(value) if column.type == "STRING" else value}
    return comparable_values(value, columns)


def comparable_values(value: bytes, columns: Sequence[Column]) -> dict[str, Any] | None:
    """The values that Python reads from a record's JSON, for columns of comparable types; None if it is not an object.

    Example:
        >>> comparable_values(b'{"id": 7, "price": 1.005}', [Column("id", "INT"), Column("price", "DECIMAL(9,2)")])
        {'id': 7, 'price': Decimal('1.01')}
    """
    try:
        document = json.loads(value.decode(), parse_float=Decimal, parse_int=_EXACT.create_decimal)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    except RecursionError:  # nested deeper than Python can parse
        return dict.fromkeys((column.name for column in columns if _TOLD.fullmatch(column.type)), _NOT_COMPARABLE)
    if not isinstance(document, dict):
        return None
    return {
        column.name: _comparable(document.get(column.name), column.type)
        for column in columns
        if _TOLD.fullmatch(column.type)
    }


def _comparable(meant: Any, kind: str) -> Any:
    """A JSON value as a value of this column type; `_NOT_COMPARABLE` if it is a value of another type."""
    if isinstance(meant, Decimal):
        return _number(meant, kind)
    same = (
        meant is None
        or (isinstance(meant, bool) and kind == "BOOLEAN")
        or (isinstance(meant, str) and kind == "STRING")
    )
    return meant if same else _NOT_COMPARABLE


def _number(meant: Decimal, kind: str) -> Any:
    scale = _DECIMAL.fullmatch(kind)
    if scale is not None:
        return meant.quantize(Decimal(1).scaleb(-int(scale[1])), rounding=ROUND_HALF_UP, context=_EXACT)
    if kind in _WHOLE and meant.as_tuple().exponent == 0:
        return int(meant)
    return float(meant) if kind == "DOUBLE" else _NOT_COMPARABLE
