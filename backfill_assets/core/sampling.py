"""Selects, by a seed, the samples of a table that a proof reads again with another reader.

The same seed selects the same samples, so that a proof can be repeated; another seed selects others, so that in time
all rows are read.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["OFFSETS_SAMPLED", "PARTITIONS_SAMPLED", "ROWS_SAMPLED", "sample_names", "sample_offsets", "sample_range"]

_FILES_SAMPLED = 3
ROWS_SAMPLED = 1_000
"""The number of files of a table, and of rows in each."""
PARTITIONS_SAMPLED = 3
OFFSETS_SAMPLED = 200
"""The number of partitions of a topic, and of offsets in each."""


def sample_names(names: Iterable[str], seed: str, most: int = _FILES_SAMPLED) -> list[str]:
    """At most `most` of these names, selected by the seed.

    Example:
        >>> sample_names(["a", "b", "c", "d"], seed="1", most=2) == sample_names(["d", "c", "b", "a"], seed="1", most=2)
        True
    """
    return sorted(names, key=lambda name: _digest(seed, name))[:most]


def sample_range(whole: OffsetRange, seed: str, name: str, most: int) -> OffsetRange:
    """At most `most` consecutive numbers of a range; `name` and the seed select the first one.

    Example:
        >>> len(sample_range(OffsetRange(start=5, end=100), seed="1", name="a", most=10))
        10
    """
    starts = max(1, len(whole) - most + 1)
    start = whole.start + _digest(seed, f"start of {name}") % starts
    return OffsetRange(start=start, end=min(whole.end, start + most))


def sample_offsets(ranges: Mapping[int, OffsetRange], seed: str) -> dict[int, OffsetRange]:
    """Some offsets of some of the partitions that have any."""
    names = {str(partition): partition for partition, each in ranges.items() if len(each)}
    partitions = [names[name] for name in sample_names(names, seed, PARTITIONS_SAMPLED)]
    return {each: sample_range(ranges[each], seed, str(each), OFFSETS_SAMPLED) for each in sorted(partitions)}


def _digest(seed: str, name: str) -> int:
    return int.from_bytes(sha256(f"{seed}/{name}".encode()).digest())
