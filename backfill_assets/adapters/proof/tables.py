"""Proof of views over Delta tables: the query computed in batch at the recorded position, against the view's rows."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import DuplicateKey, batch, duplicate_keys
from backfill_assets.adapters.compute.recorded_rows import Recorded, all_pinned, recorded, recorded_rows, with_key
from backfill_assets.adapters.compute.table_rows import Scratch
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.staging import INPUTS, delete_folder
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.proof.rows import MAX_VIOLATIONS_SHOWN, Difference, compared
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.keys import in_parts
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.positions import BucketState, OffsetRange, SnapshotPosition
from backfill_assets.query.ddl import quoted
from backfill_assets.query.query import Query
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["AtPosition", "at_position", "find_duplicate_keys", "recomputed", "view_difference"]


@dataclass(frozen=True, kw_only=True)
class AtPosition:
    """What a view stands for at a position: the part of each table by name. With `driving`, only the places of the query that
    drive its history stand for these parts, and all others for the pinned versions. If a key drives it, they stand for the
    parts of its hashes in `read`."""

    tables: Mapping[str, Recorded]
    driving: Driving | None = None
    read: BucketState | None = None


def at_position(position: SnapshotPosition, tables: Mapping[str, DeltaUpstream]) -> AtPosition:
    """The meaning of the recorded position for each table.

    Errors: `VersionsLostError` if a version is no longer in the table's log, or its files are gone.
    """
    driving = None if position.backfilled else position.driving
    found = {name: recorded(tables[name], table) for name, table in position.tables.items()}
    read = None
    if driving is not None and driving.hashes:
        read = next(position.tables[name].buckets[0] for name in driving.places.values())
        found = {name: all_pinned(each) for name, each in found.items()}
    for name, each in found.items():
        if each.files is None:
            tables[name].check_whole(each.position.version)
        else:
            tables[name].check_readable(each.files)
    for name in driving.beside if driving is not None else ():
        tables[name].check_whole(position.tables[name].pinned)
    return AtPosition(tables=found, driving=driving, read=read)


def recomputed(runner: SparkRunner, query: Query, inputs: AtPosition, view: TableLocation, version: int) -> Difference:
    """Compare the view at a version with its query over the recorded inputs."""

    def compare(spark: "SparkSession") -> Difference:
        inside = f"{INPUTS}/{uuid.uuid4().hex}"  # another check may be running on the same view

        def rows_of(each: Recorded, part: str) -> "DataFrame":
            place = Scratch(table=view, path=f"{inside}/{part}/{each.upstream.name}")
            return recorded_rows(spark, each, with_key(query, each.upstream), place)

        parts = {name: rows_of(each, "read") for name, each in inputs.tables.items()}
        driving = inputs.driving
        try:
            if driving is None:
                return view_difference(query, rows_at(spark, view, version), parts)
            every = parts | {name: rows_of(all_pinned(inputs.tables[name]), "all") for name in driving.beside}
            chunks = {at: parts[name] for at, name in driving.places.items()}
            if inputs.read is not None:
                done = OffsetRange(start=0, end=inputs.read.next)
                chunks = {
                    at: rows.where(in_parts(driving.hashes[at], inputs.read.parts, done)) for at, rows in chunks.items()
                }
            return view_difference(query, rows_at(spark, view, version), every, chunks)
        finally:
            delete_folder(view, inside)

    return runner.run(compare)


def view_difference(
    query: Query,
    found: "DataFrame",
    inputs: "Mapping[str, DataFrame]",
    chunks: "Mapping[int, DataFrame] | None" = None,
) -> Difference:
    """Compare a view's rows, hidden columns too, with its query over all rows of its upstreams, by name, or only these
    `chunks` of them at some of its places. Groups that are kept by a rule, and the rows of a query with WITH, are also
    compared with what the user's own text gives."""
    if isinstance(query, RelationalQuery):  # the hash of a row is of its floats' last digits, too
        found = found.drop(ROW_HASH, COPY)
    first = [name for name in query.key_columns if name in found.columns] or found.columns[:1]
    rounded = not isinstance(query, RowwiseQuery)
    if isinstance(query, RelationalQuery) and (query.grouped is not None or (query.written is not None and not chunks)):
        from backfill_assets.adapters.sql.apply_relational import own_rows

        written = own_rows(query, inputs, chunks)
        visible = [name for name in first if name in written.columns] or written.columns[:1]
        different = compared(found.select(*map(quoted, written.columns)), written, first=visible, rounded=rounded)
        if different.missing or different.unexpected or {*found.columns} == {*written.columns}:
            return different
    return compared(found, batch(query, inputs, chunks), first=first, rounded=rounded)


def find_duplicate_keys(
    runner: SparkRunner, view: TableLocation, version: int, key: Sequence[str], *, branch: str = ""
) -> list[DuplicateKey]:
    """The first keys that more than one row of the view has, with the parts of UNION ALL that have them."""
    return runner.run(
        lambda spark: duplicate_keys(rows_at(spark, view, version), key, branch=branch, most=MAX_VIOLATIONS_SHOWN)
    )
