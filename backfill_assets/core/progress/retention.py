"""Whether a pinned snapshot is read before VACUUM and log clean-up may remove what it needs: arithmetic on times.

Times are seconds since 1970, UTC. Files that the snapshot needs can be removed from the upstream only after the pin,
and VACUUM may delete them `delta.deletedFileRetentionDuration` after their removal; the commits after the pin, which
are the change log, may be deleted `delta.logRetentionDuration` after they were made. This module has no clock and reads no
table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["FILE_SETTING", "LOG_SETTING", "Forecast", "forecast", "in_words", "parse_interval", "retention_of"]

FILE_SETTING = "delta.deletedFileRetentionDuration"
LOG_SETTING = "delta.logRetentionDuration"
_DEFAULT_DAYS = ((FILE_SETTING, 7), (LOG_SETTING, 30))
SPARE = 0.25
"""The share of a retention that should be left when the snapshot has been read."""
SPARE_WITHOUT_ETA = 0.5
"""The share of a retention that should be left while it is unknown when the snapshot will have been read."""

MILLISECONDS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How long the rest takes and how long it may take, in seconds; below 0: it may have been gone for that long.

    `eta_seconds` is None while no rate is known and rows are left, and then so is `headroom_seconds`, which is the
    smaller of the two safe times less the ETA. `message` says the same in words, with what to do unless all is safe.
    """

    eta_seconds: float | None
    files_safe_seconds: float
    log_safe_seconds: float
    headroom_seconds: float | None
    risk: Literal["safe", "warning", "lost_soon"]
    message: str


def forecast(  # noqa: PLR0913  (each a fact of its own, given by name)
    *,
    now: float,
    pinned_at: float,
    left_rows: int,
    rows_per_second: float | None,
    file_retention_seconds: float,
    log_retention_seconds: float,
    oldest_needed_removed_at: float | None = None,
) -> Forecast:
    """Compare the time that `left_rows` take with the time that the upstream's retention leaves.

    `oldest_needed_removed_at` is when the first file still needed was removed from the table; without it the pin, the
    earliest that can be. The risk is `lost_soon` if the rest cannot be read in time, or time is up already; `warning`
    if less than a quarter of a retention would be to spare or, without an ETA, less than half of it is left.
    """
    removed_at = pinned_at if oldest_needed_removed_at is None else oldest_needed_removed_at
    files = _Limit(FILE_SETTING, removed_at + file_retention_seconds - now, file_retention_seconds)
    log = _Limit(LOG_SETTING, pinned_at + log_retention_seconds - now, log_retention_seconds)
    eta = _eta(left_rows, rows_per_second)
    safe = min(files.safe, log.safe)
    short = [limit.setting for limit in (files, log) if limit.is_short(eta)]
    rest = f"{left_rows:,} rows of the pinned snapshot are left, {_rest(eta, rows_per_second)}"
    facts = (
        f"{rest}. {_safe('Its files are', files.safe)} and {_safe('its change log is', log.safe)}{_spare(safe, eta)}."
    )
    advice = f" Raise {' and '.join(short)} on the upstream, or speed the backfill up."
    return Forecast(
        eta_seconds=eta,
        files_safe_seconds=files.safe,
        log_safe_seconds=log.safe,
        headroom_seconds=None if eta is None else safe - eta,
        risk="lost_soon" if safe < (eta or 0.0) else "warning" if short else "safe",
        message=facts + advice if short else facts,
    )


def parse_interval(text: str) -> float:
    """The seconds of one of Delta's interval texts, such as `interval 30 days 12 hours`.

    The word `interval` may be missing, case does not matter, and units are weeks to milliseconds with whole numbers.
    Errors: `ValueError` for anything else.
    """
    words = text.lower().split()
    words = words[1:] if words[:1] == ["interval"] else words
    amounts, units = words[::2], [unit.removesuffix("s") for unit in words[1::2]]
    numbers = all(each.isascii() and each.isdigit() for each in amounts)
    if not units or len(amounts) != len(units) or not numbers or not MILLISECONDS.keys() >= set(units):
        raise ValueError(
            f"{text!r} is not an interval: expected whole numbers with units from weeks to milliseconds, "
            "such as 'interval 30 days 12 hours'"
        )
    return sum(int(amount) * MILLISECONDS[unit] for amount, unit in zip(amounts, units, strict=True)) / 1000


def in_words(seconds: float) -> str:
    """The time in its largest full unit: days, hours, minutes or seconds."""
    unit = next((unit for unit in ("day", "hour", "minute") if 1000 * seconds >= MILLISECONDS[unit]), "second")
    return f"{1000 * seconds / MILLISECONDS[unit]:,.1f} {unit}s"


class _Limit(NamedTuple):
    """What a setting of the upstream allows: `safe` seconds from now, out of a whole `retention`."""

    setting: str
    safe: float
    retention: float

    def is_short(self, eta: float | None) -> bool:
        if eta is None:
            return self.safe < SPARE_WITHOUT_ETA * self.retention
        return self.safe - eta < SPARE * self.retention


def _eta(left_rows: int, rows_per_second: float | None) -> float | None:
    if left_rows == 0:
        return 0.0
    return left_rows / rows_per_second if rows_per_second is not None and rows_per_second > 0 else None


def _rest(eta: float | None, rows_per_second: float | None) -> str:
    if eta is None:
        return "and how long they take is not known"
    return f"{in_words(eta)} at {rows_per_second:,.1f} rows per second" if rows_per_second else "so it is read"


def _safe(what: str, seconds: float) -> str:
    return (
        f"{what} safe for {in_words(seconds)}"
        if seconds >= 0
        else f"{what} overdue for clean-up by {in_words(-seconds)}"
    )


def _spare(safe: float, eta: float | None) -> str:
    if eta is None:
        return ""
    return f": {in_words(safe - eta)} to spare" if safe >= eta else f": {in_words(eta - safe)} too little"


def retention_of(configuration: Mapping[str, str | None]) -> tuple[float, float]:
    """How long, in seconds, a table keeps removed files and log entries at least, according to its properties."""
    files, log = (_seconds(configuration.get(name), days) for name, days in _DEFAULT_DAYS)
    return files, log


def _seconds(interval: str | None, days: int) -> float:
    return parse_interval(interval) if interval else days * 86_400.0
