"""The checks of a table, each alone: what it looks at, and whether it holds. The Dagster shell only shows the outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from backfill_assets.backfill.audit import (
    KEPT_PLANS,
    Evidence,
    LedgerEntry,
    conserved,
    consumed,
    contiguous,
    evidence,
    ledger_agrees,
)
from backfill_assets.backfill.epoch import CommitRecord, Look
from backfill_assets.backfill.ports import BronzeOffer, TopicOffer
from backfill_assets.backfill.positions import IngestPosition, OffsetRange, SnapshotPosition
from backfill_assets.backfill.source import SourceUpstream
from backfill_assets.errors import VersionsLostError
from backfill_assets.model import KafkaSource, MaterializedView
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.query import unique_keys
from backfill_assets.query.rowwise import RowwiseQuery
from backfill_assets.resources.maintain import KeyTwice
from backfill_assets.resources.state_store import CheckPass
from backfill_assets.resources.verify import (
    Derived,
    Difference,
    Proof,
    difference,
    duplicates,
    footer_rows,
    stated_rows,
    whole_difference,
)
from backfill_assets.resources.verify_bounds import added_since, misstated
from backfill_assets.resources.verify_tables import at_position, key_twice, recomputed
from backfill_assets.workspace import Table, Workspace, sources_of

__all__ = ["CHECKS", "Outcome", "run_check"]

Ranges = Mapping[tuple[str, int], OffsetRange]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a check found. `summary` is one sentence; `offences` name what is wrong; `facts` are numbers.

    `unproved` says that nothing speaks against the table, but nothing could be proved either: no pass, and no error.
    """

    passed: bool
    summary: str
    unproved: bool = False
    offences: list[Any] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Case:
    workspace: Workspace
    table: Table
    look: Look
    record: CommitRecord
    since: CommitRecord | None
    """The commit up to which the check passed before; None to prove everything."""


def run_check(workspace: Workspace, name: str, check: str, *, full: bool) -> Outcome:
    """Run one check of one table. Without `full`, what the same check proved before in this life is not proved again."""
    table = workspace.table(workspace.find(name))
    look = table.output.look()
    if look.record is None or not look.exists:
        return Outcome(passed=False, summary=f"{table.target} has not been created, so there is nothing to check")
    if look.foreign is not None:
        return Outcome(passed=False, summary=f"version {look.foreign} changed data, but was not written by an epoch")
    since = None if full else _since(workspace, table, look.record, check)
    case = _Case(workspace=workspace, table=table, look=look, record=look.record, since=since)
    outcome = CHECKS[check](case)
    if outcome.passed:
        workspace.state.set_passed(
            table.target, check, CheckPass(incarnation=look.record.incarnation, epoch=look.record.epoch)
        )
    return outcome


def positions_contiguous(case: _Case) -> Outcome:
    """Epochs follow each other without a gap, and each read exactly the offsets between its positions."""
    records = _records(case)
    offences = contiguous(records, _entries(case, records[0].epoch))
    return _outcome(offences, f"epochs {records[0].epoch} to {records[-1].epoch} are contiguous", epochs=len(records))


def ledger_matches_table(case: _Case) -> Outcome:
    """The ledger planned every epoch as the table committed it."""
    records = _records(case)
    last = records[-1].epoch
    newest = case.workspace.state.ledger().newest(case.record.target, case.record.incarnation)
    offences = ledger_agrees(records, _entries(case, records[0].epoch), newest)
    first = max(records[0].epoch, last - KEPT_PLANS)
    return _outcome(offences, f"the ledger agrees on epochs {first} to {last}", epochs=len(records))


def unique_key(case: _Case) -> Outcome:
    """No key is in the table twice: neither the one that changes are merged by nor the view's own primary key."""
    keys = _keys(case)
    if not keys:
        return _outcome([], "the view has no key: its upstreams' rows are only ever added", rows=case.record.rows_total)
    offences = [_named(case, key, each) for key in keys for each in _twice(case, key)]
    named = " and ".join(f"({', '.join(key)})" for key in keys)
    return _outcome(offences, f"{named} {'is' if len(keys) == 1 else 'are'} unique", rows=case.record.rows_total)


def rows_conserved(case: _Case) -> Outcome:
    """What epochs wrote adds up to what the data files hold, and none wrote more than it read. The log says of each file
    what is so, as readers leave out files by the rows, nulls and bounds that it states."""
    records = _records(case)
    location = case.table.output.location
    held = footer_rows(location) if case.since is None else stated_rows(location)
    offences = [*conserved(records, held, copies=len(_branches(case))), *_misstated(case)]
    return _outcome(offences, f"all {held} rows are accounted for", rows=held)


def exactly_once(case: _Case) -> Outcome:
    """The rows derived again from Kafka (or bronze, where Kafka lost them) equal the table's, as multisets."""
    declared = case.table.declared
    if isinstance(declared, MaterializedView) and declared.tables:
        return _equal_to_query(case, declared)
    before: Ranges = consumed(case.since.position) if case.since and not _whole(case) else {}
    wanted = _still_to_prove(consumed(case.record.position), before)
    found = {source.name: _evidence(case, source, wanted) for source in sources_of(declared)}
    reads = tuple(read for each in found.values() for read in each.reads)
    derived = Derived(
        reads=reads,
        sources={source.name: case.workspace.reader(source) for source in sources_of(declared)},
        query=declared.query if isinstance(declared, MaterializedView) else None,
    )
    left_out = dict(before)
    for name, each in found.items():
        for split, gone in each.unprovable.items():
            key = (_side(case, name), split)
            left_out[key] = OffsetRange(start=left_out[key].start if key in left_out else gone.start, end=gone.end)
    subset = any(each.subset for each in found.values())
    if _whole(case):
        nowhere = {name: sorted(each.unprovable) for name, each in found.items() if each.unprovable or _forgetful(each)}
        if nowhere:
            summary = f"cannot be proved: offsets that the groups were made of are held by nothing any more: {nowhere}"
            return Outcome(passed=False, unproved=True, summary=summary, facts={"not_provable": nowhere})
        place = case.table.output.location
        result = whole_difference(case.workspace.runner, derived, place, case.look.version, _key(case))
    else:
        result = difference(case.workspace.runner, derived, _proof(case, left_out, subset=subset))
    origin = " and ".join(sorted({read.kind for read in reads})) or "nothing new"
    lost = {
        f"{name}/{split}": f"{r.start} to {r.end}" for name, e in found.items() for split, r in e.unprovable.items()
    }
    facts = {
        "rows_expected": result.rows_expected,
        "rows_found": result.rows_found,
        "missing": result.missing,
        "unexpected": result.unexpected,
        "derived_from": origin,
        "not_provable": lost,
        "proved_share": _share(case, result) if lost else 1.0,
        "since_epoch": case.since.epoch if case.since else 0,
        "subset_only": subset,
    }
    if result.missing or result.unexpected:
        summary = f"{result.missing} rows are missing, {result.unexpected} should not be there"
        return Outcome(passed=False, summary=summary, offences=result.offenders, facts=facts)
    if lost and not result.rows_expected:
        summary = f"cannot be proved: the offsets are held by nothing else any more: {lost}"
        return Outcome(passed=False, unproved=True, summary=summary, facts=facts)
    note = f"; offsets that nothing else holds any more were not proved: {lost}" if lost else ""
    return Outcome(
        passed=True, summary=f"{result.rows_found} rows equal those derived again from {origin}{note}", facts=facts
    )


CHECKS: Mapping[str, Callable[[_Case], Outcome]] = {
    "positions_contiguous": positions_contiguous,
    "ledger_matches_table": ledger_matches_table,
    "unique_key": unique_key,
    "rows_conserved": rows_conserved,
    "exactly_once": exactly_once,
}
"""Every check by its name."""


def _twice(case: _Case, key: tuple[str, ...]) -> list[KeyTwice]:
    if _whole(case):
        branch, place = _branch_column(case), case.table.output.location
        return key_twice(case.workspace.runner, place, case.look.version, key, branch=branch)
    proved = consumed(case.since.position) if case.since else {}
    return duplicates(case.workspace.runner, _proof(case, proved, subset=False), key)


def _named(case: _Case, key: tuple[str, ...], found: KeyTwice) -> dict[str, Any]:
    """A key that is there twice, column by column, with how many rows have it and which upstreams they are of."""
    branches = _branches(case)
    parts = {"upstreams": [branches[part] for part in found.parts]} if found.parts else {}
    return {**dict(zip(key, found.key, strict=True)), "rows": found.rows, **parts}


def _share(case: _Case, result: Difference) -> float:
    """Which part of all rows, or of those since the last pass, was compared."""
    rows = case.record.rows_total - (case.since.rows_total if case.since else 0)
    return round(result.rows_found / rows, 4) if rows else 1.0


def _forgetful(each: Evidence) -> bool:
    """Whether records would be read again from where some are gone by now, which the sums of groups do not forgive."""
    return each.subset and any(read.kind == "kafka" for read in each.reads)


def _equal_to_query(case: _Case, view: MaterializedView) -> Outcome:
    """A view over Delta tables against its query, computed anew at the recorded versions (of a snapshot: files)."""
    position = case.record.position
    assert isinstance(position, SnapshotPosition)
    reads = case.workspace.reads(view)
    try:
        inputs = at_position(position, reads.tables)
    except VersionsLostError as error:
        summary = f"cannot be proved: {error.message}"
        return Outcome(passed=False, unproved=True, summary=summary, facts={"not_provable": error.facts})
    place = case.table.output.location
    found = recomputed(case.workspace.runner, reads.query, inputs, place, case.look.version)
    facts = {
        "rows_expected": found.rows_expected,
        "rows_found": found.rows_found,
        "missing": found.missing,
        "unexpected": found.unexpected,
        "derived_from": {name: table.version for name, table in position.tables.items()},
    }
    if found.missing or found.unexpected:
        summary = f"{found.missing} rows are missing, {found.unexpected} should not be there"
        return Outcome(passed=False, summary=summary, offences=found.offenders, facts=facts)
    return Outcome(
        passed=True, summary=f"{found.rows_found} rows equal the query at the recorded versions", facts=facts
    )


def _whole(case: _Case) -> bool:
    """Whether rows do not tell from which epoch they are, so that only all of them can be proved."""
    declared = case.table.declared
    return isinstance(declared, MaterializedView) and (
        bool(declared.tables) or isinstance(case.workspace.bound(declared), AggregateQuery)
    )


def _branches(case: _Case) -> list[str]:
    """The upstream of each part of a view's query; one part for a source."""
    declared = case.table.declared
    if not isinstance(declared, MaterializedView):
        return [""]
    query = case.workspace.bound(declared)
    return list(query.upstreams) if isinstance(query, AggregateQuery) else [each.upstream for each in query.branches]


def _since(workspace: Workspace, table: Table, record: CommitRecord, check: str) -> CommitRecord | None:
    passed = workspace.state.passed(table.target, check)
    if passed is None or passed.incarnation != record.incarnation:
        return None
    return next((each for each in table.output.life(since=passed.epoch) if each.epoch == passed.epoch), None)


def _misstated(case: _Case) -> list[str]:
    location, at = case.table.output.location, case.look.version
    since = case.since
    new = None if since is None else added_since(location, at, since.target, since.epoch)
    return misstated(case.workspace.runner, location, at, among=new)


def _records(case: _Case) -> list[CommitRecord]:
    return case.table.output.life(since=case.since.epoch if case.since else 0)


def _entries(case: _Case, since: int) -> list[LedgerEntry]:
    ledger = case.workspace.state.ledger()
    return ledger.entries(case.record.target, case.record.incarnation, since=since, until=case.record.epoch + 1)


def _keys(case: _Case) -> tuple[tuple[str, ...], ...]:
    declared = case.table.declared
    return unique_keys(case.workspace.bound(declared)) if isinstance(declared, MaterializedView) else (_key(case),)


def _branch_column(case: _Case) -> str:
    """The column that tells the parts of UNION ALL apart; empty where there is none."""
    query = case.workspace.bound(case.table.declared) if isinstance(case.table.declared, MaterializedView) else None
    return query.branch_column if isinstance(query, RowwiseQuery) else ""


def _key(case: _Case) -> tuple[str, ...]:
    declared = case.table.declared
    if isinstance(declared, MaterializedView):
        return case.workspace.bound(declared).key_columns
    return ("_partition", "_offset")


def _evidence(case: _Case, source: KafkaSource, wanted: Ranges) -> Evidence:
    bronze = _bronze(case, source)
    return evidence(
        SourceUpstream(name=source.name, topic=source.topic, isolation=source.isolation),
        {split: each for (name, split), each in wanted.items() if name == _side(case, source.name)},
        _held(case, source, bronze),
        bronze,
    )


def _held(case: _Case, source: KafkaSource, bronze: BronzeOffer | None) -> TopicOffer:
    """What the topic holds of the records that were ingested: nothing, if it was made again since."""
    position = bronze.position if bronze is not None else case.record.position
    assert isinstance(position, IngestPosition)
    found = case.workspace.topic(source.name)
    return found if found.topic_id == position.topic_id else replace(found, splits={})


def _side(case: _Case, source: str) -> str:
    """The source's name in what a position has consumed; a source's own position does not name it."""
    return source if isinstance(case.table.declared, MaterializedView) else ""


def _proof(case: _Case, left_out: Ranges, *, subset: bool) -> Proof:
    branches = _branches(case)
    key = _key(case)
    return Proof(
        table=case.table.output.location,
        version=case.look.version,
        split_column=key[-2],
        offset_column=key[-1],
        branch_column=key[0] if len(key) == 3 else None,
        branches={
            index: {split: each for (name, split), each in left_out.items() if name == upstream}
            for index, upstream in enumerate(branches)
        },
        subset=subset,
    )


def _bronze(case: _Case, source: KafkaSource) -> BronzeOffer | None:
    return case.workspace.bronze(source.name) if isinstance(case.table.declared, MaterializedView) else None


def _still_to_prove(consumed_now: Ranges, before: Ranges) -> dict[tuple[str, int], OffsetRange]:
    left = {
        key: OffsetRange(start=before[key].end if key in before else each.start, end=each.end)
        for key, each in consumed_now.items()
    }
    return {key: each for key, each in left.items() if len(each)}


def _outcome(offences: list[Any], summary: str, **facts: Any) -> Outcome:
    if offences:
        return Outcome(
            passed=False, summary=f"{len(offences)} offences, first: {offences[0]}", offences=offences, facts=facts
        )
    return Outcome(passed=True, summary=summary, facts=facts)
