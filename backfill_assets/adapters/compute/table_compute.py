"""Carries out a plan over Delta tables with Spark: files of a snapshot or versions of a change log in, staged files
out.

The effect of a change log on a view is consolidated by the view's key, in Spark, before anything is written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.broadcast_memory import key_bytes
from backfill_assets.adapters.compute.changes import ROWS, DuplicateKey, batch, kept, schema_of, signed
from backfill_assets.adapters.compute.chosen_steps import Chosen, StepChoice, changed_reads, held_rows
from backfill_assets.adapters.compute.consolidated import consolidated
from backfill_assets.adapters.compute.copies import by_copies, unnumbered, write_numbered
from backfill_assets.adapters.compute.differences import differences
from backfill_assets.adapters.compute.key_checks import KEY_BYTES, NAMED_KEYS, check_changes, check_rows, duplicate
from backfill_assets.adapters.compute.laid_out import LaidOut, laid_out
from backfill_assets.adapters.compute.maintained_groups import maintained_groups
from backfill_assets.adapters.compute.netted_changes import IS_INSERT
from backfill_assets.adapters.compute.parameter_values import values_stay
from backfill_assets.adapters.compute.parts_that_differ import DifferingParts, parts_that_differ
from backfill_assets.adapters.compute.plan_changes import chunk_of, logged_changes, rows_go, rows_of_parts
from backfill_assets.adapters.compute.poison import Work, computed
from backfill_assets.adapters.compute.poison_search import Suspects, poison_rows
from backfill_assets.adapters.compute.relational_changes import relational_changes
from backfill_assets.adapters.compute.restricted import KEYS, REACHED
from backfill_assets.adapters.compute.rules import followed
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.compute.selectable_rows import Part, SelectableRows, ViewFinder, gathered
from backfill_assets.adapters.compute.staged_rows import StagingFolder, Tasks, put_changes, write_changes, write_new
from backfill_assets.adapters.compute.table_inputs import TableInputs
from backfill_assets.adapters.compute.tasks import fit_one_task, tasks_for
from backfill_assets.adapters.compute.value_parts import ValueParts, value_parts
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.compute.ways import Computed, Way, every_way, first_computed
from backfill_assets.adapters.delta.commits import recent_records
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.delta.layout import clustering_columns
from backfill_assets.adapters.delta.staging import INPUTS, delete_folder
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.brief_settings import set_briefly
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.named_rows import named_rows
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import scan_of_version
from backfill_assets.core.epoch.records import Plan, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.reads import (
    ChangesRead,
    SkipRead,
    SpoolRead,
)
from backfill_assets.core.strategies.table_plans import by_hashes, may_meet_old_rows
from backfill_assets.errors import ComputeError, PoisonRowError, QueryError, ReadMismatchError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import quoted
from backfill_assets.query.query import Query, is_constrained, unique_keys
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE, CHANGE, RowwiseQuery
from backfill_assets.query.steps import Steps
from backfill_assets.query.working_columns import DUPLICATE, MOVED, OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TableCompute"]

REPLACED = "__replaced"
"""A count of what was staged: whether it is all rows of the view."""

_NOTHING: Final = {"insert": 0, "update": 0, "delete": 0}
_WIDE: Final = 64
"""A table of more columns is wide."""
_FOR_WIDE: Final = {"spark.sql.constraintPropagation.enabled": "false"}
"""Otherwise Spark's planner derives conditions from every pair of names that columns have in a plan, which takes minutes."""


@dataclass(frozen=True, kw_only=True)
class TableCompute:
    """`ports.Compute` for a view over Delta tables; its query, which a plan computes, is requested when it is needed."""

    runner: SparkRunner
    output: TableLocation
    upstreams: Mapping[str, DeltaUpstream]
    query: Callable[[Plan], Query]
    is_read: bool = True
    """Whether other views read it, and follow what changes in it."""
    mode: str = "auto"
    """Whether what changed is followed where it is little (`auto`), wherever a rule allows (`incremental`), always
    (`incremental_strict`) or never (`full`)."""
    wider: Callable[[], str] = str
    """The Delta schema that a plan gives the view which redefines it. Spark is asked for it at the first call alone."""

    @property
    def _reads(self) -> TableInputs:
        return TableInputs(output=self.output, upstreams=self.upstreams, query=self.query)

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        """Compute the changes that the plan makes to the view at version `at`.

        Errors: `DuplicateKeyError`; `VersionsLostError` where Spark fails or reads too little, and what it read is gone;
        `ReadMismatchError` where it is not; `PoisonRowError` where rows cannot be computed; else `ComputeError`.
        """
        name = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
        schema = self.wider() if plan.redefines else ""  # no action of Spark may wait for another one
        folder = StagingFolder(
            table=self.output, name=name, reach=self.runner.reach, note_reached=self.runner.note_reached
        )
        try:
            records = partial(recent_records, self.output, at, plan.target)
            choice = StepChoice(upstreams=self.upstreams, mode=self.mode, is_read=self.is_read, records=records)
            chosen = choice.of(self.query(plan), plan)
            done = computed(
                self.runner,
                Work.of(plan),
                lambda spark: self._compute(self._attempt(spark, plan, folder, at), chosen),
                lambda spark: self._poison(spark, plan, folder),
            )
        except PoisonRowError:
            raise  # the files were there, and a plan that is made anew needs others
        except (ComputeError, QueryError, ReadMismatchError):
            self._check_there(plan)
            raise
        finally:
            delete_folder(self.output, f"{name}/{INPUTS}")
        return Staged(
            files=done.staging.files(),
            rows_read=plan.offsets,
            rows_written=done.counts["insert"] + done.counts["update"],
            rows_updated=done.counts["update"],
            rows_deleted=done.counts["delete"],
            key=self.query(plan).key_columns,
            replaces=bool(done.counts.get(REPLACED)),
            delta_schema=schema,
            rule=done.steps.rule if isinstance(self.query(plan), RelationalQuery) else "",
            why_full=done.why_full or chosen.why_full,
            keys_touched=done.counts.get(KEYS, 0),
            rows_reached=done.counts.get(REACHED, 0),
        )

    def _reach(self, attempt: Attempt, steps: Steps) -> dict[str, int]:
        """What an epoch touched of tables that it follows by a rule or reads in full, for reports."""
        plan, scans = attempt.plan, attempt.scans
        if not isinstance(self.query(plan), RelationalQuery) or not plan.replaces:
            return {}
        if steps.rule == "full":
            return {REACHED: held_rows(plan)}
        rows = sum(each.rows for each in changed_reads(plan))
        return {KEYS: scans.measured(KEYS), REACHED: rows + scans.measured(REACHED)}

    def _check_there(self, plan: Plan) -> None:
        """Check that all files exist that Spark may have read. Before it reads, only those that it reads in any case
        are checked."""
        whole = isinstance(self.query(plan), AggregateQuery)
        for read in plan.consumed:
            self.upstreams[read.source].check_readable(read)
            if whole and isinstance(read, ChangesRead | SpoolRead):
                self.upstreams[read.source].check_whole(read.last)  # groups that lose an extreme are read again

    def _poison(self, spark: "SparkSession", plan: Plan, folder: StagingFolder) -> Suspects:
        """The rows of a plan's input that cannot be computed."""
        attempt = replace(self._attempt(spark, plan, folder, -1), netted=True)
        inputs = self._reads.every(attempt)
        return poison_rows(self.query(plan), inputs, self.upstreams, attempt.columns, rows=plan.offsets)

    def _attempt(self, spark: "SparkSession", plan: Plan, folder: StagingFolder, at: int) -> Attempt:
        query = self.query(plan)
        scans = Scans(plan=plan, ends_early=isinstance(query, RelationalQuery) and query.ends_early)
        schema = self.wider() if plan.redefines else schema_of(self.output)
        return Attempt(spark=spark, plan=plan, view=self.output, staging=folder, at=at, schema=schema, scans=scans)

    def _compute(self, attempt: Attempt, chosen: Chosen) -> Computed:
        """Stage what a plan does to the view."""
        is_wide = any(len(self._reads.columns(attempt.plan, name)) > _WIDE for name in self.upstreams)
        with set_briefly(attempt.spark.conf, _FOR_WIDE if is_wide else {}):
            return self._by_a_way(attempt, chosen)

    def _by_a_way(self, attempt: Attempt, chosen: Chosen) -> Computed:
        """Stage it by the first way that works."""
        self._reads.spool(attempt)
        first = replace(attempt, replaced=chosen.replaced)
        again = partial(self._attempt, attempt.spark, attempt.plan, at=attempt.at)
        nets = partial(rows_go, self.upstreams, attempt.plan)
        ways = every_way(first, chosen.steps, again, nets=nets, in_full=self.mode != "incremental_strict")
        return first_computed(ways, partial(self._by, first))

    def _by(self, first: Attempt, way: Way) -> Computed:
        """Stage it by one way."""
        attempt = way.attempt
        try:
            with attempt.scans.checked():
                steps = self._settled(attempt, way.steps)
                counts = self._write(attempt, steps) if attempt.plan.consumed else dict(_NOTHING)
        finally:
            if attempt is not first:
                delete_folder(self.output, f"{attempt.staging.name}/{INPUTS}")
        why = way.why_full or ("" if steps is way.steps else "parameters")
        return Computed(attempt.staging, counts | self._reach(attempt, steps), steps, why)

    def _settled(self, attempt: Attempt, steps: Steps) -> Steps:
        """The steps; those in full where they count on a parameter's value, and it is another one now."""
        if not steps.parameters:
            return steps
        query = self.query(attempt.plan)
        assert isinstance(query, RelationalQuery)
        work = logged_changes(self._reads, attempt, self._held(attempt), steps)
        before = query.first.query if query.first is not None else query
        return steps if values_stay(before, steps.parameters, work) else Steps("full")

    def _write(self, attempt: Attempt, steps: Steps) -> dict[str, int]:
        from backfill_assets.adapters.sql.apply_rowwise import apply_rowwise

        plan = attempt.plan
        query = self.query(plan)
        if plan.replaces and steps.rule == "full":
            return self._in_full(attempt)
        if isinstance(query, RelationalQuery):
            return self._followed(attempt, steps)
        if isinstance(query, AggregateQuery):
            return self._groups(attempt)
        assert isinstance(query, RowwiseQuery)
        result = apply_rowwise(query, self._reads.every(attempt))
        if not may_meet_old_rows(plan) or not query.key_columns:
            rows = result.selectExpr(*attempt.columns)
            tasks = Tasks(tasks_for(attempt.spark, plan.offsets))
            return write_new(rows, attempt.staging, tasks=tasks, scans=attempt.scans)
        changes = gathered(result, few=fit_one_task(plan.offsets, self._reads.files(attempt.read.values())))
        return self._changes(attempt, consolidated(changes.frame, *unique_keys(query), few=changes.few))

    def _changes(self, attempt: Attempt, rows: "DataFrame") -> dict[str, int]:
        """Stage changes, netted by key, that are to be merged into the view at a version."""
        plan, query = attempt.plan, self.query(attempt.plan)
        chosen = rows.selectExpr(*attempt.columns, OPERATION, DUPLICATE, MOVED)
        width = {KEY_BYTES: key_bytes(chosen, {name for key in unique_keys(query) for name in key})}
        with self._laid_out(attempt, chosen, plan.offsets, before=[OPERATION]) as (ordered, tasks):
            counts = write_changes(
                ordered, attempt.staging, DUPLICATE, MOVED, tasks=tasks, scans=attempt.scans, more=width
            )
        if isinstance(query, AggregateQuery) or not is_constrained(query):
            return counts
        if counts[DUPLICATE]:
            twice = rows.where(DUPLICATE).select(*map(quoted, query.key_columns)).limit(NAMED_KEYS)
            found = [DuplicateKey(key=tuple(row), rows=2) for row in named_rows(twice)]
            raise duplicate(plan, query, query.key_columns, found)
        if counts["insert"] or counts[MOVED]:

            def staged() -> "DataFrame":
                return attempt.staging.read(attempt.spark, ROWS, chosen.drop(DUPLICATE, MOVED).schema)

            check_changes(attempt, query, staged, self._held(attempt), counts)
        return counts

    def _in_full(self, attempt: Attempt) -> dict[str, int]:
        """Stage what the view is to hold: all of it, or only how that differs from its rows, where few do."""
        plan, query = attempt.plan, self.query(attempt.plan)
        held = held_rows(plan)
        few = 0 if isinstance(query, AggregateQuery) else held  # groups are few beside the rows that they are made of
        copies = isinstance(query, RelationalQuery) and query.by_copies
        left_out, key = [COPY] if copies else [], unnumbered(query.key_columns)
        every = batch(query, self._reads.every(attempt)).selectExpr(*attempt.columns).drop(*left_out)
        old = self._finder_of_view(attempt)
        if old.is_empty or attempt.replaced:
            counts = self._replaced(attempt, every, rows=held)
            self._check_new(attempt, counts)
            stays = old.is_empty and not counts["insert"] and not plan.redefines
            return counts if stays else {**counts, REPLACED: 1}
        with kept(every, cut=isinstance(query, RelationalQuery) and query.is_lateral) as new:
            # Not counted: what seems to differ is compared with rows that are.
            uncounted = rows_at(attempt.spark, self.output, attempt.at).drop(*left_out)
            with parts_that_differ(new, uncounted, key, rows=old.rows, read=few) as parts:
                if parts is not None:
                    return self._differences(attempt, new, parts, rows=held)
            counts = self._replaced(attempt, new, rows=held)
        self._check_new(attempt, counts)
        return {**counts, REPLACED: 1}

    def _check_new(self, attempt: Attempt, counts: Mapping[str, int]) -> None:
        """Check that no two rows have the same key, of all that a view is to hold."""
        query = self.query(attempt.plan)
        if counts["insert"] and not isinstance(query, AggregateQuery) and is_constrained(query):
            check_rows(attempt, query, counts["insert"])

    def _differences(self, attempt: Attempt, new: "DataFrame", parts: DifferingParts, *, rows: int) -> dict[str, int]:
        """Stage how all rows of a view differ from those that it has. Those without a key come without numbers."""
        query, come, held = self.query(attempt.plan), parts.only(new), self._held(attempt)
        old = held.every()
        few = fit_one_task(parts.rows, held.files)
        if not isinstance(query, RelationalQuery) or not query.by_copies:
            feed = gathered(differences(come, parts.only(old)), few=few)
            return self._changes(attempt, consolidated(feed.frame, *unique_keys(query), few=few))
        differ = differences(come.drop(ROW_HASH), parts.only(old.drop(COPY)).drop(ROW_HASH))
        feed, computed = gathered(differ, few=few), attempt.scans.computed
        with by_copies(feed, held, key=query.key_columns, rows=rows, computed=computed) as changes:
            return self._operations(attempt, changes, rows)

    def _replaced(self, attempt: Attempt, new: "DataFrame", *, rows: int) -> dict[str, int]:
        """Stage all rows of a view, of about so many that were read."""
        query = self.query(attempt.plan)
        if isinstance(query, RelationalQuery) and query.by_copies:
            return self._numbered(attempt, new)
        with self._laid_out(attempt, new, rows) as (ordered, tasks):
            return write_new(ordered, attempt.staging, tasks=tasks, scans=attempt.scans)

    def _followed(self, attempt: Attempt, steps: Steps) -> dict[str, int]:
        """Stage what changes, or a chunk of history, do to a view whose query has a rule for them."""
        query = self.query(attempt.plan)
        assert isinstance(query, RelationalQuery)
        if by_hashes(attempt.plan):
            return self._parts(attempt)
        if query.by_copies and not attempt.plan.replaces:
            chunk = chunk_of(self._reads, attempt, self._held(attempt))
            return self._numbered(attempt, relational_changes(query, chunk, steps.linear).frame.drop(CARRIED_CHANGE))
        held = self._held(attempt)
        follows = attempt.plan.replaces
        work = logged_changes(self._reads, attempt, held, steps) if follows else chunk_of(self._reads, attempt, held)
        if work.is_empty or not (steps.linear or steps.by_class):
            return dict(_NOTHING)
        with followed(query, steps, work) as changes:
            if isinstance(changes, pa.Table) or OPERATION in changes.frame.columns:
                return self._operations(attempt, changes, work.rows)
            return self._changes(attempt, consolidated(changes.frame, *unique_keys(query), few=changes.few))

    def _operations(self, attempt: Attempt, changes: Part | pa.Table, rows: int) -> dict[str, int]:
        """Stage changes, of about so many `rows`, that say what becomes of each row of a view."""
        if isinstance(changes, pa.Table):
            return put_changes(changes, attempt.staging)
        chosen = changes.frame.selectExpr(*attempt.columns, OPERATION)
        with self._laid_out(attempt, chosen, rows, before=[OPERATION]) as (ordered, tasks):
            return write_changes(ordered, attempt.staging, tasks=tasks, scans=attempt.scans)

    def _numbered(self, attempt: Attempt, come: "DataFrame") -> dict[str, int]:
        """Stage rows of a view without a key that only come."""
        query = self.query(attempt.plan)
        parts = self._value_parts(attempt, query.key_columns[0])
        return write_numbered(attempt, come, query.key_columns, parts)

    def _parts(self, attempt: Attempt) -> dict[str, int]:
        """Stage what some parts of the hashes of a key bring to a view."""
        query, come = self.query(attempt.plan), rows_of_parts(self._reads, attempt)
        assert isinstance(query, RelationalQuery)
        if query.by_copies:
            return self._numbered(attempt, come)
        feed = come.selectExpr("*", f"'insert' AS {CARRIED_CHANGE}")
        return self._changes(attempt, consolidated(feed, *unique_keys(query)))

    @contextmanager
    def _laid_out(
        self, attempt: Attempt, new: "DataFrame", rows: int, *, before: Sequence[str] = ()
    ) -> "Iterator[LaidOut]":
        """Rows, made of about so many, in the order of their key where it has a column with bounds, and before that in the
        order of others, such as that of keyed changes: only history of joined tables has an order then."""
        query = self.query(attempt.plan)
        columns = clustering_columns(attempt.schema, query.key_columns)
        if not columns or (before and (attempt.plan.replaces or not isinstance(query, RelationalQuery))):
            yield LaidOut(new, Tasks(tasks_for(attempt.spark, rows)))
            return
        parts = self._value_parts(attempt, columns[0])
        with laid_out(new, columns, attempt.scans, parts, before=before) as found:
            yield found

    def _value_parts(self, attempt: Attempt, column: str) -> ValueParts | None:
        """Parts of the rows that are written by a column. Of all rows there are about as many as the view holds."""
        rows = self._finder_of_view(attempt).rows if attempt.plan.replaces else 0
        return value_parts(attempt, self.query(attempt.plan), self.upstreams, column, rows=rows)

    def _held(self, attempt: Attempt) -> SelectableRows:
        """The rows of the view, made anew for each place that reads them."""
        scans = replace(attempt.scans, every_value=not isinstance(self.query(attempt.plan), RowwiseQuery))
        count = scans.by(partial(scan_of_version, attempt.plan.target, attempt.at))
        every = partial(rows_at, attempt.spark, self.output, attempt.at, count)
        return self._finder_of_view(attempt).selectable(every, count)

    def _finder_of_view(self, attempt: Attempt) -> ViewFinder:
        return ViewFinder(spark=attempt.spark, table=self.output.at(attempt.at), files=FoundRows(self.output))

    def _groups(self, attempt: Attempt) -> dict[str, int]:
        """Stage the groups as they are to be; what cannot be taken away is recomputed from the last version read."""
        plan, query = attempt.plan, self.query(attempt.plan)
        assert isinstance(query, AggregateQuery)
        ((name, rows),) = self._reads.every(attempt).items()
        follows = any(isinstance(read, ChangesRead | SpoolRead | SkipRead) for read in plan.consumed)
        whole = (lambda: self._reads.whole(attempt, name)) if follows else None
        changes = gathered(
            signed(query, rows, f"IF({CHANGE.name} {IS_INSERT}, 1, -1)"),
            few=fit_one_task(plan.offsets, self._reads.files(attempt.read.values())),
        )
        tasks = Tasks(tasks_for(attempt.spark, plan.offsets))
        with maintained_groups(query, changes, self._held(attempt), whole, rows=plan.offsets) as groups:
            chosen = groups.selectExpr(*attempt.columns, OPERATION)
            return write_changes(chosen, attempt.staging, tasks=tasks, scans=attempt.scans)
