"""Whether the keys of a join are sent to every task (broadcast) or sorted with the rows: by the memory that they take.

A broadcast spares the shuffle of a large table, but its keys must fit in the driver's memory and in that of each executor,
as a hash table, where how wide they are counts as much as how many they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from backfill_assets.query.spelling import backquoted

__all__ = ["Keys", "Memory", "fit", "has_texts", "size_in_bytes", "widths"]

SHARE: Final = 8
"""The keys of a join may take one part in so many of a heap. A table is there twice while it is built and sent, and
joins of other plans, the rows being read and Spark's own want theirs."""

_ROW, _COLUMN, _TEXT = 96, 24, 2
"""What Spark's hash table takes for a row, for each of its columns, and for each byte of a value that has no fixed size:
the row is there as key and as value (`UnsafeHashedRelation`)."""

_NESTED: Final = 8
"""How many times longer a list or struct is in a row of Spark's than as text, at the most."""

_FIXED: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|timestamp_ntz|void|decimal\(\d+,\d+\)"
)
_PLAIN_TEXT: Final = re.compile(r"(string|binary)\b.*")
_SIZE: Final = re.compile(r"(-?\d+)\s*([kmgtp]?)(?:i?b)?")


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Keys of a join: how many `rows` of so many `columns`, and the `bytes` of their texts and nested values in all."""

    rows: int
    columns: int
    bytes: int = 0

    @property
    def in_memory(self) -> int:
        """How many bytes they take as Spark's hash table."""
        return self.rows * (_ROW + _COLUMN * self.columns) + _TEXT * self.bytes


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a session has, in bytes: the smallest `heap` of those that hold a broadcast, the most that the driver may
    `collect`, and the session's `threshold`, up to which Spark broadcasts by itself; below zero it never does."""

    heap: int
    collect: int
    threshold: int


def fit(keys: Keys, memory: Memory) -> bool:
    """Whether keys are to be broadcast. What Spark would send by itself is; nothing where the session forbids it.

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
    """Whether columns, with Spark's own names of their types, hold values of which each may be as long as it likes."""
    return not all(map(_FIXED.fullmatch, types.values()))


def widths(types: Mapping[str, str]) -> str:
    """SQL for the bytes that a row's texts and nested values take; zero where all columns have a fixed size."""
    return " + ".join(["0L", *(_width(name, kind) for name, kind in types.items() if not _FIXED.fullmatch(kind))])


def size_in_bytes(text: str, *, unit: str = "") -> int:
    """A size as Spark's settings have it (`1g`, `512m`); a number alone is in `unit`, or in bytes.

    Errors: `ValueError` for what is no size.

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
