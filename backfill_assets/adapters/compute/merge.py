"""Merges keyed changes with Spark, if they do not fit in this process's memory.

Spark computes the files that take the place of those with changed rows, and the change feed, into the attempt's own folder.
It commits nothing: `delta.merged_files` does, on exactly the version that was read.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable

from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.staged_rows import write_by_spark
from backfill_assets.adapters.compute.tasks import parallelism
from backfill_assets.adapters.compute.version_rows import delta_rows_at
from backfill_assets.adapters.delta.merged_files import Merged, merged_folder
from backfill_assets.adapters.delta.touched_files import changes_of_files, touched_values
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import Staged, StagedFile
from backfill_assets.errors import StagingError
from backfill_assets.query.ddl import quoted
from backfill_assets.query.working_columns import FILE, OPERATION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["merge_large"]

_KEY, _CHANGE_TYPE, _COUNT = "__key_{}", "_change_type", "rows"
_ROWS, _FEED = "rows", "feed"


def merge_large(runner: SparkRunner, location: TableLocation, table: DeltaTable, staged: Staged) -> Merged:
    """What staged changes make of a loaded version: its new files, and those of the change feed, in the attempt's folder.

    Errors: `StagingError` if the files do not hold the rows that Spark has counted.
    """
    return runner.run(lambda spark: _Merge(spark, location, table, staged).merged())


@dataclass(frozen=True)
class _Merge:
    """One merge. Rows of the same key are those that Spark groups together."""

    spark: "SparkSession"
    location: TableLocation
    table: DeltaTable
    staged: Staged

    def merged(self) -> Merged:
        touched = sorted(self._touched())
        # A file of many rows is worth a second task; more would leave ever more, ever smaller files. If no row of the view is
        # found, the changes that ask for one do not add up, which is to be told.
        tasks = max(1, len(touched), min(parallelism(self.spark), 2 * len(touched)))
        with kept(self._rows(touched)) as rows:
            files = self._written(_ROWS, self._result(rows), tasks)
            feed = self._written(_FEED, self._feed(rows), tasks)
        return Merged(removed=frozenset(touched), files=files, feed=feed)

    @cached_property
    def _folder(self) -> str:
        return merged_folder(self.staged, self.table)

    @property
    def _columns(self) -> list[str]:
        return [quoted(field.name) for field in self.table.schema().fields]

    @property
    def _changes(self) -> "DataFrame":
        base, _, _ = self.staged.files[0].path.partition(f"/{OPERATION}=")
        paths = [self.location.child(file.path) for file in self.staged.files]
        return parquet_files(self.spark, paths, basePath=self.location.child(base))

    def _touched(self) -> Iterator[str]:
        """The files, as the log names them, with rows that are replaced or deleted."""
        from pyspark.sql import functions as F  # noqa: N812

        old = delta_rows_at(self.spark, self.location, self.table.version())
        spans = touched_values(self.table, changes_of_files(self.table, self.staged.key, self.staged.files))
        for name, each in spans.items():
            within = (F.col(quoted(name)).between(F.lit(low), F.lit(high)) for low, high in each)
            old = old.where(reduce(lambda some, more: some | more, within))
        named = old.select(*map(quoted, self.staged.key), F.col("_metadata.file_path").alias(FILE))
        found = self._joined(named, self._changes, "left_semi").select(FILE).distinct().collect()
        return _in_log((row[FILE] for row in found), self.location, self.table)

    def _rows(self, touched: Sequence[str]) -> "DataFrame":
        from pyspark.sql.types import StructType

        schema = StructType.fromJson(json.loads(self.table.schema().to_json()))
        if not touched:
            return no_rows(self.spark, schema)
        return parquet_files(self.spark, map(self.location.child, touched), schema)

    def _result(self, rows: "DataFrame") -> "DataFrame":
        """All rows of the files that take the place of those that were touched."""
        unchanged = self._joined(rows, self._changes, "left_anti").select(*self._columns)
        return unchanged.unionByName(self._changes.where(f"{OPERATION} <> 'delete'").select(*self._columns))

    def _feed(self, rows: "DataFrame") -> "DataFrame":
        """What became of each row, as Delta's change feed has it."""
        changes = self._changes
        deletes, written = changes.where(f"{OPERATION} = 'delete'"), changes.where(f"{OPERATION} <> 'delete'")
        parts = [
            (self._joined(rows, deletes, "left_semi"), "delete"),
            (self._joined(rows, written, "left_semi"), "update_preimage"),
            (self._joined(written, rows, "left_semi"), "update_postimage"),
            (self._joined(written, rows, "left_anti"), "insert"),
        ]
        selected = [part.selectExpr(*self._columns, f"'{kind}' AS {_CHANGE_TYPE}") for part, kind in parts]
        first, *others = selected
        for each in others:
            first = first.unionByName(each)
        return first

    def _joined(self, left: "DataFrame", right: "DataFrame", how: str) -> "DataFrame":
        """Rows with, or without, a row of the same key on the right."""
        key = self.staged.key
        named = right.select(*(right[quoted(name)].alias(_KEY.format(at)) for at, name in enumerate(key)))
        same: Column | None = None
        for at, name in enumerate(key):
            equal = left[quoted(name)].eqNullSafe(named[_KEY.format(at)])
            same = equal if same is None else same & equal
        return left.join(named, same, how)

    def _written(self, part: str, rows: "DataFrame", tasks: int) -> tuple[StagedFile, ...]:
        folder = f"{self._folder}/{part}"
        files, counted = write_by_spark(rows, self.location, folder, tasks=tasks)
        found = sum(each.rows for each in files)
        if found != counted:
            raise StagingError(
                f"{self.location.uri}: Spark reported {counted} rows in {folder}, but its files hold {found}",
                hint="nothing was committed; run it again",
                expected=counted,
                found=found,
            )
        return files


def _in_log(addresses: Iterable[str], location: TableLocation, table: DeltaTable) -> Iterator[str]:
    """The paths in a version's log of files that Spark names by their addresses."""
    root = unquote(urlsplit(location.uri).path) if not location.is_local else location.uri
    paths = pa.table(table.get_add_actions()).column("path").to_pylist()
    known = {f"{root.rstrip('/')}/{unquote(path)}": path for path in paths}
    return (known[unquote(urlsplit(address).path)] for address in addresses)
