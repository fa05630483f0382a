"""Real time."""

import time

__all__ = ["SystemClock"]


class SystemClock:
    """`ports.Clock` on this machine's clock."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
