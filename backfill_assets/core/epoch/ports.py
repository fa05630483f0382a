"""The small interfaces that deciding code uses and that adapters (or simulations) implement.

Deciders receive only the interfaces that read; only the protocol can write.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from backfill_assets.core.epoch.records import (
    CommitRecord,
    Fingerprint,
    Plan,
    Position,
    Staged,
    TableState,
    UpstreamColumns,
)
from backfill_assets.core.progress.positions import IngestPosition, Key, NamedKey, OffsetRange
from backfill_assets.core.progress.reads import Read, TableRead

__all__ = [
    "EVERYTHING",
    "BronzeState",
    "Clock",
    "Commit",
    "Compute",
    "Controls",
    "Decider",
    "InitialState",
    "KeyRanges",
    "KeyedTables",
    "KeysLeftOut",
    "Ledger",
    "LogRecord",
    "NextEpoch",
    "OnStep",
    "Output",
    "P",
    "PlannedEpoch",
    "TableSize",
    "Tables",
    "TopicState",
    "UpstreamState",
    "Upstreams",
    "of_kind",
    "planned",
]


P = TypeVar("P", bound=Position)
"""The kind of position that one table has."""
P_co = TypeVar("P_co", bound=Position, covariant=True)

EVERYTHING = sys.maxsize
"""A budget without a limit."""

KeysLeftOut = Mapping[str, Sequence[NamedKey]]
"""The keys whose rows a view leaves out, by table."""


@dataclass(frozen=True, kw_only=True)
class TopicState:
    """The present state of a topic: its identity and, per partition, the earliest offset and the end that may be read.

    `epochs`: the present leader epoch of each partition, if brokers report it. `retention_seconds`: how long it keeps its
    records (None: for ever, or until a newer record has the same key).
    """

    topic: str
    topic_id: str | None
    partitions: Mapping[int, OffsetRange]
    epochs: Mapping[int, int] = field(default_factory=dict)
    compacted: bool = False
    retention_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """A record of a topic: its offset, the leader epoch in which it was written (None: unknown), and a digest of it."""

    offset: int
    epoch: int | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class BronzeState:
    """The present state of a source's bronze table."""

    incarnation: str
    version: int
    position: IngestPosition


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One version of a Delta table: when it was committed, and how many rows it changed (0: only maintenance)."""

    version: int
    commit_ms: int
    rows: int
    deletes: bool = False
    """Whether it may have deleted or replaced rows, and not only added some."""
    bytes: int = 0
    """The size of the files with its changes."""
    feed: bool = True
    """Whether it is in the table's change data feed; a single read never mixes versions with and without it."""
    reshapes: bool = False
    """Whether columns went, or have other names or types since; a single read never has versions from before and after it."""


@dataclass(frozen=True, kw_only=True)
class UpstreamState:
    """The present state of a Delta table: its identity, its newest version, and its life if it is a view of this project."""

    table_id: str
    version: int
    commit_ms: int
    incarnation: str | None = None


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """The size of a Delta table: its rows, according to its log, and the bytes of its data files."""

    rows: int
    bytes: int


class Tables(Protocol):
    """The Delta tables that a view reads. They are read on request and never written."""

    def table_now(self, name: str) -> UpstreamState:
        """The newest version; an error if the table is gone, or is a view that is not live."""
        ...

    def columns(self) -> UpstreamColumns:
        """The present columns of all tables, as far as the view's query may refer to them."""
        ...

    def files(self, name: str, version: int) -> Sequence[int]:
        """How many rows each data file of a version holds, in the order of the files' paths."""
        ...

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        """The versions after one and up to another, oldest first, without a gap; an error if one is gone."""
        ...

    def size(self, name: str) -> TableSize:
        """The size of the newest version."""
        ...

    def commit_timestamp(self, name: str, version: int) -> int | None:
        """When a version was committed, according to itself (milliseconds since 1970); None if it is gone or does not say."""
        ...

    def check_readable(self, read: TableRead) -> None:
        """Refuse a read whose files or versions are gone: `VersionsLostError`."""
        ...

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        """Refuse versions in which the view's key is not unique, apart from rows that are left out: `DuplicateKeyError`."""
        ...


@dataclass(frozen=True, kw_only=True)
class KeyRanges:
    """A table's key cut into ranges: their inclusive upper ends (the last has none), and roughly how many rows each has."""

    bounds: tuple[Key, ...]
    rows: tuple[int, ...]


class KeyedTables(Tables, Protocol):
    """Delta tables that can be read in the order of their key."""

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        """Cut the key of a version into nearly equal ranges; none without rows. `UpstreamRefusedError` if it has no order."""
        ...


class Upstreams(Protocol):
    """Topics and bronze tables. They are read on request, and written only where a method says so."""

    def topic(self, source: str) -> TopicState:
        """The topic of a source."""
        ...

    def starts(self, source: str, offer: TopicState) -> Mapping[int, int]:
        """The declared start of a source as one offset per partition of `offer`; not yet checked against it."""
        ...

    def diverged(self, source: str, read: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Partitions whose log is no longer the one that was read, up to an offset (exclusive), in a leader epoch.

        Returns for each such partition the first offset that another leader has written since, as far as records show it.
        """
        ...

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:
        """The last record of each range that the topic delivers, by partition; partitions without one are missing."""
        ...

    def bronze(self, source: str, *, again: bool = True) -> BronzeState:
        """The bronze table of a source; as it was found before, if not `again`. `UpstreamChangedError` if it does not exist
        (any more)."""
        ...

    def create_bronze(self, source: str) -> BronzeState:
        """The bronze table of a source, which is created (empty) if it does not exist yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class InitialState(Generic[P_co]):
    """How a new life begins: its first position, the size of its frozen history, and whether it is live at once."""

    position: P_co
    total: int
    live: bool


@dataclass(frozen=True, kw_only=True)
class NextEpoch(Generic[P_co]):
    """The decided next epoch: what is read, the position after it, and whether the table is live then."""

    reads: tuple[Read, ...]
    after: P_co
    live: bool


@dataclass(frozen=True, kw_only=True)
class PlannedEpoch(Generic[P_co]):
    """An epoch in an earlier plan: what is read, and the positions before and after it."""

    reads: tuple[Read, ...]
    before: P_co
    after: P_co


class Decider(Protocol[P]):
    """Decides what one table, whose positions are of kind `P`, reads next. It knows the declaration and sees the upstreams;
    it writes nothing."""

    @property
    def kind(self) -> type[P]:
        """The kind of position that the table has."""
        ...

    @property
    def target(self) -> str:
        """`sources/<name>` or `views/<name>`."""
        ...

    @property
    def fingerprint(self) -> Fingerprint:
        """The digests of the declaration."""
        ...

    def begin(self) -> InitialState[P]:
        """Decide how a new life begins."""
        ...

    def columns(self) -> UpstreamColumns:
        """The present columns of the upstreams, as far as a life that begins now depends on them."""
        ...

    def redefines(self, record: CommitRecord) -> bool:
        """Whether a table that was built by another declaration, up to this commit, can get the present one's columns in its
        next epoch."""
        ...

    def next(self, position: P, *, live: bool, budget: int, anew: bool = False) -> NextEpoch[P] | None:
        """Decide the epoch after `position`, of at most `budget` offsets; None if there is nothing to do.

        With `EVERYTHING`, once history is read, it takes everything in its tables, whatever else limits an epoch. With
        `anew`, all rows are computed again, whether anything waits or not; only for a table whose declaration `redefines` it.
        """
        ...

    def waits(self, position: P, *, live: bool) -> bool:
        """Whether `next` would find something to do, found out as cheaply as possible."""
        ...

    def confirm(self, plan: PlannedEpoch[P]) -> None:
        """Refuse a plan whose upstreams are no longer those that it was made for (recreated, reset, restored)."""
        ...

    def resumable(self, plan: PlannedEpoch[P]) -> bool:
        """Whether a new run may repeat an uncommitted plan that it finds; otherwise a new life replaces this one."""
        ...

    def readable(self, plan: PlannedEpoch[P]) -> bool:
        """Whether an earlier plan can be carried out: its inputs exist, and it leaves out the rows that it must."""
        ...

    def done(self, position: P) -> int:
        """How many offsets have been consumed since the beginning of this life."""
        ...

    def offsets(self, position: P) -> Mapping[str, int]:
        """The next offset to read, by partition (`<source>/<partition>`)."""
        ...

    def lag(self, position: P) -> Mapping[str, int]:
        """How many offsets still have to be read, by partition (`<source>/<partition>`)."""
        ...


def of_kind(position: Position, kind: type[P]) -> P:
    """A recorded position as the kind that its table has. A table of another kind was built with another fingerprint, so
    no position of that gets here."""
    assert isinstance(position, kind)
    return position


def planned(plan: Plan, kind: type[P]) -> PlannedEpoch[P]:
    """A plan as those see it that know the kind of its positions."""
    return PlannedEpoch(reads=plan.reads, before=of_kind(plan.before, kind), after=of_kind(plan.after, kind))


class Output(Protocol):
    """One Delta table that only epochs change."""

    def look(self) -> TableState:
        """Load the table's newest version; the next `commit` is made on exactly this."""
        ...

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        """Make one commit on the loaded version, or raise; an error does not say whether the commit happened."""
        ...

    def engine(self, staged: Staged) -> str:
        """How this would be committed: `append`, `overwrite`, or a merge by key in `delta-rs` or `spark`."""
        ...

    def verify(self, staged: Staged) -> None:
        """Check that every staged file exists with its size, rows and columns; `StagingError` if not."""
        ...


class Ledger(Protocol):
    """The plans of all tables. Runs compete only for one epoch of one table."""

    left_behind: bool
    """Whether `newest` has found a plan of an epoch after the one from which it looked."""

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """The number of the newest planned epoch of this life, None if none is known at or after `since`."""
        ...

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        """The plan that counts for an epoch."""
        ...

    def append(self, plan: Plan) -> bool:
        """Append a plan unless another run has planned the epoch since `newest` was read; returns whether it did so."""
        ...


class Compute(Protocol):
    """Carries out the reads of a plan."""

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        """Compute what the plan does to the table at version `at`, into files that no reader sees yet."""
        ...


class Clock(Protocol):
    """Real time, or a clock that a test controls."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


@dataclass(frozen=True, kw_only=True)
class Controls:
    """What an operator has set for a table. `rows_per_second` None means no limit, 0 means no rows at all."""

    paused: bool = False
    rows_per_second: float | None = None


OnStep = Callable[[str], None]
