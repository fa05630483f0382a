"""Lays out rows of a view, for its first build and where all of it is written: sorted by its key, over files of a bounded
size. Rows that change together are then in few files, and readers who ask for some values of the key open few.

So an epoch writes again what it touches, and not what the view holds. Spark's own order is that of hashes after a shuffle,
in which a thousand neighbours are in all files.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.compute.staged_rows import write_by_spark
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.layout import clustering_columns
from backfill_assets.adapters.delta.staging import collect
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import total_rows
from backfill_assets.core.epoch.merge_groups import ROWS_OF_FILE
from backfill_assets.core.epoch.records import StagedFile
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Counted", "LaidOut", "counted", "laid_out", "laid_out_again", "over_files"]


class Counted(NamedTuple):
    """Rows that Spark keeps, and how many files they make."""

    rows: "DataFrame"
    files: int


class LaidOut(NamedTuple):
    """Rows in the order in which they are written, and how many tasks write them, each a file."""

    rows: "DataFrame"
    tasks: int


@contextmanager
def counted(rows: "DataFrame", scans: Scans) -> "Iterator[Counted]":
    """Rows that are computed once, from `scans`, and cached meanwhile."""
    from pyspark.sql import functions as F  # noqa: N812

    with kept(rows) as once:
        every = once.agg(F.count(F.lit(1)).alias("rows"))
        (found,) = every.collect()
        scans.computed(every)
        yield Counted(once, max(1, -(-int(found["rows"]) // ROWS_OF_FILE)))


@contextmanager
def laid_out(
    rows: "DataFrame", view: TableLocation, key: Sequence[str], scans: Scans, *, before: Sequence[str] = ()
) -> "Iterator[LaidOut | None]":
    """Rows of a view by the columns of its key that have bounds, and before these by some that are not its own; None where
    the key has no such column."""
    columns = clustering_columns(view.last(), key)
    if not columns:
        yield None
        return
    with counted(rows, scans) as (once, files):
        yield LaidOut(over_files(once, files, columns).sortWithinPartitions(*map(quoted, (*before, *columns))), files)


def over_files(rows: "DataFrame", files: int, columns: Sequence[str]) -> "DataFrame":
    """Rows in so many parts, each with its own range of the values of some columns."""
    return rows.repartitionByRange(files, *map(quoted, columns)) if files > 1 else rows.coalesce(1)


def laid_out_again(
    runner: SparkRunner, location: TableLocation, table: DeltaTable, key: Sequence[str], folder: str
) -> tuple[StagedFile, ...]:
    """The rows of a loaded version of a view, in files that are sorted by columns of its key; in a folder of its own."""
    return runner.run(lambda spark: _again(spark, location, table, key, folder))


def _again(
    spark: "SparkSession", location: TableLocation, table: DeltaTable, key: Sequence[str], folder: str
) -> tuple[StagedFile, ...]:
    rows = total_rows(pa.table(table.get_add_actions()).column("num_records").to_pylist()) or 0
    files = max(1, -(-rows // ROWS_OF_FILE))
    every = over_files(rows_at(spark, location, table.version()), files, key).sortWithinPartitions(*map(quoted, key))
    write_by_spark(every, location.child(folder), {"rows": "count(1)"}, tasks=files)
    return collect(location, folder)
