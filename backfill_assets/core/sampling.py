"""Which part of what a table stands for is read once more by another reader: a few places, drawn by a seed.

The same seed draws the same places, so that a proof can be repeated; another one draws others, so that in time all of them
are looked at.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["OFFSETS_DRAWN", "PARTITIONS_DRAWN", "ROWS_DRAWN", "drawn", "drawn_offsets", "drawn_range"]

_FILES_DRAWN = 3
ROWS_DRAWN = 1_000
"""Of so many files of a table, and so many rows of each."""
PARTITIONS_DRAWN = 3
OFFSETS_DRAWN = 200
"""Of so many partitions of a topic, and so many offsets of each."""


def drawn(names: Iterable[str], seed: str, most: int = _FILES_DRAWN) -> list[str]:
    """Some of these names.

    Example:
        >>> drawn(["a", "b", "c", "d"], seed="1", most=2) == drawn(["d", "c", "b", "a"], seed="1", most=2)
        True
    """
    return sorted(names, key=lambda name: _digest(seed, name))[:most]


def drawn_range(whole: OffsetRange, seed: str, name: str, most: int) -> OffsetRange:
    """At most so many consecutive places of a range that is called `name`; any of them may be the first.

    Example:
        >>> len(drawn_range(OffsetRange(start=5, end=100), seed="1", name="a", most=10))
        10
    """
    starts = max(1, len(whole) - most + 1)
    start = whole.start + _digest(seed, f"start of {name}") % starts
    return OffsetRange(start=start, end=min(whole.end, start + most))


def drawn_offsets(ranges: Mapping[int, OffsetRange], seed: str) -> dict[int, OffsetRange]:
    """Some offsets of some partitions, of those that have any."""
    names = {str(partition): partition for partition, each in ranges.items() if len(each)}
    partitions = [names[name] for name in drawn(names, seed, PARTITIONS_DRAWN)]
    return {each: drawn_range(ranges[each], seed, str(each), OFFSETS_DRAWN) for each in sorted(partitions)}


def _digest(seed: str, name: str) -> int:
    return int.from_bytes(sha256(f"{seed}/{name}".encode()).digest())
