"""What Spark reads of upstreams for an attempt: the rows that its plan names, each with what became of it; and what
of them is kept in the view's spool."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from hashlib import sha256
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.netted_changes import netted_changes
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.recorded_rows import recorded, recorded_rows, with_key
from backfill_assets.adapters.compute.scans import Inputs, Scans
from backfill_assets.adapters.compute.table_rows import Scratch, projected, table_rows
from backfill_assets.adapters.compute.tasks import tasks_for
from backfill_assets.adapters.delta.footers import footer_rows
from backfill_assets.adapters.delta.key_statistics import WHOLE, files_with, spans_of_files
from backfill_assets.adapters.delta.spool import capture, keep_version, segment_files
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.sql.keys import among_keys
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import scan_of
from backfill_assets.core.epoch.records import Plan, spooled_parts
from backfill_assets.core.epoch.touched_spans import MOST_VALUES, Span, apart, fewer
from backfill_assets.core.progress.positions import SPOOLED_SNAPSHOT, SnapshotPosition
from backfill_assets.core.progress.reads import (
    CaptureRead,
    ChangesRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
    TableRead,
)
from backfill_assets.core.strategies.table_skips import keys_left_out
from backfill_assets.query.ddl import Column, ddl
from backfill_assets.query.query import Query
from backfill_assets.query.relational import ERROR, RelationalQuery
from backfill_assets.query.rowwise import CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TableInputs"]


@dataclass(frozen=True, kw_only=True)
class TableInputs:
    """The rows of `upstreams` for a view (`output`) with the query that a plan computes."""

    output: TableLocation
    upstreams: Mapping[str, DeltaUpstream]
    query: Callable[[Plan], Query]

    def every(self, attempt: Attempt) -> Inputs:
        """All rows that are read, by upstream."""
        names = dict.fromkeys(read.source for read in attempt.read.values())
        return Inputs(names, lambda name: self.rows(attempt, name))

    def rows(self, attempt: Attempt, name: str, kind: type[TableRead] | None = None) -> "DataFrame":
        """The rows that are read of a table, or those of one kind of reads."""
        parts = [
            self._rows(attempt, read, attempt.scratch(str(number)))
            for number, read in attempt.read.items()
            if read.source == name and (kind is None or isinstance(read, kind))
        ]
        rows = reduce(lambda some, more: some.unionByName(more), parts)
        return netted_changes(rows) if attempt.netted and self._may_go(attempt, name) else rows

    def spans(self, attempt: Attempt, name: str, column: str) -> list[Span] | None:
        """Between which whole numbers or days a column lies in the chunk of a table; None where that is not known."""
        wanted, upstream = self._bounded(attempt, name, column), self.upstreams[name]
        reads = [read for read in attempt.read.values() if read.source == name and not isinstance(read, LookupRead)]
        found = list[Span]()
        for read in reads:
            known = (
                spans_of_files(upstream.version(read.version), upstream.chosen(read), wanted)
                if wanted is not None and isinstance(read, SnapshotRead)
                else None
            )
            if known is None:
                return None
            found += [(each.low, each.high) for each in known]
        return fewer(apart(found), MOST_VALUES)

    def near(self, attempt: Attempt, name: str, column: str, spans: Sequence[Span]) -> "Callable[[], DataFrame] | None":
        """What reads the rows of a table that is looked up, of those files alone that may have a value of a column in some
        spans; None where that is every file, or not known."""
        wanted = self._bounded(attempt, name, column)
        ((number, read),) = (
            (number, each)
            for number, each in attempt.read.items()
            if each.source == name and isinstance(each, LookupRead)
        )
        version = self.upstreams[name].version(read.version)
        chosen = version.files if wanted is None else files_with(version, wanted, spans)
        if len(chosen) == len(version.files):
            return None
        # Another place of the query may read other files of the same table.
        digest = sha256("\0".join(each.path for each in chosen).encode()).hexdigest()
        place = replace(attempt.scratch(f"{number}/{digest}"), chosen=chosen)
        return partial(self._rows, attempt, read, place)

    def _bounded(self, attempt: Attempt, name: str, column: str) -> Column | None:
        """A column whose bounds in files tell which values are there."""
        found = (each for each in self.columns(attempt.plan, name) if each.name.lower() == column.lower())
        return next((each for each in found if each.type in WHOLE or each.type == "DATE"), None)

    def files(self, reads: Iterable[TableRead]) -> int | None:
        """In how many files the rows of reads are; None where they are looked for in files that may hold far more."""
        counts = [self._files(read) for read in reads]
        return None if None in counts else sum(filter(None, counts))

    def _files(self, read: TableRead) -> int | None:
        upstream = self.upstreams[read.source]
        match read:
            case SnapshotRead():
                files = upstream.chosen(read)
                return None if any(each.deleted for each in files) else len(files)
            case ChangesRead():
                versions = upstream.changes(read)
                counts = [len(tuple(each.needed)) for each in versions]
                return sum(counts) if all(each.is_plain for each in versions) else None
            case SpoolRead():
                return len(read.segments)
            case _:
                return None

    def _may_go(self, attempt: Attempt, name: str) -> bool:
        """Whether rows of a table may go by what is read of it."""
        return any(
            read.source == name and isinstance(read, ChangesRead | SpoolRead | SkipRead)
            for read in attempt.read.values()
        )

    def _rows(self, attempt: Attempt, read: TableRead, place: Scratch) -> "DataFrame":
        plan, columns = attempt.plan, self.columns(attempt.plan, read.source)
        match read:
            case SkipRead():
                return self._skipped(attempt, read, place)
            case SpoolRead():
                rows = projected(self._captured(attempt, read, columns), self.upstreams[read.source], columns)
            case _:
                counts = replace(place, scans=self.scans(attempt, read.source), uses=self.uses(plan, read.source))
                rows = table_rows(attempt.spark, self.upstreams[read.source], read, columns, counts)
        left_out = keys_left_out(plan, read.source)
        return rows.where(f"NOT {among_keys(columns, left_out)}") if left_out else rows

    def scans(self, attempt: Attempt, name: str) -> Scans:
        """What counts an upstream's rows."""
        query, scans = self.query(attempt.plan), attempt.scans
        if not isinstance(query, RelationalQuery):
            return scans
        early = scans.ends_early or name in query.read_in_part
        return replace(scans, ends_early=early, every_value=True)

    def uses(self, plan: Plan, name: str) -> frozenset[str] | None:
        """The columns of an upstream that are read, in small letters; None for all."""
        query = self.query(plan)
        if not isinstance(query, RelationalQuery) or keys_left_out(plan, name):
            return None
        return frozenset(each.lower() for each in query.used[name] | ({ERROR.name} if name in query.good else set()))

    def _captured(self, attempt: Attempt, read: SpoolRead, columns: Sequence[Column]) -> "DataFrame":
        """The rows of segments of the view's spool."""
        names = [f"{read.source}/{first}" for first in read.segments]
        paths = segment_files(self.output, attempt.plan.spooled, names)
        rows = parquet_files(attempt.spark, map(self.output.child, paths), ddl((*columns, CHANGE)))
        return attempt.scans.by(partial(scan_of, read))(rows, lambda: footer_rows(self.output, dict.fromkeys(paths, 0)))

    def _skipped(self, attempt: Attempt, read: SkipRead, place: Scratch) -> "DataFrame":
        """The rows of keys that are left out from now on, as deletes, and of those that are taken in again, as inserts."""
        from pyspark.sql import functions as F  # noqa: N812

        plan = attempt.plan
        assert isinstance(plan.before, SnapshotPosition)
        assert isinstance(plan.after, SnapshotPosition)
        upstream, columns = self.upstreams[read.source], self.columns(plan, read.source)
        parts = []
        for position, keys, change in ((plan.before, read.out, "delete"), (plan.after, read.back, "insert")):
            if keys:
                each, inside = recorded(upstream, position.tables[read.source]), f"{place.path}/{change}"
                scratch = replace(place, path=inside, scans=self.scans(attempt, read.source))
                rows = recorded_rows(attempt.spark, each, columns, scratch, skipped=True)
                parts.append(rows.where(among_keys(columns, keys)).withColumn(CHANGE.name, F.lit(change)))
        return reduce(lambda some, more: some.unionByName(more), parts)

    def columns(self, plan: Plan, name: str) -> tuple[Column, ...]:
        """The columns of an upstream that the view reads, including its key."""
        return with_key(self.query(plan), self.upstreams[name])

    def whole(self, attempt: Attempt, name: str) -> "DataFrame":
        """All rows of an upstream that the view stands for after an epoch. Spark reads them only if groups need them."""
        plan = attempt.plan
        assert isinstance(plan.after, SnapshotPosition)
        each = recorded(self.upstreams[name], plan.after.tables[name])
        place = replace(attempt.scratch("whole"), scans=replace(attempt.scans, implied=True))
        return recorded_rows(attempt.spark, each, self.columns(plan, name), place)

    def spool(self, attempt: Attempt) -> None:
        """Put what the plan captures into the spool, and what the pinned versions are made of, if it is not there yet."""
        plan, folder = attempt.plan, attempt.staging.name
        for read in plan.table_reads:
            if isinstance(read, CaptureRead) and read.rows:
                segment = f"{read.source}/{read.first}"
                scratch = attempt.scratch(segment)
                upstream, columns = self.upstreams[read.source], self.columns(plan, read.source)
                rows = table_rows(attempt.spark, upstream, read.changes, columns, scratch)
                attempt.staging.reach()
                attempt.scans.computed(
                    capture(self.output, folder, segment, rows, tasks=tasks_for(attempt.spark, read.rows))
                )
        new = set(spooled_parts(plan.after)) - plan.spooled.keys()
        tables = plan.after.tables if isinstance(plan.after, SnapshotPosition) else {}
        for name, table in tables.items():
            if f"{name}/{SPOOLED_SNAPSHOT}" in new:
                keep_version(self.output, folder, name, self.upstreams[name].version(table.pinned))
