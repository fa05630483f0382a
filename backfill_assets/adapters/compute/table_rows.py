"""The rows of a Delta table that belong to a read, with the columns that a view knows and the change of each row.

A chunk of a snapshot is read through a table that is made for it alone: a `_delta_log` that lists only its files, so
that Delta itself applies deletion vectors, partition values and types, and no other file is opened.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from backfill_assets.adapters.compute.doubtful_bounds import unfiltered
from backfill_assets.adapters.compute.key_ranges import in_ranges
from backfill_assets.adapters.compute.netted_changes import netted_changes
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.scans import Count, Scans, uncounted
from backfill_assets.adapters.compute.version_rows import FEW_OBJECTS, delta_rows_at, rows_at
from backfill_assets.adapters.delta.column_metadata import FIXED_LENGTH, fixed_lengths
from backfill_assets.adapters.delta.footers import fed_rows, footer_rows, held_rows
from backfill_assets.adapters.delta.key_statistics import files_of_keys, sortable_key
from backfill_assets.adapters.delta.log_replay import DataFile, Version, is_plain_path
from backfill_assets.adapters.delta.upstream import ChangeFiles, DeltaUpstream
from backfill_assets.adapters.spark.resource import do_nothing
from backfill_assets.adapters.spark.session import is_remote
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import (
    CountedRead,
    is_worth_counting,
    scan_of,
    scan_of_version,
)
from backfill_assets.core.progress.positions import TablePosition
from backfill_assets.core.progress.reads import (
    ChangesRead,
    FullRead,
    HashRead,
    KeyRead,
    LookupRead,
    Read,
    SnapshotRead,
)
from backfill_assets.core.strategies.arrangement import done_ranges
from backfill_assets.query.ddl import Column, columns_of_delta, ddl, quoted
from backfill_assets.query.rowwise import CHANGE
from backfill_assets.query.spelling import backquoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Scratch", "as_inserted", "parquet_rows", "projected", "rows_done", "table_rows", "whole_version"]


@dataclass(frozen=True, kw_only=True)
class Scratch:
    """A folder inside of a table's, where a log may be written that names the files of one read; and what counts its rows.
    Of the columns only those are read that are named in `uses`, in small letters; others are null. Of a table that is looked
    up, only the `chosen` files are read, if some are. `note_reached` is told that Spark has read what was written there."""

    table: TableLocation
    path: str
    scans: Scans | None = None
    uses: frozenset[str] | None = None
    chosen: Sequence[DataFile] | None = None
    note_reached: Callable[[], None] = do_nothing

    def count(self, read: Read) -> Count:
        """What counts the rows of a read, by the values that are used. No log says how many rows are left out."""
        if self.scans is None or not isinstance(read, CountedRead):
            return uncounted
        counted = self.scans.by(partial(scan_of, read))
        return lambda rows, stated: counted(self._used(rows), stated)

    def count_version(self, table: str, version: int) -> Count:
        """What counts all rows of a version of a table."""
        return uncounted if self.scans is None else self.scans.by(partial(scan_of_version, table, version))

    def _used(self, rows: "DataFrame") -> "DataFrame":
        if self.uses is None:
            return rows
        used = [name for name in rows.columns if name.lower() in self.uses]
        change = [name for name in rows.columns if name == CHANGE.name]
        # Rows without any column could not be counted.
        return rows.select(*map(quoted, (*(used or rows.columns[:1]), *change)))


def whole_version(
    spark: "SparkSession", upstream: DeltaUpstream, version: int, columns: Sequence[Column]
) -> "DataFrame":
    """These columns of all rows of a version, each as an insert."""
    return projected(_inserted(unfiltered(rows_at(spark, upstream.location, version))), upstream, columns)


def rows_done(
    spark: "SparkSession",
    upstream: DeltaUpstream,
    table: TablePosition,
    columns: Sequence[Column],
    place: Scratch,
) -> "DataFrame":
    """These columns of all rows of the version of a position whose keys have been read, as if they had just been inserted.
    `place` is a folder for this read alone."""
    if not table.backfilled:
        return table_rows(spark, upstream, _keys_done(upstream.name, table), columns, place)
    counts = _known_rows(upstream, table.version, place.count_version(upstream.name, table.version))
    rows = unfiltered(rows_at(spark, upstream.location, table.version, counts))
    return projected(_inserted(rows), upstream, columns)


def _keys_done(name: str, table: TablePosition) -> KeyRead:
    """What has been read of a table whose history is read by ranges of its key."""
    return KeyRead(
        source=name,
        table_id=table.table_id,
        version=table.version,
        ranges={},
        keys=done_ranges(table),
        rows=sum(bucket.rows for bucket in table.buckets.values()),
    )


def table_rows(
    spark: "SparkSession",
    upstream: DeltaUpstream,
    read: Read,
    columns: Sequence[Column],
    place: "Scratch",
) -> "DataFrame":
    """These columns of the rows that a read names, and what became of each. `place` is a folder for this read alone. Rows are
    counted before any of them is left out; not those of few keys in large files.

    Columns that a version does not have are null, as with Delta itself; columns that were added since are left out.
    """
    rows = projected(_rows_of(spark, upstream, read, place), upstream, columns)
    # Files that are read in place of an incomplete feed hold many rows that did not change.
    rewritten = isinstance(read, ChangesRead) and any(each.incomplete for each in upstream.changes(read))
    return netted_changes(rows) if rewritten else rows


def _rows_of(spark: "SparkSession", upstream: DeltaUpstream, read: Read, place: "Scratch") -> "DataFrame":
    """The rows that a read names, with `CHANGE`; no filter gets to bounds of its files that may be wrong."""

    count = place.count(read)

    def of_files(version: int, files: Sequence[DataFile]) -> "DataFrame":
        read = _files(spark, upstream, upstream.version(version), files, place)
        rows = count(read, lambda: held_rows(upstream.location, files))
        return _inserted(unfiltered(rows))

    match read:
        case SnapshotRead() | FullRead() | LookupRead() | HashRead():
            return of_files(read.version, upstream.chosen(read) if place.chosen is None else place.chosen)
        case KeyRead():
            files = files_of_keys(upstream, read, sortable_key(upstream)[0])
            if place.scans is not None and is_worth_counting(read, [each.stated_rows for each in files]):
                rows = of_files(read.version, files)
            else:
                rows = _inserted(unfiltered(delta_rows_at(spark, upstream.location, read.version)))
            return in_ranges(rows, upstream, read.keys)
        case ChangesRead() if read.within is not None:
            every = _rows_of(spark, upstream, read.model_copy(update={"within": None}), place)
            return in_ranges(every, upstream, read.within)
        case ChangesRead() if upstream.has_feed(read.first):
            changed = upstream.change_files(read)
            if changed is None:
                there = partial(fed_rows, upstream.location, upstream.changes(read))
                return unfiltered(count(_fed(spark, upstream, read, place), there))
            return unfiltered(count(_changes(spark, upstream, changed), lambda: _held(upstream, changed)))
        case ChangesRead():
            return of_files(read.last, upstream.added(read))
        case _:
            raise AssertionError(read)


def as_inserted(rows: "DataFrame", schema: str, columns: Sequence[Column]) -> "DataFrame":
    """These columns of rows of a table with this schema (JSON), each as an insert."""
    return _projected(_inserted(rows), schema, columns)


def _inserted(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return rows.withColumn(CHANGE.name, F.lit("insert"))


def projected(rows: "DataFrame", upstream: DeltaUpstream, columns: Sequence[Column]) -> "DataFrame":
    """Rows of a table with `CHANGE` and the columns that the view knows, with just the fields that it knows. Spark is told
    the length of CHAR columns, as when it reads the table itself, so that it pads what the query compares with them."""
    return _projected(rows, upstream.loaded(again=False).schema().to_json(), columns)


def _projected(rows: "DataFrame", schema: str, columns: Sequence[Column]) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    there = {name.lower() for name in rows.columns}
    fixed = fixed_lengths(schema)

    def column(wanted: Column) -> "SparkColumn":
        value = backquoted(wanted.name) if wanted.name.lower() in there else "NULL"
        length = fixed.get(wanted.name.lower())
        metadata = {FIXED_LENGTH: length} if length else {}
        return F.expr(f"CAST({value} AS {wanted.type})").alias(wanted.name, metadata=metadata)

    return _with_known_fields(rows, columns).select(*map(column, columns), CHANGE.name)


def _with_known_fields(rows: "DataFrame", columns: Sequence[Column]) -> "DataFrame":
    """The rows with just the fields that these columns have, found by their names: a cast takes fields by their places."""
    from pyspark.sql.types import StructType

    known = {each.name.lower(): each.type for each in columns if "STRUCT<" in each.type}
    there = columns_of_delta(rows.schema.json()) if known else ()
    changed = [Column(each.name, known[each.name.lower()]) for each in there if each.name.lower() in known]
    if {*changed} <= {*there}:
        return rows
    fields = {each.name: each for each in cast("StructType", StructType.fromDDL(ddl(changed))).fields}
    return rows.to(StructType([fields.get(each.name, each) for each in rows.schema]))


def _files(
    spark: "SparkSession", upstream: DeltaUpstream, version: Version, files: Sequence[DataFile], place: Scratch
) -> "DataFrame":
    """The rows of these files of a table, each file as often as it is given: one may be removed, restored and removed again,
    and no log names a file twice."""
    times = _times(files)
    if len(times) < 2:
        return _files_once(spark, upstream, version, files, place)
    places = (replace(place, path=f"{place.path}/{number}") for number in range(len(times)))
    parts = [_files_once(spark, upstream, version, *each) for each in zip(times, places, strict=True)]
    return reduce(lambda some, more: some.unionByName(more), parts)


def _times(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Files in as many lists as any of them is given, so that none is twice in one."""
    given = Counter[str]()
    times: list[list[DataFile]] = []
    for file in files:
        if given[file.path] == len(times):
            times.append([])
        times[given[file.path]].append(file)
        given[file.path] += 1
    return times


def _files_once(
    spark: "SparkSession", upstream: DeltaUpstream, version: Version, files: Sequence[DataFile], place: Scratch
) -> "DataFrame":
    """Exactly these files of a table, all different: as plain Parquet if that is sufficient (this saves Delta's reading of a
    log), and not many objects of a store, otherwise through a log that lists no others."""
    paths = [each.path for each in files]
    few = upstream.location.is_local or len(paths) <= FEW_OBJECTS
    if few and version.is_plain and not any(each.deleted for each in files) and all(map(is_plain_path, paths)):
        return parquet_rows(spark, upstream.location, str(version.metadata["schemaString"]), paths)
    adds = [{"add": each.absolute(upstream.location.uri)} for each in files]
    mapping = {
        name: value
        for name, value in (version.metadata.get("configuration") or {}).items()
        if name.startswith("delta.columnMapping.")
    }
    metadata = {**_present(version.metadata), "configuration": mapping}
    log: list[dict[str, Any]] = [{"protocol": _present(version.protocol)}, {"metaData": metadata}, *adds]
    text = "\n".join(json.dumps(each, default=str) for each in log)
    place.table.write(f"{place.path}/_delta_log/00000000000000000000.json", text.encode())
    rows = spark.read.format("delta").load(place.table.child(place.path))
    if not is_remote(spark):  # it has read the log
        place.note_reached()
    return rows


def _changes(spark: "SparkSession", upstream: DeltaUpstream, files: ChangeFiles) -> "DataFrame":
    """The changes of versions, from the files that contain them. Delta's reader of the feed gives the same rows, but
    plans the log's versions in Spark first, which takes longer than reading many small versions."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = []
    if files.feed:
        parts.append(parquet_rows(spark, upstream.location, files.schema, tuple(files.feed), CHANGE.name))
    if files.added:
        rows = parquet_rows(spark, upstream.location, files.schema, [each.path for each in files.added])
        parts.append(rows.withColumn(CHANGE.name, F.lit("insert")))
    if files.removed:
        rows = parquet_rows(spark, upstream.location, files.schema, [each.path for each in files.removed])
        parts.append(rows.withColumn(CHANGE.name, F.lit("delete")))
    return reduce(lambda some, more: some.unionByName(more), parts)


def _fed(spark: "SparkSession", upstream: DeltaUpstream, read: ChangesRead, place: Scratch) -> "DataFrame":
    """The changes of versions, as Delta's own reader finds them; of those with an incomplete feed, all rows of the files that
    were removed and added."""
    from pyspark.sql import functions as F  # noqa: N812

    versions = upstream.changes(read)
    incomplete = [number for number, each in enumerate(versions, read.first) if each.incomplete]
    feed = _feed(spark, upstream, read)
    if not incomplete:
        return feed
    parts = [feed.where(~F.col("_commit_version").isin(incomplete))]
    removed = [file for each in versions if each.incomplete for file in each.removed]
    added = [file for each in versions if each.incomplete for file in each.added]
    for change, files in (("delete", removed), ("insert", added)):
        inside = replace(place, path=f"{place.path}/{change}")
        rows = _files(spark, upstream, upstream.version(read.last), files, inside)
        parts.append(rows.withColumn(CHANGE.name, F.lit(change)))
    return reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), parts)


def _feed(spark: "SparkSession", upstream: DeltaUpstream, read: ChangesRead) -> "DataFrame":
    """The changes of versions, as Delta's own reader finds them."""
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    between = feed.option("startingVersion", read.first).option("endingVersion", read.last)
    return between.load(upstream.location.uri)


def _known_rows(upstream: DeltaUpstream, version: int, count: Count) -> Count:
    """Counts rows of a version also where delta-rs does not say how many there are, because deletion vectors hide some."""

    def counted(rows: "DataFrame", stated: Callable[[], int | None]) -> "DataFrame":
        return count(rows, lambda: sum(upstream.rows(version)) if (said := stated()) is None else said)

    return counted


def _held(upstream: DeltaUpstream, files: ChangeFiles) -> int | None:
    """The rows of files with changes. The log does not say how many rows are in the files of a change data feed."""
    whole = held_rows(upstream.location, (*files.added, *files.removed))
    return None if whole is None else whole + footer_rows(upstream.location, files.feed)


def parquet_rows(
    spark: "SparkSession", table: TableLocation, schema: str, paths: Sequence[str], *texts: str
) -> "DataFrame":
    """Parquet files of a table, by their paths in its log, with the columns of its schema (JSON), and with the string
    columns `texts` in addition."""
    from pyspark.sql.types import StringType, StructType

    columns = StructType.fromJson(json.loads(schema))
    for name in texts:
        columns = columns.add(name, StringType())
    return parquet_files(spark, (table.child(unquote(path)) for path in paths), columns)


def _present(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in action.items() if value is not None}
