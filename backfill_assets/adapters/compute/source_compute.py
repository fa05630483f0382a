"""Carries out a plan's reads with Spark and stages the rows: Kafka ranges and bronze ranges in, Parquet files out.

It uses only what Spark Connect supports. Counts come from Spark's own observation of the write, so nothing is read
twice.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from backfill_assets.adapters.compute.changes import batch, empty_batch, signed, view_columns
from backfill_assets.adapters.compute.maintained_groups import maintained_groups
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.poison import Work, computed
from backfill_assets.adapters.compute.poison_search import poison_records
from backfill_assets.adapters.compute.scans import Count, Inputs, Scans, uncounted
from backfill_assets.adapters.compute.selectable_rows import Part, ViewFinder
from backfill_assets.adapters.compute.staged_rows import StagingFolder, Tasks, write_changes, write_rows
from backfill_assets.adapters.compute.tasks import tasks_for
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.offset_ranges import among, within
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import scan_of, scan_of_version, total_rows
from backfill_assets.core.epoch.records import Plan, Staged
from backfill_assets.core.epoch.skips import Offsets, left_out_of
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.bronze_files import BronzeFile, files_of_ranges
from backfill_assets.core.progress.positions import total
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead, Read
from backfill_assets.errors import QueryError, UpstreamChangedError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column, ddl
from backfill_assets.query.fragments import placed
from backfill_assets.query.query import Query
from backfill_assets.query.record_columns import OFFSET, PARTITION, RECORD_KEY
from backfill_assets.query.working_columns import OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SourceReader", "SparkCompute", "bronze_files", "bronze_inputs", "query_schema"]

_STATED_OF_FILES = ("path", "num_records", *(f"{bound}.{name}" for name in RECORD_KEY for bound in ("min", "max")))

_STORABLE = re.compile(
    r"boolean|byte|short|integer|long|float|double|decimal\(\d+,\d+\)|date|timestamp|timestamp_ntz|string|binary"
)


@dataclass(frozen=True, kw_only=True)
class SourceReader:
    """How the records of one source are read: from Kafka with these options, or from its bronze table."""

    name: str
    columns: tuple[Column, ...]
    bronze_columns: tuple[Column, ...]
    record_format: str
    kafka_options: Callable[[], Mapping[str, str]]
    bronze: TableLocation


@dataclass(frozen=True, kw_only=True)
class SparkCompute:
    """`ports.Compute` with Spark: without a query the rows are bronze rows, with a query they are the view's."""

    runner: SparkRunner
    output: TableLocation
    sources: Mapping[str, SourceReader]
    query: Query | None = None

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        """Compute the plan's rows into a folder of this attempt alone.

        For a source, `rows_read` is the number of records at its offsets; for a view, whose query may drop records in
        the same pass, it is the number of offsets.

        Errors: `PoisonRowError` where records cannot be computed; `ReadMismatchError` where Spark did not read what there is;
        else `ComputeError`.
        """
        name = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
        folder = StagingFolder(table=self.output, name=name, reach=self.runner.reach)
        counts = computed(
            self.runner,
            Work.of(plan),
            lambda spark: self._compute(spark, plan, folder, at),
            lambda spark: poison_records(
                self.query, plan, self._inputs(spark, plan, Scans(plan=plan)), view_columns(self.output)
            ),
        )
        updated = counts.get("update", 0)
        return Staged(
            files=folder.files(),
            rows_read=counts["insert"] if self.query is None else plan.offsets,
            rows_bad=counts.get("bad", 0),
            rows_written=counts["insert"] + updated,
            rows_updated=updated,
            key=() if self.query is None else self.query.key_columns,
        )

    def _compute(self, spark: "SparkSession", plan: Plan, folder: StagingFolder, at: int) -> dict[str, int]:
        """Stage what a plan reads, if it was read as it is."""
        scans = Scans(plan=plan)
        with scans.checked():
            return self._write(spark, plan, folder, at, scans)

    def _write(self, spark: "SparkSession", plan: Plan, folder: StagingFolder, at: int, scans: Scans) -> dict[str, int]:
        tasks = Tasks(tasks_for(spark, plan.offsets))
        inputs = self._inputs(spark, plan, scans)
        match self.query:
            case None:
                (rows,) = inputs.values()
                counts = {"insert": "count(1)", "bad": "count(_error)"}
                return write_rows(rows, folder, counts, tasks=tasks, scans=scans)
            case AggregateQuery() as query:
                count = replace(scans, every_value=True).by(partial(scan_of_version, plan.target, at))
                view = ViewFinder(spark=spark, table=self.output.at(at), files=FoundRows(self.output))
                held = view.selectable(lambda: rows_at(spark, self.output, at, count), count)
                changes = Part(signed(query, inputs[query.upstreams[0]], "1"), few=False)
                with maintained_groups(query, changes, held, rows=plan.offsets) as groups:
                    chosen = groups.selectExpr(*view_columns(self.output), OPERATION)
                    return write_changes(chosen, folder, tasks=tasks, scans=scans)
            case query:
                rows = batch(query, inputs).selectExpr(*view_columns(self.output))
                return write_rows(rows, folder, {"insert": "count(1)"}, tasks=tasks, scans=scans)

    def _inputs(self, spark: "SparkSession", plan: Plan, scans: Scans) -> Inputs:
        return bronze_inputs(spark, plan.reads, self.sources, left_out_of(plan.after), scans)


def bronze_inputs(
    spark: "SparkSession",
    reads: tuple[Read, ...],
    sources: Mapping[str, SourceReader],
    left_out: Mapping[str, Offsets] = MappingProxyType({}),
    scans: Scans | None = None,
) -> Inputs:
    """The bronze rows that belong to reads, by source, without those that are left out."""

    def rows(name: str) -> "DataFrame":
        parts = [read_rows(spark, read, sources[name], scans) for read in reads if read.source == name]
        every = reduce(lambda some, more: some.unionByName(more), parts)
        return every.where(f"NOT {among('_partition', '_offset', left_out[name])}") if name in left_out else every

    return Inputs(dict.fromkeys(read.source for read in reads), rows)


def read_rows(spark: "SparkSession", read: Read, source: SourceReader, scans: Scans | None = None) -> "DataFrame":
    """The bronze rows that a read names, wherever they are; `scans` counts those that are read."""
    match read:
        case KafkaRead():
            return kafka_rows(spark, read, source, uncounted if scans is None else scans.by(partial(scan_of, read)))
        case BronzeRead():
            return bronze_rows(spark, read, source, uncounted if scans is None else scans.by(partial(scan_of, read)))
        case _:
            raise AssertionError(f"a source has no {read.kind}")


def kafka_rows(spark: "SparkSession", read: KafkaRead, source: SourceReader, count: Count = uncounted) -> "DataFrame":
    """Exactly these offsets of a topic, parsed. Aborted and control records are passed over by the reader."""
    from backfill_assets.adapters.sql.kafka_records import parse_records

    ranges = {str(partition): each for partition, each in read.ranges.items() if len(each)}
    rows = (
        spark.read
        .format("kafka")
        .options(**source.kafka_options())
        .option("assign", json.dumps({read.topic: [int(partition) for partition in ranges]}))
        .option(
            "startingOffsets", json.dumps({read.topic: {partition: each.start for partition, each in ranges.items()}})
        )
        .option("endingOffsets", json.dumps({read.topic: {partition: each.end for partition, each in ranges.items()}}))
        .option("kafka.isolation.level", read.isolation)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("minPartitions", str(tasks_for(spark, total(ranges.values()))))
        .load()
    )
    counted = count(rows, lambda: total(read.ranges.values()))
    return parse_records(counted, columns=source.columns, record_format=source.record_format)


def bronze_rows(spark: "SparkSession", read: BronzeRead, source: SourceReader, count: Count = uncounted) -> "DataFrame":
    """Exactly these offsets of a bronze table, from just the files that may hold them."""
    schema = ddl(source.bronze_columns)
    files = bronze_files(source, read)
    if not files:
        return no_rows(spark, schema)
    rows = parquet_files(spark, (source.bronze.child(each.path) for each in files), schema)
    return count(rows, lambda: total_rows(each.rows for each in files)).where(within(*RECORD_KEY, read.ranges))


def bronze_files(source: SourceReader, read: BronzeRead) -> list[BronzeFile]:
    """The data files of a bronze version whose statistics overlap the ranges.

    Rows stay in bronze as long as that life, so any version from the planned one on gives the same rows.
    """
    table = source.bronze.last()
    if table is None or table.version() < read.version:
        table = source.bronze.load()
    if table is None or table.version() < read.version:
        raise UpstreamChangedError(
            f"source {source.name!r}: expected its table at version {read.version} or later, found "
            f"{'none' if table is None else table.version()}",
            hint="the warehouse is an older copy or was moved; restore the source's table, or reset the source and its views",
        )
    stated = pa.table(table.get_add_actions(flatten=True))
    statistics = stated.select([name for name in _STATED_OF_FILES if name in stated.column_names]).to_pylist()
    files = [
        BronzeFile(
            path=each["path"],
            partitions=_bounds(each, PARTITION),
            offsets=_bounds(each, OFFSET),
            rows=each.get("num_records"),
        )
        for each in statistics
    ]
    return files_of_ranges(files, read.ranges)


def _bounds(file: Mapping[str, Any], column: str) -> tuple[int, int] | None:
    """The least and the greatest value of a column in a file; None if it has no statistics of the column."""
    low, high = file.get(f"min.{column}"), file.get(f"max.{column}")
    return None if low is None or high is None else (low, high)


def query_schema(runner: SparkRunner, query: Query, columns: Mapping[str, Sequence[Column]], written: str) -> str:
    """The Delta schema, as JSON, of a query's rows over upstreams with these columns. Errors: `QueryError`, with the place in
    the text as its author has `written` it."""
    try:
        return _storable(runner.run(lambda spark: str(empty_batch(spark, query, columns).schema.json())))
    except QueryError as error:
        raise placed(error, written) from error


def columns_schema(runner: SparkRunner, columns: tuple[Column, ...]) -> str:
    """The Delta schema, as JSON, of declared columns."""
    return _storable(runner.run(lambda spark: str(spark.createDataFrame([], ddl(columns)).schema.json())))


def _storable(schema: str) -> str:
    """A schema with all columns nullable, after checking that Delta supports its types."""
    fields = json.loads(schema)["fields"]
    for each in fields:
        wrong = next((kind for kind in _simple_types(each["type"]) if not _STORABLE.fullmatch(kind)), None)
        if wrong is not None:
            raise QueryError(
                f"column {each['name']!r} has type {wrong}, which Delta does not support",
                reason="TYPE",
                hint=f"cast it, for example CAST({each['name']} AS STRING)",
            )
    nullable: dict[str, Any] = {"type": "struct", "fields": [{**each, "nullable": True} for each in fields]}
    return json.dumps(nullable)


def _simple_types(kind: Any) -> Iterator[str]:
    """The primitive types in a type, as Spark writes it in JSON."""
    match kind:
        case str():
            yield kind
        case {"type": "struct", "fields": fields}:
            for each in fields:
                yield from _simple_types(each["type"])
        case {"type": "array", "elementType": element}:
            yield from _simple_types(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            yield from _simple_types(key)
            yield from _simple_types(value)
        case _:
            yield str(kind)
