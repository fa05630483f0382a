"""What a source's table holds of records that were read again by another Kafka client and another parser of JSON.

Spark's Kafka reader and its `from_json` make product and proof alike. Here librdkafka gives the records and Python reads
their JSON, and each record must be in the table as it is: its time, key, headers, and the values of the types whose
meaning is the same in JSON, Python and a table. Other values, and whether a record is rightly called bad, are not judged.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

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

__all__ = ["RecordRow", "otherwise", "rows_of_records", "told_by_json"]

_WHOLE = frozenset({"BIGINT", "INT", "SMALLINT", "TINYINT"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")
_TOLD = re.compile(rf"{'|'.join(sorted(_WHOLE))}|STRING|BOOLEAN|DOUBLE|{_DECIMAL.pattern}")
_EXACT = Context(prec=2_000)
_NOT_TOLD = object()


@dataclass(frozen=True, kw_only=True)
class RecordRow:
    """A record as the source's table has it; `values` are those of the columns whose types can be told."""

    timestamp_ms: int
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    error: str | None
    raw_value: bytes | None
    values: Mapping[str, Any]


def rows_of_records(
    runner: SparkRunner, source: SourceReader, version: int, ranges: Mapping[int, OffsetRange]
) -> dict[tuple[int, int], RecordRow]:
    """What a version of a source's table has at these offsets, as Spark reads it."""
    told = [column.name for column in source.columns if _TOLD.fullmatch(column.type) or source.record_format == "raw"]

    def read(spark: "SparkSession") -> list[dict[str, Any]]:
        rows = rows_at(spark, source.bronze, version).where(within(*RECORD_KEY, ranges))
        fixed = [*RECORD_KEY, "unix_millis(_timestamp) AS _ms", "_key", "_headers", ERROR, VALUE]
        found: list[dict[str, Any]] = rows.selectExpr(*fixed, *map(quoted, told)).toArrow().to_pylist()
        return found

    return {(row[PARTITION], row[OFFSET]): _record_row(row, told) for row in runner.run(read)}


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
    """Records that are not in the table as they are, each with what is wrong with it, in words."""
    for record in records:
        place = f"partition {record.partition}, offset {record.offset}"
        row = rows.get((record.partition, record.offset))
        if row is None:
            yield f"{place}: a record that another client than Spark's finds is not in the table"
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
            yield "its value is no JSON object for another parser than Spark's, but the table has it as one"
            return
        pairs |= {name: (value, row.values[name]) for name, value in meant.items() if value is not _NOT_TOLD}
    for name, (expected, found) in pairs.items():
        if expected != found:
            yield f"{name} is {expected!r} in the record, {found!r} in the table"


def _meant(value: bytes | None, columns: Sequence[Column], record_format: str) -> dict[str, Any] | None:
    """The values of a good record's columns, as far as they can be told; None where it is no JSON object."""
    if value is None:
        return None
    if record_format == "raw":
        (column,) = columns
        return {column.name: value.decode() if column.type == "STRING" else value}
    return told_by_json(value, columns)


def told_by_json(value: bytes, columns: Sequence[Column]) -> dict[str, Any] | None:
    """What Python reads in a record's JSON for columns of the types that can be told; None where it is no JSON object.

    Example:
        >>> told_by_json(b'{"id": 7, "price": 1.005}', [Column("id", "INT"), Column("price", "DECIMAL(9,2)")])
        {'id': 7, 'price': Decimal('1.01')}
    """
    try:
        document = json.loads(value.decode(), parse_float=Decimal, parse_int=_EXACT.create_decimal)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    except RecursionError:  # deeper than Python goes
        return dict.fromkeys((column.name for column in columns if _TOLD.fullmatch(column.type)), _NOT_TOLD)
    if not isinstance(document, dict):
        return None
    return {
        column.name: _told(document.get(column.name), column.type) for column in columns if _TOLD.fullmatch(column.type)
    }


def _told(meant: Any, kind: str) -> Any:
    """A value of JSON as a column of this type has it; `_NOT_TOLD` where it is of another kind than the column."""
    if isinstance(meant, Decimal):
        return _number(meant, kind)
    same = (
        meant is None
        or (isinstance(meant, bool) and kind == "BOOLEAN")
        or (isinstance(meant, str) and kind == "STRING")
    )
    return meant if same else _NOT_TOLD


def _number(meant: Decimal, kind: str) -> Any:
    scale = _DECIMAL.fullmatch(kind)
    if scale is not None:
        return meant.quantize(Decimal(1).scaleb(-int(scale[1])), rounding=ROUND_HALF_UP, context=_EXACT)
    if kind in _WHOLE and meant.as_tuple().exponent == 0:
        return int(meant)
    return float(meant) if kind == "DOUBLE" else _NOT_TOLD
