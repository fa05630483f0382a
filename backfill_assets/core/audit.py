"""How a table's commits and the ledger's plans must agree: pure checks on records that were read elsewhere.

Each function returns the violations as sentences; an empty result means that the check passes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from backfill_assets.core.epoch.ports import BronzeState, TopicState, of_kind
from backfill_assets.core.epoch.records import CommitRecord, Plan, Position
from backfill_assets.core.progress.positions import (
    IngestPosition,
    OffsetRange,
    Phase,
    SnapshotPosition,
    TablePosition,
    ViewPosition,
)
from backfill_assets.core.progress.reads import (
    BronzeRead,
    CaptureRead,
    FullRead,
    HashRead,
    KafkaRead,
    KeyRead,
    LookupRead,
    Read,
    SkipRead,
    SnapshotRead,
    TableRead,
    size_of,
)
from backfill_assets.core.strategies.source import SourceUpstream
from backfill_assets.core.strategies.table_skips import left_out_alike, skip_reads

__all__ = ["KEPT_PLANS", "Evidence", "LedgerEntry", "conserved", "consumed", "contiguous", "evidence", "ledger_agrees"]


CHANGE_LOG, CAPTURED = -1, -2
"""Numbers in place of a bucket for a table's change log, and for what is captured of it. Their positions are versions.
"""


KEPT_PLANS = 1000
"""The ledger keeps the plans of this many of a table's newest epochs; older ones may be deleted."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """An entry of the ledger; `plan` is None if the entry was rebuilt from a commit.

    `plan_hash` is the hash that the entry states, `found_hash` the hash of the plan that was found.
    """

    epoch: int
    plan_hash: str
    plan: Plan | None
    found_hash: str


def consumed(position: Position) -> dict[tuple[str, int], OffsetRange]:
    """The offsets that a table has consumed since the beginning of its life, by source and partition."""
    match position:
        case IngestPosition():
            return {
                ("", partition): OffsetRange(start=position.begin[partition], end=end)
                for partition, end in position.next.items()
            }
        case ViewPosition():
            return {
                (name, partition): OffsetRange(start=state.start, end=state.next)
                for name, source in position.sources.items()
                for partition, state in source.partitions.items()
            }
        case SnapshotPosition():
            found = {
                (name, bucket): OffsetRange(start=0, end=state.next)
                for name, table in position.tables.items()
                for bucket, state in table.buckets.items()
            }
            found.update({
                (name, CHANGE_LOG): OffsetRange(start=table.pinned, end=table.version)
                for name, table in position.tables.items()
            })
            found.update({
                (name, CAPTURED): OffsetRange(start=table.pinned, end=table.spool.captured)
                for name, table in position.tables.items()
                if table.spool is not None
            })
            return found


def contiguous(records: Sequence[CommitRecord], entries: Sequence[LedgerEntry]) -> list[str]:
    """Epochs follow each other without a gap, and each read exactly the offsets between its positions.

    `records` are the epochs' commits in order (epoch 0 or the oldest that is still known first).
    """
    plans = {entry.plan_hash: entry.plan for entry in entries if entry.plan is not None}
    violations: list[str] = []
    for before, after in pairwise(records):
        if after.epoch != before.epoch + 1:
            violations.append(f"epoch {after.epoch} follows epoch {before.epoch}")
            continue
        violations.extend(
            f"epoch {after.epoch}: {violation}" for violation in _step(before, after, plans.get(after.plan_hash))
        )
    return violations


def ledger_agrees(records: Sequence[CommitRecord], entries: Sequence[LedgerEntry], newest: int | None) -> list[str]:
    """Each committed epoch was planned as it was committed, and at most one epoch is planned ahead.

    Epochs whose plan may have been pruned need none.
    """
    if not records:
        return []
    last = records[-1].epoch
    violations = []
    if last > 0 and newest not in {last, last + 1}:
        violations.append(f"the table is at epoch {last}, but the newest planned epoch is {newest}")
    rebuilt = max((entry.epoch for entry in entries if entry.plan is None), default=0)
    unplanned = max(rebuilt, last - KEPT_PLANS)
    entered: dict[int, list[LedgerEntry]] = {}
    for entry in entries:
        entered.setdefault(entry.epoch, []).append(entry)
    for record in records:
        planned = entered.get(record.epoch, [])
        if record.epoch > 0 and (planned or record.epoch > unplanned):
            violations.extend(_disagreement(record, planned))
    return violations


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Where the records of one source are read again. `unprovable`: offsets that exist nowhere any more.

    `subset`: the topic is compacted, so rows may be correct although their records exist nowhere any more: Kafka removes
    records that were read from it, possibly between the read of a view and that of the source.
    """

    reads: tuple[Read, ...]
    unprovable: dict[int, OffsetRange]
    subset: bool


def evidence(
    source: SourceUpstream, wanted: Mapping[int, OffsetRange], held: TopicState, bronze: BronzeState | None
) -> Evidence:
    """Decide where the records of these offsets are read again: from Kafka if it has them, otherwise from bronze.

    For a compacted topic, bronze is the better witness if it has the records. `bronze` is None if the bronze table itself
    has to be proved; then only Kafka counts.
    """
    from_kafka: dict[int, OffsetRange] = {}
    from_bronze: dict[int, OffsetRange] = {}
    unprovable: dict[int, OffsetRange] = {}
    for partition, each in wanted.items():
        seam = held.partitions[partition].start if partition in held.partitions else each.end
        if bronze is not None and held.compacted:
            seam = max(seam, bronze.position.next.get(partition, 0))
        seam = min(max(each.start, seam), each.end)
        begin = bronze.position.begin.get(partition, seam) if bronze is not None else seam
        known = min(max(each.start, begin), seam)
        for part, start, end in (
            (from_kafka, seam, each.end),
            (from_bronze, known, seam),
            (unprovable, each.start, known),
        ):
            if start < end:
                part[partition] = OffsetRange(start=start, end=end)
    reads: list[Read] = []
    if from_kafka:
        reads.append(KafkaRead(source=source.name, topic=source.topic, isolation=source.isolation, ranges=from_kafka))
    if from_bronze and bronze is not None:
        life, version = bronze.incarnation, bronze.version
        reads.append(BronzeRead(source=source.name, incarnation=life, version=version, ranges=from_bronze))
    return Evidence(reads=tuple(reads), unprovable=unprovable, subset=held.compacted)


def conserved(records: Sequence[CommitRecord], rows_in_table: int, *, copies: int | None) -> list[str]:
    """Rows written by epochs add up to the table's, and no epoch wrote more than it read.

    `copies`: the maximum number of rows per record (1 for a source; for a view, the branches of its query; None: no limit).
    """
    violations = []
    if records and records[-1].rows_total != rows_in_table:
        violations.append(f"epochs wrote {records[-1].rows_total} rows, the table has {rows_in_table}")
    for before, after in pairwise(records):
        net = after.rows_written - after.rows_updated - after.rows_deleted
        if after.rows_total != before.rows_total + net:
            violations.append(f"epoch {after.epoch}: total {after.rows_total} is not {before.rows_total} + {net}")
        estimated = isinstance(before.position, SnapshotPosition) and _estimated(before.position, after.position)
        offered = after.done - before.done
        most = None if copies is None or estimated else copies * after.rows_read
        if after.rows_read > offered or (most is not None and after.rows_written > most):
            violations.append(
                f"epoch {after.epoch}: {after.rows_written} rows were written of {after.rows_read} read from {offered} "
                f"{'rows of tables' if isinstance(after.position, SnapshotPosition) else 'offsets'}"
            )
    return violations


def _estimated(position: SnapshotPosition, after: Position) -> bool:
    """Whether the next epoch may have more rows than were counted. For a change log the number is only an estimate, and for
    a range of keys it is the number when the ranges were planned. Rows that are taken back were counted before."""
    if position.backfilled or any(table.expected for table in position.tables.values()):
        return True
    return not left_out_alike(position, of_kind(after, SnapshotPosition))


def _disagreement(record: CommitRecord, planned: Sequence[LedgerEntry]) -> list[str]:
    same = [entry for entry in planned if entry.plan_hash == record.plan_hash]
    if not same:
        found = ", ".join(entry.plan_hash for entry in planned) or "none"
        return [f"epoch {record.epoch} was committed by plan {record.plan_hash}, the ledger has {found}"]
    violations = []
    for entry in same:
        if entry.found_hash != entry.plan_hash:
            violations.append(
                f"the plan was altered: it was stored as {entry.plan_hash}, and is now {entry.found_hash}"
            )
        if entry.plan is not None:
            violations.extend(
                f"the {part} in the ledger's plan is not the one in the table"
                for part, planned_so, found in (
                    ("position", entry.plan.after, record.position),
                    ("live flag", entry.plan.live, record.live),
                    ("fingerprint", entry.plan.fingerprint, record.fingerprint),
                )
                if planned_so != found
            )
    return [f"epoch {record.epoch}: {violation}" for violation in violations]


def _step(before: CommitRecord, after: CommitRecord, plan: Plan | None) -> list[str]:
    was, now = consumed(before.position), consumed(after.position)
    place = _snapshot_place if isinstance(after.position, SnapshotPosition) else _partition
    violations = [
        f"{place(key)} is missing"
        for key in sorted(was.keys() - now.keys())
        if key[1] != CAPTURED or now[key[0], CHANGE_LOG].end < was[key].end  # a spool ends when it is drained
    ]
    read = _ranges_read(plan) if plan is not None else None
    for key, reach in sorted(now.items()):
        since = was[key].end if key in was else reach.start
        if reach.end < since:
            violations.append(f"{place(key)} went back from {since} to {reach.end}")
        elif (
            read is not None
            and not _idle(key, before, after)
            and not any(_covers(read.get(key, []), begin, reach.end) for begin in _begins(key, since, before.position))
        ):
            found = ", ".join(f"{each.start} to {each.end}" for each in read.get(key, [])) or "nothing"
            violations.append(f"{place(key)} moved from {since} to {reach.end}, but the plan read {found}")
    return [
        *violations,
        *_phase_violations(before.position, after.position),
        *_skip_violations(before.position, after.position),
        *_table_violations(before.position, after.position, plan),
    ]


def _partition(key: tuple[str, int]) -> str:
    return f"partition {key[1]} of {key[0] or 'the topic'}"


def _snapshot_place(key: tuple[str, int]) -> str:
    named = {CHANGE_LOG: "the change log", CAPTURED: "what is captured"}
    return f"{named.get(key[1], f'bucket {key[1]}')} of {key[0]}"


def _idle(key: tuple[str, int], before: CommitRecord, after: CommitRecord) -> bool:
    """Whether versions of a change log were skipped because none of them changed a row."""
    was, now = before.position, after.position
    if not (isinstance(was, SnapshotPosition) and isinstance(now, SnapshotPosition)) or key[0] not in was.tables:
        return False
    one, two = was.tables[key[0]], now.tables[key[0]]
    if key[1] == CAPTURED:
        return one.spool is not None and two.spool is not None and one.spool.rows == two.spool.rows
    return key[1] == CHANGE_LOG and one.changes == two.changes


def _begins(key: tuple[str, int], since: int, before: Position) -> list[int]:
    """Where a plan may continue to read. Versions that were captured but are in no segment of the spool changed no row."""
    table = before.tables.get(key[0]) if isinstance(before, SnapshotPosition) and key[1] == CHANGE_LOG else None
    spool = table.spool if table is not None else None
    return [since] if spool is None or spool.segments else [since, spool.captured]


def _ranges_read(plan: Plan) -> dict[tuple[str, int], list[OffsetRange]]:
    """The ranges that a plan reads, by the same keys as `consumed`."""
    found: dict[tuple[str, int], list[OffsetRange]] = {}
    for read in plan.offset_reads:
        name = "" if isinstance(plan.after, IngestPosition) else read.source
        for partition, each in read.ranges.items():
            found.setdefault((name, partition), []).append(each)
    for table in plan.table_reads:
        if isinstance(table, SnapshotRead | KeyRead | HashRead):
            for bucket, each in table.ranges.items():
                found.setdefault((table.source, bucket), []).append(each)
        elif not isinstance(table, LookupRead | SkipRead):
            for bucket, each in _unread(plan, table).items():
                found.setdefault((table.source, bucket), []).append(each)
            versions = OffsetRange.model_construct(start=table.first - 1, end=table.last)  # of any plan, sound or not
            place = CAPTURED if isinstance(table, CaptureRead) else CHANGE_LOG
            found.setdefault((table.source, place), []).append(versions)
    return found


def _unread(plan: Plan, read: TableRead) -> dict[int, OffsetRange]:
    """The rest of a table's history, which a read of the whole table includes."""
    if not (isinstance(read, FullRead) and isinstance(plan.before, SnapshotPosition)):
        return {}
    buckets = plan.before.tables[read.source].buckets if read.source in plan.before.tables else {}
    return {at: OffsetRange(start=each.next, end=each.parts) for at, each in buckets.items() if not each.done}


def _covers(ranges: Sequence[OffsetRange], start: int, end: int) -> bool:
    for each in sorted(ranges, key=lambda r: r.start):
        if each.start != start:
            return False
        start = each.end
    return start == end


def _phase_violations(before: Position, after: Position) -> list[str]:
    if not (isinstance(before, ViewPosition) and isinstance(after, ViewPosition)):
        return []
    order = list(Phase)
    return [
        f"partition {partition} of {name} went back from {state.phase} to {after.sources[name].partitions[partition].phase}"
        for name, source in before.sources.items()
        for partition, state in source.partitions.items()
        if partition in after.sources[name].partitions
        and order.index(after.sources[name].partitions[partition].phase) < order.index(state.phase)
    ]


def _skip_violations(before: Position, after: Position) -> list[str]:
    """Offsets that a view left out when it read them stay left out, and no others are added."""
    if not (isinstance(before, ViewPosition) and isinstance(after, ViewPosition)):
        return []
    return [
        f"partition {partition} of {name} had been read to {state.next} leaving out {was or 'nothing'}, and now "
        f"{now or 'nothing'}"
        for name, source in before.sources.items()
        if name in after.sources
        for partition, state in source.partitions.items()
        if (was := _below(source.skipped.get(partition, ()), state.next))
        != (now := _below(after.sources[name].skipped.get(partition, ()), state.next))
    ]


def _below(offsets: Sequence[int], end: int) -> list[int]:
    return [offset for offset in offsets if offset < end]


def _table_violations(before: Position, after: Position, plan: Plan | None) -> list[str]:
    """What a view's life fixes for each table does not change, and the plan read exactly that, with as many rows as
    were counted."""
    if not (isinstance(before, SnapshotPosition) and isinstance(after, SnapshotPosition)):
        return []
    violations = [f"table {name} joined" for name in sorted(after.tables.keys() - before.tables.keys())]
    if plan is not None and not plan.replaces and before.tables.keys() == after.tables.keys():
        due, skips = skip_reads(before, after), [each for each in plan.reads if isinstance(each, SkipRead)]
        if due != skips:
            violations.append(
                f"for the rows that it leaves out, the plan had to read {due or 'nothing'}, but read {skips or 'nothing'}"
            )
    for name in sorted(before.tables.keys() & after.tables.keys()):
        was, now = before.tables[name], after.tables[name]
        violations.extend(
            f"the {part} of {name} changed from {old} to {new}"
            for part, old, new in (
                ("table id", was.table_id, now.table_id),
                ("incarnation", was.incarnation, now.incarnation),
                ("pinned version", was.pinned, now.pinned),
                ("parts by bucket", _parts(was), _parts(now)),
            )
            if old != new
        )
        reads = [each for each in plan.table_reads if each.source == name] if plan is not None else []
        for each in reads:
            pinned = each.version if isinstance(each, SnapshotRead | LookupRead | HashRead) else None
            meant = (now.table_id,) if pinned is None else (now.table_id, now.pinned)
            found = (each.table_id,) if pinned is None else (each.table_id, pinned)
            if found != meant:
                violations.append(f"the plan read {found} of {name}, but the position is for {meant}")
        counted, stated = now.rows - was.rows, sum(map(size_of, reads))
        if plan is not None and counted != stated:
            violations.append(f"{counted} rows of {name} were counted, but the plan read {stated}")
    return violations


def _parts(table: TablePosition) -> dict[int, int]:
    return {number: bucket.parts for number, bucket in table.buckets.items()}
