"""A bronze table of ten thousand partitions: the results of reading ranges of it, and the expected ones."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.adapters.compute.source_compute import SourceReader, bronze_rows
from backfill_assets.adapters.proof.rows import Derived, Proof, difference
from backfill_assets.adapters.spark.resource import SparkResource, SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import BronzeRead
from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.query.ddl import parse_schema

__all__ = ["make_bronze", "results", "results_without_broadcasts", "wanted"]

PARTITIONS, OFFSETS = 10_000, 8
SOME = {
    partition: OffsetRange(start=partition % 3, end=partition % 3 + partition % 5)
    for partition in range(5, PARTITIONS)
    if partition % 7 != 0
}
"""Ranges of most partitions, a fifth of them empty."""
PROVED = {partition: OffsetRange(start=0, end=partition % (OFFSETS + 1)) for partition in range(PARTITIONS)}
LEFT = {partition: OffsetRange(start=each.end, end=OFFSETS) for partition, each in PROVED.items()}


def make_bronze(folder: Path) -> None:
    """The table: each file has an offset of every partition; `id` is the partition's parity."""
    columns = parse_schema("id LONG")
    for offset in range(OFFSETS):
        rows = [{"_partition": partition, "_offset": offset, "id": partition % 2} for partition in range(PARTITIONS)]
        types = {"_partition": pa.int32(), "_offset": pa.int64(), "_timestamp": pa.timestamp("us", "UTC")}
        types |= {"_key": pa.binary(), "_headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))}
        types |= {each.name: pa.int64() for each in columns} | {"_error": pa.string(), "_value": pa.binary()}
        write_deltalake(str(folder), pa.Table.from_pylist(rows, schema=pa.schema(types)), mode="append")


def wanted() -> dict[str, Any]:
    """The expected `results`, computed without Spark."""
    rows = sum(map(len, LEFT.values()))
    return {
        "read": [[partition, offset] for partition, each in SOME.items() for offset in range(each.start, each.end)],
        "compared": [rows, rows, 0, 0],
        "compared to less": [rows - 1, rows, 0, 1],
    }


def results_without_broadcasts(folder: str) -> dict[str, Any]:
    """`results` with the Spark of this process, in which the user has disabled broadcasts."""
    runner = SparkResource(config={"spark.sql.autoBroadcastJoinThreshold": "-1"}).runner(Warehouse(uri="/"))
    found = results(runner, Path(folder))
    runner.close()
    return found


def results(runner: SparkRunner, folder: Path) -> dict[str, Any]:
    """The part of the table that is read, and the part that checks compare if the rest was proved before."""
    table = TableLocation(uri=str(folder))
    schema = parse_schema("id LONG")
    source = SourceReader(
        name="wide",
        columns=schema,
        bronze_columns=(*METADATA_COLUMNS, *schema, *ERROR_COLUMNS),
        record_format="json",
        kafka_options=dict,
        bronze=table,
    )

    def read(ranges: dict[int, OffsetRange]) -> BronzeRead:
        return BronzeRead(source="wide", incarnation="a" * 12, version=0, ranges=ranges)

    def compared(ranges: dict[int, OffsetRange]) -> list[int]:
        derived = Derived(reads=(read(ranges),), sources={"wide": source}, query=None)
        found = difference(runner, derived, proof)
        return [found.rows_expected, found.rows_found, found.missing, found.unexpected]

    version = OFFSETS - 1
    proof = Proof(
        table=table, version=version, partition_column="_partition", offset_column="_offset", left_out={0: PROVED}
    )
    rows = runner.run(
        lambda spark: bronze_rows(spark, read(SOME), source).select("_partition", "_offset").collect(),
    )
    return {
        "read": sorted(map(list, rows)),
        "compared": compared(LEFT),
        "compared to less": compared({**LEFT, 1: OffsetRange(start=LEFT[1].start, end=OFFSETS - 1)}),
    }
