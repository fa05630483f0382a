"""The one protocol: everything is written by an epoch, or by `begin_life` and `end_life`.

    1 look      load the table; its log alone says what the last epoch is, and that nobody else has written since
    2 plan      use the ledger's plan for the next epoch; or decide one, and store it unless another run has stored one
    3 stage     Spark writes files that no reader sees
    4 commit    check the files, then make one commit on the table as loaded in step 1; after any error look again and judge
    5 report    done by the caller: heartbeat, progress, control

A crash before 2 leaves nothing. A crash after 2 leaves a plan, which the next run carries out unchanged; after 3 also files
that nobody reads, which are deleted once another attempt has succeeded. After 4 nothing is missing. Nothing needs repair.
"""

import logging
from collections.abc import Sequence

from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import (
    EVERYTHING,
    InitialState,
    NextEpoch,
    P,
)
from backfill_assets.core.epoch.records import (
    CommitKind,
    CommitRecord,
    Plan,
    Staged,
    TableState,
    Verdict,
    changed_parts,
    judge,
    nothing_known,
    spooled_parts,
)
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.errors import (
    DefinitionChangedError,
    DroppedError,
    DuplicateKeyError,
    EnvironmentSetupError,
    ExternalWriteError,
    FencedError,
    ReadMismatchError,
    SparkLostError,
    StagingError,
    StateLostError,
    UnsettledCommitError,
)

__all__ = ["STEPS", "begin_life", "check_look", "end_life", "restate", "run_epoch"]

STEPS = ("looked", "planned", "staged", "verified", "committed")
"""The moments at which a test may kill the process, in order."""

COMMIT_TRIES, STAGE_TRIES = 8, 3

_log = logging.getLogger(__name__)


def run_epoch(parts: Parts[P], look: TableState, *, budget: int) -> CommitRecord | None:
    """Do the steps 1 to 4 once, from a checked look; return the commit, or None if there is nothing to do.

    Errors: `FencedError` if another run is ahead, `ExternalWriteError` if somebody else wrote at the same time,
    `UnsettledCommitError`, `StagingError`, `ReadMismatchError`, and what deciding and computing raise. None of them leaves
    anything half-written.
    """
    last = look.record
    assert last is not None
    started = parts.clock.now()
    parts.on_step("looked")
    plan = _planned(parts, last, budget)
    if plan is None:
        return None
    parts.on_step("planned")
    plan, attempt, staged = _staged(parts, plan, look)
    mine = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
    parts.decider.confirm(parts.planned(plan))
    parts.on_step("staged")
    deleted = last.rows_total if staged.replaces else staged.rows_deleted
    record = CommitRecord(
        kind=CommitKind.EPOCH,
        target=plan.target,
        incarnation=plan.incarnation,
        epoch=plan.epoch,
        attempt=attempt,
        plan_hash=plan.hash,
        fingerprint=plan.fingerprint,
        position=plan.after,
        live=plan.live,
        rows_read=staged.rows_read,
        rows_written=staged.rows_written,
        rows_bad=staged.rows_bad,
        rows_updated=staged.rows_updated,
        rows_deleted=deleted,
        rows_total=last.rows_total + staged.rows_written - staged.rows_updated - deleted,
        engine=parts.output.engine(staged),
        rule=staged.rule,
        why_full=staged.why_full,
        columns=last.columns or parts.decider.columns(),
        spooled={part: plan.spooled.get(part, mine) for part in spooled_parts(plan.after)},
        total=last.total,
        done=parts.decider.done(parts.planned(plan).after),
        expected_seconds=plan.expected_seconds,
        started_at=started,
        finished_at=parts.clock.now(),
        created_at=last.created_at,
    )
    _commit(parts, record, staged, look)
    parts.on_step("committed")
    return record


def _staged(parts: Parts[P], plan: Plan, look: TableState) -> tuple[Plan, str, Staged]:
    """Stage a plan, and return the plan, attempt and files. If the plan has a duplicate key that has been corrected since,
    stage a new plan over everything that exists by now instead."""
    assert look.record is not None
    try:
        return plan, *_attempted(parts, plan, look)
    except DuplicateKeyError:
        corrected = _corrected(parts, look.record, plan)
        if corrected is None:
            raise
    return corrected, *_attempted(parts, corrected, look)


def _attempted(parts: Parts[P], plan: Plan, look: TableState) -> tuple[str, Staged]:
    """Stage a plan; again, as another attempt, where Spark was lost meanwhile and there is another session to be had."""
    lost: SparkLostError | None = None
    for _ in range(STAGE_TRIES):
        attempt = parts.new_id()
        try:
            return attempt, _stage(parts, plan, attempt, look)
        except SparkLostError as error:
            _log.warning("%s: epoch %d: %s", plan.target, plan.epoch, error.message)
            lost = error
        except EnvironmentSetupError as error:
            if lost is None:
                raise
            raise lost from error
    assert lost is not None
    raise lost


def check_look(parts: Parts[P], look: TableState) -> TableState:
    """Step 1: look at a table, and refuse everything that forbids an epoch, each with an error of its own."""
    record = look.record
    if record is None or not look.exists:
        raise DroppedError(
            f"{parts.decider.target} does not exist: expected a table with a current life",
            hint=f"`backfill refresh {parts.name}` creates it",
        )
    if look.external is not None:
        raise ExternalWriteError(
            f"{parts.decider.target}: version {look.external} of the table changed data, but was not written by an epoch",
            hint=f"see DESCRIBE HISTORY for who wrote it. `backfill reset {parts.name}` rebuilds the table; to keep "
            f"it, restore the table's folder from a backup of version {look.external - 1}",
            version=look.external,
        )
    changed = changed_parts(record.fingerprint, parts.decider.fingerprint)
    if changed:
        raise DefinitionChangedError(
            f"{parts.decider.target}: {', '.join(changed)} changed since the table was built",
            hint=f"`backfill reset {parts.name}` rebuilds it with the new declaration; or restore the old one; or "
            "declare the new one under another name",
            changed=changed,
        )
    return look


def begin_life(
    parts: Parts[P], look: TableState, begin: InitialState[P], *, incarnation: str, gives_up: bool = False
) -> CommitRecord:
    """Give a table a new life: one commit that removes all data and is epoch 0 of a new incarnation. With `gives_up` it only
    ends the life as it was looked at, not one that has continued since. Errors: `FencedError` if another run was faster."""
    now = parts.clock.now()
    record = CommitRecord(
        kind=CommitKind.CREATE,
        target=parts.decider.target,
        incarnation=incarnation,
        epoch=0,
        attempt=parts.new_id(),
        plan_hash="",
        fingerprint=parts.decider.fingerprint,
        position=begin.position,
        live=begin.live,
        columns=parts.decider.columns(),
        total=begin.total,
        started_at=now,
        finished_at=now,
        created_at=now,
    )
    _commit(parts, record, Staged(replaces=True), look, gives_up=gives_up)
    return record


def end_life(parts: Parts[P], look: TableState) -> CommitRecord:
    """Drop a table: one commit that removes all data and marks the life as ended. The log itself remains. A
    life whose commits cannot be read is ended too, by a commit without a position."""
    decider, now = parts.decider, parts.clock.now()
    last = look.record or nothing_known(decider.target, decider.fingerprint, incarnation=parts.new_id(), now=now)
    record = last.model_copy(update={"kind": CommitKind.DROP, "attempt": parts.new_id(), "live": False})
    _commit(parts, record, Staged(replaces=True), look)
    return record


def restate(parts: Parts[P], look: TableState) -> CommitRecord:
    """Repeat the newest record in a commit of its own, so that log clean-up cannot remove it. The look is checked first,
    because a repetition on top of an external write or a drop would hide it."""
    check_look(parts, look)
    assert look.record is not None
    record = look.record.model_copy(update={"kind": CommitKind.RESTATE, "attempt": parts.new_id()})
    _commit(parts, record, Staged(), look)
    return record


def _planned(parts: Parts[P], last: CommitRecord, budget: int) -> Plan | None:
    target, incarnation, epoch = last.target, last.incarnation, last.epoch + 1
    newest = parts.ledger.newest(target, incarnation, since=last.epoch)
    if newest is None and last.epoch > 0:
        newest = parts.ledger.newest(target, incarnation)
        raise StateLostError(
            f"{target}: the table is at epoch {last.epoch}, but the ledger knows {newest or 'none'} of its epochs",
            hint="the state store was deleted, or BACKFILL_WAREHOUSE names another one. `backfill rebuild` restores it "
            "from the tables' commits",
            expected=last.epoch,
            found=newest,
        )
    if newest is not None and newest > epoch:
        raise _left_behind(parts, last, newest)
    if newest == epoch:
        plan = parts.ledger.plan(target, incarnation, epoch)
        if plan is not None and plan.before == last.position and _feasible(parts, plan):
            return plan
        _log.warning("%s: the plan of epoch %d can no longer be carried out; it is superseded", target, epoch)
    return _new_plan(parts, last, budget)


def _left_behind(parts: Parts[P], last: CommitRecord, newest: int) -> FencedError | ExternalWriteError:
    """The ledger is more than one epoch ahead of the look: other runs have continued since, or the table was restored."""
    found = parts.output.look()
    if found.life != (last.incarnation, True) or (found.record is not None and found.record.epoch > last.epoch):
        return _fenced(last.target, f"epoch {last.epoch + 1} was committed by another run")
    return ExternalWriteError(
        f"{last.target}: the ledger planned epoch {newest}, but the table is only at epoch {last.epoch}: it was "
        "restored to an older version",
        hint=f"`backfill reset {parts.name}` rebuilds the table",
        expected=newest,
        found=last.epoch,
    )


def _feasible(parts: Parts[P], plan: Plan) -> bool:
    epoch = parts.planned(plan)
    parts.decider.confirm(epoch)
    return parts.decider.readable(epoch)


def _new_plan(parts: Parts[P], last: CommitRecord, budget: int) -> Plan | None:
    step = parts.decider.next(parts.position(last), live=last.live, budget=budget)
    return None if step is None else _entered(parts, last, step)


def _entered(parts: Parts[P], last: CommitRecord, step: NextEpoch[P]) -> Plan:
    """The plan of a step, stored in the ledger."""
    plan = Plan(
        target=last.target,
        incarnation=last.incarnation,
        epoch=last.epoch + 1,
        fingerprint=parts.decider.fingerprint,
        reads=step.reads,
        before=last.position,
        after=step.after,
        live=step.live,
        expected_seconds=parts.costs().expected_seconds(step.reads),
        spooled=last.spooled,
    )
    if not parts.ledger.append(plan):
        raise _fenced(last.target, f"epoch {plan.epoch} was planned by another run at the same moment")
    return plan


def _corrected(parts: Parts[P], last: CommitRecord, refused: Plan) -> Plan | None:
    """A plan over everything that exists now, instead of one with a duplicate key; None if nothing has come since."""
    step = parts.decider.next(parts.position(last), live=last.live, budget=EVERYTHING)
    if step is None or step.after == refused.after:
        return None
    if parts.ledger.newest(refused.target, refused.incarnation, since=last.epoch) != refused.epoch:
        raise _fenced(refused.target, f"epoch {refused.epoch} was planned or committed by another run")
    return _entered(parts, last, step)


def _stage(parts: Parts[P], plan: Plan, attempt: str, look: TableState) -> Staged:
    """Step 3. Other runs that have continued delete the files of a run that still works: this is not a failure of the run."""
    if not plan.reads:
        return Staged()
    try:
        return parts.compute.stage(plan, attempt, at=look.version)
    except Exception as error:
        found = parts.output.look()
        if found.life != look.life:
            raise _fenced(plan.target, "the table was reset or dropped during this run") from error
        if found.record is not None and found.record.epoch >= plan.epoch:
            raise _fenced(plan.target, f"epoch {plan.epoch} was committed by another run") from error
        raise


def _commit(parts: Parts[P], record: CommitRecord, staged: Staged, look: TableState, *, gives_up: bool = False) -> None:
    """Step 4. Every error means "unknown" until a new look has judged it; only after maintenance is the commit repeated.
    With `gives_up`, a commit that ends a life is not repeated on a later epoch of that life."""
    errors: list[Exception] = []
    for _ in range(COMMIT_TRIES):
        _verify(parts, record, staged, look)
        parts.on_step("verified")
        try:
            parts.output.commit(record, staged)
        except ReadMismatchError:
            raise  # nothing was committed
        except Exception as error:
            errors.append(error)
        found = parts.output.look()
        if _settled(found, record, look, errors):
            return
        if gives_up and _epoch(found) != _epoch(look):
            raise _fenced(record.target, "the life that was to be given up has continued")
    raise _unsettled(record, errors, alone=found.version == look.version)


def _unsettled(record: CommitRecord, errors: Sequence[Exception], *, alone: bool) -> UnsettledCommitError:
    """The error of a commit that was tried often enough; `alone` if nobody else has written to the table meanwhile."""
    name = record.target.partition("/")[2]
    hint = (
        "no other writer has changed the table meanwhile. If the error names a file that cannot be read, restore it, or "
        f"`backfill reset {name}` builds the table anew"
        if alone
        else "if it happens again, look for a job that keeps changing the table"
    )
    error = UnsettledCommitError(
        f"{record.target}: the commit of epoch {record.epoch} failed {COMMIT_TRIES} times; the last error "
        f"was: {errors[-1] if errors else 'none'}",
        hint=f"nothing was lost; run it again; {hint}",
    )
    error.__cause__ = errors[-1] if errors else None
    return error


def _epoch(look: TableState) -> int | None:
    return look.record.epoch if look.record is not None else None


def _verify(parts: Parts[P], record: CommitRecord, staged: Staged, look: TableState) -> None:
    """Check the staged files. If they are gone because other runs continued and deleted them, report that instead."""
    try:
        parts.output.verify(staged)
    except StagingError:
        _settled(parts.output.look(), record, look, [])
        raise


def _settled(found: TableState, record: CommitRecord, look: TableState, errors: Sequence[Exception]) -> bool:
    verdict = judge(found, record, look)
    match verdict:
        case Verdict.LANDED:
            if errors:
                _log.warning(
                    "%s: epoch %d was committed although the commit reported an error: %s",
                    record.target,
                    record.epoch,
                    errors[-1],
                )
            if record.kind is CommitKind.EPOCH and found.external is not None:
                raise _external(record, found.external)
            return True
        case Verdict.RETRY:
            return False
        case Verdict.DONE_BY_OTHER:
            raise _fenced(record.target, f"epoch {record.epoch} was committed by another run of the same plan")
        case Verdict.FENCED:
            there = found.record.incarnation if found.record else "none"
            raise _fenced(
                record.target,
                f"expected incarnation {record.incarnation} before epoch {record.epoch}, found "
                f"{there} at epoch {found.record.epoch if found.record else '-'}",
            )
        case Verdict.EXTERNAL:
            raise _external(record, found.external)


def _external(record: CommitRecord, version: int | None) -> ExternalWriteError:
    return ExternalWriteError(
        f"{record.target}: version {version} of the table changed data at the same time as epoch {record.epoch}, "
        "but was not written by an epoch",
        hint=f"`backfill reset {record.target.partition('/')[2]}` rebuilds the table",
        version=version,
    )


def _fenced(target: str, what: str) -> FencedError:
    return FencedError(
        f"{target}: fenced: {what}", hint="nothing to do: the other run continues, and this one stopped without writing"
    )
