"""How far each partition has been consumed, and the allowed transitions.

Offsets mean "next offset to read": ends are exclusive, as in Kafka and Spark. A partition of a view only goes forward:

    backfilling ──► catching_up ──► finished
         └──────────────────────────────▲

- `backfilling`: history is read from Kafka at `next`, up to `target`; live rows are not taken.
- `catching_up`: history stopped at `next`, which bronze has not reached; live rows below `next` are dropped.
- `finished`: the view takes live rows from `next` on; this state never ends.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.lag import CountBound, LagBound, TimeBound
from backfill_assets.core.progress.value import Value

__all__ = [
    "SPOOLED_SNAPSHOT",
    "BucketState",
    "IngestPosition",
    "Key",
    "KeyRange",
    "LogMark",
    "NamedKey",
    "OffsetRange",
    "PartitionState",
    "Phase",
    "Segment",
    "SnapshotPosition",
    "SourcePosition",
    "Spool",
    "TablePosition",
    "ViewPosition",
    "Witness",
    "allocate",
    "micros",
    "total",
]


class OffsetRange(Value):
    """Offsets `start` (inclusive) to `end` (exclusive) of one partition."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)

    def __len__(self) -> int:
        return max(0, self.end - self.start)


class Phase(StrEnum):
    """The state of a view's partition; see the drawing above."""

    BACKFILLING = "backfilling"
    CATCHING_UP = "catching_up"
    FINISHED = "finished"


class PartitionState(Value):
    """One partition of a view over a source.

    `start`: where its history began; `next`: the next offset that the view takes; `live`: the bronze position that the
    view has seen; `target`: while backfilling, the offset at which history ends (exclusive).
    """

    phase: Phase
    start: int
    next: int
    live: int
    target: int

    @classmethod
    def begin(cls, *, start: int, live: int, end: int) -> Self:
        """A partition whose history [start, end) still has to be read, with bronze at `live`.

        If there is nothing to read (an empty partition, a start at the end), it is finished at once.
        """
        return cls(phase=Phase.BACKFILLING, start=start, next=start, live=live, target=max(start, live, end)).settle()

    @classmethod
    def join(cls, *, start: int, live: int) -> Self:
        """A partition that appeared after the view's creation: bronze delivers it from its very first offset."""
        return cls(phase=Phase.FINISHED, start=start, next=start, live=live, target=start)

    def see_live(self, live: int) -> Self:
        """Bronze moved to `live`: while backfilling, either the target follows it, or history is ahead and stops."""
        if live == self.live:
            return self
        moved = self.model_copy(update={"live": live})
        if self.phase is not Phase.BACKFILLING:
            return moved.settle()
        if self.next <= self.live:
            return moved.model_copy(update={"target": live}).settle()
        return moved.model_copy(update={"phase": Phase.CATCHING_UP}).settle()

    def read_history(self, end: int) -> Self:
        """History was read up to `end`."""
        return self.model_copy(update={"next": end}).settle()

    def read_live(self, end: int) -> Self:
        """Live rows up to `end` were taken."""
        return self.model_copy(update={"next": end})

    def settle(self) -> Self:
        """Make the transitions that need no rows: history at its target stops; if bronze has caught up, it is finished."""
        phase = self.phase
        if phase is Phase.BACKFILLING and self.next >= self.target:
            phase = Phase.CATCHING_UP
        if phase is Phase.CATCHING_UP and self.live >= self.next:
            phase = Phase.FINISHED
        return self if phase is self.phase else self.model_copy(update={"phase": phase})


class Witness(Value):
    """A record that was read, remembered to recognize its log: a digest of its time, key and value."""

    offset: int
    digest: str


class LogMark(Value):
    """How to recognize the logs that a position was read from; see `truncation`.

    `epochs`: per partition, the leader epoch in which the position was last seen to be within the log. `witnesses`: for a
    few partitions, a record that was read. What is unknown is missing, so an empty mark says nothing.
    """

    epochs: dict[int, int] = Field(default_factory=dict)
    witnesses: dict[int, Witness] = Field(default_factory=dict)


class SourcePosition(Value):
    """A view's position in one source: which life of its bronze table, at which version, and each partition's state.

    `log` marks the partitions whose history was read from Kafka beyond bronze; for others bronze's own mark counts.
    `skipped` are offsets, by partition, that the view leaves out (see `skips`): those before a partition's `next` were left
    out, the others will be.
    """

    incarnation: str
    version: int
    partitions: dict[int, PartitionState]
    log: LogMark = LogMark()
    skipped: dict[int, tuple[int, ...]] = Field(default_factory=dict)

    @property
    def backfilled(self) -> bool:
        """Whether all history has been read."""
        return all(partition.phase is not Phase.BACKFILLING for partition in self.partitions.values())


class ViewPosition(Value):
    """A view's position: one `SourcePosition` for each upstream, by name."""

    sources: dict[str, SourcePosition]


class IngestPosition(Value):
    """A shared source's position: the topic's identity, and per partition where it began and the next offset to read.

    `history`: where views begin; `begin`: the first offset in bronze (they differ with `bronze="new"`). `log` marks the logs
    that were read.
    """

    topic: str
    topic_id: str | None
    history: dict[int, int]
    begin: dict[int, int]
    next: dict[int, int]
    log: LogMark = LogMark()


Key = tuple[str | None, ...]
"""A place in the order of a table's key: its first columns, or all, as strings; None is null, which comes first."""


NamedKey = tuple[tuple[str, str | None], ...]
"""One row of a table: the columns of its key with their values as texts (None: null), in the order of the key."""


class KeyRange(Value):
    """The rows whose key is above `after` and at most `upto`, comparing as many columns as these name; None: no end."""

    after: Key | None = None
    upto: Key | None = None


class BucketState(Value):
    """One bucket of a history: of its `parts` (files or key ranges) those before `next` have been read, with `rows` rows.

    `next` is the next unread part.
    """

    next: int = 0
    parts: int
    rows: int = 0

    @property
    def done(self) -> bool:
        """Whether every part of the bucket has been read."""
        return self.next >= self.parts


SPOOLED_SNAPSHOT = "snapshot"
"""The part of a spool that describes the files of a table's pinned version."""


class Segment(Value):
    """Captured versions `first` to `last` (both inclusive) of a table, the newest committed at `commit_ms`.

    `rows` changed in `bytes`, as the table's log states them.
    """

    first: int
    last: int
    rows: int
    bytes: int
    commit_ms: int


class Spool(Value):
    """What has been captured of a table's change log: all versions up to `captured`, which was committed at `commit_ms`.

    `rows` of them changed since the life began. `segments` are those not applied yet, oldest first; versions between
    them changed nothing.
    """

    captured: int
    commit_ms: int
    rows: int = 0
    segments: tuple[Segment, ...] = ()

    @property
    def waiting(self) -> int:
        """How many changed rows still have to be applied."""
        return sum(segment.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        """The size of the segments, according to the table's log."""
        return sum(segment.bytes for segment in self.segments)


class TablePosition(Value):
    """A view's position in one Delta table.

    `table_id` and `incarnation` (of another view) say which life of the table is meant. Its snapshot is version
    `pinned`; its change log has been consumed up to and including `version`, which was committed at `commit_ms`
    (milliseconds since 1970). `changes` counts the changed rows taken from the change log, as the log states them.

    If history is read by key, the buckets are consecutive runs of key ranges: `bounds` are their inclusive upper ends (the
    last range has none), `expected` the rows that each had when they were planned. Both are removed once all ranges have
    been read. The view leaves out rows with the keys `skipped` (see `skips`). `spool` is what was captured of the change log
    ahead of `version`; None if nothing is captured.
    """

    table_id: str
    incarnation: str | None = None
    pinned: int
    version: int
    commit_ms: int
    buckets: dict[int, BucketState]
    bounds: tuple[Key, ...] = ()
    expected: tuple[int, ...] = ()
    changes: int = 0
    skipped: tuple[NamedKey, ...] = ()
    spool: Spool | None = None

    @property
    def backfilled(self) -> bool:
        """Whether the whole snapshot has been read."""
        return all(bucket.done for bucket in self.buckets.values())

    @property
    def reads_pinned(self) -> bool:
        """Whether files of the pinned version still have to be read; never the case if history is read by key."""
        return not (self.backfilled or self.expected)

    @property
    def held(self) -> tuple[int, int]:
        """The newest version that was consumed or captured, and when it was committed (milliseconds since 1970)."""
        return (self.spool.captured, self.spool.commit_ms) if self.spool else (self.version, self.commit_ms)

    def followed(self, *, version: int, commit_ms: int, rows: int) -> "TablePosition":
        """The position after the change log up to a version, committed at `commit_ms`, that changed this many rows."""
        moved = {"version": version, "commit_ms": commit_ms, "changes": self.changes + rows, "spool": None}
        return self.model_copy(update=moved)

    @property
    def rows(self) -> int:
        """Rows of the snapshot and of the change log that have been read."""
        return sum(bucket.rows for bucket in self.buckets.values()) + self.changes


_MAY_BE_MISSING = frozenset({"driving", "instant"})


class SnapshotPosition(Value):
    """A view's position over Delta tables; the versions of all tables are pinned together before any row is read.

    `strategy` is how this life reads its history. `lag_ms` is how far, in commit time, the view was behind the newest
    versions when its epoch was planned, and `lag_commits` how many versions of its tables that was. `bound` is the highest
    allowed lag, in time or in commits: none while the snapshot is read, and from then on it only shrinks. `instant` is the
    time for which the query was last computed (microseconds since 1970, UTC), if it calls functions of the clock. `driving`
    is how history is read if the query joins tables and they are not read at once.
    """

    strategy: str = "snapshot"
    tables: dict[str, TablePosition]
    lag_ms: int = 0
    lag_commits: int = 0
    bound: LagBound = TimeBound()
    instant: int | None = None
    driving: Driving | None = None

    @model_serializer(mode="wrap")
    def _stored(self, store: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What a position does not have is not stored either, and not part of its hash."""
        document: dict[str, Any] = store(self)
        return {name: value for name, value in document.items() if value is not None or name not in _MAY_BE_MISSING}

    @property
    def backfilled(self) -> bool:
        """Whether the snapshots of all tables have been read."""
        return all(table.backfilled for table in self.tables.values())

    @property
    def behind(self) -> str:
        """Lag and bound, as text, if the lag is above the bound; otherwise empty."""
        if self.bound.max_lag is None or self.lag <= self.bound.max_lag:
            return ""
        lag, most = self.lag, self.bound.max_lag
        if isinstance(self.bound, CountBound):
            return f"it is {lag} commits behind, and its bound is {most}"
        return f"it is {lag / 1000:g} s behind, and its bound is {most / 1000:g} s"

    @property
    def lag(self) -> int:
        """The lag in the unit of its bound: commits or milliseconds."""
        return self.lag_commits if isinstance(self.bound, CountBound) else self.lag_ms

    @property
    def spooled(self) -> list[str]:
        """The needed parts of the view's spool: `<upstream>/<first version>` of each segment, and each snapshot.

        A snapshot is needed as long as it is read, and then, until the drain begins, to prove what was read of it.
        """
        spools = [(name, table, table.spool) for name, table in sorted(self.tables.items()) if table.spool]
        segments = [f"{name}/{segment.first}" for name, _, spool in spools for segment in spool.segments]
        pinned = [name for name, table, _ in spools if table.buckets and table.version == table.pinned]
        return segments + [f"{name}/{SPOOLED_SNAPSHOT}" for name in pinned]


def micros(seconds: float) -> int:
    """A time in microseconds since 1970, of one in seconds."""
    return round(seconds * 1_000_000)


def total(ranges: Iterable[OffsetRange]) -> int:
    """How many offsets the ranges cover."""
    return sum(len(each) for each in ranges)


def allocate(budget: int, wanted: Mapping[int, int]) -> dict[int, int]:
    """Divide `budget` offsets among partitions: small requests in full, the rest evenly, with nothing left over.

    A budget smaller than the number of partitions goes to those that request most, so that none waits for ever.
    """
    shares: dict[int, int] = {}
    left = min(budget, sum(wanted.values()))
    waiting = sorted((want, partition) for partition, want in wanted.items() if want > 0)
    for index, (want, partition) in enumerate(waiting):
        share = min(want, left // (len(waiting) - index))
        left -= share
        if share:
            shares[partition] = share
    return shares
