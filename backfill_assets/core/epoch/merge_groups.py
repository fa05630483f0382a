"""How a merge lays out what it writes: which of the files that it touches become one, and into which of these new rows go.

Files whose values lie next to each other become one while it stays small, and a new row goes where values near its own are,
so that a view that was laid out by its key stays so. No file grows beyond the size of a file that is small.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "MOST_OVERLAP",
    "ROWS_OF_FILE",
    "SMALL_BYTES",
    "Group",
    "TouchedFile",
    "files_for",
    "group_for",
    "groups_of",
    "overlap",
    "rows_of_file",
]

MOST_OVERLAP = 3
"""A view is laid out again where a value may be in more files than this."""

ROWS_OF_FILE: Final = 250_000
"""About so many rows are in a file: a merge reads and writes it again in a fraction of a second, and a view of a hundred
million rows still has no more than some hundred files."""

_BYTES_OF_FILE: Final = 128 * 2**20
"""And no more than about so many bytes, if rows are wide."""

SMALL_BYTES: Final = 16 * 2**20
"""Files up to this size are small, as long as they have no more rows than that."""


@dataclass(frozen=True, kw_only=True)
class TouchedFile:
    """A file of which rows are replaced or deleted: its size, its rows, how many of them are deleted, and its lowest value in
    the first column of the key; None if that is not known."""

    size: int
    rows: int
    deleted: int = 0
    lowest: Any = None


@dataclass(frozen=True, kw_only=True)
class Group:
    """Files that become one, by their numbers: their size and rows together, and how many rows stay."""

    files: tuple[int, ...] = ()
    size: int = 0
    rows: int = 0
    stay: int = 0
    lowest: Any = None

    def takes(self, more: int) -> bool:
        """Whether so many new rows may be added: it becomes no larger than its files are, or stays small."""
        rows = self.stay + more
        return rows <= self.rows or (rows <= ROWS_OF_FILE and self.size <= SMALL_BYTES)


def files_for(rows: int, size: int) -> int:
    """Into how many files rows are written that have so many bytes.

    Example:
        >>> files_for(0, 0), files_for(600_000, 6_000_000), files_for(1_000, 2**30)
        (1, 3, 8)
    """
    return max(1, -(-rows // ROWS_OF_FILE), -(-size // _BYTES_OF_FILE))


def rows_of_file(bytes_of_row: float) -> int:
    """How many rows are in a file, if each has so many bytes there.

    Example:
        >>> rows_of_file(20.5), rows_of_file(2**20), rows_of_file(2**30)
        (250000, 128, 1)
    """
    return max(1, min(ROWS_OF_FILE, int(_BYTES_OF_FILE / max(1.0, bytes_of_row))))


def groups_of(files: Sequence[TouchedFile]) -> list[Group]:
    """The files that become one, by their lowest values; those without one last.

    Example:
        >>> high, unknown, low = (TouchedFile(size=9, rows=9, lowest=value) for value in (90, None, 1))
        >>> [each.files for each in groups_of([high, unknown, low])]
        [(2, 0), (1,)]
    """
    known = sorted((at for at, each in enumerate(files) if each.lowest is not None), key=lambda at: files[at].lowest)
    unknown = [at for at, each in enumerate(files) if each.lowest is None]
    return [*_small_ones(known, files), *_small_ones(unknown, files)]


def _small_ones(order: Sequence[int], files: Sequence[TouchedFile]) -> list[Group]:
    groups: list[Group] = []
    for at in order:
        each = files[at]
        last = groups[-1] if groups else Group()
        if not groups or last.size + each.size > SMALL_BYTES or last.rows + each.rows > ROWS_OF_FILE:
            last = Group()
            groups.append(last)
        groups[-1] = Group(
            files=(*last.files, at),
            size=last.size + each.size,
            rows=last.rows + each.rows,
            stay=last.stay + each.rows - each.deleted,
            lowest=last.lowest if last.files else each.lowest,
        )
    return groups


def group_for(values: Sequence[Any], groups: Sequence[Group]) -> list[int]:
    """The number of the group for each of the new rows, by their values in the first column of the key; that after the last
    group for those that are written into a file of their own.

    Example:
        >>> groups = [Group(rows=9, stay=8, lowest=1), Group(rows=9, stay=9, lowest=20), Group(rows=9, stay=9)]
        >>> group_for([7, 30, 0], groups)
        [0, 1, 0]
    """
    lowest = [each.lowest for each in groups if each.lowest is not None]
    last = len(groups) - 1
    chosen = [last if value is None or not lowest else max(0, bisect_right(lowest, value) - 1) for value in values]
    new = Counter(chosen)
    full = {number for number, each in enumerate(groups) if not each.takes(new[number])}
    return [len(groups) if number in full or not groups else number for number in chosen]


def overlap(files: Sequence[tuple[Any, Any] | None]) -> int:
    """In how many files a value may be, at most, besides those that begin or end with it, by the files' lowest and highest
    values. Files of one value alone, or without any, are laid out as well as they can be.

    Example:
        >>> overlap([(1, 4), (5, 9), (4, 7)]), overlap([(1, 5), (5, 5), (5, 5), (5, 9)]), overlap([None]), overlap([])
        (2, 1, 0, 0)
    """
    spans = [each for each in files if each is not None and each[0] != each[1]]
    # Of what happens at one value, ends come first.
    events = sorted([(low, 1) for low, _ in spans] + [(high, 0) for _, high in spans])
    now = most = 0
    for _, begins in events:
        now += 1 if begins else -1
        most = max(most, now)
    return most
