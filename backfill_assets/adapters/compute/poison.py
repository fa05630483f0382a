"""Runs a computation, and translates Spark's errors into errors of this package.

If Spark refuses values, repeating the plan would fail again: the error then names the rows with these values, and the
command that leaves them out.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from backfill_assets.adapters.compute.poison_search import Suspects
from backfill_assets.adapters.compute.setup_errors import setup_remedy
from backfill_assets.adapters.compute.spark_errors import is_of_values, reason_of
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.core.epoch.culprits import Culprit
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.reads import HashRead, SnapshotRead
from backfill_assets.errors import BackfillError, ComputeError, EnvironmentSetupError, PoisonRowError, SparkLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Work", "computed"]

_AGAIN = "run it again. If records or files were lost meanwhile, the next run makes a new plan and reports it"
_OTHER_COLUMNS = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"
_UNREADABLE = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "FILE_NOT_EXIST")

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is being computed, for error messages: the table, a description, and the epoch; whether rows are read at a
    version that stays the same (`pinned`)."""

    target: str
    words: str
    epoch: int
    pinned: bool = False

    @classmethod
    def of(cls, plan: Plan) -> "Work":
        """The epoch of a plan."""
        pinned = any(isinstance(read, SnapshotRead | HashRead) for read in plan.reads)
        return cls(target=plan.target, words=f"epoch {plan.epoch}", epoch=plan.epoch, pinned=pinned)

    @property
    def name(self) -> str:
        """The table's name on the command line."""
        return self.target.partition("/")[2]

    @property
    def retry(self) -> str:
        """What to do once rows of a table were corrected."""
        return (
            f"`backfill reset {self.name}`, as its history is read at one version" if self.pinned else "refresh again"
        )


def computed(
    runner: SparkRunner,
    work: Work,
    action: "Callable[[SparkSession], T]",
    search: "Callable[[SparkSession], Suspects]",
) -> T:
    """Run a computation. Spark's errors become errors of this package, whose own errors are passed on.

    If Spark refuses values, `search` returns the rows with these values. Errors: `PoisonRowError`, `EnvironmentSetupError`
    where Spark's set-up is at fault, `ComputeError`.
    """
    try:
        return runner.run(action)
    except BackfillError:
        raise
    except Exception as error:
        if not is_of_values(error):
            raise _failed(work, error) from error
        suspects = _found(runner, search)
        if suspects is not None and suspects.culprits:
            raise _poison(work, suspects) from error
        raise _unnamed(work, error, _advice(work, suspects)) from error


def _found(runner: SparkRunner, search: "Callable[[SparkSession], Suspects]") -> Suspects | None:
    """The result of a search; None if the search failed, which is no worse than not searching."""
    try:
        return runner.run(search)
    except SparkLostError:
        raise
    except Exception as error:
        _log.warning("the search for rows that cannot be computed failed: %s", reason_of(error))
        return None


def _poison(work: Work, suspects: Suspects) -> PoisonRowError:
    first, others = suspects.culprits[0], len(suspects.culprits) - 1
    commands = "".join(f"\n    backfill skip {work.name} {each.skip.options}" for each in suspects.culprits)
    more = "" if suspects.complete else "\n  There may be more: they are named once these are left out."
    return PoisonRowError(
        f"{work.target}: {work.words} cannot be computed: {first.skip.words}"
        f"{f' (and {others} more, see below)' if others else ''}: {first.reason}",
        hint="nothing was committed, and running it again will fail in the same way. Leave these rows out, which is "
        f"recorded and shown, and refresh again:{commands}\n  {_correct(work, first)}Or {_redo(work)}.{more}",
        epoch=work.epoch,
        rows=[{**each.skip.model_dump(mode="json"), "reason": each.reason} for each in suspects.culprits],
        complete=suspects.complete,
    )


def _correct(work: Work, culprit: Culprit) -> str:
    """Rows of a table can be corrected, records of a topic cannot."""
    return f"Or correct them in the table, and {work.retry}.\n  " if isinstance(culprit.skip, KeySkip) else ""


def _unnamed(work: Work, error: Exception, advice: str) -> PoisonRowError:
    """The error of a computation that fails by values of rows that cannot be told."""
    return PoisonRowError(
        f"{work.target}: {work.words} cannot be computed: {type(error).__name__}: {reason_of(error)}",
        hint=f"nothing was committed; {advice}",
        epoch=work.epoch,
        rows=[],
        complete=False,
    )


def _failed(work: Work, error: Exception) -> BackfillError:
    """The error of a computation that fails for another reason than values."""
    if remedy := setup_remedy(error):
        return EnvironmentSetupError(
            f"{work.target}: Spark could not compute {work.words} as it is set up: {reason_of(error)}",
            hint=f"nothing was committed; {remedy}",
        )
    return _not_computed(work, error, _remedy(work, error))


def _not_computed(work: Work, error: Exception, advice: str) -> ComputeError:
    return ComputeError(
        f"{work.target}: Spark could not compute {work.words}: {type(error).__name__}: {reason_of(error)}",
        hint=f"nothing was committed; {advice}",
        epoch=work.epoch,
    )


def _remedy(work: Work, error: Exception) -> str:
    """What to do if Spark fails for another reason than values."""
    if _OTHER_COLUMNS in str(error):
        return (
            "Spark cannot read these changes, because columns of a table have gone or changed since: "
            f"`backfill replace {work.name}` builds the view anew beside the rows that it has, `backfill reset {work.name}` "
            "empties it first"
        )
    if not any(each in str(error) for each in _UNREADABLE):
        return _AGAIN
    return (
        f"restore the file and run it again. If it is the view's own, `backfill reset {work.name}` builds the view anew"
    )


def _advice(work: Work, suspects: Suspects | None) -> str:
    """What to do if Spark refuses values, but no row can be named."""
    if suspects is None:
        why = "the search for the rows that cause this failed"
    elif suspects.unnamed:
        why = f"the cause is {'; '.join(suspects.unnamed)}, which cannot be left out one by one"
    else:
        why = "the cause is not a single row, but a value that is computed from several"
    return f"running it again will fail in the same way, and {why}. Correct the rows and {work.retry}; or {_redo(work)}"


def _redo(work: Work) -> str:
    return f"let the query accept such values (try_cast, try_divide, WHERE) and `backfill reset {work.name}`"
