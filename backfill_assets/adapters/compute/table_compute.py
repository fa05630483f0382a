"""Carries out a plan over Delta tables with Spark: files of a snapshot or versions of a change log in, staged files
out.

The effect of a change log on a view is consolidated by the view's key, in Spark, before anything is written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from backfill_assets.adapters.compute.broadcast_memory import key_bytes
from backfill_assets.adapters.compute.changes import (
    OPERATION,
    ROWS,
    DuplicateKey,
    batch,
    changed_groups,
    kept,
    signed,
    view_columns,
    write_changes,
    write_new,
)
from backfill_assets.adapters.compute.differences import differences, mostly_differ
from backfill_assets.adapters.compute.key_checks import (
    KEY_BYTES,
    MOVED,
    NAMED_KEYS,
    check_changes,
    check_rows,
    duplicate,
)
from backfill_assets.adapters.compute.poison import Work, computed
from backfill_assets.adapters.compute.poison_search import Suspects, poison_rows
from backfill_assets.adapters.compute.recorded_rows import recorded, recorded_rows, with_key
from backfill_assets.adapters.compute.relational_changes import (
    IS_INSERT,
    Changed,
    TableChanges,
    changed_rows,
    changes_readable,
    check_changes_readable,
)
from backfill_assets.adapters.compute.rules import followed
from backfill_assets.adapters.compute.source_compute import SMALL_EPOCH
from backfill_assets.adapters.compute.table_rows import Scratch, projected, table_rows
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.spool import capture, keep_version, segment_files
from backfill_assets.adapters.delta.staging import INPUTS, collect, delete_folder
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.runtime.spark_conf import cores
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.keys import among_keys
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import Plan, Rule, Staged, spooled_parts
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.positions import SPOOLED_SNAPSHOT, SnapshotPosition
from backfill_assets.core.progress.reads import (
    CaptureRead,
    ChangesRead,
    FullRead,
    KeyRead,
    SkipRead,
    SpoolRead,
    TableRead,
)
from backfill_assets.core.strategies.table_skips import keys_left_out
from backfill_assets.errors import ComputeError, QueryError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column, ddl, quoted
from backfill_assets.query.query import Query, is_constrained, unique_keys
from backfill_assets.query.relational import RelationalQuery, Steps
from backfill_assets.query.rowwise import CARRIED_CHANGE, CHANGE, RowwiseQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TableCompute"]

ROWS_PER_CHANGE = 3
"""Changes are followed if all tables together have more than this many times as many rows; otherwise computing
everything costs less."""

DUPLICATE = "__twice"
RULE = "__rule_"
"""Among the counts of what was staged, with the name of a rule: it was computed by that one, and not in full."""
_RULES: Final[tuple[Rule, ...]] = ("additive", "linear", "restricted")
REPLACED = "__replaced"
"""A count of what was staged: whether it is all rows of the view."""


@dataclass(frozen=True, kw_only=True)
class TableCompute:
    """`ports.Compute` for a view over Delta tables; its query, by incarnation, is requested when it is needed."""

    runner: SparkRunner
    output: TableLocation
    upstreams: Mapping[str, DeltaUpstream]
    query: Callable[[str], Query]
    mode: str = "auto"
    """Whether what changed is followed where it is little (`auto`), wherever a rule allows (`incremental`), always
    (`incremental_strict`) or never (`full`)."""

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        """Compute the changes that the plan makes to the view at version `at`.

        Errors: `DuplicateKeyError`; `VersionsLostError` if Spark fails and files that it read are missing;
        `PoisonRowError` if rows cannot be computed; otherwise `ComputeError`.
        """
        folder = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
        try:
            counts = computed(
                self.runner,
                Work.of(plan),
                lambda spark: self._write(spark, plan, folder, at),
                lambda spark: self._poison(spark, plan, folder),
            )
        except (ComputeError, QueryError):
            self._check_there(plan)
            raise
        finally:
            delete_folder(self.output, f"{folder}/{INPUTS}")
        return Staged(
            files=collect(self.output, folder),
            rows_read=plan.offsets,
            rows_written=counts["insert"] + counts["update"],
            rows_updated=counts["update"],
            rows_deleted=counts["delete"],
            key=self.query(plan.incarnation).key_columns,
            replaces=bool(counts.get(REPLACED)),
            rule=self._rule(plan, counts),
        )

    def _rule(self, plan: Plan, counts: Mapping[str, int]) -> Rule:
        if not isinstance(self.query(plan.incarnation), RelationalQuery):
            return ""
        return next((rule for rule in _RULES if RULE + rule in counts), "full")

    def _check_there(self, plan: Plan) -> None:
        """Check that all files exist that Spark may have read. Before it reads, only those that it reads in any case
        are checked."""
        whole = isinstance(self.query(plan.incarnation), AggregateQuery)
        for read in plan.consumed:
            self.upstreams[read.source].check_readable(read)
            if whole and isinstance(read, ChangesRead | SpoolRead):
                self.upstreams[read.source].check_whole(read.last)  # groups that lose an extreme are read again

    def _poison(self, spark: "SparkSession", plan: Plan, folder: str) -> Suspects:
        """The rows of a plan's input that cannot be computed."""
        inputs = self._inputs(spark, plan, folder)
        columns = view_columns(self.output)
        return poison_rows(self.query(plan.incarnation), inputs, self.upstreams, columns, rows=plan.offsets)

    def _write(self, spark: "SparkSession", plan: Plan, folder: str, at: int) -> dict[str, int]:
        from backfill_assets.adapters.sql.apply_rowwise import apply_rowwise

        query = self.query(plan.incarnation)
        self._spool(spark, plan, folder)
        if not plan.consumed:
            return {"insert": 0, "update": 0, "delete": 0}
        if plan.replaces:
            followed = isinstance(query, RelationalQuery) and self._followed(spark, plan, folder, at)
            return followed or self._in_full(spark, plan, folder, at)
        if isinstance(query, AggregateQuery):
            return self._groups(spark, plan, at, folder)
        assert isinstance(query, RowwiseQuery)
        result = apply_rowwise(query, self._inputs(spark, plan, folder))
        if not _may_meet_old_rows(plan) or not query.key_columns:
            rows = result.selectExpr(*view_columns(self.output))
            return write_new(rows, self._place(folder), tasks=_tasks(plan.offsets))
        return self._changes(spark, plan, _consolidated(result, *unique_keys(query)), folder, at)

    def _changes(self, spark: "SparkSession", plan: Plan, rows: "DataFrame", folder: str, at: int) -> dict[str, int]:
        """Stage changes, consolidated by key, to be merged into the view at a version."""
        query, place = self.query(plan.incarnation), self._place(folder)
        chosen = rows.selectExpr(*view_columns(self.output), OPERATION, DUPLICATE, MOVED)
        width = {KEY_BYTES: key_bytes(chosen, {name for key in unique_keys(query) for name in key})}
        counts = write_changes(chosen, place, DUPLICATE, MOVED, tasks=_tasks(plan.offsets), more=width)
        if isinstance(query, AggregateQuery) or not is_constrained(query):
            return counts
        if counts[DUPLICATE]:
            twice = rows.where(DUPLICATE).select(*map(quoted, query.key_columns)).limit(NAMED_KEYS).collect()
            raise duplicate(plan, query, query.key_columns, [DuplicateKey(key=tuple(row), rows=2) for row in twice])
        if counts["insert"] or counts[MOVED]:
            changes, held = spark.read.parquet(place), rows_at(spark, self.output, at)
            check_changes(plan, query, changes, held, counts)
        return counts

    def _in_full(self, spark: "SparkSession", plan: Plan, folder: str, at: int) -> dict[str, int]:
        """Stage all rows of the view, or only how they differ from its present rows, if few do."""
        query, place = self.query(plan.incarnation), self._place(folder)
        old, held = rows_at(spark, self.output, at), sum(each.held for each in plan.reads if isinstance(each, FullRead))
        # Groups are few compared with the rows that they are computed from.
        few = 0 if isinstance(query, AggregateQuery) else held
        with kept(batch(query, self._inputs(spark, plan, folder)).selectExpr(*view_columns(self.output))) as new:
            if query.key_columns and not mostly_differ(new, old, query.key_columns, rows=few):
                changes = _consolidated(differences(new, old), *unique_keys(query))
                return self._changes(spark, plan, changes, folder, at)
            counts = write_new(new, place, tasks=_tasks(held))
        if counts["insert"] and not isinstance(query, AggregateQuery) and is_constrained(query):
            check_rows(plan, query, spark.read.parquet(f"{place}/{OPERATION}=insert"))
        return {**counts, REPLACED: 1}

    def _followed(self, spark: "SparkSession", plan: Plan, folder: str, at: int) -> dict[str, int]:
        """Stage what changes do to a view whose query has a rule for them; nothing where that does not fit."""
        query = self.query(plan.incarnation)
        assert isinstance(query, RelationalQuery)
        reads = [each for each in plan.reads if isinstance(each, FullRead)]
        changed = [each for each in reads if each.first <= each.last and each.rows]
        steps = query.steps([each.source for each in changed])
        if steps.rule == "full" or not self._fits(plan, reads, changed, steps):
            return {}
        work = TableChanges(
            new=self._inputs(spark, plan, folder),
            changed={each.source: self._changed(spark, plan, each, folder) for each in changed},
            held=rows_at(spark, self.output, at),
            rows=sum(each.rows for each in changed),
        )
        with followed(query, steps, work) as changes:
            if OPERATION in changes.columns:
                chosen = changes.selectExpr(*view_columns(self.output), OPERATION)
                counts = write_changes(chosen, self._place(folder), tasks=_tasks(work.rows))
            else:
                counts = self._changes(spark, plan, _consolidated(changes, *unique_keys(query)), folder, at)
        return {**counts, RULE + steps.rule: 1}

    def _changed(self, spark: "SparkSession", plan: Plan, read: FullRead, folder: str) -> Changed:
        place = Scratch(table=self.output, path=f"{folder}/{INPUTS}/changes/{read.source}")
        return changed_rows(spark, self.upstreams[read.source], read, self._columns(plan, read.source), place)

    def _fits(self, plan: Plan, reads: Sequence[FullRead], changed: Sequence[FullRead], steps: Steps) -> bool:
        """Whether changes are to be followed: they can be read, and are few beside what the tables hold."""
        if self.mode == "full" or not changed or any(keys_left_out(plan, each.source) for each in reads):
            return False
        few = ROWS_PER_CHANGE * sum(each.rows for each in changed) <= sum(each.held for each in reads)
        if self.mode == "incremental_strict":
            check_changes_readable(self.upstreams, changed, before=steps.rule != "restricted" or bool(steps.linear))
            return True
        return (few or self.mode != "auto") and changes_readable(
            self.upstreams, changed, before=steps.rule != "restricted" or bool(steps.linear)
        )

    def _inputs(self, spark: "SparkSession", plan: Plan, folder: str) -> "dict[str, DataFrame]":
        found: dict[str, list[DataFrame]] = {}
        for number, read in enumerate(plan.consumed):
            if isinstance(read, ChangesRead) and not read.rows:
                continue  # versions that are only maintenance, included so that reads follow each other without a gap
            rows = self._rows(spark, plan, read, Scratch(table=self.output, path=f"{folder}/{INPUTS}/{number}"))
            found.setdefault(read.source, []).append(rows)
        return {name: reduce(lambda some, more: some.unionByName(more), rows) for name, rows in found.items()}

    def _rows(self, spark: "SparkSession", plan: Plan, read: TableRead, place: Scratch) -> "DataFrame":
        columns = self._columns(plan, read.source)
        match read:
            case SkipRead():
                return self._skipped(spark, plan, read, place)
            case SpoolRead():
                found = segment_files(self.output, plan.spooled, [f"{read.source}/{first}" for first in read.segments])
                captured = spark.read.schema(ddl((*columns, CHANGE))).parquet(*found)
                rows = projected(captured, self.upstreams[read.source], columns)
            case _:
                rows = table_rows(spark, self.upstreams[read.source], read, columns, place)
        left_out = keys_left_out(plan, read.source)
        return rows.where(f"NOT {among_keys(columns, left_out)}") if left_out else rows

    def _skipped(self, spark: "SparkSession", plan: Plan, read: SkipRead, place: Scratch) -> "DataFrame":
        """The rows of keys that are left out from now on, as deletes, and of those that are taken back, as inserts."""
        from pyspark.sql import functions as F  # noqa: N812

        assert isinstance(plan.before, SnapshotPosition)
        assert isinstance(plan.after, SnapshotPosition)
        upstream, columns = self.upstreams[read.source], self._columns(plan, read.source)
        parts = []
        for position, keys, change in ((plan.before, read.out, "delete"), (plan.after, read.back, "insert")):
            if keys:
                each, inside = recorded(upstream, position.tables[read.source]), f"{place.path}/{change}"
                scratch = Scratch(table=place.table, path=inside)
                rows = recorded_rows(spark, each, columns, scratch, skipped=True).where(among_keys(columns, keys))
                parts.append(rows.withColumn(CHANGE.name, F.lit(change)))
        return reduce(lambda some, more: some.unionByName(more), parts)

    def _columns(self, plan: Plan, name: str) -> tuple[Column, ...]:
        """The columns of an upstream that the view reads, including its key."""
        return with_key(self.query(plan.incarnation), self.upstreams[name])

    def _spool(self, spark: "SparkSession", plan: Plan, folder: str) -> None:
        """Write what the plan captures to the spool, and the file lists of the pinned versions if they are not there
        yet."""
        for read in plan.table_reads:
            if isinstance(read, CaptureRead) and read.rows:
                segment = f"{read.source}/{read.first}"
                scratch = Scratch(table=self.output, path=f"{folder}/{INPUTS}/{segment}")
                columns = self._columns(plan, read.source)
                rows = table_rows(spark, self.upstreams[read.source], read.changes, columns, scratch)
                capture(self.output, folder, segment, rows, tasks=_tasks(read.rows))
        new = set(spooled_parts(plan.after)) - plan.spooled.keys()
        tables = plan.after.tables if isinstance(plan.after, SnapshotPosition) else {}
        for name, table in tables.items():
            if f"{name}/{SPOOLED_SNAPSHOT}" in new:
                keep_version(self.output, folder, name, self.upstreams[name].version(table.pinned))

    def _groups(self, spark: "SparkSession", plan: Plan, at: int, folder: str) -> dict[str, int]:
        """Stage the final rows of the groups; groups from which a value cannot be removed are recomputed from the last
        version read."""
        query = self.query(plan.incarnation)
        assert isinstance(query, AggregateQuery)
        ((name, rows),) = self._inputs(spark, plan, folder).items()
        assert isinstance(plan.after, SnapshotPosition)
        follows = any(isinstance(read, ChangesRead | SpoolRead | SkipRead) for read in plan.consumed)
        after, columns = recorded(self.upstreams[name], plan.after.tables[name]), self._columns(plan, name)
        place = Scratch(table=self.output, path=f"{folder}/{INPUTS}/whole")
        whole = (lambda: recorded_rows(spark, after, columns, place)) if follows else None
        with kept(signed(query, rows, f"IF({CHANGE.name} {IS_INSERT}, 1, -1)")) as changes:
            changed = changed_groups(query, changes, rows_at(spark, self.output, at), whole, rows=plan.offsets)
            chosen = changed.selectExpr(*view_columns(self.output), OPERATION)
            return write_changes(chosen, self._place(folder), tasks=_tasks(plan.offsets))

    def _place(self, folder: str) -> str:
        return self.output.child(f"{folder}/{ROWS}")


def _may_meet_old_rows(plan: Plan) -> bool:
    """Whether several rows may have the same key. In one version, whose keys were checked to be unique, they cannot."""
    assert isinstance(plan.before, SnapshotPosition)
    pinned = {name: table.pinned for name, table in plan.before.tables.items()}
    return any(
        isinstance(read, ChangesRead | SpoolRead | SkipRead)
        or (isinstance(read, KeyRead) and read.version != pinned[read.source])
        for read in plan.consumed
    )


def _tasks(rows: int) -> int:
    return 1 if rows <= SMALL_EPOCH else cores()


def _consolidated(rows: "DataFrame", key: Sequence[str], primary_key: Sequence[str] = ()) -> "DataFrame":
    """Consolidated changes, one row per key: its final value, `__op`, whether the key is duplicate (`__duplicate`), and
    whether the row has another primary key than before (`__moved`).

    Whole rows are added up first, so that a row that was inserted and deleted again leaves nothing, in whatever order
    that happened. One remaining row is new or deleted; one of each kind is a replacement; anything else means that the
    key is not unique.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = [each for each in rows.columns if each != CARRIED_CHANGE]
    sums = F.expr(f"sum(IF({CARRIED_CHANGE} {IS_INSERT}, 1, -1))").alias("__rows")
    # Rows of a key are shuffled once: Spark then adds up rows, and after that keys, without another shuffle.
    together = rows.repartition(*map(quoted, key))
    left = together.groupBy(*map(quoted, columns)).agg(sums).where("__rows <> 0")
    netted = left.groupBy(*(F.col(quoted(name)).alias(f"__group_{at}") for at, name in enumerate(key))).agg(
        F.max_by(F.struct(*map(quoted, columns)), "__rows").alias("__last"),
        F.sum(F.greatest("__rows", F.lit(0))).alias("__came"),
        F.sum(F.least("__rows", F.lit(0))).alias("__went"),
        *(F.min_by(quoted(name), "__rows").alias(f"__was_{at}") for at, name in enumerate(primary_key)),
    )
    operation = F.expr("CASE WHEN __came = 0 THEN 'delete' WHEN __went = 0 THEN 'insert' ELSE 'update' END")
    twice = F.expr("__came > 1 OR __went < -1")
    same = [f"__last.{quoted(name)} <=> __was_{at}" for at, name in enumerate(primary_key)]
    flags = {OPERATION: operation, DUPLICATE: twice, MOVED: F.expr(f"NOT ({' AND '.join(same) or 'TRUE'})")}
    kept = [F.col(f"__last.{quoted(name)}") for name in columns]
    return netted.withColumns(flags).select(*kept, *flags)
