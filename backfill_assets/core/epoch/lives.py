"""The lives of a table: how one begins, ends, or is taken over from another table, each by one commit."""

from typing import Any

from backfill_assets.core.epoch.commit import commit
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import InitialState, P
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged, TableState, nothing_known

__all__ = ["SWITCH_STEPS", "begin_life", "end_life", "restate", "take_over"]

SWITCH_STEPS = ("built", "kept", "copied", "switched", "ended")
"""The moments at which a test may kill the process that replaces a view, or puts it back, besides those of epochs. The last
one is when the life of what lies beside the view has ended, and its files are still there."""


def begin_life(
    parts: Parts[P], look: TableState, begin: InitialState[P], *, incarnation: str, gives_up: bool = False
) -> CommitRecord:
    """Give a table a new life: one commit that removes all data and is epoch 0 of a new incarnation. With `gives_up` it only
    ends the life as it was looked at, not one that has continued since. Errors: `FencedError` if another run was faster."""
    record = _epoch_zero(
        parts,
        incarnation,
        fingerprint=parts.decider.fingerprint,
        position=begin.position,
        live=begin.live,
        columns=parts.decider.columns(),
        total=begin.total,
    )
    commit(parts, record, Staged(replaces=True), look, gives_up=gives_up)
    return record


def take_over(
    parts: Parts[P], look: TableState, made: CommitRecord, staged: Staged, *, incarnation: str
) -> CommitRecord:
    """Give a table a new life that begins with the rows of another table: one commit removes what it held and adds `staged`,
    copies of the other's files, and epoch 0 has the position of `made`, the other's newest commit. Errors: `FencedError` if
    the table has continued since the look, as a run that continues deletes the copies."""
    record = _epoch_zero(
        parts,
        incarnation,
        fingerprint=made.fingerprint,
        position=made.position,
        live=made.live,
        rows_written=staged.rows_written,
        rows_total=staged.rows_written,
        engine="overwrite",
        columns=made.columns,
        total=made.total,
        done=made.done,
    )
    commit(parts, record, staged, look, gives_up=True)
    return record


def end_life(parts: Parts[P], look: TableState) -> CommitRecord:
    """Drop a table: one commit that removes all data and marks the life as ended. The log itself remains. A
    life whose commits cannot be read is ended too, by a commit without a position."""
    decider, now = parts.decider, parts.clock.now()
    last = look.record or nothing_known(decider.target, decider.fingerprint, incarnation=parts.new_id(), now=now)
    record = last.model_copy(update={"kind": CommitKind.DROP, "attempt": parts.new_id(), "live": False})
    commit(parts, record, Staged(replaces=True), look)
    return record


def restate(parts: Parts[P], look: TableState) -> CommitRecord:
    """Repeat the newest record in a commit of its own, so that log clean-up cannot remove it. The look is checked first,
    because a repetition on top of an external write or a drop would hide it."""
    check_look(parts, look)
    assert look.record is not None
    record = look.record.model_copy(update={"kind": CommitKind.RESTATE, "attempt": parts.new_id()})
    commit(parts, record, Staged(), look)
    return record


def _epoch_zero(parts: Parts[P], incarnation: str, **given: Any) -> CommitRecord:
    """The record of the commit with which a life begins."""
    now = parts.clock.now()
    return CommitRecord(
        kind=CommitKind.CREATE,
        target=parts.decider.target,
        incarnation=incarnation,
        epoch=0,
        attempt=parts.new_id(),
        plan_hash="",
        started_at=now,
        finished_at=now,
        created_at=now,
        **given,
    )
