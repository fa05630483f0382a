"""A throttle: its allowed values, and its token bucket, which lets one second's worth through, whatever clocks do."""

import math
from dataclasses import dataclass

import pytest

from backfill_assets.core.epoch.limits import Limits, TokenBucket, rate_of
from backfill_assets.errors import DeclarationError
from backfill_assets.testing.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("throttle", "rate"), [("off", None), (0, 0.0), (2.5, 2.5), ("0", 0.0), ("5000", 5000.0), (" 7 ", 7.0)]
)
def test_a_throttle_is_off_or_a_rate_of_zero_or_more(throttle: float | str, rate: float | None) -> None:
    assert rate_of(throttle) == rate


@pytest.mark.parametrize("throttle", [-1, "-0.5", math.nan, "nan", math.inf, "inf", "fast", ""])
def test_any_other_throttle_is_refused_and_quoted(throttle: float | str) -> None:
    with pytest.raises(DeclarationError) as caught:
        rate_of(throttle)
    assert f"expected rows per second or 'off', found {throttle!r}" in str(caught.value)


def test_a_run_takes_no_rate_that_a_table_would_not_take() -> None:
    with pytest.raises(DeclarationError):
        Limits(rows_per_second=math.nan)


def test_a_token_bucket_holds_one_second_and_pays_debts_off() -> None:
    clock = ManualClock()
    bucket = TokenBucket(clock=clock)
    assert (bucket.wait_seconds(), bucket.allowance(5)) == (0, 5)
    bucket.set_rate(10)
    assert (bucket.wait_seconds(), bucket.allowance(5)) == (1, 0)
    clock.advance(60)
    assert (bucket.wait_seconds(), bucket.allowance(50)) == (0, 10)
    bucket.take(25)
    assert bucket.wait_seconds() == pytest.approx(2.5)
    bucket.set_rate(0)
    assert bucket.wait_seconds() == math.inf
    bucket.set_rate(0.5)
    assert bucket.wait_seconds() == pytest.approx(32)


def test_what_was_saved_up_before_a_rate_was_set_is_counted_at_the_rate_of_then() -> None:
    clock = ManualClock()
    bucket = TokenBucket(clock=clock)
    bucket.set_rate(2)
    bucket.allowance(1)
    clock.advance(0.5)
    bucket.set_rate(1000)
    assert bucket.allowance(1000) == 1


def test_a_clock_that_goes_back_removes_nothing_from_a_bucket() -> None:
    @dataclass
    class Clock(ManualClock):
        at: float = 1_000.0

        def now(self) -> float:
            return self.at

    clock = Clock()
    bucket = TokenBucket(clock=clock)
    bucket.set_rate(10)
    clock.at += 1
    assert bucket.allowance(10) == 10
    clock.at -= 3600
    assert bucket.wait_seconds() == 0


def test_rounding_of_the_time_of_day_never_makes_a_throttled_run_wait_for_ever() -> None:
    clock = ManualClock(1_763_700_000.1)
    bucket = TokenBucket(clock=clock)
    bucket.set_rate(333.3)
    for _ in range(200):
        waited = 0
        while (wait := bucket.wait_seconds()) > 0:
            clock.sleep(min(wait, 0.3))
            waited += 1
            assert waited < 20
        bucket.take(bucket.allowance(1000) or 1)
