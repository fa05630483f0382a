"""Finds the rows that cannot be computed among many, by bisection, with limited effort.

The caller numbers the rows (or what identifies them) from 0, and says for any range of numbers why it fails. Rows fail
independently: a range fails if and only if one of its rows does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.core.epoch.skips import OffsetSkip, Skip
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import OffsetRead

__all__ = ["MAX_NAMED", "MAX_TRIES", "Culprit", "Culprits", "Places", "culprits"]

MAX_NAMED = 10
"""The maximum number of rows that are named."""
MAX_TRIES = 120
"""The maximum number of ranges that are tried. Finding one row among a million takes forty, each further one fewer."""

Fails = Callable[[int, int], str]
"""Why the rows from one number to another (exclusive) cannot be computed; empty if they can."""


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """A row that cannot be computed, and why."""

    skip: Skip
    reason: str


@dataclass(frozen=True, kw_only=True)
class Culprits:
    """The numbers of rows that fail, ascending, each with its reason. `complete`: there are no others."""

    found: tuple[tuple[int, str], ...]
    complete: bool


def culprits(size: int, fails: Fails, *, most: int = MAX_NAMED, tries: int = MAX_TRIES) -> Culprits:
    """Search the rows 0 to `size` for those that fail; finds the first ones if there are too many."""
    found: list[tuple[int, str]] = []
    suspected = [(0, size)] if size else []
    while suspected and len(found) < most and tries > 0:
        start, end = suspected.pop()
        reason = fails(start, end)
        tries -= 1
        if not reason:
            continue
        if end - start == 1:
            found.append((start, reason))
            continue
        middle = (start + end) // 2
        suspected += [(middle, end), (start, middle)]
    return Culprits(found=tuple(found), complete=not suspected)


@dataclass(frozen=True)
class Places:
    """All offsets that reads of topics name, numbered from 0."""

    parts: tuple[tuple[str, int, OffsetRange], ...]

    @classmethod
    def of(cls, reads: Sequence[OffsetRead]) -> "Places":
        """The offsets of these reads, source by source and partition by partition."""
        return cls(
            tuple((read.source, partition, each) for read in reads for partition, each in sorted(read.ranges.items()))
        )

    def __len__(self) -> int:
        return sum(len(each) for _, _, each in self.parts)

    def between(self, start: int, end: int) -> Mapping[str, dict[int, OffsetRange]]:
        """The offsets from one number to another (exclusive), by source and partition."""
        found: dict[str, dict[int, OffsetRange]] = {}
        number = 0
        for source, partition, each in self.parts:
            first, last = max(start - number, 0), min(end - number, len(each))
            if first < last:
                part = OffsetRange(start=each.start + first, end=each.start + last)
                found.setdefault(source, {})[partition] = part
            number += len(each)
        return found

    def at(self, number: int) -> OffsetSkip:
        """The offset with a number."""
        ((source, partitions),) = self.between(number, number + 1).items()
        ((partition, each),) = partitions.items()
        return OffsetSkip(source=source, partition=partition, offset=each.start)
