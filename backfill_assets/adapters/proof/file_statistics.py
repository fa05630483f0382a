"""Proof that a table's log is right about its files: the numbers of rows and nulls in each, and the bounds of its
columns.

Readers skip files by these statistics, so a wrong bound hides rows from filters. The statistics are interpreted as
Delta's own reader does, and compared with the rows in Spark.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.version_rows import delta_rows_at
from backfill_assets.adapters.delta.commits import commits_of
from backfill_assets.adapters.delta.key_statistics import SORTABLE
from backfill_assets.adapters.delta.log_replay import DataFile, Version
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.query.ddl import Column, columns_of_delta, ddl, literal
from backfill_assets.query.spelling import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["stated_since", "wrong_statistics"]

MAX_VIOLATIONS = 10
_ADDRESS = "regexp_replace(_metadata.file_path, '^file:/*', 'file:/')"
"""The file of a row. Spark writes local paths with one slash or three, even in the same read."""
SHOWN = 80
"""How many characters of a value are shown."""


def stated_since(table: TableLocation, before: int, now: int) -> set[str] | None:
    """The files with new statistics after one version and up to another; None if the log no longer has them all."""
    stated: set[str] = set()
    left = now - before
    for version, actions in commits_of(table, now):
        if version == before:
            break
        left -= 1
        stated |= {action["add"]["path"] for action in actions if "add" in action}
    return None if left else stated


def wrong_statistics(
    runner: SparkRunner, table: TableLocation, number: int, version: Version, *, among: set[str] | None = None
) -> list[str]:
    """The first wrong statistics of the files of a version with this number (`among` these; None: of all)."""
    files = [file for file in version.files if file.stats and (among is None or file.path in among)]
    if not files:
        return []
    return runner.run(lambda spark: _violations(spark, _rows(spark, table, number, version, files), version, files))


def _rows(
    spark: "SparkSession", table: TableLocation, number: int, version: Version, files: Sequence[DataFile]
) -> "DataFrame":
    """The rows of these files, or of all files if only Delta can read them."""
    from pyspark.sql.types import StructType

    if not version.is_plain or any(file.deleted for file in version.files):
        return delta_rows_at(spark, table, number)
    schema = StructType.fromJson(json.loads(version.metadata["schemaString"]))
    return parquet_files(spark, (table.child(unquote(file.path)) for file in files), schema)


def _violations(spark: "SparkSession", rows: "DataFrame", version: Version, files: Sequence[DataFile]) -> list[str]:
    from pyspark.sql import functions as F  # noqa: N812

    columns = _stated_columns(version, files)
    first = rows.selectExpr(_ADDRESS).first()
    root = "" if first is None else _root(first[0], version.files)
    extremes = ["count(1) AS rows", *(each for at, column in enumerate(columns) for each in _extremes(at, column))]
    seen = rows.groupBy(F.expr(f"substring({_ADDRESS}, {len(root) + 1}) AS file")).agg(*map(F.expr, extremes))
    texts = pa.table({
        "file": pa.array([file.path for file in files], pa.string()),
        "stats": pa.array([file.action["stats"] for file in files], pa.string()),
        "deleted": pa.array([file.deleted for file in files], pa.int64()),
    })
    stated = spark.createDataFrame(texts).withColumn("stats", F.from_json("stats", _form(columns)))
    wrong = ", ".join([_WRONG_ROWS, *(each for at, column in enumerate(columns) for each in _wrong(at, column))])
    found = stated.join(seen, "file", "left").selectExpr(f"explode(array_compact(array({wrong}))) AS violation")
    return [row.violation for row in found.orderBy("violation").limit(MAX_VIOLATIONS).collect()]


def _stated_columns(version: Version, files: Sequence[DataFile]) -> list[Column]:
    """The columns with statistics in any file that can be compared."""
    kinds = ("minValues", "maxValues", "nullCount")
    stated = {name for file in files for kind in kinds for name in file.stats.get(kind) or {}}
    columns = columns_of_delta(version.metadata["schemaString"])
    return [each for each in columns if each.name in stated and SORTABLE.fullmatch(each.type)]


def _form(columns: Sequence[Column]) -> str:
    """How statistics are written, as a list of columns."""
    if not columns:
        return "numRecords BIGINT"
    values, counts = ddl(columns), ddl(Column(each.name, "BIGINT") for each in columns)
    bounds = ", ".join(f"{kind} STRUCT<{values}>" for kind in ("minValues", "maxValues"))
    return f"numRecords BIGINT, {bounds}, nullCount STRUCT<{counts}>"


def _root(address: str, files: Sequence[DataFile]) -> str:
    """The prefix of Spark's address of a file before its path in the log."""
    paths = {file.path for file in files}
    starts = (at + 1 for at, letter in enumerate(address) if letter == "/")
    return next((address[:at] for at in starts if address[at:] in paths), "")


def _extremes(at: int, column: Column) -> Iterator[str]:
    name = backquoted(column.name)
    yield f"min({name}) AS low{at}"
    yield f"max({name}) AS high{at}"
    yield f"count_if({name} IS NULL) AS nulls{at}"


def _wrong(at: int, column: Column) -> Iterator[str]:
    low, high, nulls = (f"stats.{kind}.{backquoted(column.name)}" for kind in ("minValues", "maxValues", "nullCount"))
    # The protocol allows truncation of times to milliseconds; readers then assume a maximum that is later by as much.
    top = f"{high} + INTERVAL 1 MILLISECOND" if column.type.startswith("TIMESTAMP") else high
    yield _said(f"{low} > low{at}", f"a minimum of {column.name}", low, f"low{at}")
    yield _said(f"{top} < high{at}", f"a maximum of {column.name}", high, f"high{at}")
    # With a deletion vector, the count may include hidden rows.
    yield _said(f"deleted = 0 AND {nulls} <> nulls{at}", f"nulls of {column.name}", nulls, f"nulls{at}")


def _said(wrong: str, what: str, stated: str, found: str) -> str:
    """The violation in words, if there is one."""
    expected, there = (f"left(CAST({each} AS STRING), {SHOWN})" for each in (stated, found))
    words = [
        literal("the log states of file "),
        "file",
        literal(f", {what}: "),
        expected,
        literal(", it holds "),
        there,
    ]
    return f"IF({wrong}, concat({', '.join(words)}), NULL)"


_STATED, _FOUND = "stats.numRecords - deleted", "coalesce(rows, 0)"
_WRONG_ROWS = _said(f"{_STATED} <> {_FOUND}", "rows", _STATED, _FOUND)
