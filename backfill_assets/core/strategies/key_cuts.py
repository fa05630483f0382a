"""Cuts a table's key into ranges with about the same number of rows, from the statistics of its files or from a sample.

Any cut is correct, because a range is everything between two cuts; even cuts make epochs of an even size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from backfill_assets.core.epoch.ports import KeyRanges
from backfill_assets.core.progress.positions import Key

__all__ = ["RANGES", "Span", "by_files", "by_sample", "clustering", "thinned"]

RANGES = 256
"""The maximum number of ranges."""

SMALL = 100_000
"""A range with no more rows than this need not be cut."""

BOUND_LETTERS = 16_384
"""The maximum number of characters in all bounds of a table together, however long its keys are."""

MAX_CHUNKS = 64
"""The maximum number of chunks into which a table is cut to find out how many files each touches."""
FEWEST_STEPS = 8
"""The least resolution with which the keys of a file are distinguished."""

TOLD_BYTES = 128
"""How many characters of a string are compared; statistics have its first 32."""
DIGITS = 38
"""The maximum number of digits after the decimal point."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The rows of a data file whose leading key column goes from `low` to `high`; `text` is `high` as written in a key."""

    low: Any
    high: Any
    text: str
    rows: int

    def overlaps(self, after: Any, upto: Any, *, beyond: bool = False) -> bool:
        """Whether the file may have a leading value from `after` (only above it if `beyond`) to `upto`; None: no end."""
        if after is not None and (self.high < after or (beyond and self.high == after)):
            return False
        return upto is None or bool(self.low <= upto)


def by_files(spans: Sequence[Span], *, ranges: int = RANGES, small: int = SMALL) -> KeyRanges | None:
    """Ranges of whole files, so that reading all ranges reads each file once.

    None if files overlap, or if one is so large that it should be cut: then the statistics do not say enough.
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
    """Ranges between the keys of a sample, which is sorted like the table's key; `rows` is the size of the whole table."""
    if not rows:
        return KeyRanges(bounds=(), rows=())
    count = min(ranges, len(keys))
    ends = (at * len(keys) // count for at in range(1, count))
    cuts = {keys[end - 1]: end for end in ends}  # the last one of equal keys, so that they stay together
    shares = [0, *(end * rows // len(keys) for end in cuts.values()), rows]
    return KeyRanges(bounds=tuple(cuts), rows=tuple(after - before for before, after in pairwise(shares)))


def thinned(planned: KeyRanges, *, most: int = BOUND_LETTERS) -> KeyRanges:
    """The same ranges, joined until their bounds have at most `most` characters, because every commit contains them."""
    letters = sum(len(text or "") for key in planned.bounds for text in key)
    step = max(1, -(-letters // most))
    ends = range(step - 1, len(planned.bounds), step)
    starts = [0, *(end + 1 for end in ends)]
    rows = [sum(planned.rows[start:end]) for start, end in pairwise([*starts, len(planned.rows)])]
    return KeyRanges(bounds=tuple(planned.bounds[end] for end in ends), rows=tuple(rows) if planned.rows else ())


def clustering(spans: Sequence[Span], *, chunk_rows: int) -> float:
    """The share of the files that a key range of `chunk_rows` rows touches on average, by the leading key column alone.

    About 1/chunks if the files follow each other in the order of the key; 1 if each has keys from everywhere. The rows of a
    file are assumed to be evenly distributed between its lowest and its highest key.
    """
    held = [(_place(span.low), _place(span.high), span.rows) for span in spans if span.rows]
    chunks = min(MAX_CHUNKS, -(-sum(rows for *_, rows in held) // chunk_rows))
    if chunks <= 1:
        return 1.0
    ends = [*_cuts(held, chunks), max(high for _, high, _ in held)]
    touched = sum(
        1
        for after, upto in zip([None, *ends[:-1]], ends, strict=True)
        for low, high, _ in held
        if (after is None or high > after or high == after == upto) and low <= upto
    )
    return touched / (chunks * len(held))


def _cuts(held: Sequence[tuple[int, int, int]], chunks: int) -> list[int]:
    """Where to cut files (each with its first and last place and its rows) into chunks with this number of rows."""
    steps = FEWEST_STEPS + 4 * MAX_CHUNKS // len(held)
    points = sorted((low + (high - low) * at // steps, rows) for low, high, rows in held for at in range(1, steps + 1))
    all_rows, passed = sum(rows for _, rows in points), 0
    cuts: list[int] = []
    for place, rows in points:
        passed += rows
        while passed * chunks >= all_rows * (len(cuts) + 1) and len(cuts) < chunks - 1:
            cuts.append(place)
    return cuts


def _place(value: int | Decimal | str) -> int:
    """A number that has the same order as the values of a column, and shows how far apart they are."""
    if isinstance(value, str):
        return int.from_bytes(value.encode()[:TOLD_BYTES].ljust(TOLD_BYTES, b"\0"))
    return int(Decimal(value).scaleb(DIGITS))
