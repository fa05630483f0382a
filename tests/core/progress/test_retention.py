"""Whether a pinned snapshot outlasts retention, in exact numbers; and Delta's syntax for intervals."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.retention import Forecast, forecast, parse_interval

HOUR, DAY = 3600.0, 86400.0
PIN = 1_700_000_000.0

ask = partial(
    forecast,
    now=PIN + DAY,
    pinned_at=PIN,
    left_rows=864_000,
    rows_per_second=10.0,
    file_retention_seconds=7 * DAY,
    log_retention_seconds=30 * DAY,
)
"""A day after the pin, with a day of work left, under Delta's defaults."""


def test_enough_to_spare_is_safe() -> None:
    assert ask() == Forecast(
        eta_seconds=DAY,
        files_safe_seconds=6 * DAY,
        log_safe_seconds=29 * DAY,
        headroom_seconds=5 * DAY,
        risk="safe",
        message="864,000 rows of the pinned snapshot are left, 1.0 days at 10.0 rows per second. "
        "Its files are safe for 6.0 days and its change log is safe for 29.0 days: 5.0 days to spare.",
    )


def test_less_than_a_quarter_of_the_retention_to_spare_is_a_warning() -> None:
    assert ask(now=PIN + 4.25 * DAY).risk == "safe"
    late = ask(now=PIN + 4.5 * DAY)
    assert (late.risk, late.headroom_seconds) == ("warning", 1.5 * DAY)
    assert late.message == (
        "864,000 rows of the pinned snapshot are left, 1.0 days at 10.0 rows per second. "
        "Its files are safe for 2.5 days and its change log is safe for 25.5 days: 1.5 days to spare. "
        "Raise delta.deletedFileRetentionDuration on the upstream, or speed the backfill up."
    )


def test_more_work_than_time_is_lost_soon() -> None:
    slow = ask(rows_per_second=1.25)
    assert (slow.risk, slow.eta_seconds, slow.headroom_seconds) == ("lost_soon", 8 * DAY, -2 * DAY)
    assert slow.message.endswith(
        ": 2.0 days too little. Raise delta.deletedFileRetentionDuration on the upstream, or speed the backfill up."
    )
    assert ask(now=PIN + 6 * DAY).risk == "warning"
    assert ask(now=PIN + 6 * DAY + 1).risk == "lost_soon"


@pytest.mark.parametrize("rate", [None, 0.0])
def test_without_a_rate_half_of_the_retention_must_be_left(rate: float | None) -> None:
    early = ask(rows_per_second=rate, now=PIN + 3.5 * DAY)
    assert (early.eta_seconds, early.headroom_seconds, early.risk) == (None, None, "safe")
    late = ask(rows_per_second=rate, now=PIN + 3.5 * DAY + 1)
    assert (late.eta_seconds, late.headroom_seconds, late.risk) == (None, None, "warning")
    assert late.message == (
        "864,000 rows of the pinned snapshot are left, and how long they take is not known. "
        "Its files are safe for 3.5 days and its change log is safe for 26.5 days. "
        "Raise delta.deletedFileRetentionDuration on the upstream, or speed the backfill up."
    )


def test_a_retention_that_is_over_is_lost_soon_even_without_a_rate() -> None:
    over = ask(rows_per_second=None, now=PIN + 7 * DAY + 2 * HOUR)
    assert (over.risk, over.files_safe_seconds, over.headroom_seconds) == ("lost_soon", -2 * HOUR, None)
    assert "Its files are overdue for clean-up by 2.0 hours" in over.message


def test_a_file_known_to_be_removed_later_is_safe_for_longer() -> None:
    found = ask(now=PIN + 6 * DAY, oldest_needed_removed_at=PIN + 5 * DAY)
    assert (found.files_safe_seconds, found.headroom_seconds, found.risk) == (6 * DAY, 5 * DAY, "safe")


def test_the_change_log_may_be_what_is_lost_first() -> None:
    found = ask(log_retention_seconds=2 * DAY)
    assert (found.log_safe_seconds, found.headroom_seconds, found.risk) == (DAY, 0.0, "warning")
    assert "Raise delta.logRetentionDuration on the upstream" in found.message
    assert "deletedFile" not in found.message


def test_both_settings_are_named_where_both_are_short() -> None:
    found = ask(rows_per_second=0.1, log_retention_seconds=7 * DAY)
    assert "Raise delta.deletedFileRetentionDuration and delta.logRetentionDuration on the upstream" in found.message


def test_a_log_short_of_its_own_quarter_is_a_warning_though_the_files_have_less() -> None:
    found = ask(now=PIN + 23 * DAY, oldest_needed_removed_at=PIN + 22 * DAY)
    assert (found.headroom_seconds, found.log_safe_seconds, found.risk) == (5 * DAY, 7 * DAY, "warning")
    assert "Raise delta.logRetentionDuration on the upstream" in found.message


def test_with_no_rows_left_no_rate_is_needed() -> None:
    found = ask(left_rows=0, rows_per_second=None)
    assert (found.eta_seconds, found.headroom_seconds, found.risk) == (0.0, 6 * DAY, "safe")
    assert found.message.startswith("0 rows of the pinned snapshot are left, so it is read. ")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("interval 7 days", 604_800.0),
        ("interval 168 hours", 604_800.0),
        ("interval 1 week", 604_800.0),
        ("interval 30 days 12 hours", 2_635_200.0),
        ("INTERVAL 1 Day", 86_400.0),
        ("2 weeks", 1_209_600.0),
        ("  interval  90   minutes ", 5_400.0),
        ("interval 1 minute 5 seconds 250 milliseconds", 65.25),
        ("interval 0 days", 0.0),
    ],
)
def test_an_interval_is_read_as_seconds(text: str, seconds: float) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *["", "interval", "7", "days", "interval days 7", "7 days 12", "interval interval 7 days", "7days"],
        *["1 month", "1 year", "5 microseconds", "-7 days", "1.5 days", "1e3 days", "7 dayss", "1_0 days", "² days"],
    ],
)
def test_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not an interval") as refused:
        parse_interval(text)
    assert repr(text) in str(refused.value)


UNITS = {"week": 604800.0, "days": 86400.0, "HOUR": 3600.0, "minutes": 60.0, "second": 1.0}


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS))), min_size=1))
def test_an_interval_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{amount} {unit}" for amount, unit in parts)
    assert parse_interval(f"interval {text}") == parse_interval(text) == sum(n * UNITS[unit] for n, unit in parts)
