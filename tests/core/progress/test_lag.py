"""The lag bound that only shrinks: the trace of a query engine's executor, and properties of all other traces."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, cycle, repeat
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.lag import (
    Convergence,
    CountBound,
    LagBound,
    TimeBound,
    converging,
    converging_commits,
)

NEWER = [
    *[(1000, 950), (1000, 900), (900, 850), (900, 800), (800, 750), (800, 700), (700, 650), (700, 600), (600, 550)],
    *[(600, 500), (500, 450), (500, 400), (400, 350), (400, 300), (300, 250), (300, 200), (200, 150), (200, 100)],
    *[(100, 50), (0, 0)],
]
"""(lag, bound) after consuming 100, 200, ... 2000: a checkpoint every 100, a lag of 1000, and an upstream that is
always ready."""

milliseconds = st.integers(0, 10**6)


def may_advance(bound: LagBound, pending: int) -> bool:
    """Whether an upstream that respects the bound may continue while this much is pending."""
    return bound.max_lag is None or pending < bound.max_lag


def catch_up(lag: int, epochs: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Consume epochs until none is pending, with an upstream that takes every step that the bound allows."""
    pending = [next(epochs) for _ in range(lag)]
    bound = TimeBound.start(sum(pending))
    while pending:
        elapsed = pending.pop(0)
        while pending and may_advance(bound, sum(pending)):
            pending.append(next(epochs))
        bound = bound.consumed(elapsed, sum(pending))
        assert bound.max_lag is not None
        yield sum(pending), bound.max_lag


def drain(lag: int, commits: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Like `catch_up`, with the older bound, which counts: it is set again before the upstream may continue, and not
    after."""
    pending = [next(commits) for _ in range(lag)]
    bound = CountBound.start(len(pending))
    while pending:
        pending.pop(0)
        bound = bound.consumed(1, len(pending))
        while pending and may_advance(bound, len(pending)):
            pending.append(next(commits))
        assert bound.max_lag is not None
        yield len(pending), bound.max_lag


def test_the_newer_bound_lets_the_upstream_run_at_half_speed() -> None:
    assert list(catch_up(10, repeat(100))) == NEWER


def test_the_older_bound_lets_the_upstream_stand_still_until_all_commits_are_drained() -> None:
    assert list(drain(5, repeat(1))) == [(4, 4), (3, 3), (2, 2), (1, 1), (0, 0)]


@pytest.mark.parametrize(("lag", "walk", "steps", "made"), [(10, catch_up, 20, 10), (10, drain, 10, 0)])
def test_while_a_lag_of_n_is_drained_the_newer_bound_lets_n_commits_through_and_the_older_none(
    lag: int, walk: Callable[[int, Iterator[int]], Iterator[tuple[int, int]]], steps: int, made: int
) -> None:
    drawn = count()
    assert len(list(walk(lag, (1 for _ in drawn)))) == steps
    assert next(drawn) - lag == made


def test_while_the_snapshot_is_read_commits_are_not_bounded_either() -> None:
    assert may_advance(CountBound(), 10**15)
    assert CountBound().consumed(9, 7) == CountBound.start(7) == CountBound(max_lag=7)


@given(st.integers(0, 99), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 200))))
def test_a_bound_of_commits_never_grows_and_goes_down_by_each_commit_consumed(
    lag: int, steps: list[tuple[int, int]]
) -> None:
    bound = CountBound.start(lag)
    for commits, pending in steps:
        before, bound = bound.max_lag, bound.consumed(commits, pending)
        assert before is not None
        assert bound.max_lag == max(0, min(pending, before - commits))


def test_while_the_snapshot_is_read_nothing_is_bounded() -> None:
    assert may_advance(TimeBound(), 10**15)
    assert TimeBound().consumed(100, 700) == TimeBound.start(700) == TimeBound(max_lag=700)


def test_half_of_an_odd_time_is_rounded_down_and_the_rest_is_carried() -> None:
    first = TimeBound.start(10).consumed(3, 10)
    assert first == TimeBound(max_lag=9, carried=1)
    assert first.consumed(3, 10) == TimeBound(max_lag=7, carried=0)
    assert first.consumed(3, 2) == TimeBound(max_lag=2, carried=0)
    assert TimeBound.start(10).consumed(99, 10) == TimeBound(max_lag=0, carried=0)


def test_a_time_that_ran_backwards_gives_no_leeway() -> None:
    assert TimeBound.start(10).consumed(-8, 50) == TimeBound.start(10)


@given(milliseconds, st.lists(st.tuples(milliseconds, milliseconds)))
def test_the_bound_never_grows(lag: int, steps: list[tuple[int, int]]) -> None:
    time = TimeBound.start(lag)
    for elapsed, pending in steps:
        before, time = time.max_lag, time.consumed(elapsed, pending)
        assert before is not None
        assert time.max_lag is not None
        assert time.max_lag <= min(before, pending)


@given(st.integers(0, 500), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 500)), max_size=30))
def test_the_bound_decides_as_one_with_exact_halves_would(lag: int, steps: list[tuple[int, int]]) -> None:
    bound, exact = TimeBound.start(lag), Fraction(lag)
    for elapsed, pending in steps:
        bound = bound.consumed(elapsed, pending)
        exact = min(Fraction(pending), max(Fraction(0), exact - Fraction(elapsed, 2)))
        assert bound.max_lag == ceil(exact)
        assert [may_advance(bound, each) for each in range(502)] == [each < exact for each in range(502)]


@given(st.integers(0, 60), st.integers(1, 10**6))
def test_a_lag_of_n_epochs_takes_at_most_2n_even_if_the_upstream_is_always_ready(lag: int, epoch: int) -> None:
    trace = list(catch_up(lag, repeat(epoch)))
    assert len(trace) == (2 * lag if lag > 1 else lag)
    assert all(pending - bound <= epoch for pending, bound in trace)


@given(st.integers(1, 20), st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_epochs_of_any_length_take_twice_the_lag_and_less_than_two_epochs_more(lag: int, lengths: list[int]) -> None:
    drawn: list[int] = []

    def draw() -> Iterator[int]:
        for length in cycle(lengths):
            drawn.append(length)
            yield length

    trace = list(catch_up(lag, draw()))
    assert trace[-1] == (0, 0)
    assert sum(drawn) < 2 * sum(drawn[:lag]) + 2 * max(drawn)


def test_a_lag_that_shrinks_fast_enough_converges_and_says_when_it_ends() -> None:
    found = converging([(0.0, 1000), (0.1, 900), (0.2, 750), (0.3, 700)])
    assert found == Convergence(converging=True, lag=700, bound=800, shrinks_by_per_epoch=100.0, epochs_left=7)


def test_a_lag_that_shrinks_too_slowly_does_not_converge_though_it_would_end() -> None:
    found = converging([(0.0, 1000), (0.1, 999), (0.2, 998), (0.3, 997)])
    assert found == Convergence(converging=False, lag=997, bound=950, shrinks_by_per_epoch=1.0, epochs_left=997)


def test_a_lag_that_grows_has_no_end() -> None:
    found = converging([(0.0, 1000), (0.1, 1100), (0.2, 1200)])
    assert found == Convergence(converging=False, lag=1200, bound=1000, shrinks_by_per_epoch=-100.0, epochs_left=None)


def test_epochs_that_take_ever_longer_do_not_converge_though_each_leaves_less_than_its_own_time() -> None:
    assert not converging([(0, 600_000), (600, 600_000), (1800, 1_200_000), (4200, 2_400_000)]).converging


def test_less_than_an_epochs_time_is_always_behind_and_no_alarm() -> None:
    assert converging([(0, 200), (30, 0), (60, 450), (90, 300)]).converging


def test_every_part_of_the_newer_trace_converges_and_a_lag_that_stays_does_not() -> None:
    history = [(0.1 * step, lag) for step, (lag, _) in enumerate([(1000, 1000), *NEWER])]
    assert all(converging(history[:size]).converging for size in range(1, len(history) + 1))
    assert [converging([(0.1 * each, 1000) for each in range(size)]).converging for size in (1, 2, 3, 4)] == [
        True,
        True,
        True,
        False,
    ]


def test_one_epoch_is_not_a_trend_and_none_is_refused() -> None:
    assert converging([(5.0, 40)]) == Convergence(
        converging=True, lag=40, bound=40, shrinks_by_per_epoch=0.0, epochs_left=None
    )
    assert converging([(5.0, 0)]).epochs_left == 0
    with pytest.raises(ValueError, match="at least one epoch"):
        converging([])


def test_commits_converge_as_long_as_none_is_added_to_those_that_wait() -> None:
    assert converging_commits([(0, 5), (1, 4), (3, 2)]) == Convergence(
        converging=True, lag=2, bound=2, shrinks_by_per_epoch=1.5, epochs_left=2
    )
    assert not converging_commits([(0, 5), (1, 4), (3, 3)]).converging
    assert converging_commits([(7, 3)]).converging
    with pytest.raises(ValueError, match="at least one epoch"):
        converging_commits([])


@given(st.lists(st.tuples(st.integers(0, 10**6).map(float), milliseconds), min_size=1, unique_by=lambda each: each[0]))
def test_the_order_of_the_history_does_not_matter(history: list[tuple[float, int]]) -> None:
    assert converging(history) == converging(sorted(history)) == converging(sorted(history, reverse=True))
