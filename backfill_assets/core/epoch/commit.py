"""Step 4 of the protocol: one commit, whose outcome is judged by looking again."""

import logging
from collections.abc import Sequence

from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import P
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged, TableState, Verdict, judge
from backfill_assets.errors import (
    BackfillError,
    ExternalWriteError,
    FencedError,
    StagingError,
    UnsettledCommitError,
)

__all__ = ["COMMIT_TRIES", "commit", "fenced"]

COMMIT_TRIES = 8

_log = logging.getLogger(__name__)


def commit(parts: Parts[P], record: CommitRecord, staged: Staged, look: TableState, *, gives_up: bool = False) -> None:
    """Make a commit. Every error means "unknown" until a new look has judged it; only after maintenance is it repeated.
    With `gives_up`, a commit that ends a life is not repeated on a later epoch of that life.

    An error of this package is none of a commit: what has to be computed for it cannot be. It is raised after the new look,
    unless an earlier try has succeeded meanwhile."""
    errors: list[Exception] = []
    for _ in range(COMMIT_TRIES):
        _verify(parts, record, staged, look)
        parts.on_step("verified")
        refused: BackfillError | None = None
        try:
            parts.output.commit(record, staged)
        except BackfillError as error:
            refused = error
        except Exception as error:
            errors.append(error)
        found = parts.output.look()
        if _settled(found, record, look, errors):
            return
        if gives_up and _epoch(found) != _epoch(look):
            raise fenced(record.target, "the life that was to be given up has continued")
        if refused is not None:
            raise refused
    raise _unsettled(record, errors, alone=found.version == look.version)


def fenced(target: str, what: str) -> FencedError:
    return FencedError(
        f"{target}: fenced: {what}", hint="nothing to do: the other run continues, and this one stopped without writing"
    )


def _unsettled(record: CommitRecord, errors: Sequence[Exception], *, alone: bool) -> UnsettledCommitError:
    """The error of a commit that was tried often enough; `alone` if nobody else has written to the table meanwhile."""
    name = record.target.partition("/")[2]
    hint = (
        "no other writer has changed the table meanwhile. If the error names a file that cannot be read, restore it, or "
        f"`backfill reset {name}` builds the table anew"
        if alone
        else "if it happens again, look for a job that keeps changing the table"
    )
    last = (
        f"the last error was: {errors[-1]}"
        if errors
        else "each time it was accepted without an error, but the table's log does not show it, as where something between "
        "this machine and the store answers in its place, or the store's lists lag behind"
    )
    error = UnsettledCommitError(
        f"{record.target}: the commit of epoch {record.epoch} failed {COMMIT_TRIES} times; {last}",
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
            raise fenced(record.target, f"epoch {record.epoch} was committed by another run of the same plan")
        case Verdict.FENCED:
            there = found.record.incarnation if found.record else "none"
            raise fenced(
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
