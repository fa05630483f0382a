"""A clock that only moves when it is told to, so that tests of waiting never wait."""

__all__ = ["ManualClock"]


class ManualClock:
    """A clock for tests; implements `ports.Clock`. `sleep` returns at once and advances the time.

    Args:
        start: The first time, in seconds since 1970, UTC.

    Attributes:
        slept: How many seconds were slept in total.
        sleeps: How often `sleep` was called.

    Examples:
        >>> clock = ManualClock(start=100)
        >>> clock.sleep(5)
        >>> clock.now(), clock.slept
        (105, 5.0)
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self.slept = 0.0
        self.sleeps = 0

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the time.

        Args:
            seconds: By how much; not negative.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} seconds")
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Advance the time at once, and count it as slept.

        Args:
            seconds: By how much; not negative.
        """
        self.advance(seconds)
        self.slept += seconds
        self.sleeps += 1
