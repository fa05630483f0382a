"""Proof that a table's rows are those of its records, or of its query: all of them, or what was written since a pass."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from backfill_assets.adapters.proof.rows import Derived, Difference, Proof, difference, table_bytes, whole_difference
from backfill_assets.adapters.proof.since import NOTHING, OfTables, records_since, tables_since
from backfill_assets.adapters.proof.tables import at_position, recomputed
from backfill_assets.adapters.proof.written import Written
from backfill_assets.app.proof_case import Case, Outcome, branches_of, is_aggregate, keys_of
from backfill_assets.app.wiring.view_inputs import ViewInputs
from backfill_assets.core.audit import Evidence, consumed, evidence
from backfill_assets.core.epoch.ports import BronzeState, TopicState
from backfill_assets.core.epoch.skips import left_out_of
from backfill_assets.core.progress.positions import IngestPosition, OffsetRange, SnapshotPosition
from backfill_assets.core.progress.reads import size_of
from backfill_assets.core.proof_scope import Everything, Since, followed, scope
from backfill_assets.core.strategies.source import SourceUpstream
from backfill_assets.declare.model import KafkaSource, MaterializedView, sources_of
from backfill_assets.errors import UpstreamChangedError, VersionsLostError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.relational import RelationalQuery

__all__ = ["equal_to_query", "equal_to_records", "evidence_of"]

Ranges = Mapping[tuple[str, int], OffsetRange]


def equal_to_records(case: Case) -> Outcome:
    """A source, or a view over sources, against its records, read again from where they still exist."""
    written = case.written()
    everything = isinstance(written, Everything)
    before: Ranges = consumed(case.last.record.position) if case.last and not everything else {}
    wanted = _still_to_prove(consumed(case.record.position), before)
    found = {source.name: evidence_of(case, source, wanted) for source in sources_of(case.table.declared)}
    if is_aggregate(case):
        nowhere = {name: sorted(each.unprovable) for name, each in found.items() if each.unprovable or _forgetful(each)}
        if nowhere:
            places = "; ".join(
                f"{name}: partition {', '.join(map(str, gone))} in part" if gone else f"{name}: its topic is compacted"
                for name, gone in nowhere.items()
            )
            summary = f"cannot be proved: not all records from which the groups were computed are there: {places}"
            return Outcome(passed=False, unproved=True, summary=summary, facts={"not_provable": nowhere})
    derived = _derived(case, found)
    result = _difference(case, derived, found, before, None if isinstance(written, Everything) else written)
    lost = {
        f"{name}/{partition}": f"{r.start} to {r.end}"
        for name, e in found.items()
        for partition, r in e.unprovable.items()
    }
    origin = " and ".join(sorted({read.kind for read in derived.reads})) or "nothing new"
    facts: dict[str, Any] = {
        "derived_from": origin,
        "not_provable": lost,
        "proved_share": _share(case, result) if lost else 1.0,
        "subset_only": any(each.subset for each in found.values()),
    }
    if lost and not (result.rows_expected and derived.reads) and not (result.missing or result.unexpected):
        summary = f"cannot be proved: the offsets exist nowhere else any more: {lost}"
        return _compared(case, written, result, summary, unproved=True, **facts)
    note = f"; offsets that exist nowhere else any more were not proved: {lost}" if lost else ""
    summary = f"{result.rows_found} rows equal those derived again from {origin}{note}"
    return _compared(case, written, result, summary, **facts)


def equal_to_query(case: Case, view: MaterializedView) -> Outcome:
    """A view over Delta tables against its query, recomputed over what was read since the last pass, or at the recorded
    versions (for a snapshot: files)."""
    position, reads = case.record.position, case.workspace.inputs(view)
    assert isinstance(position, SnapshotPosition)
    since = _read_since(case, position, reads)
    try:
        if isinstance(since, _SinceTables):
            return _equal_since(case, since)
        return _equal_in_full(case, position, since, reads)
    except VersionsLostError as error:
        summary = f"cannot be proved: {error.message}"
        return Outcome(passed=False, unproved=True, summary=summary, facts={"not_provable": error.facts})


def _equal_since(case: Case, since: "_SinceTables") -> Outcome:
    runner, read = case.runner, since.read
    try:
        result = tables_since(runner, case.workspace.inputs(since.view).query.present, read, since.written)
    except Exception:
        at_position(read.position, read.tables)  # for groups that lose an extreme; files may be gone
        raise
    derived_from = {name: f"{after} to {until}" for name, (after, until) in since.versions.items()}
    summary = f"{result.rows_found} rows written since epoch {case.since_epoch} equal the query over what changed since"
    return _compared(case, since.written, result, summary, derived_from=derived_from)


def _equal_in_full(case: Case, position: SnapshotPosition, why: Everything, reads: ViewInputs) -> Outcome:
    inputs = at_position(position, reads.tables)
    place = case.table.output.location
    query = reads.query.at(case.record.incarnation, position)
    result = recomputed(case.runner, query, inputs, place, case.look.version)
    summary = f"{result.rows_found} rows equal the query at the recorded versions"
    versions = {name: table.version for name, table in position.tables.items()}
    return _compared(case, why, result, summary, derived_from=versions)


@dataclass(frozen=True, kw_only=True)
class _SinceTables:
    view: MaterializedView
    written: Written
    read: OfTables
    versions: Mapping[str, tuple[int, int]]


def _read_since(case: Case, position: SnapshotPosition, reads: ViewInputs) -> _SinceTables | Everything:
    """What was written to a view over tables and read of them since the last pass; or why everything has to be proved."""
    if isinstance(reads.query.present, RelationalQuery):
        return Everything(reason="the query is computed over whole tables")
    written = case.written()
    if isinstance(written, Everything):
        return written
    assert case.last is not None
    before = case.last.record.position
    assert isinstance(before, SnapshotPosition)
    versions = followed(before, position)
    if isinstance(versions, Everything):
        return versions
    try:
        commits = {name: reads.tables[name].commits(*span) for name, span in versions.items()}
        held = table_bytes(case.table.output.location) + sum(table.size().bytes for table in reads.tables.values())
        since = scope(before, position, commits, written=written.bytes, held=held)
        if isinstance(since, Since):
            for each in since.reads:
                reads.tables[each.source].check_readable(each)
    except (VersionsLostError, UpstreamChangedError) as error:
        return Everything(reason=error.message)
    if isinstance(since, Everything):
        return since
    read = OfTables(since=since, tables=reads.tables, position=position)
    return _SinceTables(view=reads.view, written=written, read=read, versions=versions)


def _compared(
    case: Case,
    written: Written | Everything,
    result: Difference,
    summary: str,
    *,
    unproved: bool = False,
    **facts: Any,
) -> Outcome:
    """The outcome of a comparison; `summary` is its text if nothing is wrong with the table."""
    everything = isinstance(written, Everything)
    facts = {
        "rows_expected": result.rows_expected,
        "rows_found": result.rows_found,
        "missing": result.missing,
        "unexpected": result.unexpected,
        "since_epoch": 0 if everything else case.since_epoch,
        "scope": f"everything: {written.reason}" if isinstance(written, Everything) else "what was written since",
        **facts,
    }
    if result.missing or result.unexpected:
        summary = f"{result.missing} rows are missing, {result.unexpected} should not be there"
        return Outcome(passed=False, summary=summary, violations=result.violations, facts=facts)
    return Outcome(passed=not unproved, unproved=unproved, summary=summary, facts=facts)


def _derived(case: Case, found: Mapping[str, Evidence]) -> Derived:
    declared = case.table.declared
    return Derived(
        reads=tuple(read for each in found.values() for read in each.reads),
        sources={source.name: case.workspace.reader(source) for source in sources_of(declared)},
        query=declared.query if isinstance(declared, MaterializedView) else None,
        left_out=left_out_of(case.record.position),
    )


def _difference(
    case: Case, derived: Derived, found: Mapping[str, Evidence], before: Ranges, written: Written | None
) -> Difference:
    if written is not None and written.nothing and not derived.reads:
        return NOTHING
    runner, place = case.runner, case.table.output.location
    if not isinstance(derived.query, AggregateQuery):
        gone = {(_side(case, name), at): each for name, e in found.items() for at, each in e.unprovable.items()}
        subset = any(each.subset for each in found.values())
        return difference(runner, derived, _proof(case, gone, before, written, subset=subset))
    if written is None:
        return whole_difference(runner, derived, place, case.look.version, keys_of(case)[0])
    return records_since(runner, derived.query, derived, written, most=sum(map(size_of, derived.reads)))


def _share(case: Case, result: Difference) -> float:
    """Which part of all rows, or of those since the last pass, was compared."""
    rows = case.record.rows_total - (case.last.record.rows_total if case.last else 0)
    return round(result.rows_found / rows, 4) if rows else 1.0


def _forgetful(each: Evidence) -> bool:
    """Whether some of the records to read again are gone by now, so that the sums of groups cannot be compared."""
    return each.subset and any(read.kind == "kafka" for read in each.reads)


def evidence_of(case: Case, source: KafkaSource, wanted: Ranges) -> Evidence:
    """From where the records of one source are read again that a table has consumed."""
    bronze = _bronze(case, source)
    return evidence(
        SourceUpstream(name=source.name, topic=source.topic, isolation=source.isolation),
        {partition: each for (name, partition), each in wanted.items() if name == _side(case, source.name)},
        _held(case, source, bronze),
        bronze,
    )


def _held(case: Case, source: KafkaSource, bronze: BronzeState | None) -> TopicState:
    """The ingested records that the topic still has: none, if it was created again since."""
    position = bronze.position if bronze is not None else case.record.position
    assert isinstance(position, IngestPosition)
    found = case.workspace.sources.topic(source.name)
    return found if found.topic_id == position.topic_id else replace(found, partitions={})


def _side(case: Case, source: str) -> str:
    """The source's name in what a position has consumed; a source's own position does not name it."""
    return source if isinstance(case.table.declared, MaterializedView) else ""


def _proof(case: Case, unprovable: Ranges, proved: Ranges, written: Written | None, *, subset: bool) -> Proof:
    key = keys_of(case)[0]
    return Proof(
        table=case.table.output.location,
        version=case.look.version,
        partition_column=key[-2],
        offset_column=key[-1],
        branch_column=key[0] if len(key) == 3 else None,
        left_out=_by_branch(case, unprovable),
        subset=subset,
        since=written,
        proved=_by_branch(case, proved),
    )


def _by_branch(case: Case, ranges: Ranges) -> dict[int, dict[int, OffsetRange]]:
    return {
        index: {partition: each for (name, partition), each in ranges.items() if name == upstream}
        for index, upstream in enumerate(branches_of(case))
    }


def _bronze(case: Case, source: KafkaSource) -> BronzeState | None:
    return case.workspace.sources.bronze(source.name) if isinstance(case.table.declared, MaterializedView) else None


def _still_to_prove(consumed_now: Ranges, before: Ranges) -> dict[tuple[str, int], OffsetRange]:
    left = {
        key: OffsetRange(start=before[key].end if key in before else each.start, end=each.end)
        for key, each in consumed_now.items()
    }
    return {key: each for key, each in left.items() if len(each)}
