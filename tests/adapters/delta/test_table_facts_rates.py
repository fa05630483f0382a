"""The time over which the commits of a table are spread for its rates: initial loads and tables at rest have no rate."""

import pytest

from backfill_assets.adapters.delta.table_facts import DAY, HOUR, MAX_COMMITS, rate_span

NOW = 1_000_000.0


def every(seconds: float, count: int, *, ago: float = 0.0) -> list[float]:
    """Times of commits, newest first; the newest was made this many seconds ago."""
    return [NOW - ago - at * seconds for at in range(count)]


@pytest.mark.parametrize(
    ("times", "span"),
    [
        (every(1, 0), DAY),
        (every(1, 1), DAY),
        (every(0.01, 5), HOUR),
        (every(600, 13), 7200),
        (every(0.5, MAX_COMMITS), (MAX_COMMITS - 1) / 2),
        (every(0.5, MAX_COMMITS, ago=600), DAY),
        (every(18, MAX_COMMITS, ago=60), 60 + 18 * (MAX_COMMITS - 1)),
        (every(60, 20, ago=7200), DAY),
    ],
    ids=["none", "one", "a few at once", "two hours", "fast", "a load that is over", "steady", "at rest"],
)
def test_rates_are_those_of_present_activity(times: list[float], span: float) -> None:
    assert rate_span(times, now=NOW) == pytest.approx(span)
