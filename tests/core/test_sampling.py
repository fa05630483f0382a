"""Which places another reader reads: few, the same for the same seed, and all of them in time."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.sampling import (
    OFFSETS_SAMPLED,
    PARTITIONS_SAMPLED,
    sample_names,
    sample_offsets,
    sample_range,
)

NAMES = [f"f{number}" for number in range(20)]

numbers = st.integers(0, 10**6)
ranges = st.builds(lambda start, length: OffsetRange(start=start, end=start + length), numbers, numbers)


def test_each_seed_selects_a_few_names_and_all_are_selected_in_time() -> None:
    found = [sample_names(NAMES, f"seed {number}") for number in range(100)]
    assert {len(each) for each in found} == {3}
    assert {name for each in found for name in each} == set(NAMES)
    assert sample_names(reversed(NAMES), "seed 1") == found[1] != found[2]
    assert sample_names([], "seed") == []


def test_each_place_is_selected_in_time() -> None:
    whole = OffsetRange(start=5, end=25)
    found = [sample_range(whole, f"seed {number}", "f", most=10) for number in range(200)]
    assert {each.start for each in found} == set(range(5, 16))
    assert {len(each) for each in found} == {10}


@given(ranges, st.text(), st.integers(1, 10**6))
def test_a_sample_is_within_its_range_and_as_long_as_allowed(whole: OffsetRange, seed: str, most: int) -> None:
    found = sample_range(whole, seed, "f", most)
    assert whole.start <= found.start <= found.end <= whole.end
    assert len(found) == min(most, len(whole))


@given(st.dictionaries(st.integers(0, 9), ranges), st.text())
def test_offsets_are_selected_from_a_few_partitions_that_have_any(whole: dict[int, OffsetRange], seed: str) -> None:
    found = sample_offsets(whole, seed)
    assert len(found) == min(PARTITIONS_SAMPLED, sum(len(each) > 0 for each in whole.values()))
    for partition, each in found.items():
        assert whole[partition].start <= each.start < each.end <= whole[partition].end
        assert len(each) == min(OFFSETS_SAMPLED, len(whole[partition]))
