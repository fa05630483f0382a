"""A clock that moves only by hand, so that tests of waiting never wait."""

__all__ = ["ManualClock"]


class ManualClock:
    """Implements `ports.Clock`; `sleep` returns at once and moves the time on by as much.

    `slept` is the time that was slept in all, and `sleeps` how often.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self.slept = 0.0
        self.sleeps = 0

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the time on by hand."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} seconds")
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass at once."""
        self.advance(seconds)
        self.slept += seconds
        self.sleeps += 1
