"""The rows of a Delta table that a view stands for at one of its positions: those that have been read, except rows with
keys that the position leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.table_rows import Scratch, rows_done, table_rows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.sql.keys import among_keys
from backfill_assets.core.progress.positions import OffsetRange, TablePosition
from backfill_assets.core.progress.reads import SnapshotRead
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query, input_columns
from backfill_assets.query.rowwise import RowwiseQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Recorded", "all_pinned", "recorded", "recorded_rows", "with_key"]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The part of a table that a view stands for at a position: the rows that have been read, or the files of its
    snapshot."""

    upstream: DeltaUpstream
    position: TablePosition
    files: SnapshotRead | None = None


def recorded(upstream: DeltaUpstream, table: TablePosition) -> Recorded:
    """What a position in a table means."""
    kept = table.spool is not None and table.version == table.pinned and bool(table.buckets)
    if not (kept or table.reads_pinned):
        return Recorded(upstream=upstream, position=table)
    files = SnapshotRead(
        source=upstream.name,
        table_id=table.table_id,
        version=table.pinned,
        buckets=len(table.buckets),
        ranges={at: OffsetRange(start=0, end=bucket.next) for at, bucket in table.buckets.items()},
        rows=table.rows,
    )
    return Recorded(upstream=upstream, position=table, files=files)


def all_pinned(each: Recorded) -> Recorded:
    """All rows of the pinned version of a table, however many have been read."""
    return Recorded(upstream=each.upstream, position=each.position.model_copy(update={"buckets": {}}))


def with_key(query: Query, upstream: DeltaUpstream) -> tuple[Column, ...]:
    """The columns of an upstream over which a query is analyzed, and those of its key, by which rows are left out."""
    columns = input_columns(query)[upstream.name]
    if isinstance(query, RowwiseQuery):
        return columns  # a row-wise query keeps the key
    missing = set(upstream.key()) - {column.name for column in columns}
    return (*columns, *(column for column in upstream.columns() if column.name in missing)) if missing else columns


def recorded_rows(
    spark: "SparkSession",
    each: Recorded,
    columns: Sequence[Column],
    place: Scratch,
    *,
    skipped: bool = False,
) -> "DataFrame":
    """These columns of the rows, with the key if any keys are left out; with `skipped`, also rows whose keys are left
    out."""
    if each.files is None:
        rows = rows_done(spark, each.upstream, each.position, columns, place)
    else:
        rows = table_rows(spark, each.upstream, each.files, columns, place)
    left_out = each.position.skipped
    return rows if skipped or not left_out else rows.where(f"NOT {among_keys(columns, left_out)}")
