"""Whether the keys of a join are sent to every task (broadcast) or sorted with the rows: by the memory that they take.

A broadcast saves the shuffle of a large table, but its keys must fit, as a hash table, in the driver's memory and in
that of each executor. Their width matters as much as their number.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from backfill_assets.query.spelling import backquoted

__all__ = ["Keys", "Memory", "fit", "has_texts", "size_in_bytes", "widths"]

SHARE: Final = 8
"""The keys of a join may take this fraction of a heap. A table exists twice while it is built and sent, and other
joins, the rows being read and Spark itself need memory, too."""

_ROW, _COLUMN, _TEXT = 96, 24, 2
"""What Spark's hash table takes for a row, for each of its columns, and for each byte of a value without a fixed size:
the row is stored as key and as value (`UnsafeHashedRelation`)."""

_NESTED: Final = 8
"""How many times longer a list or struct can be in Spark's row format than as text."""

_FIXED: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|timestamp_ntz|void|decimal\(\d+,\d+\)"
)
_PLAIN_TEXT: Final = re.compile(r"(string|binary)\b.*")
_SIZE: Final = re.compile(r"(-?\d+)\s*([kmgtp]?)(?:i?b)?")


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Keys of a join: the number of `rows` and of `columns`, and the total `bytes` of their strings and nested values."""

    rows: int
    columns: int
    bytes: int = 0

    @property
    def in_memory(self) -> int:
        """The number of bytes that they take as Spark's hash table."""
        return self.rows * (_ROW + _COLUMN * self.columns) + _TEXT * self.bytes


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory of a session in bytes: the smallest `heap` of those that store a broadcast, the most that the driver
    may `collect`, and the session's `threshold`, up to which Spark broadcasts by itself; below zero it never does."""

    heap: int
    collect: int
    threshold: int


def fit(keys: Keys, memory: Memory) -> bool:
    """Whether keys should be broadcast: always if Spark would do it by itself, never if the session forbids it.

    Example:
        >>> memory = Memory(heap=2**30, collect=2**30, threshold=10 * 2**20)
        >>> fit(Keys(rows=1_000_000, columns=1), memory)
        True
        >>> fit(Keys(rows=1_000_000, columns=1, bytes=1_000_000 * 200), memory)
        False
    """
    if memory.threshold < 0:
        return False
    return keys.in_memory <= max(memory.threshold, min(memory.heap // SHARE, memory.collect))


def has_texts(types: Mapping[str, str]) -> bool:
    """Whether some of these columns (Spark's type names) have values without a fixed size."""
    return not all(map(_FIXED.fullmatch, types.values()))


def widths(types: Mapping[str, str]) -> str:
    """SQL for the bytes that a row's strings and nested values take; zero if all columns have a fixed size."""
    return " + ".join(["0L", *(_width(name, kind) for name, kind in types.items() if not _FIXED.fullmatch(kind))])


def size_in_bytes(text: str, *, unit: str = "") -> int:
    """A size as in Spark's settings (`1g`, `512m`), in bytes; a number alone is in `unit`, or in bytes.

    Errors: `ValueError` if it is not a size.

    Example:
        >>> size_in_bytes("512m"), size_in_bytes("1", unit="g"), size_in_bytes("-1")
        (536870912, 1073741824, -1)
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"expected a size such as 512m, found {text!r}")
    number, given = int(match[1]), match[2] or ("" if text.strip().lower().endswith("b") else unit)
    return number << 10 * " kmgtp".index(given or " ")


def _width(name: str, kind: str) -> str:
    column = backquoted(name)
    if _PLAIN_TEXT.fullmatch(kind):
        return f"coalesce(octet_length({column}), 0)"
    return f"coalesce(octet_length(CAST({column} AS STRING)), 0) * {_NESTED}"
