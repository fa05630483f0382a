"""Writes rows that this process holds as a Parquet file of a table, with one request.

The file is as Spark and delta-rs write them here: no statistics of floats, whose bounds ignore NaN; checksums of pages; and
the statistics for the log are those of the rows themselves.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.arrow_types import columns_of_arrow, widest
from backfill_assets.adapters.delta.commits import log_text
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import restated
from backfill_assets.core.epoch.records import StagedFile

__all__ = ["FileWriter", "put_rows"]

_GROUP_ROWS = 2**17
"""Rows are collected until there are so many, as readers open each group of rows by itself."""


def put_rows(location: TableLocation, path: str, rows: pa.Table) -> StagedFile:
    """Write rows as one file, and describe it.

    Args:
        location: The table.
        path: Where to write the file, relative to the table.
        rows: The rows; all columns may be null in the file.

    Returns:
        The file with its rows, columns and statistics, as `staging.collect` describes a file of Spark.
    """
    writer = FileWriter(location, path, rows.schema)
    writer.write(rows)
    return writer.close()


class FileWriter:
    """Writes one file from several tables of rows. It is in memory, as it will be stored, until it is put by `close`."""

    def __init__(self, location: TableLocation, path: str, schema: pa.Schema) -> None:
        self._location, self._path = location, path
        self._schema = widest(schema)
        self._sink = pa.BufferOutputStream()
        self._parts: list[dict[str, Any]] = []
        self._waiting: list[pa.Table] = []
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression="snappy",
            store_decimal_as_integer=True,
            store_schema=False,
            write_page_checksum=True,
            write_statistics=[each.name for each in self._schema if _has_exact_bounds(each)],
        )

    def write(self, rows: pa.Table) -> None:
        """Add rows with the file's columns."""
        if len(rows):
            self._waiting.append(rows.cast(self._schema))
        if sum(map(len, self._waiting)) >= _GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        rows = pa.concat_tables(self._waiting)
        self._writer.write_table(rows)
        self._parts.append(_statistics(rows))
        self._waiting.clear()

    def close(self) -> StagedFile:
        """Put the file, unless it has no rows, and describe it. Errors: those of the store."""
        if self._waiting:
            self._write_group()
        self._writer.close()
        content = self._sink.getvalue()
        if self._parts:
            self._location.put_file(self._path, content.to_pybytes())
        footer = pq.read_metadata(pa.BufferReader(content))
        return StagedFile(
            path=self._path,
            size=content.size,
            rows=footer.num_rows,
            modified_ms=int(time.time() * 1000),
            stats=log_text(restated(_together(self._parts), _kinds(self._schema))),
            columns=columns_of_arrow(footer.schema.to_arrow_schema()),
        )


def _has_exact_bounds(column: pa.Field) -> bool:
    # By a name with a dot, Arrow would also choose the field of a struct, or the elements of an array.
    is_plain = not (pa.types.is_nested(column.type) or pa.types.is_floating(column.type))
    return is_plain and "." not in column.name


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """The number of rows and, for whole numbers, dates and strings, their null counts and bounds, in Delta's format."""
    kinds = _kinds(rows.schema)
    bounds = {name: _bounds(rows.column(name)) for name in kinds}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: low for name, (low, _) in bounds.items() if low is not None},
        "maxValues": {name: high for name, (_, high) in bounds.items() if high is not None},
        "nullCount": {name: rows.column(name).null_count for name in kinds},
    }


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The statistics of all parts of a file: a column has bounds if each part with values of it has."""
    rows, nulls = sum(part["numRecords"] for part in parts), Counter[str]()
    for part in parts:
        nulls.update(part["nullCount"])
    found: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": dict(nulls)}
    for name in nulls:
        having = [part for part in parts if part["nullCount"][name] < part["numRecords"]]
        if having and all(name in part["minValues"] for part in having):
            found["minValues"][name] = min(part["minValues"][name] for part in having)
            found["maxValues"][name] = max(part["maxValues"][name] for part in having)
    return found


def _kinds(schema: pa.Schema) -> dict[str, str]:
    """The columns that may have bounds, with their types as Delta names them."""
    return {each.name: kind for each in schema if (kind := _kind(each.type))}


def _kind(kind: pa.DataType) -> str:
    """The type of a column that may have bounds, as Delta names it; empty for others."""
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_date32(kind):
        return "date"
    return "string" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ""


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Minimum and maximum; None where there are no values, or Python cannot represent them (strings that are not UTF-8, years
    beyond 9999)."""
    found = pc.min_max(column)
    try:
        low, high = found["min"].as_py(), found["max"].as_py()
    except (ValueError, OverflowError):
        return None, None
    return (low.isoformat(), high.isoformat()) if isinstance(low, date) else (low, high)
