"""Between which values of a key's column a merge has to look for rows: it need not open files whose bounds lie elsewhere.

A span is a lowest and a highest value, both included. Changes are spans that are sorted and do not meet (`apart`). What is
given here may be more than is needed, and is never less: each row that a change is for lies in one of the spans.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["MOST_SPANS", "MOST_VALUES", "Span", "apart", "blocks", "fewer", "may_touch", "touched_spans"]

Span = tuple[Any, Any]
"""A lowest and a highest value of one column, in a form that Python orders as the files' bounds are ordered."""

_T = TypeVar("_T")

MOST_VALUES = 10_000
"""Of more values, only the ends of blocks are compared with the files' bounds."""

MOST_SPANS = 32
"""Each row of the files that are opened is compared with all spans, so there are not more than this."""


def apart(spans: Iterable[Span]) -> list[Span]:
    """The values of some spans by spans that are sorted and do not meet.

    Example:
        >>> apart([(7, 9), (1, 3), (2, 4)])
        [(1, 4), (7, 9)]
    """
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def blocks(values: Sequence[Any], most: int = MOST_VALUES) -> list[Span]:
    """Spans that hold sorted values, of which none is there twice: each alone, or blocks of neighbours if there are more than
    `most`.

    Example:
        >>> blocks([1, 5, 6, 9, 10], most=2)
        [(1, 6), (9, 10)]
    """
    return [(block[0], block[-1]) for block in _groups(values, most)]


def fewer(spans: Sequence[Span], most: int) -> list[Span]:
    """At most so many spans, of spans that are sorted and apart; neighbours become one.

    Example:
        >>> fewer([(1, 2), (5, 6), (9, 9)], most=2)
        [(1, 6), (9, 9)]
    """
    return [(group[0][0], group[-1][1]) for group in _groups(spans, most)]


def may_touch(changes: Sequence[Span], file: Span | None) -> bool:
    """Whether a file may have a value of some changes. One without bounds may have any."""
    return file is None or _within(changes, file) is not None


def touched_spans(changes: Sequence[Span], files: Sequence[Span | None]) -> list[Span] | None:
    """The spans in which the rows lie that the changes are for, if a table has files with these bounds.

    Args:
        changes: The values of the changes.
        files: The bounds of each file that may have any value; None where they are not known.

    Returns:
        At most `MOST_SPANS` spans, sorted and apart. None if that spares no file, or nothing is known.

    Example:
        >>> touched_spans([(3, 3), (5, 5), (90, 90)], [(0, 9), (10, 19), (80, 99)])
        [(3, 5), (90, 90)]
        >>> touched_spans([(3, 3), (15, 15)], [(0, 9), (10, 19)]) is None
        True
    """
    if not changes or None in files:
        return None
    found = [_within(changes, file) for file in files if file is not None]
    touched = [span for span in found if span is not None]
    if len(touched) == len(files):
        return None
    return fewer(apart(touched), MOST_SPANS) or [(changes[0][0], changes[-1][1])]


def _within(changes: Sequence[Span], file: Span) -> Span | None:
    """From the first to the last change that may be in a file."""
    first = bisect_left(changes, file[0], key=lambda each: each[1])
    last = bisect_right(changes, file[1], key=lambda each: each[0])
    return (changes[first][0], changes[last - 1][1]) if first < last else None


def _groups(of: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """At most so many groups of neighbours, of one size."""
    size = max(1, -(-len(of) // most))
    return (of[at : at + size] for at in range(0, len(of), size))
