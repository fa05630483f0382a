"""Staged files: which Parquet files are in a folder, and what each of them says in its footer."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.arrow_types import columns_of_arrow
from backfill_assets.adapters.delta.commits import log_text
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import restated
from backfill_assets.core.epoch.records import StagedFile

__all__ = ["WrittenFile", "collect", "described", "found_in"]

_AT_ONCE = 16
"""So many footers are read at the same time: each takes an object store two requests."""


class WrittenFile(NamedTuple):
    """A file in a table's folder: its path there, its size in bytes, and when it was written, in milliseconds since 1970."""

    path: str
    size: int
    modified_ms: int


def found_in(location: TableLocation, folder: str) -> list[WrittenFile]:
    """The Parquet files in a folder, and in those inside it."""
    found = location.files().get_file_info(pafs.FileSelector(folder, allow_not_found=True, recursive=True))
    return [
        WrittenFile(info.path, info.size, int(info.mtime.timestamp() * 1000) if info.mtime else 0)
        for info in found
        if info.path.endswith(".parquet")
    ]


def collect(location: TableLocation, folder: str) -> tuple[StagedFile, ...]:
    """The Parquet files with rows in a staged folder, each with rows, columns and statistics from its own footer."""
    return described(location, found_in(location, folder))


def described(location: TableLocation, written: Iterable[WrittenFile]) -> tuple[StagedFile, ...]:
    """The files with rows among these, sorted by path, each with rows, columns and statistics from its own footer."""
    files = location.files()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        staged = list(pool.map(partial(_described, files), written))
    return tuple(sorted((each for each in staged if each.rows), key=lambda each: each.path))


def _described(files: pafs.FileSystem, written: WrittenFile) -> StagedFile:
    with files.open_input_file(written.path) as stream:
        footer = pq.read_metadata(stream)
    return StagedFile(
        path=written.path,
        size=written.size,
        rows=footer.num_rows,
        modified_ms=written.modified_ms,
        stats=log_text(_statistics(footer)),
        columns=columns_of_arrow(footer.schema.to_arrow_schema()),
    )


def _statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """The number of rows and, for whole numbers, dates and strings, their null counts and bounds, in Delta's format."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    kinds = _kinds(footer.schema.to_arrow_schema())
    for name, column in _places(footer).items():
        chunks = [footer.row_group(group).column(column) for group in range(footer.num_row_groups)]
        stats = [chunk.statistics for chunk in chunks]
        if name not in kinds or any(each is None or not each.has_null_count for each in stats):
            continue
        nulls[name] = sum(each.null_count for each in stats)
        bounded = [each for each in stats if each.has_min_max]
        bounds = _bounds(bounded)
        if bounds and len(bounded) == sum(each.num_values > 0 for each in stats):
            lows[name], highs[name] = min(bounds[::2]), max(bounds[1::2])
    found = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    return restated(found, kinds)


def _kinds(schema: pa.Schema) -> dict[str, str]:
    """The types of columns that may have bounds, as Delta names them."""
    tests = {"long": pa.types.is_integer, "date": pa.types.is_date32, "string": pa.types.is_string}
    return {field.name: kind for field in schema for kind, fits in tests.items() if fits(field.type)}


def _places(footer: pq.FileMetaData) -> dict[str, int]:
    """Columns by name, each with its index among all columns of the file, including the fields of structs."""
    paths = [footer.schema.column(column).path for column in range(footer.num_columns)]
    return {path: at for at, path in enumerate(paths) if paths.count(path) == 1}


def _bounds(bounded: list[Any]) -> list[Any]:
    """Minimum and maximum of each row group. None for values that Python cannot represent (strings that are not UTF-8,
    years beyond 9999): such a column has no bounds."""
    try:
        return [_json_value(value) for each in bounded for value in (each.min, each.max)]
    except (ValueError, OverflowError):
        return []


def _json_value(value: int | str | date) -> int | str:
    return value.isoformat() if isinstance(value, date) else value
