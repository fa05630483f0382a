"""Cuts a table's key into ranges of about the same number of rows, from what its files say of it or from a sample.

Any cut is right, as a range is whatever lies between two of them; an even one makes epochs of an even size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from backfill_assets.backfill.ports import KeyRanges
from backfill_assets.backfill.positions import Key

__all__ = ["RANGES", "Span", "by_files", "by_sample", "clustering"]

RANGES = 256
"""Into how many ranges a key is cut at the most."""

SMALL = 100_000
"""So many rows are one range without harm."""


MOST_CHUNKS = 64
"""Into how many chunks a table is cut at the most to see how many files each touches."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The rows of a data file, whose leading key column goes from `low` to `high`; `text` is `high` as a key names it."""

    low: Any
    high: Any
    text: str
    rows: int


def by_files(spans: Sequence[Span], *, ranges: int = RANGES, small: int = SMALL) -> KeyRanges | None:
    """Ranges of whole files, so that reading them all reads each file once.

    None where files overlap, or one is so large that it should be cut: then their statistics do not say enough.
    """
    ordered = sorted((span for span in spans if span.rows), key=lambda span: (span.low, span.high))
    rows = sum(span.rows for span in ordered)
    if any(span.rows > max(small, 2 * rows // ranges) for span in ordered):
        return None
    if any(after.low <= before.high for before, after in pairwise(ordered)):
        return None
    bounds: list[Key] = []
    held = [0]
    for at, span in enumerate(ordered):
        held[-1] += span.rows
        if held[-1] * ranges >= rows and at < len(ordered) - 1:
            bounds.append((span.text,))
            held.append(0)
    return KeyRanges(bounds=tuple(bounds), rows=tuple(held) if rows else ())


def by_sample(keys: Sequence[Key], rows: int, *, ranges: int = RANGES) -> KeyRanges:
    """Ranges between keys of a sample, which is sorted as the table's key is; `rows` are those of the whole table."""
    if not rows:
        return KeyRanges(bounds=(), rows=())
    count = min(ranges, len(keys))
    ends = (at * len(keys) // count for at in range(1, count))
    cuts = {keys[end - 1]: end for end in ends}  # of keys that are equal, the last one: they stay together
    shares = [0, *(end * rows // len(keys) for end in cuts.values()), rows]
    return KeyRanges(bounds=tuple(cuts), rows=tuple(after - before for before, after in pairwise(shares)))


def clustering(spans: Sequence[Span], *, chunk_rows: int) -> float:
    """The share of the files that a key range of `chunk_rows` rows touches on average, by the leading key column alone.

    About 1/chunks where files follow each other in the order of the key; 1 where each holds keys from all over.
    """
    ordered = sorted((span for span in spans if span.rows), key=lambda span: (span.low, span.high))
    rows = sum(span.rows for span in ordered)
    chunks = min(MOST_CHUNKS, -(-rows // chunk_rows))
    if chunks <= 1:
        return 1.0
    highs = sorted((span.high, span.rows) for span in ordered)
    cuts: list[Any] = []
    held = 0
    for high, count in highs:
        held += count
        while held * chunks >= rows * (len(cuts) + 1) and len(cuts) < chunks - 1:
            cuts.append(high)
    touched = sum(
        1
        for after, upto in pairwise([None, *cuts, None])
        for span in ordered
        if (after is None or span.high > after) and (upto is None or span.low <= upto)
    )
    return touched / (chunks * len(ordered))
