"""How far a view may fall behind its upstream while it catches up: a bound that only shrinks, and whether it is kept.

    snapshot (no bound) ──► catching up (bound = lag, then only smaller) ──► live (lag 0)

`TimeBound` shrinks by half of the consumed time, so an upstream that waits for it runs at half speed, and a lag of n epochs
is gone after 2n. `CountBound` shrinks by every consumed commit, so an upstream that waits for it stops until all n are
drained. Producers that write to Delta and Kafka cannot be made to wait. For them the bound is a goal: `converging` and
`converging_commits` say whether it is reached.

Lags and consumed times are whole milliseconds, or whole commits. This module has no clock and reads no table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Literal, Self

from pydantic import Field

from backfill_assets.core.progress.value import Value

__all__ = ["Convergence", "CountBound", "LagBound", "TimeBound", "converging", "converging_commits"]


class TimeBound(Value):
    """The lag, in milliseconds, below which the upstream may continue; None while the snapshot is read: no bound.

    Half of an odd time is rounded down, and the remaining half millisecond is `carried` (0 or 1) to the next time. So the
    halves are exact over any number of epochs, and the bound reaches 0 even with epochs of 1 ms.
    """

    max_lag: int | None = Field(default=None, ge=0)
    carried: int = Field(default=0, ge=0, le=1)

    @classmethod
    def start(cls, pending_lag: int) -> Self:
        """The bound when the snapshot is read and the change log begins: the lag of that moment."""
        return cls(max_lag=pending_lag)

    def consumed(self, elapsed: int, pending_lag: int) -> Self:
        """The bound after a step over `elapsed` of the upstream's time that leaves `pending_lag`.

        The smaller of the pending lag and the bound minus half of `elapsed`. A time that ran backwards counts as 0.
        """
        if self.max_lag is None:
            return self.start(pending_lag)
        half, carried = divmod(max(0, elapsed) + self.carried, 2)
        left = max(0, self.max_lag - half)
        if pending_lag < left:
            return self.start(pending_lag)
        return type(self)(max_lag=left, carried=carried if left else 0)


class CountBound(Value):
    """The lag, in commits, below which the upstream may continue; None while the snapshot is read: no bound."""

    unit: Literal["commits"] = "commits"
    max_lag: int | None = Field(default=None, ge=0)

    @classmethod
    def start(cls, pending_lag: int) -> Self:
        """The bound when the snapshot is read and the change log begins: the commits that wait at that moment."""
        return cls(max_lag=pending_lag)

    def consumed(self, commits: int, pending_lag: int) -> Self:
        """The bound after a step over `commits` of them that leaves `pending_lag`: the smaller of that and the rest."""
        if self.max_lag is None:
            return self.start(pending_lag)
        return type(self)(max_lag=max(0, min(pending_lag, self.max_lag - commits)))


LagBound = TimeBound | CountBound


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """Whether a lag shrinks as it must: `converging` is `lag <= bound`. Lags are in milliseconds, or in commits.

    `shrinks_by_per_epoch` is the mean over the epochs looked at, negative if the lag grows; `epochs_left` is how many
    more epochs it takes at that pace, None if it never ends or one epoch is all that is known.
    """

    converging: bool
    lag: int
    bound: int
    shrinks_by_per_epoch: float
    epochs_left: int | None


def converging(history: Sequence[tuple[float, int]]) -> Convergence:
    """Judge the newest epochs of one run by when each ended (seconds) and the lag it left, in any order.

    The bound starts at the oldest lag given and shrinks by half of the time between the epochs. What arrives during an
    epoch cannot be part of it, so one epoch's time, the shortest of those given, is allowed on top. One epoch alone is
    no trend and counts as converging. Errors: `ValueError` if no epoch is given.
    """
    if not history:
        raise ValueError("whether a lag shrinks takes at least one epoch to say, and none was given")
    ordered = sorted(history, key=itemgetter(0))
    lags = [lag for _, lag in ordered]
    times = [round(1000 * (after - before)) for (before, _), (after, _) in pairwise(ordered)]
    return _judged(TimeBound.start(lags[0]), times, lags, grace=min(times, default=0))


def converging_commits(history: Sequence[tuple[int, int]]) -> Convergence:
    """Judge epochs of one run, oldest first, by how many commits had been consumed and how many then waited.

    The bound starts at the oldest lag given and shrinks by every commit consumed since. Errors: as `converging`.
    """
    if not history:
        raise ValueError("whether a lag shrinks takes at least one epoch to say, and none was given")
    lags = [lag for _, lag in history]
    steps = [max(0, after - before) for (before, _), (after, _) in pairwise(history)]
    return _judged(CountBound.start(lags[0]), steps, lags, grace=0)


def _judged(bound: LagBound, steps: Sequence[int], lags: Sequence[int], *, grace: int) -> Convergence:
    for step, lag in zip(steps, lags[1:], strict=True):
        bound = bound.consumed(step, lag)
    allowed = (bound.max_lag or 0) + grace
    shrunk = lags[0] - lags[-1]
    return Convergence(
        converging=lags[-1] <= allowed,
        lag=lags[-1],
        bound=allowed,
        shrinks_by_per_epoch=shrunk / max(1, len(steps)),
        epochs_left=_epochs_left(lags[-1], shrunk, len(steps)),
    )


def _epochs_left(lag: int, shrunk: int, epochs: int) -> int | None:
    if lag == 0:
        return 0
    return -(-lag * epochs // shrunk) if shrunk > 0 else None
