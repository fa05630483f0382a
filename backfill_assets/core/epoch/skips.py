"""Rows that a view leaves out because an operator decided so: how they are named, and when a position leaves them out.

The operator's list is in the state store, and is read only when an epoch is planned. What is left out is part of the
position, so it is in the plan, in the commit, and in what proofs derive again. An offset can be left out, or taken back, as
long as it has not been read; after that it stays as it was. A key of a table is left out in every version, until it is taken
back.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from backfill_assets.core.epoch.records import Position
from backfill_assets.core.progress.positions import NamedKey, SnapshotPosition, SourcePosition, ViewPosition
from backfill_assets.core.progress.value import Value

__all__ = [
    "MAX_SKIPS",
    "KeySkip",
    "LeftOut",
    "LeftOutStatus",
    "OffsetSkip",
    "Offsets",
    "Skip",
    "Skips",
    "consumed_of",
    "is_consumed",
    "keys_of",
    "left_out_of",
    "left_out_words",
    "no_skips",
    "offsets_left_out",
    "offsets_of",
    "read_skip",
    "rows_left_out",
]

MAX_SKIPS = 1000
"""The maximum number of rows that a view may leave out: each of its commits names them. Beyond that, change the query."""

Offsets = dict[int, tuple[int, ...]]
"""Offsets by partition, ascending; partitions without any are missing."""


class OffsetSkip(Value):
    """One record of a source."""

    kind: Literal["offset"] = "offset"
    source: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)

    @property
    def id(self) -> str:
        """A name that no other row of the view has."""
        return f"{self.source}-{self.partition}-{self.offset}"

    @property
    def place(self) -> dict[str, Any]:
        """Its place in its source, as options of the command line."""
        return {"partition": self.partition, "offset": self.offset}

    @property
    def words(self) -> str:
        """What people call it."""
        return f"source {self.source}, partition {self.partition}, offset {self.offset}"

    @property
    def options(self) -> str:
        """What `backfill skip` names it by."""
        return f"--source {self.source} --partition {self.partition} --offset {self.offset}"


class KeySkip(Value):
    """One row of a Delta table, by its key."""

    kind: Literal["key"] = "key"
    source: str
    key: NamedKey

    @property
    def id(self) -> str:
        """A name that no other row of the view has."""
        return f"{self.source}-{hashlib.sha256(json.dumps(self.key).encode()).hexdigest()[:16]}"

    @property
    def place(self) -> dict[str, Any]:
        """Its place in its table."""
        return {"key": dict(self.key)}

    @property
    def words(self) -> str:
        """What people call it."""
        values = ", ".join(f"{name} is null" if value is None else f"{name} = {value}" for name, value in self.key)
        return f"table {self.source}, key {values}"

    @property
    def options(self) -> str:
        """What `backfill skip` names it by."""
        given = (name if value is None else f"{name}={value}" for name, value in self.key)
        return " ".join([f"--source {self.source}", *(f"--key {shlex.quote(each)}" for each in given)])


Skip = OffsetSkip | KeySkip
Skips = Callable[[], Sequence[Skip]]
"""What an operator wants left out now."""

LeftOutStatus = Literal["left out", "waiting", "too late", "until reset", "coming back"]

_SKIP: TypeAdapter[Skip] = TypeAdapter(Annotated[Skip, Field(discriminator="kind")])
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A row that is or will be left out, and its state (see `rows_left_out`)."""

    source: str
    place: dict[str, Any]
    words: str
    status: LeftOutStatus

    @property
    def is_out(self) -> bool:
        """Whether the view is without it."""
        return self.status in {"left out", "until reset", "coming back"}


def no_skips() -> Sequence[Skip]:
    """No row is to be left out."""
    return ()


def read_skip(document: object) -> Skip:
    """What names a row, from plain JSON. Errors: `ValueError`."""
    return _SKIP.validate_python(document)


def offsets_of(skips: Iterable[Skip], source: str) -> Offsets:
    """The offsets of a source among the rows to leave out."""
    found: dict[int, set[int]] = {}
    for skip in skips:
        if isinstance(skip, OffsetSkip) and skip.source == source:
            found.setdefault(skip.partition, set()).add(skip.offset)
    return {partition: tuple(sorted(offsets)) for partition, offsets in sorted(found.items())}


def keys_of(skips: Iterable[Skip], source: str) -> tuple[NamedKey, ...]:
    """The keys of a table among the rows to leave out, in a stable order."""
    return tuple(sorted({skip.key for skip in skips if isinstance(skip, KeySkip) and skip.source == source}, key=str))


def offsets_left_out(held: Offsets, wanted: Offsets, consumed: Mapping[int, int]) -> Offsets:
    """What the next epoch leaves out: below the `consumed` offsets, what was left out, because that can no longer be
    changed; above them, what the operator wants now."""
    found = {}
    for partition in sorted({*held, *wanted}):
        end = consumed.get(partition, 0)
        past = {offset for offset in held.get(partition, ()) if offset < end}
        ahead = {offset for offset in wanted.get(partition, ()) if offset >= end}
        if past or ahead:
            found[partition] = tuple(sorted(past | ahead))
    return found


def left_out_of(position: Position | None) -> dict[str, Offsets]:
    """The offsets that a position leaves out, by source; sources without any are missing."""
    if not isinstance(position, ViewPosition):
        return {}
    return {name: source.skipped for name, source in position.sources.items() if source.skipped}


def rows_left_out(position: Position | None, wanted: Iterable[Skip]) -> list[LeftOut]:
    """All rows that are left out at a position (None: before there is one) or are to be left out, in order.

    `left out`: it was read and left out. `waiting`: it will be left out when it is read. `too late`: it was read before, and
    is in the view. `until reset`: it was left out, and comes back only with a new life. `coming back`: it comes back with the
    next epoch.
    """
    asked = set(wanted)
    held = _held(position)
    return [
        LeftOut(
            source=skip.source,
            place=skip.place,
            words=skip.words,
            status=_status(skip, position, held=skip in held, wanted=skip in asked),
        )
        for skip in sorted(asked | held, key=_place)
    ]


def _place(skip: Skip) -> tuple[str, int, int, str]:
    if isinstance(skip, OffsetSkip):
        return (skip.source, skip.partition, skip.offset, "")
    return (skip.source, 0, 0, skip.words)


def left_out_words(rows: Sequence[LeftOut]) -> str:
    """How many rows the view leaves out, and which, in one sentence; empty if there are none."""
    out = [row.words for row in rows if row.is_out]
    if not out:
        return ""
    named = "; ".join(out[:_SHOWN]) + (f"; and {len(out) - _SHOWN} more" if len(out) > _SHOWN else "")
    return f"{len(out)} row{'s are' if len(out) > 1 else ' is'} left out on request: {named}"


def is_consumed(position: Position | None, skip: Skip) -> bool:
    """Whether a row has been read, so that it can no longer be left out or taken back in this life of the view."""
    if isinstance(skip, KeySkip) or not isinstance(position, ViewPosition) or skip.source not in position.sources:
        return False
    return skip.offset < consumed_of(position.sources[skip.source]).get(skip.partition, 0)


def _held(position: Position | None) -> set[Skip]:
    """What has been read and left out; for tables, which are read repeatedly, everything that is left out."""
    if isinstance(position, SnapshotPosition):
        return {KeySkip(source=name, key=key) for name, table in position.tables.items() for key in table.skipped}
    named = {
        OffsetSkip(source=name, partition=partition, offset=offset)
        for name, offsets in left_out_of(position).items()
        for partition, each in offsets.items()
        for offset in each
    }
    return {skip for skip in named if is_consumed(position, skip)}


def _status(skip: Skip, position: Position | None, *, held: bool, wanted: bool) -> LeftOutStatus:
    if held and not wanted:
        return "coming back" if isinstance(skip, KeySkip) else "until reset"
    if held:
        return "left out"
    return "too late" if is_consumed(position, skip) else "waiting"


def consumed_of(source: SourcePosition) -> dict[int, int]:
    """The end of what has been read of each partition of a source."""
    return {partition: state.next for partition, state in source.partitions.items()}
