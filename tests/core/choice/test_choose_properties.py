"""Properties of every choice; and estimates, compared with a world that is simulated epoch by epoch."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backfill_assets.core.choice.choose import SAFETY, TIE, Choice
from backfill_assets.core.choice.estimates import Estimate, Workload, estimate
from backfill_assets.core.choice.reasons import FORECAST, Code
from backfill_assets.core.epoch.costs import STRATEGIES, Costs, EpochRan, Strategy, TableFacts
from tests.support.choose_world import CHUNK, DAY, GIB, MILLION, chosen, estimate_of, table, workload

rates = st.sampled_from([0.0, 0.01, 1.0, 100.0, 10_000.0, 200_000.0])
kept = st.sampled_from([None, 30.0, 600.0, 3600.0, DAY, 7 * DAY, 30 * DAY])


def facts(name: str, kind: st.SearchStrategy[str]) -> st.SearchStrategy[TableFacts]:
    return st.builds(
        TableFacts,
        name=st.just(name),
        kind=kind,
        rows=st.integers(0, 5 * 10**9),
        bytes=st.integers(0, 10**12),
        files=st.sampled_from([0, 1, 100, 10**5]),
        append_only=st.booleans(),
        has_feed=st.sampled_from([*[True] * 9, False]),
        keyed=st.sampled_from([True, True, False]),
        key_sortable=st.sampled_from([True, True, False]),
        clustering=st.sampled_from([None, 0.0, 0.001, 0.1, 1.0]),
        file_retention_seconds=kept,
        log_retention_seconds=kept,
        changes_per_second=rates,
        versions_per_second=st.sampled_from([0.0, 0.01, 1.0, 50.0]),
        change_bytes_per_second=rates.map(lambda rate: 50 * rate),
        newest_commit_age_seconds=st.sampled_from([0.0, 60.0, DAY]),
    )


tables = st.sampled_from(["table", "table", "view"])
anything = tables | st.just("topic")
worlds = st.one_of(
    *(st.tuples(*(facts(name, kind) for name in "ab"[:count])) for count in (1, 2) for kind in (tables, anything))
)
limits = st.fixed_dictionaries({
    "chunk_rows": st.sampled_from([1000, MILLION, 20 * MILLION]),
    "memory_bytes": st.sampled_from([0, GIB, 64 * GIB]),
    "spool_bytes": st.sampled_from([0, GIB, 1000 * GIB]),
})
World = tuple[TableFacts, ...]


def of_chosen(choice: Choice) -> Estimate:
    assert choice.chosen is not None
    return estimate_of(choice, choice.chosen)


@given(worlds, limits)
def test_a_choice_never_loses_data_by_its_own_forecast(world: World, limits: dict[str, Any]) -> None:
    choice = chosen(*world, **limits)
    assume(choice.chosen and choice.chosen != "source")
    named = of_chosen(choice)
    assert named.busy < 1
    assert SAFETY * named.spool_bytes <= limits["spool_bytes"]
    assert not {risk.code for risk in named.risks} & set(FORECAST)
    needed = named.retention_needed_seconds
    for each in world:
        if each.changes_per_second == each.versions_per_second == 0:
            continue
        if each.log_retention_seconds is not None:
            assert SAFETY * needed.get("log", 0.0) <= each.log_retention_seconds
            left = each.log_retention_seconds - each.newest_commit_age_seconds
            assert "pinned" not in needed or SAFETY * needed["pinned"] <= left
        if each.file_retention_seconds is not None:
            assert SAFETY * needed["files"] <= each.file_retention_seconds


@given(st.tuples(facts("a", st.just("topic")), facts("b", st.just("topic"))), limits)
def test_topics_are_read_in_the_only_way_and_a_forecast_against_it_is_reported(
    world: World, limits: dict[str, Any]
) -> None:
    choice = chosen(*world, **limits)
    assert choice.chosen == "source"
    named = of_chosen(choice)
    told = {risk.code for risk in named.risks}
    assert (Code.NOT_CONVERGING in told) == (named.busy >= 1)
    needed = named.retention_needed_seconds["log"]
    kept = [each.log_retention_seconds for each in world if each.log_retention_seconds is not None]
    assume(named.converges)
    assert (Code.RETENTION_TOO_SHORT in told) == any(seconds < SAFETY * needed for seconds in kept)


@given(worlds, limits)
def test_the_choice_is_the_cheapest_or_the_simplest_that_costs_as_little(world: World, limits: dict[str, Any]) -> None:
    choice = chosen(*world, **limits)
    out = {each.strategy for each in choice.ruled_out}
    costs = {each.strategy: each.cost_seconds for each in choice.estimates if each.strategy not in out}
    assert (choice.chosen is None) == (not costs)
    as_cheap = [
        strategy for strategy in STRATEGIES if costs.get(strategy, math.inf) <= TIE * min(costs.values(), default=0)
    ]
    assert choice.chosen == next(iter(as_cheap), None)
    assert {*out, *(each.strategy for each in choice.estimates)} == set(STRATEGIES)


@given(worlds, limits, st.floats(1, 1000))
def test_more_retention_never_makes_the_choice_cost_more_than_a_tie(
    world: World, limits: dict[str, Any], more: float
) -> None:
    before = chosen(*world, **limits)
    assume(before.chosen)
    longer = [
        each.model_copy(
            update={
                name: None if kept is None else kept * more
                for name in ("file_retention_seconds", "log_retention_seconds")
                for kept in [getattr(each, name)]
            }
        )
        for each in world
    ]
    after = chosen(*longer, **limits)
    assert of_chosen(after).cost_seconds <= TIE * of_chosen(before).cost_seconds


@given(worlds, limits, st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(world: World, limits: dict[str, Any], random: Random) -> None:
    shuffled = list(world)
    random.shuffle(shuffled)
    assert chosen(*shuffled, **limits) == chosen(*world, **limits)


@given(worlds, limits, st.none() | st.sampled_from(STRATEGIES))
def test_a_choice_survives_json_and_its_text_is_complete(
    world: World, limits: dict[str, Any], requested: Strategy | None
) -> None:
    choice = chosen(*world, **limits, requested=requested)
    assert Choice.model_validate_json(choice.model_dump_json()) == choice
    told = [each for each in choice.ruled_out if each.code is not Code.WRONG_UPSTREAM or each.strategy == requested]
    named = {choice.chosen, choice.least_bad, requested, *(each.strategy for each in told)} - {None}
    assert all(f"`{strategy}`" in choice.words for strategy in named)
    assert all(f"({each.code})" in choice.words for each in told)
    assert choice.requested == requested
    assert requested is None or choice.chosen in (requested, None)


extreme = st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e9, 1e18])


@given(
    extreme, extreme, st.sampled_from([0, 1, 10**18]), st.sampled_from([1, 10**18]), st.sampled_from([1e-3, 1.0, 1e18])
)
def test_estimates_are_finite_and_not_negative_whatever_the_numbers(
    rate: float, versions: float, rows: int, chunk_rows: int, cost: float
) -> None:
    constants = dict.fromkeys(Costs.model_fields, cost)
    each = table(
        rows=rows, bytes=rows, files=min(rows, 7), clustering=None, changes_per_second=rate,
        versions_per_second=versions, change_bytes_per_second=rate,
    )  # fmt: skip
    choice = chosen(each, costs=Costs(**constants), chunk_rows=chunk_rows)
    for named in choice.estimates:
        numbers = named.model_dump(exclude={"strategy", "risks", "headroom_seconds", "retention_needed_seconds"})
        numbers |= {str(resource): seconds for resource, seconds in named.retention_needed_seconds.items()}
        assert all(0 <= number < math.inf for number in numbers.values()), (named, numbers)
        assert named.headroom_seconds is None or math.isfinite(named.headroom_seconds)
        assert named.cost_seconds >= named.eta_seconds


def played(work: Workload, chunks: int, capture: float = 0.0) -> tuple[float, float, int]:
    """History in equal chunks and then the log, epoch by epoch: when it ends, the oldest log that is read, the epochs."""
    now = work.history_seconds(chunks, work.costs.snapshot_rows_per_second) + chunks * capture
    consumed = oldest = 0.0
    epochs = chunks
    while True:
        target = min(now, consumed + work.window)
        caught_up = target == now
        now += work.applying(target - consumed) + capture
        oldest = max(oldest, now - consumed)
        consumed, epochs = target, epochs + 1
        if caught_up:
            return now, oldest, epochs


@given(
    st.integers(0, 200 * MILLION),
    st.integers(1, 400),
    st.sampled_from([0.01, 10.0, 1000.0, 40_000.0, 100_000.0]),
    st.sampled_from([10_000, 100_000, CHUNK, 5 * CHUNK]),
    st.booleans(),
)
def test_the_estimate_of_a_snapshot_is_what_playing_it_through_takes(
    rows: int, files: int, changes: float, chunk_rows: int, append_only: bool
) -> None:
    each = table(rows=rows, files=files, changes_per_second=changes, append_only=append_only)
    work = workload(each, chunk_rows=chunk_rows)
    cases: list[tuple[Strategy, int]] = [("snapshot", work.whole_files), ("snapshot_once", 1)]
    for strategy, chunks in cases:
        made = estimate(strategy, work)
        assume(made.busy < 0.95)
        end, oldest, epochs = played(work, chunks)
        assert made.eta_seconds == pytest.approx(end)
        assert made.epochs == epochs
        assert made.retention_needed_seconds["log"] >= oldest * (1 - 1e-9)


@given(
    st.integers(1, 300 * MILLION),
    st.sampled_from([0.01, 10.0, 1000.0, 40_000.0]),
    st.sampled_from([100_000, CHUNK, 5 * CHUNK]),
)
def test_the_estimate_of_an_arrangement_is_what_playing_it_through_takes(
    rows: int, changes: float, chunk_rows: int
) -> None:
    work = workload(table(rows=rows, clustering=0.0, changes_per_second=changes), chunk_rows=chunk_rows)
    made = estimate("arrangement", work)
    assume(made.busy < 0.95)
    alone = work.history_seconds(work.chunks, work.costs.snapshot_rows_per_second) / work.chunks
    now, before, oldest = 0.0, 0.0, 0.0
    for chunk in range(work.chunks + 1):
        began, grown = now, chunk / work.chunks
        now += (alone if chunk < work.chunks else 0.0) + (work.applying(began - before, grown=grown) if chunk else 0.0)
        oldest, before = max(oldest, now - before), began
    near = 1e-9 if work.chunks <= 200 else 0.02
    assert made.eta_seconds == pytest.approx(now, rel=near)
    assert made.retention_needed_seconds["log"] >= oldest * (1 - near)
    assert made.epochs == work.chunks + 1


@given(
    st.integers(1, 300 * MILLION),
    st.sampled_from([0.01, 10.0, 1000.0, 20_000.0]),
    st.sampled_from([100.0, 10.0**6, 5.0 * 10**6]),
)
def test_the_estimate_of_a_rearranged_backfill_is_what_playing_it_through_takes_or_a_little_more(
    rows: int, changes: float, size: float
) -> None:
    work = workload(table(rows=rows, changes_per_second=changes, change_bytes_per_second=size))
    made = estimate("rearranged", work)
    assume(made.busy < 0.95)
    writing = work.captured / work.costs.spool_bytes_per_second
    alone = work.history_seconds(work.whole_files, work.costs.snapshot_rows_per_second) / work.whole_files
    now = captured = drained = oldest = 0.0
    epochs = 0
    while drained < captured or epochs <= work.whole_files:
        began, target = now, min(now, drained + work.window)
        reading = epochs < work.whole_files
        now += alone if reading else work.applying(target - drained)
        now += work.costs.capture_seconds + writing * (began - captured)
        drained = drained if reading else target
        oldest, captured, epochs = max(oldest, now - captured), began, epochs + 1
    assert 0.99 * now <= made.eta_seconds <= 1.25 * now, now
    assert made.retention_needed_seconds["log"] >= 0.95 * oldest
    assert 0.99 * now <= made.spool_bytes / work.captured <= 1.25 * now
    assert abs(made.epochs - epochs) <= 2


history = st.lists(
    st.builds(
        EpochRan,
        st.integers(-5, 10**18),
        st.integers(-5, 10**18),
        st.floats(),
        st.sampled_from(["source", "snapshot", "changes"]),
    ),
    max_size=12,
)


@given(history)
def test_whatever_ran_the_constants_learned_are_usable(ran: list[EpochRan]) -> None:
    learned = Costs.learned(ran)
    assert Costs.model_validate_json(learned.model_dump_json()) == learned
    for name, default in Costs():
        assert default / 100 <= getattr(learned, name) <= default * 100


def test_epochs_of_two_kinds_move_a_constant_no_further_than_those_of_one() -> None:
    both = 3 * [EpochRan(0, 0, 1.0, "source"), EpochRan(0, 0, 16.0, "snapshot")]
    assert Costs.learned(both).epoch_seconds == 100 * Costs().epoch_seconds


def test_constants_are_learned_from_epochs_and_outliers_do_not_matter() -> None:
    truth = Costs(
        snapshot_rows_per_second=900_000.0, merge_rows_per_second=40_000.0, epoch_seconds=0.4, merge_seconds=1.5
    )
    ran = [
        EpochRan(rows, rows, 0.4 + rows / 900_000, "snapshot") for rows in (1, 2, 3, MILLION, 2 * MILLION, 3 * MILLION)
    ]
    ran += [EpochRan(9 * rows, rows, 1.5 + rows / 40_000, "changes") for rows in (1, 2, 3, 10**5, 10**6, 10**7)]
    ran += [EpochRan(MILLION, 0, 10_000.0, "snapshot"), EpochRan(0, 10**6, 1e-9, "changes")]
    learned = Costs.learned(ran)
    for name, value in truth:
        assert getattr(learned, name) == pytest.approx(value, rel=0.25), name
    assert Costs.learned(ran[:2]) == Costs(), "two epochs tell nothing"


def test_what_was_learned_makes_the_next_estimate_that_of_the_machine() -> None:
    slow = [EpochRan(MILLION, MILLION, 10.0, "snapshot") for _ in range(5)]
    first, second = chosen(table()), chosen(table(), costs=Costs.learned(slow))
    assert of_chosen(first).eta_seconds < 10
    assert estimate_of(second, "snapshot").eta_seconds == pytest.approx(100, rel=0.1)
