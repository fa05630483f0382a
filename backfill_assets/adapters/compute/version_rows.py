"""All rows of one version of a Delta table, as a Spark DataFrame.

Delta's reader computes the state of a version in Spark jobs before it reads a row, which takes longer than reading a
small table. So Spark gets the files of a small table directly, if they alone define its rows.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.scans import Count, uncounted
from backfill_assets.adapters.delta.log_replay import is_plain_path
from backfill_assets.adapters.delta.plain_tables import has_vectors, holds_rows_as_they_are
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import total_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FEW_OBJECTS",
    "delta_rows_at",
    "loaded_at",
    "rows_at",
    "small_and_plain",
    "stated_rows",
]

SMALL_FILES, SMALL_BYTES = 32, 64 * 2**20
"""A table with no more files and bytes than this is read by its files. Up to this number of paths, Spark lists them
without a job."""
FEW_OBJECTS = 12
"""Spark looks for each file of an object store by two requests, one file after the other. To read a log takes it no longer
than to look for this number of files."""


class Files(NamedTuple):
    """The schema of a version, as JSON, and the addresses of its files."""

    schema: str
    paths: list[str]


def rows_at(spark: "SparkSession", table: TableLocation, version: int, count: Count = uncounted) -> "DataFrame":
    """All rows of a version of a table, which `count` may count."""
    loaded = loaded_at(table, version)
    files = small_and_plain(table, loaded)
    rows = delta_rows_at(spark, table, version) if files is None else _rows_of(spark, files)
    return count(rows, lambda: stated_rows(loaded))


def delta_rows_at(spark: "SparkSession", table: TableLocation, version: int) -> "DataFrame":
    """All rows of a version of a table, with Delta's reader: it opens only the files that a filter leaves."""
    return spark.read.format("delta").option("versionAsOf", version).load(table.uri)


def loaded_at(location: TableLocation, version: int) -> DeltaTable | None:
    """A version of a table as delta-rs loads it; None where it cannot."""
    try:
        return location.at(version)
    except DeltaError:
        return None


def stated_rows(table: DeltaTable | None) -> int | None:
    """How many rows a version has, as its log says; None if it does not say, or if rows may be deleted inside of files."""
    if table is None or has_vectors(table):
        return None
    return total_rows(pa.table(table.get_add_actions()).column("num_records").to_pylist())


def small_and_plain(location: TableLocation, table: DeltaTable | None) -> Files | None:
    """The files of a version; None where they are many or large, or do not hold all columns and just the rows as they are."""
    if table is None or not holds_rows_as_they_are(table):
        return None
    files = pa.table(table.get_add_actions()).select(["path", "size_bytes"]).to_pydict()
    paths = files["path"]
    few = len(paths) <= (SMALL_FILES if location.is_local else FEW_OBJECTS) and sum(files["size_bytes"]) <= SMALL_BYTES
    if not few or not all(map(is_plain_path, paths)):
        return None
    return Files(schema=table.schema().to_json(), paths=[location.child(path) for path in paths])


def _rows_of(spark: "SparkSession", files: Files) -> "DataFrame":
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(files.schema))
    if not files.paths:
        return no_rows(spark, schema)
    return parquet_files(spark, files.paths, schema)
