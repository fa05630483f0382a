"""What the metrics of a scan tell: whether all its rows were read several times."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.compute.scans import _SUMS, _found

HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50, unique=True)


def metrics(hashes: list[int]) -> Mapping[str, int | None]:
    """What Spark computes over rows with these hashes."""
    parity = 0
    for each in hashes:
        parity ^= each
    sums = {name: sum(each >> int(name.partition("_")[2]) & 65535 for each in hashes) for name in _SUMS}
    return {"rows": len(hashes), "parity": parity, **sums}


@given(HASHES, st.integers(2, 7))
def test_rows_that_are_all_read_several_times_are_noticed(hashes: list[int], times: int) -> None:
    found = _found(metrics(hashes * times))
    assert found.again
    assert found.rows == times * len(hashes)


def test_rows_that_are_read_once_are_seldom_counted_again() -> None:
    chance = Random(1)
    scans = [[chance.getrandbits(63) for _ in range(12)] for _ in range(1_000)]
    assert 0 < sum(_found(metrics(each)).again for each in scans) < len(scans) / 50


@pytest.mark.parametrize("given", [{"rows": 0, "parity": None, **dict.fromkeys(_SUMS)}, {"rows": 6}])
def test_without_rows_or_hashes_nothing_was_read_again(given: Mapping[str, int | None]) -> None:
    assert not _found(given).again
