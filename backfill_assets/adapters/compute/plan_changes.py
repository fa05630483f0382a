"""What the reads of a plan mean for a query over several tables: rows that come to tables, and rows that go."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.chosen_steps import changed_reads
from backfill_assets.adapters.compute.relational_changes import Changed, TableChanges, changed_rows
from backfill_assets.adapters.compute.selectable_rows import Finder, SelectableRows
from backfill_assets.adapters.compute.table_inputs import TableInputs
from backfill_assets.adapters.delta.found_rows import FoundRows
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.sql.keys import in_parts
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import ChangesRead, FullRead, HashRead, LookupRead, SnapshotRead, SpoolRead
from backfill_assets.core.strategies.table_plans import is_first_chunk
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.steps import Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["chunk_of", "logged_changes", "rows_go", "rows_of_parts"]


def rows_go(upstreams: Mapping[str, DeltaUpstream], plan: Plan) -> bool:
    """Whether rows go by the changes that a plan reads. What was captured of them may have lost its log: it counts as
    such."""
    return any(
        isinstance(read, SpoolRead)
        or (
            isinstance(read, ChangesRead | FullRead)
            and any(commit.deletes for commit in upstreams[read.source].commits(read.first - 1, read.last))
        )
        for read in plan.consumed
    )


def logged_changes(reads: TableInputs, attempt: Attempt, held: SelectableRows, steps: Steps) -> TableChanges:
    """What changed in the tables that a plan reads, for a view that has `held` rows."""
    changed = changed_reads(attempt.plan)
    # What groups are computed again from is read only if there are such groups.
    reading = replace(attempt, scans=replace(attempt.scans, implied=steps.rule == "additive"))
    versions = {each.source: each.last for each in attempt.plan.reads if isinstance(each, FullRead)}
    finders = {name: _finder(reads, attempt, name) for name in versions}

    def new(name: str) -> SelectableRows:
        return SelectableRows(every=lambda: reads.rows(reading, name), found=finders[name].in_version(versions[name]))

    return TableChanges(
        new=new,
        changed={each.source: _changed(reads, attempt, each, finders[each.source]) for each in changed},
        held=held,
        spark=attempt.spark,
        rows=sum(each.rows for each in changed),
        measure=attempt.scans.measure,
        note=attempt.scans.note,
        computed=attempt.scans.computed,
    )


def chunk_of(reads: TableInputs, attempt: Attempt, held: SelectableRows) -> TableChanges:
    """The rows of a chunk of history, as rows that come to tables."""
    plan = attempt.plan

    def come(name: str) -> "DataFrame":
        return reads.rows(attempt, name, SnapshotRead)

    def new(name: str) -> SelectableRows:
        return SelectableRows(
            every=lambda: reads.rows(attempt, name, LookupRead), near=partial(reads.near, attempt, name)
        )

    return TableChanges(
        new=new,
        changed={
            each.source: Changed(come=partial(come, each.source), spans=partial(reads.spans, attempt, each.source))
            for each in plan.reads
            if isinstance(each, SnapshotRead)
        },
        held=held,
        spark=attempt.spark,
        rows=plan.offsets,
        measure=attempt.scans.measure,
        note=attempt.scans.note,
        computed=attempt.scans.computed,
        first=is_first_chunk(plan),
    )


def rows_of_parts(reads: TableInputs, attempt: Attempt) -> "DataFrame":
    """What a query gives for the parts of the hashes of a key that a plan reads: rows that only come."""
    from backfill_assets.adapters.sql.apply_relational import result_rows

    plan, query = attempt.plan, reads.query(attempt.plan)
    assert isinstance(query, RelationalQuery)
    assert isinstance(plan.before, SnapshotPosition)
    assert plan.before.driving is not None
    hashes, parts = plan.before.driving.hashes, {each.source: each for each in plan.reads if isinstance(each, HashRead)}

    def bound(at: int, name: str) -> "DataFrame":
        if at not in hashes:
            return reads.rows(attempt, name, LookupRead)
        rows = reads.rows(attempt, name, HashRead)
        return rows.where(in_parts(hashes[at], parts[name].parts, parts[name].ranges[0]))

    return result_rows(query, [bound(at, name) for at, name in enumerate(query.occurrences)])


def _changed(reads: TableInputs, attempt: Attempt, read: FullRead, finder: Finder) -> Changed:
    scratch, scans = attempt.scratch(f"changes/{read.source}"), reads.scans(attempt, read.source)
    place = replace(scratch, scans=scans, uses=finder.uses)
    return changed_rows(finder, read, place, netted=attempt.netted)


def _finder(reads: TableInputs, attempt: Attempt, name: str) -> Finder:
    """What finds rows of an upstream in this process."""
    return Finder(
        spark=attempt.spark,
        upstream=reads.upstreams[name],
        columns=reads.columns(attempt.plan, name),
        uses=reads.uses(attempt.plan, name),
        files=FoundRows(reads.upstreams[name].location),
    )
