"""Writes rows that this process holds as a Parquet file of a table, with one request.

The file is as Spark and delta-rs write them here: no statistics of floats, whose bounds ignore NaN; checksums of pages; and
the statistics for the log are those of the rows themselves.
"""

import json
import time
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.arrow_types import columns_of_arrow
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import restated
from backfill_assets.core.epoch.records import StagedFile

__all__ = ["put_rows"]


def put_rows(location: TableLocation, path: str, rows: pa.Table) -> StagedFile:
    """Write rows as one file, and describe it.

    Args:
        location: The table.
        path: Where to write the file, relative to the table.
        rows: The rows; all columns may be null in the file.

    Returns:
        The file with its rows, columns and statistics, as `staging.collect` describes a file of Spark.
    """
    nullable = pa.schema([each.with_nullable(True) for each in rows.schema])
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows.cast(nullable),
        sink,
        compression="snappy",
        store_decimal_as_integer=True,
        store_schema=False,
        write_page_checksum=True,
        write_statistics=[each.name for each in nullable if _has_exact_bounds(each.type)],
    )
    content = sink.getvalue()
    location.objects().put(path, content.to_pybytes())
    footer = pq.read_metadata(pa.BufferReader(content))
    return StagedFile(
        path=path,
        size=content.size,
        rows=footer.num_rows,
        modified_ms=int(time.time() * 1000),
        stats=json.dumps(_statistics(rows)),
        columns=columns_of_arrow(footer.schema.to_arrow_schema()),
    )


def _has_exact_bounds(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """The number of rows and, for whole numbers, dates and strings, their null counts and bounds, in Delta's format."""
    kinds = {each.name: kind for each in rows.schema if (kind := _kind(each.type))}
    bounds = {name: _bounds(rows.column(name)) for name in kinds}
    found = {
        "numRecords": rows.num_rows,
        "minValues": {name: low for name, (low, _) in bounds.items() if low is not None},
        "maxValues": {name: high for name, (_, high) in bounds.items() if high is not None},
        "nullCount": {name: rows.column(name).null_count for name in kinds},
    }
    return restated(found, kinds)


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
