"""The checks of a table: what each compares, whether it passes, and what it says. Dagster and the command line show this."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from backfill_assets.adapters.compute.changes import DuplicateKey
from backfill_assets.adapters.compute.spark_errors import is_of_spark, reason_of
from backfill_assets.adapters.delta.commits import newest_record
from backfill_assets.adapters.delta.log_replay import Version, replay
from backfill_assets.adapters.proof.file_statistics import stated_since, wrong_statistics
from backfill_assets.adapters.proof.rows import footer_rows, stated_rows
from backfill_assets.adapters.proof.since import duplicate_keys_since
from backfill_assets.adapters.proof.tables import find_duplicate_keys
from backfill_assets.adapters.state.state_store import CheckPass
from backfill_assets.app.proof_case import Case, LastPass, Outcome, branch_column_of, branches_of, copies_of, keys_of
from backfill_assets.app.proof_rows import equal_to_query, equal_to_records
from backfill_assets.app.proof_samples import read_again
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.audit import KEPT_PLANS, LedgerEntry, conserved, contiguous, ledger_agrees
from backfill_assets.core.epoch.records import CommitRecord, TableState, changed_parts
from backfill_assets.core.epoch.skips import Skip, left_out_words, rows_left_out
from backfill_assets.core.proof_scope import Everything
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import BackfillError, ComputeError, StoredFormatError

__all__ = ["CHECKS", "Checking", "Outcome", "run_check"]


@dataclass(frozen=True)
class Checking:
    """The checks of a table as it is when the first of them is run: what they need of its log and its state is read once."""

    workspace: Workspace
    name: str

    @cached_property
    def _table(self) -> Table:
        declared = self.workspace.registry.find(self.name)
        self.workspace.prepare_to_read()
        return self.workspace.table(declared)

    @cached_property
    def _look(self) -> TableState:
        return self._table.output.look()

    @cached_property
    def _skips(self) -> list[Skip]:
        return self.workspace.state.skips(self._table.target)

    def run(self, check: str, *, full: bool, seed: str | None = "") -> Outcome:
        """Run one check. Without `full`, it proves what was written since it last passed in this life, if that is known; rows
        that were not rewritten are left to the full proof. A full proof also reads samples without Spark: `seed` repeats a
        selection of samples (`sample_seed`), and with None there are none.

        Errors: `ComputeError` where Spark fails, as for a file that cannot be read.
        """
        workspace, table, look = self.workspace, self._table, self._look
        if look.record is None or not look.exists:
            return Outcome(passed=False, summary=f"{table.target} has not been created, so there is nothing to check")
        if look.external is not None:
            return Outcome(
                passed=False, summary=f"version {look.external} changed data, but was not written by an epoch"
            )
        since = Everything(reason="it was asked for") if full else _since(workspace, table, look, check)
        drawn_by = (seed or uuid.uuid4().hex[:12]) if full and seed is not None else ""
        case = Case(workspace=workspace, table=table, look=look, record=look.record, since=since, seed=drawn_by)
        outcome = _with_left_out_rows(case, _made(case, check), self._skips)
        if outcome.passed:
            passed = CheckPass(incarnation=look.record.incarnation, epoch=look.record.epoch, version=look.version)
            workspace.state.set_passed(table.target, check, passed)
        return outcome


def run_check(workspace: Workspace, name: str, check: str, *, full: bool, seed: str | None = "") -> Outcome:
    """Run one check of one table alone. Errors: as `Checking.run`."""
    return Checking(workspace, name).run(check, full=full, seed=seed)


def _made(case: Case, check: str) -> Outcome:
    try:
        return CHECKS[check](case)
    except BackfillError:
        raise
    except Exception as error:
        if not (is_of_spark(error) or isinstance(error, OSError | pa.ArrowException)):
            raise
        reader = "Spark" if is_of_spark(error) else "a reader without Spark"
        raise ComputeError(
            f"{case.table.target}: {reader} could not make the check {check}: {type(error).__name__}: {reason_of(error)}",
            hint="this says nothing about the rows: run it again. If it names a file that cannot be read, restore that",
            check=check,
        ) from error


def _with_left_out_rows(case: Case, outcome: Outcome, skips: Sequence[Skip]) -> Outcome:
    """The outcome, with the rows that the table leaves out because an operator decided so."""
    rows = rows_left_out(case.record.position, skips)
    words = left_out_words(rows)
    if not words:
        return outcome
    facts = {**outcome.facts, "rows_left_out": sum(row.is_out for row in rows)}
    return replace(outcome, summary=f"{outcome.summary}; {words}", facts=facts)


def positions_contiguous(case: Case) -> Outcome:
    """Epochs follow each other without a gap, and each read exactly the offsets between its positions."""
    records = _records(case)
    violations = contiguous(records, _entries(case, records[0].epoch))
    return _outcome(violations, f"epochs {records[0].epoch} to {records[-1].epoch} are contiguous", epochs=len(records))


def ledger_matches_table(case: Case) -> Outcome:
    """The ledger's plan of every epoch agrees with the table's commit."""
    records = _records(case)
    last = records[-1].epoch
    newest = case.workspace.state.ledger().newest(case.record.target, case.record.incarnation)
    violations = ledger_agrees(records, _entries(case, records[0].epoch), newest)
    first = max(records[0].epoch, last - KEPT_PLANS)
    return _outcome(violations, f"the ledger agrees on epochs {first} to {last}", epochs=len(records))


def unique_key(case: Case) -> Outcome:
    """No key is duplicate: neither the one by which changes are merged nor the view's own primary key."""
    keys = keys_of(case)
    if not keys:
        return _outcome([], "the view has no key: its upstreams' rows are only ever added", rows=case.record.rows_total)
    violations = [_named(case, key, each) for key in keys for each in _duplicate_keys(case, key)]
    named = " and ".join(f"({', '.join(key)})" for key in keys)
    return _outcome(violations, f"{named} {'is' if len(keys) == 1 else 'are'} unique", rows=case.record.rows_total)


def rows_conserved(case: Case) -> Outcome:
    """The rows that epochs wrote add up to those in the data files, and no epoch wrote more than it read. The log is right
    about each file, because readers skip files by the rows, nulls and bounds in it."""
    records = _records(case)
    location = case.table.output.location
    version = replay(location, case.look.version)
    held = footer_rows(location) if case.last is None else stated_rows(location, version)
    violations = [*conserved(records, held, copies=copies_of(case)), *_wrong_statistics(case, version)]
    return _outcome(violations, f"all {held} rows are accounted for", rows=held)


def exactly_once(case: Case) -> Outcome:
    """The rows derived again from Kafka (or from bronze, if Kafka lost them) equal those of the table, as multisets. If the
    check runs alone, some rows and records are also read without Spark, with the same result."""
    declared = case.table.declared
    if isinstance(declared, MaterializedView) and declared.tables:
        return read_again(case, equal_to_query(case, declared))
    return read_again(case, equal_to_records(case))


CHECKS: Mapping[str, Callable[[Case], Outcome]] = {
    "positions_contiguous": positions_contiguous,
    "ledger_matches_table": ledger_matches_table,
    "unique_key": unique_key,
    "rows_conserved": rows_conserved,
    "exactly_once": exactly_once,
}
"""Every check by its name."""


def _duplicate_keys(case: Case, key: tuple[str, ...]) -> list[DuplicateKey]:
    written, runner, branch = case.written(), case.workspace.runner, branch_column_of(case)
    if isinstance(written, Everything):
        return find_duplicate_keys(runner, case.table.output.location, case.look.version, key, branch=branch)
    return duplicate_keys_since(runner, written, key, branch=branch)


def _named(case: Case, key: tuple[str, ...], found: DuplicateKey) -> dict[str, Any]:
    """A duplicate key, column by column, with the number of its rows and their upstreams."""
    branches = branches_of(case)
    parts = {"upstreams": [branches[part] for part in found.parts]} if found.parts else {}
    return {**dict(zip(key, found.key, strict=True)), "rows": found.rows, **parts}


def _since(workspace: Workspace, table: Table, look: TableState, check: str) -> LastPass | Everything:
    record = look.record
    try:
        passed = workspace.state.passed(table.target, check)
    except StoredFormatError as error:  # what another release proved is proved again
        return Everything(reason=f"its last pass cannot be read: {error.message}")
    if passed is None or record is None or passed.incarnation != record.incarnation:
        return Everything(reason="it has not passed in this life of the table")
    if passed.version > look.version:
        return Everything(
            reason=f"it passed at version {passed.version}, and the table was restored to an older version since"
        )
    # not what was restated for that epoch since: that has to be proved
    found = newest_record(table.output.location, passed.version, table.target)
    if found is None or (found.incarnation, found.epoch) != (passed.incarnation, passed.epoch):
        return Everything(reason=f"version {passed.version}, which passed, is no longer in the log")
    if changed_parts(found.fingerprint, record.fingerprint):
        return Everything(reason="columns were added since")
    return LastPass(record=found, version=passed.version)


def _wrong_statistics(case: Case, version: Version) -> list[str]:
    location, at = case.table.output.location, case.look.version
    new = stated_since(location, case.last.version, at) if case.last else None
    return wrong_statistics(case.workspace.runner, location, at, version, among=new)


def _records(case: Case) -> list[CommitRecord]:
    return case.table.output.life(since=case.since_epoch, version=case.look.version)


def _entries(case: Case, since: int) -> list[LedgerEntry]:
    ledger = case.workspace.state.ledger()
    return ledger.entries(case.record.target, case.record.incarnation, since=since, until=case.record.epoch + 1)


def _outcome(violations: list[Any], summary: str, **facts: Any) -> Outcome:
    if violations:
        return Outcome(
            passed=False,
            summary=f"{len(violations)} violations, first: {violations[0]}",
            violations=violations,
            facts=facts,
        )
    return Outcome(passed=True, summary=summary, facts=facts)
