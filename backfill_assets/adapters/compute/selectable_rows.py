"""Rows of a table of which only those with some values of a column are wanted: found in this process where that costs less
than a scan by Spark, which then gets just these."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from backfill_assets.adapters.compute.broadcast_memory import fit_in
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.scans import Count
from backfill_assets.adapters.compute.table_rows import as_inserted
from backfill_assets.adapters.delta.arrow_types import widest
from backfill_assets.adapters.delta.files_to_search import (
    column_named,
    files_of_upstream,
    files_of_view,
    logged,
    schema_of,
)
from backfill_assets.adapters.delta.found_rows import HASH, FoundRows, Sought, UnfitError, kind_of_arrow
from backfill_assets.adapters.delta.plain_tables import holds_rows_as_they_are
from backfill_assets.adapters.delta.touched_files import LoggedFile, touched_files
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.brief_settings import set_briefly
from backfill_assets.adapters.spark.session import is_remote
from backfill_assets.adapters.sql.broadcasts import Keys
from backfill_assets.core.epoch.touched_spans import Span
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.errors import ReadMismatchError
from backfill_assets.query.ddl import Column
from backfill_assets.query.rowwise import CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "MOST_LOCAL",
    "Finder",
    "Held",
    "LocalChanges",
    "Part",
    "SelectableRows",
    "ViewFinder",
    "gathered",
    "netted",
    "part_of",
    "united",
]

MOST_LOCAL = 500_000
"""No more changed rows than this are read in this process."""

_ROWS_OF_TASK = 200_000
"""Up to so many rows are handled by one task, as a shuffle costs more."""

_ROWS_OF_PLAN = 10_000
"""More rows than this keep Spark's planner busy for longer than Spark takes to compute something of them."""

_BESIDE_PLAN: Final = {"spark.sql.execution.arrow.localRelationThreshold": "0b"}

_COME = ("insert", "update_postimage")


class Part(NamedTuple):
    """Rows of Spark, and whether they are `few` in one partition, so that nothing has to be shuffled."""

    frame: "DataFrame"
    few: bool


class Held(NamedTuple):
    """Rows that this process holds: as Arrow has them, and for Spark."""

    rows: pa.Table
    part: Part


def united(parts: Sequence[Part]) -> Part:
    """All rows of some parts with the same columns."""
    frame = reduce(lambda some, more: some.unionByName(more), (part.frame for part in parts))
    return parts[0] if len(parts) == 1 else gathered(frame, few=all(part.few for part in parts))


def gathered(frame: "DataFrame", *, few: bool) -> Part:
    """Rows; a `few` of them in one partition."""
    return Part(frame.coalesce(1) if few else frame, few)


@dataclass(frozen=True, kw_only=True)
class SelectableRows:
    """What gives all rows of a table, made anew for each place that reads them, and what gives those with some values of a
    column; None where Spark is to select them. Of a view with so many `rows`, in `files` of so many `bytes`, `having` gives
    those with one of the values in a column of its key; of one without a key, `alike` gives those with a hash and a value of
    the column before it that are in a table of such columns, the hash last. `lacks` tells whether a view surely has no row
    with any of the values in a column. `near` gives what reads those files alone that may have a value of a column in some
    spans; None where that is every file, or not known."""

    every: "Callable[[], DataFrame]"
    found: Callable[[str, Sought], Held | None] = lambda _column, _sought: None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    having: Callable[[str, pa.ChunkedArray], Held | None] = lambda _column, _values: None
    alike: Callable[[pa.Table], Held | None] = lambda _values: None
    lacks: Callable[[str, pa.ChunkedArray], bool] = lambda _column, _values: False
    near: "Callable[[str, Sequence[Span]], Callable[[], DataFrame] | None]" = lambda _column, _spans: None


@dataclass(frozen=True, kw_only=True)
class LocalChanges:
    """The rows that come to a table and those that go from it, with the columns that a view uses; none that does both."""

    come: pa.Table
    go: pa.Table
    part: Callable[[pa.Table], Part]

    @property
    def few(self) -> bool:
        """Whether the rows that come are in one partition, and those that go."""
        return max(len(self.come), len(self.go)) <= _ROWS_OF_TASK

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (len(self.come) or len(self.go))


@dataclass(frozen=True, kw_only=True)
class Finder:
    """Finds rows of an upstream in this process. Of the `columns` of the view those are null that are not among what it
    `uses`, in small letters; None for all."""

    spark: "SparkSession"
    upstream: DeltaUpstream
    columns: Sequence[Column]
    uses: frozenset[str] | None
    files: FoundRows

    def in_version(self, number: int) -> Callable[[str, Sought], Held | None]:
        """What finds rows of a version with some values of a column."""

        def found(name: str, sought: Sought) -> Held | None:
            try:
                schema = str(self.upstream.version(number).metadata["schemaString"])
                wanted = schema_of(schema, self._used)
                column = next((each for each in self.columns if each.name.lower() == name.lower()), None)
                if column is None:
                    raise UnfitError(f"{name} is computed")
                files = files_of_upstream(self.upstream, number, column, sought)
                rows = self.files.among(files, wanted, column_named(wanted, name), sought)
            except UnfitError:
                return None
            return Held(rows, self._part(rows, schema))

        return found

    def changes(self, reads: Sequence[ChangesRead]) -> LocalChanges | None:
        """What changed between the versions of some reads; None where Spark is to read that: there is much, or it is not in
        files that hold just the changes."""
        if sum(read.rows for read in reads) > MOST_LOCAL:
            return None
        schema = self.upstream.loaded().schema().to_json()
        try:
            wanted = schema_of(schema, self._used)
            parts = [_changes(self.upstream, read, wanted, self.files) for read in reads]
        except UnfitError:
            return None
        empty = wanted.empty_table()
        come = pa.concat_tables([empty, *(part for part, _ in parts)])
        go = pa.concat_tables([empty, *(part for _, part in parts)])
        come, go = netted(come, go)
        return LocalChanges(come=come, go=go, part=lambda rows: self._part(rows, schema))

    @property
    def _used(self) -> Sequence[Column]:
        # Rows without any column could not be counted.
        return [each for each in self.columns if self.uses is None or each.name.lower() in self.uses] or self.columns

    def _part(self, rows: pa.Table, schema: str) -> Part:
        part = part_of(self.spark, rows)
        return Part(as_inserted(part.frame, schema, self.columns), part.few)


@dataclass(frozen=True, kw_only=True)
class ViewFinder:
    """Finds rows of a loaded version of a view in this process; of no `table`, nothing."""

    spark: "SparkSession"
    table: DeltaTable | None
    files: FoundRows

    def selectable(self, every: "Callable[[], DataFrame]", count: Count) -> SelectableRows:
        """What selects rows of the view, where `every` gives all of them, and `count` counts those that Spark reads."""
        return SelectableRows(
            every=every,
            found=self.found,
            rows=self.rows,
            files=self.file_count,
            bytes=self.bytes,
            having=self.having,
            alike=self.alike,
            lacks=self.lacks,
            near=partial(self._near, count),
        )

    def found(self, name: str, sought: Sought) -> Held | None:
        """The rows with some values of a column."""
        return self._held(lambda table: self._among(table, name, sought, (name, sought)))

    @property
    def is_empty(self) -> bool:
        """Whether there is no file."""
        return not self.file_count

    @property
    def rows(self) -> int:
        """How many rows there are, as far as the log says."""
        return sum(filter(None, self._rows_of_files))

    @property
    def file_count(self) -> int:
        """In how many files they are."""
        return len(self._rows_of_files)

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(self._files["size_bytes"].to_pylist())

    @property
    def _rows_of_files(self) -> list[int | None]:
        return list(self._files["num_records"].to_pylist())

    @cached_property
    def _files(self) -> pa.Table:
        if self.table is None:
            return pa.table({"num_records": pa.array([], pa.int64()), "size_bytes": pa.array([], pa.int64())})
        return pa.table(self.table.get_add_actions())

    def having(self, name: str, values: pa.ChunkedArray) -> Held | None:
        """The rows with one of the values in a column."""

        def find(table: DeltaTable) -> pa.Table:
            sought = Sought.of(kind_of_arrow(values.type), [values])
            return self._among(table, name, sought, (name, sought))

        return self._held(find)

    def lacks(self, name: str, values: pa.ChunkedArray) -> bool:
        """Whether surely no row has any of the values in a column. False also where this process cannot tell, or a file is
        missing, damaged or not reached: Spark then finds out."""
        if self.table is None:
            return False
        try:
            sought = Sought.of(kind_of_arrow(values.type), [values])
            column = widest(pa.schema(self.table.schema().to_arrow())).field(name)
            return self.files.has_none(files_of_view(self.table, name, sought), column, sought)
        except (UnfitError, ReadMismatchError, pa.ArrowException, OSError):
            return False

    def alike(self, values: pa.Table) -> Held | None:
        """The rows that have a hash, and a value of the column before it, that are in a table of these; maybe some that have
        the hash alone."""
        return self._held(lambda table: self._alike(table, values))

    def _near(self, count: Count, name: str, spans: Sequence[Span]) -> "Callable[[], DataFrame] | None":
        if self.table is None or not holds_rows_as_they_are(self.table):
            return None
        files = touched_files(self.table, {name: spans})
        return None if len(files) == self.file_count else partial(self._of_files, count, files)

    def _of_files(self, count: Count, files: Sequence[LoggedFile]) -> "DataFrame":
        from pyspark.sql.types import StructType

        assert self.table is not None
        schema = StructType.fromJson(json.loads(self.table.schema().to_json()))
        if not files:
            return no_rows(self.spark, schema)
        stated = [each.rows for each in files]
        rows = parquet_files(self.spark, (self.files.location.child(each.stored) for each in files), schema)
        return count(rows, lambda: None if None in stated else sum(filter(None, stated)))

    def _alike(self, table: DeltaTable, values: pa.Table) -> pa.Table:
        *beside, name = values.column_names
        hashes = Sought.of(HASH, [values.column(name)])
        if not beside:
            return self._among(table, name, hashes, (name, hashes))
        wanted = Sought.of(kind_of_arrow(values.schema.field(beside[0]).type), [values.column(beside[0])])
        return self._among(table, name, hashes, (beside[0], wanted))

    def _among(self, table: DeltaTable, name: str, sought: Sought, bounded: tuple[str, Sought]) -> pa.Table:
        return self.files.among(
            files_of_view(table, *bounded), widest(pa.schema(table.schema().to_arrow())), name, sought
        )

    def _held(self, find: Callable[[DeltaTable], pa.Table]) -> Held | None:
        if self.table is None:
            return None
        try:
            rows = find(self.table)
        except UnfitError:
            return None
        return Held(rows, part_of(self.spark, rows))


def _changes(
    upstream: DeltaUpstream, read: ChangesRead, wanted: pa.Schema, finder: FoundRows
) -> tuple[pa.Table, pa.Table]:
    """The rows that come and those that go."""
    if not upstream.has_feed(read.first):
        if not upstream.version(read.last).is_plain:
            raise UnfitError(f"table {upstream.name} has partitions, mapped names or other features")
        return finder.every(logged(upstream.added(read)), wanted), wanted.empty_table()
    changed = upstream.change_files(read)
    if changed is None:
        raise UnfitError(f"only Delta's reader finds what changed in table {upstream.name}")
    added = finder.every(logged(changed.added), wanted)
    kind = pa.field(CHANGE.name, pa.large_string())
    files = [LoggedFile(path=path, size=size, rows=None) for path, size in changed.feed.items()]
    feed = finder.every(files, wanted.append(kind))
    comes = pc.is_in(feed.column(CHANGE.name), value_set=pa.array(_COME, pa.large_string()))
    rows = feed.select(wanted.names)
    removed = finder.every(logged(changed.removed), wanted)
    return pa.concat_tables([added, rows.filter(comes)]), pa.concat_tables([removed, rows.filter(pc.invert(comes))])


def netted(come: pa.Table, go: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The same without the rows that do both: what was updated only in columns that are not used, or back again."""
    simple = not any(pa.types.is_nested(each.type) for each in come.schema)
    if not simple or not (len(come) and len(go)):
        return come, go
    both = pa.concat_tables([come, go])
    # Arrow groups values by their bits: a zero with a sign is another value.
    keys = pa.table({f"k{at}": column for at, column in enumerate(both.columns)})
    signs = np.concatenate([np.ones(len(come), dtype=np.int64), -np.ones(len(go), dtype=np.int64)])
    named = keys.append_column("sign", pa.array(signs)).append_column("at", pa.array(np.arange(len(both))))
    groups = named.group_by(keys.column_names).aggregate([("sign", "sum"), ("at", "min")])
    counts, first = groups.column("sign_sum").to_numpy(), groups.column("at_min").to_numpy()
    comes, goes = (np.repeat(first, np.maximum(each, 0)) for each in (counts, -counts))
    return both.take(pa.array(comes)), both.take(pa.array(goes))


def part_of(spark: "SparkSession", rows: pa.Table) -> Part:
    """Rows that this process holds, for Spark."""
    # As one batch: Spark takes no rows after a batch that has none. Over Spark Connect it takes no table without rows.
    frame = (
        _given(spark, rows.combine_chunks())
        if len(rows)
        else spark.createDataFrame(_of_nulls(rows.schema)).where("FALSE")
    )
    return gathered(frame, few=len(rows) <= _ROWS_OF_TASK)


def _given(spark: "SparkSession", rows: pa.Table) -> "DataFrame":
    """These rows as a DataFrame; if they are many, its plan does not hold them, as each step of Spark's planner would look at
    every one. A server gets them once, and keeps them. In this process Spark does not know their size then, so it is told
    whether they can be broadcast."""
    if len(rows) <= _ROWS_OF_PLAN:
        return spark.createDataFrame(rows)
    if is_remote(spark):
        return spark.createDataFrame(rows).localCheckpoint()
    with set_briefly(spark.conf, _BESIDE_PLAN):
        frame = spark.createDataFrame(rows)
    fit = fit_in(spark, Keys(rows=len(rows), columns=rows.num_columns, bytes=rows.nbytes))
    return frame.hint("broadcast") if fit else frame


def _of_nulls(schema: pa.Schema) -> pa.Table:
    """One row."""
    nullable = pa.schema([each.with_nullable(True) for each in schema])
    return pa.table([pa.nulls(1, each.type) for each in schema], schema=nullable)
