"""Proof of views over Delta tables: the query computed in batch at the recorded position, against the view's rows."""

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import DuplicateKey, batch, duplicate_keys
from backfill_assets.adapters.compute.recorded_rows import Recorded, recorded, recorded_rows, with_key
from backfill_assets.adapters.compute.table_rows import Scratch
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.staging import INPUTS, delete_folder
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.proof.rows import MAX_VIOLATIONS_SHOWN, Difference, compared
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.query.ddl import quoted
from backfill_assets.query.query import Query
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["at_position", "find_duplicate_keys", "recomputed", "view_difference"]


def at_position(position: SnapshotPosition, tables: Mapping[str, DeltaUpstream]) -> dict[str, Recorded]:
    """The meaning of the recorded position for each table.

    Errors: `VersionsLostError` if a version is no longer in the table's log, or its files are gone.
    """
    found = {name: recorded(tables[name], table) for name, table in position.tables.items()}
    for name, each in found.items():
        if each.files is None:
            tables[name].check_whole(each.position.version)
        else:
            tables[name].check_readable(each.files)
    return found


def recomputed(
    runner: SparkRunner, query: Query, inputs: Mapping[str, Recorded], view: TableLocation, version: int
) -> Difference:
    """Compare the view at a version with its query over the recorded inputs."""

    def compare(spark: "SparkSession") -> Difference:
        inside = f"{INPUTS}/{uuid.uuid4().hex}"  # another check may be running on the same view
        rows = {
            name: recorded_rows(
                spark, each, with_key(query, each.upstream), Scratch(table=view, path=f"{inside}/{name}")
            )
            for name, each in inputs.items()
        }
        try:
            return view_difference(query, rows_at(spark, view, version), rows)
        finally:
            delete_folder(view, inside)

    return runner.run(compare)


def view_difference(query: Query, found: "DataFrame", inputs: "Mapping[str, DataFrame]") -> Difference:
    """Compare a view's rows, hidden columns too, with its query. Groups that are kept by a rule are also compared with what
    the user's own text gives."""
    if isinstance(query, RelationalQuery):  # the hash of a row is of its floats' last digits, too
        found = found.drop(ROW_HASH, COPY)
    first = [name for name in query.key_columns if name in found.columns] or found.columns[:1]
    rounded = not isinstance(query, RowwiseQuery)
    if isinstance(query, RelationalQuery) and query.grouped is not None:
        from backfill_assets.adapters.sql.apply_relational import own_rows

        written = own_rows(query, inputs)
        visible = [name for name in first if name in written.columns] or written.columns[:1]
        different = compared(found.select(*map(quoted, written.columns)), written, first=visible, rounded=rounded)
        if different.missing or different.unexpected:
            return different
    return compared(found, batch(query, inputs), first=first, rounded=rounded)


def find_duplicate_keys(
    runner: SparkRunner, view: TableLocation, version: int, key: Sequence[str], *, branch: str = ""
) -> list[DuplicateKey]:
    """The first keys that more than one row of the view has, with the parts of UNION ALL that have them."""
    return runner.run(
        lambda spark: duplicate_keys(rows_at(spark, view, version), key, branch=branch, most=MAX_VIOLATIONS_SHOWN)
    )
