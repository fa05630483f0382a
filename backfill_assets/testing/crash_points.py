"""Crash points: end a run at a chosen step of the epoch protocol."""

from collections.abc import Callable

from backfill_assets.core.epoch.lives import SWITCH_STEPS
from backfill_assets.core.epoch.protocol import STEPS

__all__ = ["Crash", "CrashPoint"]


class Crash(BaseException):
    """The process "died" here. It is not an `Exception`, so that no handler can swallow it."""


class CrashPoint:
    """An `on_step` hook that crashes once, the n-th time a step is reached.

    Args:
        step: One of `protocol.STEPS`, or of `lives.SWITCH_STEPS`.
        at: Which time the step is reached, counted from 1.
        action: What crashing means. By default it raises `Crash`; tests of real processes pass, for example,
            `lambda: os.kill(os.getpid(), signal.SIGKILL)`.

    Raises:
        ValueError: There is no such step, or `at` is below 1.

    Examples:
        >>> crash = CrashPoint("staged", at=2)
        >>> crash("staged")
        >>> crash("staged")
        Traceback (most recent call last):
        backfill_assets.testing.crash_points.Crash: crashed at step 'staged', reached for the 2. time
    """

    def __init__(self, step: str, *, at: int = 1, action: Callable[[], None] | None = None) -> None:
        if step not in (known := (*STEPS, *SWITCH_STEPS)):
            raise ValueError(f"step {step!r} does not exist: expected one of {', '.join(known)}")
        if at < 1:
            raise ValueError(f"at={at}: steps are counted from 1")
        self.step = step
        self.at = at
        self.reached = 0
        self._action = action

    @property
    def fired(self) -> bool:
        """Whether the crash has happened."""
        return self.reached >= self.at

    def __call__(self, step: str) -> None:
        if step != self.step:
            return
        self.reached += 1
        if self.reached != self.at:
            return
        if self._action is None:
            raise Crash(f"crashed at step {step!r}, reached for the {self.at}. time")
        self._action()
