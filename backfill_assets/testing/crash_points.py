"""Crash points: end a run at a chosen moment of the epoch protocol."""

from collections.abc import Callable

from backfill_assets.core.epoch.protocol import STEPS

__all__ = ["Crash", "CrashPoint"]


class Crash(BaseException):
    """The process "died" here. Not an `Exception`, so that no handler can swallow it."""


class CrashPoint:
    """An `on_step` hook that crashes the n-th time a named step is reached; other steps pass.

    `step` is one of `protocol.STEPS`; `at` counts from 1. `action` is what crashing means: by default raising `Crash`,
    in tests of real processes for example `lambda: os.kill(os.getpid(), signal.SIGKILL)`. It fires once.
    """

    def __init__(self, step: str, *, at: int = 1, action: Callable[[], None] | None = None) -> None:
        if step not in STEPS:
            raise ValueError(f"step {step!r} does not exist: expected one of {', '.join(STEPS)}")
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
