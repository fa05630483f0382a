"""Samples of a table and of its upstreams, read without Spark: some files of tables, some records of topics.

The samples are selected by a seed; the outcome contains the seed and all selected places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backfill_assets.adapters.compute.recorded_rows import Recorded, with_key
from backfill_assets.adapters.delta.column_metadata import fixed_lengths
from backfill_assets.adapters.delta.log_replay import LogGapError, Version, replay
from backfill_assets.adapters.proof.file_samples import TableFiles, TableSample, sample_of
from backfill_assets.adapters.proof.second_reader import Sampled, ViewAt, compare_readers
from backfill_assets.adapters.proof.tables import at_position
from backfill_assets.adapters.proof.topic_samples import otherwise, rows_of_records
from backfill_assets.adapters.sql.keys import among_keys
from backfill_assets.adapters.sql.offset_ranges import among, within
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.proof_case import Case, Outcome
from backfill_assets.app.proof_rows import evidence_of
from backfill_assets.core.audit import consumed
from backfill_assets.core.epoch.skips import left_out_of
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.core.sampling import sample_offsets
from backfill_assets.declare.model import KafkaSource, MaterializedView
from backfill_assets.query.ddl import Column, columns_of_delta
from backfill_assets.query.rowwise import RowwiseQuery

__all__ = ["read_again"]


@dataclass(frozen=True, kw_only=True)
class _Found:
    violations: list[str]
    facts: dict[str, Any] = field(default_factory=dict)


def read_again(case: Case, outcome: Outcome) -> Outcome:
    """The outcome of a proof that has passed, after samples of what it compared were read again without Spark.

    Nothing is read if the case has no seed, or if the proof has not passed.
    """
    if not case.seed or not outcome.passed:
        return outcome
    found = [_rows(case), *([_records(case)] if isinstance(case.table.declared, KafkaSource) else [])]
    facts = {**outcome.facts, "sample_seed": case.seed}
    for each in found:
        facts |= each.facts
    violations = [violation for each in found for violation in each.violations]
    if not violations:
        return replace(outcome, facts=facts)
    summary = f"Spark agrees with itself, but not with another reader: {violations[0]}"
    return replace(outcome, passed=False, summary=summary, violations=violations, facts=facts)


def _rows(case: Case) -> _Found:
    upstreams = _upstreams(case)
    samples = [
        *(each.sample for each in upstreams),
        *_sampled(case.table.declared.name, case.table.output.location, case),
    ]
    compared = compare_readers(case.runner, samples, _view_at(case, upstreams))
    places = {
        f"{sample.name}: {file.path}": f"{file.places.start} to {file.places.end}"
        for sample in samples
        for file in sample.files
    }
    passed_over = {sample.name: sample.passed_over for sample in samples if sample.passed_over}
    facts = {"rows_read_again": compared.rows, "files_read_again": places, "files_not_readable_again": passed_over}
    return _Found(violations=compared.violations, facts=facts)


def _view_at(case: Case, upstreams: Sequence[Sampled]) -> ViewAt | None:
    """The view in which rows of these upstreams must be; None if its rows cannot be identified, or if none have to be
    in it."""
    declared = case.table.declared
    query = case.workspace.bound(declared) if isinstance(declared, MaterializedView) else None
    counted = tuple(each for each in upstreams if each.counted is not None)
    if not isinstance(query, RowwiseQuery) or not counted:
        return None
    return ViewAt(query=query, table=case.table.output.location, version=case.look.version, upstreams=counted)


def _upstreams(case: Case) -> list[Sampled]:
    """Rows of the tables that a view stands for, and SQL for which of them it has read."""
    declared, position = case.table.declared, case.record.position
    if isinstance(declared, KafkaSource):
        return []
    if not isinstance(position, SnapshotPosition):
        return [each for source in declared.sources for each in _of_bronze(case, source)]
    inputs = at_position(position, case.workspace.inputs(declared).tables)
    return [_of_table(case, declared, name, each) for name, each in inputs.tables.items()]


def _of_table(case: Case, view: MaterializedView, name: str, recorded: Recorded) -> Sampled:
    upstream, position = recorded.upstream, recorded.position
    columns = with_key(case.workspace.bound(view), upstream) or upstream.columns()
    files = None if recorded.files is None else upstream.chosen(recorded.files)
    version = upstream.version(position.version if recorded.files is None else recorded.files.version)
    there = {column.name.lower() for column in _columns(version)}
    held = tuple(column for column in columns if column.name.lower() in there)
    table = TableFiles(name=name, location=upstream.location, version=version, columns=held, files=files)
    # If a table is read by ranges of its key, some rows may not have been read yet; Spark may have padded CHAR columns.
    whole = (recorded.files is not None or position.backfilled) and not fixed_lengths(
        str(version.metadata["schemaString"])
    )
    counted = f"NOT {among_keys(columns, position.skipped)}" if whole else None
    return Sampled(sample=sample_of(table, case.seed), columns=columns, counted=counted)


def _of_bronze(case: Case, source: KafkaSource) -> list[Sampled]:
    wanted = consumed(case.record.position)
    ranges = {partition: each for (name, partition), each in wanted.items() if name == source.name}
    left_out = left_out_of(case.record.position).get(source.name, {})
    counted = f"{within('_partition', '_offset', ranges)} AND NOT {among('_partition', '_offset', left_out)}"
    location, version = case.workspace.reader(source).bronze, case.workspace.sources.bronze(source.name).version
    samples = _sampled(source.name, location, case, version)
    return [Sampled(sample=each, columns=source.bronze_columns, counted=counted) for each in samples]


def _sampled(name: str, location: TableLocation, case: Case, version: int | None = None) -> list[TableSample]:
    """Some rows of a table of this project, with all columns; none if its log no longer has the version."""
    try:
        at = replay(location, case.look.version if version is None else version)
    except LogGapError:
        return []
    return [sample_of(TableFiles(name=name, location=location, version=at, columns=_columns(at)), case.seed)]


def _columns(version: Version) -> tuple[Column, ...]:
    return columns_of_delta(str(version.metadata["schemaString"]))


def _records(case: Case) -> _Found:
    """Compares some records of a source's topic with its table."""
    source = case.table.declared
    assert isinstance(source, KafkaSource)
    reads = evidence_of(case, source, consumed(case.record.position)).reads
    held = {at: each for read in reads if isinstance(read, KafkaRead) for at, each in read.ranges.items()}
    ranges = sample_offsets(held, case.seed)
    records = case.workspace.sources.records(source.name, ranges) if ranges else []
    reader = case.workspace.reader(source)
    rows = rows_of_records(case.runner, reader, case.look.version, ranges) if records else {}
    offsets = {str(at): f"{each.start} to {each.end}" for at, each in ranges.items()}
    return _Found(
        violations=list(otherwise(records, rows, source.columns, source.format)),
        facts={"records_read_again": len(records), "offsets_read_again": offsets},
    )
