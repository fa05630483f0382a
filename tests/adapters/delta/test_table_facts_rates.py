"""Over which time the commits of a table are spread for its rates: loads and tables at rest are no rate to come."""

import pytest

from backfill_assets.adapters.delta.table_facts import DAY, HOUR, MOST_COMMITS, rate_span

NOW = 1_000_000.0


def every(seconds: float, count: int, *, ago: float = 0.0) -> list[float]:
    """Times of commits, newest first, the newest so many seconds ago."""
    return [NOW - ago - at * seconds for at in range(count)]


@pytest.mark.parametrize(
    ("times", "span"),
    [
        (every(1, 0), DAY),
        (every(1, 1), DAY),
        (every(0.01, 5), HOUR),
        (every(600, 13), 7200),
        (every(0.5, MOST_COMMITS), (MOST_COMMITS - 1) / 2),
        (every(0.5, MOST_COMMITS, ago=600), DAY),
        (every(18, MOST_COMMITS, ago=60), 60 + 18 * (MOST_COMMITS - 1)),
        (every(60, 20, ago=7200), DAY),
    ],
    ids=["none", "one", "a few at once", "two hours", "fast", "a load that is over", "steady", "at rest"],
)
def test_rates_are_of_what_goes_on(times: list[float], span: float) -> None:
    assert rate_span(times, now=NOW) == pytest.approx(span)
