"""The ways in which a plan may be computed, one after the other where Spark refuses values, or rows are not known.

What stands in the tables may be computed although one way to get there is not: by rows that came and went among the changes,
or by rows of several tables that were never there together. And the first rows of a query may only be known in full.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.first_rows import TooFewRowsError
from backfill_assets.adapters.compute.spark_errors import is_of_values, reason_of
from backfill_assets.adapters.compute.staged_rows import StagingFolder
from backfill_assets.core.epoch.records import WhyFull
from backfill_assets.query.steps import Steps

__all__ = ["Computed", "Way", "every_way", "first_computed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Way:
    """An attempt by some steps; and why it is in full, if others were refused before it."""

    attempt: Attempt
    steps: Steps
    why_full: WhyFull = ""


class Computed(NamedTuple):
    """What a way has given: where it is staged, its counts, the steps that were taken, and why they are in full if values are
    the reason."""

    staging: StagingFolder
    counts: dict[str, int]
    steps: Steps
    why_full: WhyFull


def every_way(
    attempt: Attempt,
    steps: Steps,
    again: Callable[[StagingFolder], Attempt],
    *,
    nets: Callable[[], bool],
    in_full: bool,
) -> Iterator[Way]:
    """How a plan may be computed, each in a folder of its own, as tasks of the one before may still write: by some steps;
    by these of netted changes, if that `nets` anything; in full, as a rule takes one table after another from old to new."""
    plan = attempt.plan
    yield Way(attempt=attempt, steps=steps)
    if plan.replaces and steps.rule == "full":
        return
    if nets():
        yield Way(attempt=replace(again(attempt.staging.inner("netted")), netted=True), steps=steps)
    if plan.replaces and in_full:
        yield Way(attempt=again(attempt.staging.inner("full")), steps=Steps("full"), why_full="values")


def first_computed(ways: Iterable[Way], compute: Callable[[Way], Computed]) -> Computed:
    """The result of the first way whose values Spark accepts, in full where too few rows are known. Errors: that of the last
    one; other errors at once."""
    refused: Exception | None = None
    for way in ways:
        lacks_rows = isinstance(refused, TooFewRowsError)
        if lacks_rows and way.steps.rule != "full":
            continue
        try:
            return compute(replace(way, why_full="first_rows") if lacks_rows else way)
        except TooFewRowsError as error:
            _log.info("%s: epoch %d: %s", way.attempt.plan.target, way.attempt.plan.epoch, error)
            refused = error
        except Exception as error:
            if not is_of_values(error):
                raise
            _log.info("%s: epoch %d: %s", way.attempt.plan.target, way.attempt.plan.epoch, reason_of(error))
            refused = error
    assert refused is not None, "there is at least one way"
    raise refused
