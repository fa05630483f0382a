"""How a budget of offsets is divided among partitions, and between live rows and history."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.positions import allocate
from backfill_assets.core.strategies.source import partition_budget

budgets = st.integers(0, 60)
wants = st.dictionaries(st.integers(0, 9), st.integers(0, 30), max_size=8)


@given(budgets, wants)
def test_an_allocation_never_exceeds_the_budget_or_a_request_and_wastes_nothing(
    budget: int, wanted: dict[int, int]
) -> None:
    shares = allocate(budget, wanted)
    assert sum(shares.values()) == min(budget, sum(wanted.values()))
    assert all(0 < share <= wanted[partition] for partition, share in shares.items())


@given(budgets, wants)
def test_an_allocation_with_a_row_for_each_starves_none(budget: int, wanted: dict[int, int]) -> None:
    wanting = {partition for partition, want in wanted.items() if want}
    if budget >= len(wanting):
        assert allocate(budget, wanted).keys() == wanting


@given(budgets, wants)
def test_an_allocation_is_even_except_for_one_row(budget: int, wanted: dict[int, int]) -> None:
    shares = allocate(budget, wanted)
    cut = [shares.get(partition, 0) for partition, want in wanted.items() if shares.get(partition, 0) < want]
    assert max(cut, default=0) - min(cut, default=0) <= 1
    assert all(share <= min(cut, default=30) + 1 for share in shares.values())


def test_a_budget_below_one_row_each_rotates_so_that_a_busy_partition_starves_none() -> None:
    waiting = {0: 1, 1: 3}
    served = []
    for _ in range(6):
        (partition,) = allocate(1, waiting)
        served.append(partition)
        waiting[partition] -= 1
        waiting[0] += 1
    assert set(served) == {0, 1}
    assert waiting[1] < 3


@given(budgets, st.integers(0, 99), st.integers(0, 99))
def test_live_and_history_share_a_budget_fully_and_history_has_a_floor_of_half(
    budget: int, live: int, history: int
) -> None:
    for_live, for_history = partition_budget(budget, live, history)
    assert 0 <= for_live <= live
    assert 0 <= for_history <= history
    assert for_live + for_history == min(budget, live + history)
    assert for_history >= min(history, budget - budget // 2)
    assert for_live >= min(live, budget // 2)
