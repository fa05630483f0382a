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
from backfill_assets.adapters.compute.staged_rows import Tasks, bytes_of, write_by_spark
from backfill_assets.adapters.compute.value_parts import ValueParts
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import total_rows
from backfill_assets.core.epoch.merge_groups import files_for
from backfill_assets.core.epoch.records import StagedFile
from backfill_assets.query.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LaidOut", "laid_out", "laid_out_again"]


class LaidOut(NamedTuple):
    """Rows in the order in which they are written, and by which tasks."""

    rows: "DataFrame"
    tasks: Tasks


@contextmanager
def _counted(rows: "DataFrame", scans: Scans) -> "Iterator[tuple[DataFrame, int]]":
    """Rows that are computed once, from `scans`, and cached meanwhile, and how many files they make."""
    from pyspark.sql import functions as F  # noqa: N812

    with kept(rows) as once:
        every = once.agg(F.count(F.lit(1)).alias("rows"), F.expr(f"sum({bytes_of(once.dtypes)})").alias("bytes"))
        (found,) = every.collect()
        scans.computed(every)
        yield once, files_for(int(found["rows"]), int(found["bytes"] or 0))


@contextmanager
def laid_out(
    rows: "DataFrame", columns: Sequence[str], scans: Scans, parts: ValueParts | None, *, before: Sequence[str] = ()
) -> "Iterator[LaidOut]":
    """Rows of a view over files by some columns, in their order, and before that in the order of others; by known `parts`, or
    else by ranges for which they are counted and kept. Rows that are alike in the columns are in one task, unless parts are
    not `by_values`."""
    from pyspark.sql import functions as F  # noqa: N812

    order = [*map(quoted, (*before, *columns))]
    if parts is not None:
        moved = parts.number > 1 and parts.by_values
        divided = rows.repartitionById(parts.number, F.expr(parts.of_row)) if moved else rows.coalesce(parts.number)
        yield LaidOut(divided.sortWithinPartitions(*order), Tasks(parts.number, most_rows=parts.rows_of_file))
        return
    with _counted(rows, scans) as (once, files):
        yield LaidOut(_over_files(once, files, columns).sortWithinPartitions(*order), Tasks(files))


def _over_files(rows: "DataFrame", files: int, columns: Sequence[str]) -> "DataFrame":
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
    listed = pa.table(table.get_add_actions())
    rows, size = (total_rows(listed.column(name).to_pylist()) or 0 for name in ("num_records", "size_bytes"))
    files = files_for(rows, size)
    every = _over_files(rows_at(spark, location, table.version()), files, key).sortWithinPartitions(*map(quoted, key))
    return write_by_spark(every, location, folder, tasks=files)[0]
