"""How fast and how long a run works: limits, the token bucket of the throttle, and the reasons for stopping."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from backfill_assets.core.epoch.ports import Clock
from backfill_assets.errors import DeclarationError

__all__ = ["Limits", "Stop", "TokenBucket", "rate_of"]

DEFAULT_CHUNK_ROWS = 1_000_000
ROUNDING = 1e-6
"""Seconds since 1970 have a resolution of about 1e-7 seconds; a bucket that lacks less than this counts as full."""


class Stop(StrEnum):
    """Why a run ended. Each is a success; metadata shows it as `stopped_reason`."""

    CAUGHT_UP = "caught_up"
    PAUSED = "paused"
    MAX_SECONDS = "max_seconds"
    MAX_ROWS = "max_rows"
    FENCED = "fenced"
    LEASE_HELD = "lease_held"
    DRY_RUN = "dry_run"
    WAITING = "waiting"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one run. Rows are counted as offsets, which is an upper bound of the records.

    `max_seconds`, `max_rows`: for the whole run (None: no limit). `chunk_rows`: for one epoch. `rows_per_second`: None for
    no limit, 0 for no rows at all. `yield_to_views`: end early while a view that reads this table, and that another run
    works on, is behind its lag bound.
    """

    max_seconds: float | None = None
    max_rows: int | None = None
    chunk_rows: int = DEFAULT_CHUNK_ROWS
    rows_per_second: float | None = None
    until: Literal["caught_up", "forever"] = "caught_up"
    dry_run: bool = False
    yield_to_views: bool = False

    def __post_init__(self) -> None:
        if self.rows_per_second is not None:
            rate_of(self.rows_per_second)


def rate_of(throttle: float | str) -> float | None:
    """A throttle as rows per second; None for `"off"`. Errors: `DeclarationError`."""
    try:
        rate = None if throttle == "off" else float(throttle)
    except ValueError:
        rate = math.nan
    if rate is None or (math.isfinite(rate) and rate >= 0):
        return rate
    raise DeclarationError(
        f"throttle: expected rows per second or 'off', found {throttle!r}",
        hint="for example `backfill throttle revenue 5000` or `backfill throttle revenue off`; 0 lets nothing through",
        argument="rows_per_second",
    )


@dataclass
class TokenBucket:
    """Lets `rate` rows per second through, measured in real time; saves up at most one second's worth.

    https://en.wikipedia.org/wiki/Token_bucket
    """

    clock: Clock
    rate: float | None = None
    _tokens: float = field(default=0.0, init=False)
    _at: float | None = field(default=None, init=False)

    def set_rate(self, rate: float | None) -> None:
        """Change the rate; what was saved up at the old rate is kept, up to the new capacity."""
        if rate != self.rate:
            self._fill()
            self.rate = rate

    def wait_seconds(self) -> float:
        """How long until rows may be taken again: 0 now, infinite at rate 0."""
        if self.rate is None:
            return 0.0
        if self.rate <= 0:
            return math.inf
        self._fill()
        missing = self._capacity - self._tokens
        return missing / self.rate if missing > ROUNDING * self._capacity else 0.0

    def allowance(self, wanted: int) -> int:
        """How many of `wanted` rows may be taken now."""
        if self.rate is None:
            return wanted
        self._fill()
        return min(wanted, int(self._tokens + ROUNDING * self._capacity))

    def take(self, rows: int) -> None:
        """Record that rows were taken. A plan that is repeated may take more than allowed; later epochs then wait longer."""
        if self.rate is not None:
            self._tokens -= rows

    @property
    def _capacity(self) -> float:
        return max(1.0, self.rate or 0.0)

    def _fill(self) -> None:
        now = self.clock.now()
        if self._at is not None and self.rate is not None:
            self._tokens = min(self._capacity, self._tokens + max(0.0, now - self._at) * self.rate)
        self._at = now
