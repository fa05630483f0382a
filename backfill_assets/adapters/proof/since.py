"""Proof of what was written to a view since a check passed, against the query over what was read since.

As multisets, the rows that were added to the view equal those that were removed from it plus the query over the changes. So
rows that nobody touched need not be read. The result assumes that they are unchanged; only the full proof checks that.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import DuplicateKey, duplicate_keys, kept, signed, view_columns
from backfill_assets.adapters.compute.netted_changes import IS_INSERT
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.source_compute import bronze_inputs
from backfill_assets.adapters.compute.table_rows import Scratch, rows_done, table_rows
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.staging import INPUTS, delete_folder
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.proof.rows import (
    EXPECTED,
    FOUND,
    MAX_VIOLATIONS_SHOWN,
    Derived,
    Difference,
    balanced,
    compared,
)
from backfill_assets.adapters.proof.written import Written, file_rows
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, size_of
from backfill_assets.core.proof_scope import Since
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import ddl, quoted
from backfill_assets.query.query import Query, input_columns
from backfill_assets.query.rowwise import CARRIED_CHANGE, CHANGE, RowwiseQuery
from backfill_assets.query.working_columns import OPERATION, SIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NOTHING", "OfTables", "duplicate_keys_since", "records_since", "tables_since"]

NOTHING = Difference(rows_expected=0, rows_found=0, missing=0, unexpected=0, violations=[])
"""The result of a comparison if nothing was written and nothing was read."""


@dataclass(frozen=True, kw_only=True)
class _Changes:
    """Rows with `__sign` by which groups are updated, at `most` this many; `whole` returns all present rows."""

    rows: "DataFrame"
    most: int
    whole: "Callable[[], DataFrame] | None" = None


@dataclass(frozen=True, kw_only=True)
class OfTables:
    """What a view over tables has read since: these reads, of these tables, up to this position."""

    since: Since
    tables: Mapping[str, DeltaUpstream]
    position: SnapshotPosition


def tables_since(runner: SparkRunner, query: Query, read: OfTables, written: Written) -> Difference:
    """Compare what was written to a view over tables with its query over what was read of them."""
    if written.nothing and not read.since.reads:
        return NOTHING

    def compare(spark: "SparkSession") -> Difference:
        inside = f"{INPUTS}/{uuid.uuid4().hex}"  # another check may be running on the same view
        place = Scratch(table=written.table, path=inside)
        inputs = _inputs(spark, query, read, place)
        try:
            if isinstance(query, AggregateQuery):
                return _groups(spark, query, _changes(spark, query, read, inputs, place), written)
            assert isinstance(query, RowwiseQuery)
            return _rows(spark, query, inputs, written)
        finally:
            delete_folder(written.table, inside)

    return runner.run(compare)


def records_since(
    runner: SparkRunner, query: AggregateQuery, derived: Derived, written: Written, *, most: int
) -> Difference:
    """Compare the groups of a view over topics that were written, or that records read since (at `most` this many) belong
    to, with the former groups updated by these records."""
    if written.nothing and not derived.reads:
        return NOTHING

    def compare(spark: "SparkSession") -> Difference:
        source = derived.sources[query.upstreams[0]]
        inputs = bronze_inputs(spark, derived.reads, derived.sources, derived.left_out)
        records = inputs.get(source.name)
        if records is None:
            records = no_rows(spark, ddl(source.bronze_columns))
        return _groups(spark, query, _Changes(rows=signed(query, records, "1"), most=most), written)

    return runner.run(compare)


def duplicate_keys_since(
    runner: SparkRunner, written: Written, key: Sequence[str], *, branch: str = ""
) -> list[DuplicateKey]:
    """The first written keys that more than one row of the table has, with the parts of UNION ALL that have them."""
    if not written.came:
        return []

    def find(spark: "SparkSession") -> list[DuplicateKey]:
        from backfill_assets.adapters.sql.semi_join import semi_join

        new = file_rows(spark, written, written.came).select(*map(quoted, key))
        held = rows_at(spark, written.table, written.now)
        same = semi_join(held, new, {name: name for name in key}, few=touched_fit(new, most=written.rows))
        return duplicate_keys(same, key, branch=branch, most=MAX_VIOLATIONS_SHOWN)

    return runner.run(find)


def _inputs(spark: "SparkSession", query: Query, read: OfTables, place: Scratch) -> "dict[str, DataFrame]":
    """The rows of the reads, by table, each with what happened to it."""
    columns = input_columns(query)
    found: dict[str, list[DataFrame]] = {}
    for number, each in enumerate(read.since.reads):
        inside = Scratch(table=place.table, path=f"{place.path}/{number}")
        rows = table_rows(spark, read.tables[each.source], each, columns[each.source], inside)
        found.setdefault(each.source, []).append(rows)
    return {name: reduce(lambda some, more: some.unionByName(more), rows) for name, rows in found.items()}


def _rows(
    spark: "SparkSession", query: RowwiseQuery, inputs: "Mapping[str, DataFrame]", written: Written
) -> Difference:
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_rowwise import apply_rowwise

    came, went = (file_rows(spark, written, paths) for paths in (written.came, written.went))
    sides = came.withColumn(SIDE, F.lit(FOUND)).unionAll(went.withColumn(SIDE, F.lit(EXPECTED)))
    if inputs:
        side = f"IF({CARRIED_CHANGE} {IS_INSERT}, {EXPECTED}, {FOUND}) AS {SIDE}"
        sides = sides.unionAll(apply_rowwise(query, inputs).selectExpr(*view_columns(written.table), side))
    return balanced(sides, first=query.key_columns or query.output_columns[:1])


def _changes(
    spark: "SparkSession", query: AggregateQuery, read: OfTables, inputs: "Mapping[str, DataFrame]", place: Scratch
) -> _Changes:
    (name,) = query.upstreams
    upstream, position = read.tables[name], read.position.tables[name]
    rows = inputs[name] if name in inputs else no_rows(spark, ddl((*query.columns, CHANGE)))
    follows = any(isinstance(each, ChangesRead) for each in read.since.reads)
    return _Changes(
        rows=signed(query, rows, f"IF({CHANGE.name} {IS_INSERT}, 1, -1)"),
        most=sum(map(size_of, read.since.reads)),
        whole=(lambda: rows_done(spark, upstream, position, query.columns, place)) if follows else None,
    )


def _groups(spark: "SparkSession", query: AggregateQuery, changes: _Changes, written: Written) -> Difference:
    """Compare all groups of the view that are in added or removed files, or that changes touch."""
    from backfill_assets.adapters.sql.apply_aggregate import Reach, groups_of_rows, maintained
    from backfill_assets.adapters.sql.semi_join import semi_join

    key = {name: name for name in query.key_columns}
    now, before = (rows_at(spark, written.table, version) for version in (written.now, written.before))
    files = file_rows(spark, written, (*written.came, *written.went)).select(*map(quoted, key))
    with kept(changes.rows) as rows:
        groups = groups_of_rows(query, rows).toDF(*key)
        touched = files.unionAll(groups)
        few = touched_fit(touched, most=changes.most + written.rows)
        reach = Reach.FEW_GROUPS if few else Reach.MANY_GROUPS
        made = maintained(query, rows, before, changes.whole, reach=reach).where(f"{OPERATION} <> 'delete'")
        untouched = semi_join(semi_join(before, files, key, few=few), groups, key, few=few, how="left_anti")
        expected = made.selectExpr(*view_columns(written.table)).unionAll(untouched.select(*map(quoted, now.columns)))
        return compared(semi_join(now, touched, key, few=few), expected, first=query.key_columns, rounded=True)
