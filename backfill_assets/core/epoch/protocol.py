"""The one protocol: everything is written by an epoch, or by the functions of `lives`.

    1 look      load the table; its log alone says what the last epoch is, and that nobody else has written since
    2 plan      use the ledger's plan for the next epoch; or decide one, and store it unless another run has stored one
    3 stage     Spark writes files that no reader sees
    4 commit    check the files, then make one commit on the table as loaded in step 1; after any error look again and judge
    5 report    done by the caller: heartbeat, progress, control

A crash before 2 leaves nothing. A crash after 2 leaves a plan, which the next run carries out unchanged; after 3 also files
that nobody reads, which are deleted once another attempt has succeeded. After 4 nothing is missing. Nothing needs repair.
"""

import logging

from backfill_assets.core.epoch.commit import commit, fenced
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import (
    EVERYTHING,
    NextEpoch,
    P,
)
from backfill_assets.core.epoch.records import (
    CommitKind,
    CommitRecord,
    Plan,
    Staged,
    TableState,
    changed_parts,
    spooled_parts,
)
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import (
    DefinitionChangedError,
    DroppedError,
    DuplicateKeyError,
    EnvironmentSetupError,
    ExternalWriteError,
    FencedError,
    PoisonRowError,
    SparkLostError,
    StateLostError,
    VersionsLostError,
)

__all__ = ["STAGE_TRIES", "STEPS", "check_look", "decided", "may_repeat", "run_epoch"]

STEPS = ("looked", "planned", "staged", "verified", "committed")
"""The moments at which a test may kill the process, in order."""

STAGE_TRIES = 3

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
    lost: SparkLostError | None = None
    for _ in range(STAGE_TRIES):
        plan, attempt, staged = _staged(parts, plan, look, budget, lost)
        parts.decider.confirm(parts.planned(plan))
        parts.on_step("staged")
        record = _recorded(parts, last, plan, staged, (started, attempt))
        try:
            commit(parts, record, staged, look)
        except SparkLostError as error:  # while Spark merged what was staged: nothing was committed
            _log.warning("%s: epoch %d: %s", plan.target, plan.epoch, error.message)
            lost = error
            continue
        parts.on_step("committed")
        return record
    assert lost is not None
    raise lost


def _recorded(parts: Parts[P], last: CommitRecord, plan: Plan, staged: Staged, made: tuple[float, str]) -> CommitRecord:
    """What the commit of a staged plan records; `made` says since when, and by which attempt."""
    started, attempt = made
    mine = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
    deleted = last.rows_total if staged.replaces else staged.rows_deleted
    return CommitRecord(
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
        keys_touched=staged.keys_touched,
        rows_reached=staged.rows_reached,
        columns=(None if plan.redefines else last.columns) or parts.decider.columns(),
        spooled={part: plan.spooled.get(part, mine) for part in spooled_parts(plan.after)},
        total=last.total,
        done=parts.decider.done(parts.planned(plan).after),
        expected_seconds=plan.expected_seconds,
        started_at=started,
        finished_at=parts.clock.now(),
        created_at=last.created_at,
    )


def _staged(
    parts: Parts[P], plan: Plan, look: TableState, budget: int, lost: SparkLostError | None
) -> tuple[Plan, str, Staged]:
    """Stage a plan, and return the plan, attempt and files. If rows of tables were refused, they may have been corrected
    since, and if files are gone, newer versions need others: stage a new plan over what exists by now instead. `lost` if the
    commit of an attempt before has lost Spark."""
    assert look.record is not None
    try:
        return plan, *_attempted(parts, plan, look, lost)
    except DuplicateKeyError:
        corrected = _corrected(parts, look.record, plan, EVERYTHING)
        if corrected is None:
            raise
    except (PoisonRowError, VersionsLostError):
        position = look.record.position
        if not isinstance(position, SnapshotPosition):  # records of a topic stay as they are
            raise
        corrected = _corrected(parts, look.record, plan, EVERYTHING if position.backfilled else budget)
        if corrected is None:
            raise
    return corrected, *_attempted(parts, corrected, look, lost)


def _attempted(parts: Parts[P], plan: Plan, look: TableState, lost: SparkLostError | None) -> tuple[str, Staged]:
    """Stage a plan; again, as another attempt, where Spark was lost meanwhile and there is another session to be had."""
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


def check_look(parts: Parts[P], look: TableState, *, redefines: bool = False) -> TableState:
    """Step 1: look at a table, and refuse everything that forbids an epoch, each with an error of its own. For a run that
    `redefines` the table, a declaration is accepted whose columns the next epoch can add."""
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
    if changed and not (redefines and parts.decider.redefines(record)):
        raise DefinitionChangedError(
            f"{parts.decider.target}: {', '.join(changed)} changed since the table was built",
            hint=f"`backfill replace {parts.name}` builds a view's new declaration beside it, and then switches; "
            f"`backfill reset {parts.name}` empties the table and rebuilds it; or restore the old declaration; or declare "
            "the new one under another name",
            changed=changed,
        )
    return look


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
        if plan is not None and may_repeat(parts, last, plan) and _feasible(parts, plan):
            return plan
        _log.warning("%s: the plan of epoch %d can no longer be carried out; it is superseded", target, epoch)
    return _new_plan(parts, last, budget)


def _left_behind(parts: Parts[P], last: CommitRecord, newest: int) -> FencedError | ExternalWriteError:
    """The ledger is more than one epoch ahead of the look: other runs have continued since, or the table was restored."""
    found = parts.output.look()
    if found.life != (last.incarnation, True) or (found.record is not None and found.record.epoch > last.epoch):
        return fenced(last.target, f"epoch {last.epoch + 1} was committed by another run")
    return ExternalWriteError(
        f"{last.target}: the ledger planned epoch {newest}, but the table is only at epoch {last.epoch}: it was "
        "restored to an older version",
        hint=f"`backfill reset {parts.name}` rebuilds the table",
        expected=newest,
        found=last.epoch,
    )


def may_repeat(parts: Parts[P], last: CommitRecord, plan: Plan) -> bool:
    """Whether a stored plan continues from the newest commit, by the present declaration."""
    return plan.before == last.position and not changed_parts(plan.fingerprint, parts.decider.fingerprint)


def _feasible(parts: Parts[P], plan: Plan) -> bool:
    epoch = parts.planned(plan)
    parts.decider.confirm(epoch)
    return parts.decider.readable(epoch)


def _new_plan(parts: Parts[P], last: CommitRecord, budget: int) -> Plan | None:
    step = decided(parts, last, budget)
    return None if step is None else _entered(parts, last, step)


def decided(parts: Parts[P], last: CommitRecord, budget: int) -> NextEpoch[P] | None:
    """The epoch after a commit, over everything if the declaration has changed since; None if there is nothing to do."""
    return parts.decider.next(parts.position(last), live=last.live, budget=budget, anew=_is_changed(parts, last))


def _is_changed(parts: Parts[P], last: CommitRecord) -> bool:
    return bool(changed_parts(last.fingerprint, parts.decider.fingerprint))


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
        redefines=_is_changed(parts, last),
    )
    if not parts.ledger.append(plan):
        raise fenced(last.target, f"epoch {plan.epoch} was planned by another run at the same moment")
    return plan


def _corrected(parts: Parts[P], last: CommitRecord, refused: Plan, budget: int) -> Plan | None:
    """A plan over what exists now, instead of one that cannot be carried out; None if it would read the same. A rival that
    has planned the epoch meanwhile is noticed here; one that has committed it, when this run commits."""
    step = decided(parts, last, budget)
    if step is None or step.reads == refused.reads:
        return None
    parts.ledger.left_behind = True  # what was refused may have been staged
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
            raise fenced(plan.target, "the table was reset or dropped during this run") from error
        if found.record is not None and found.record.epoch >= plan.epoch:
            raise fenced(plan.target, f"epoch {plan.epoch} was committed by another run") from error
        raise
