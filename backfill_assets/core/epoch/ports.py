"""The small interfaces that the deciding code names and that adapters in `resources` (or simulations) implement.

Deciders get the reading ones only; the protocol alone can write.
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
    """What a topic holds now: its identity and, per partition, the earliest offset and the end that may be read.

    `epochs`: per partition the leader epoch that it is in, where brokers say so. `retention_seconds`: for how long it keeps
    its records (None: for ever, or as long as no newer one has their key).
    """

    topic: str
    topic_id: str | None
    partitions: Mapping[int, OffsetRange]
    epochs: Mapping[int, int] = field(default_factory=dict)
    compacted: bool = False
    retention_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """A record of a topic: where it is, in which leader epoch it was written (None: not known), and a digest of it."""

    offset: int
    epoch: int | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class BronzeState:
    """What a source's bronze table holds now."""

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
    """How large the files are that hold what it changed."""
    feed: bool = True
    """Whether it is in the table's change data feed; one read is never of versions with and without it."""


@dataclass(frozen=True, kw_only=True)
class UpstreamState:
    """What a Delta table holds now: its identity, its newest version, and its life if it is a view of this project."""

    table_id: str
    version: int
    commit_ms: int
    incarnation: str | None = None


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """How much a Delta table holds: rows, as its log states them, and bytes of its data files."""

    rows: int
    bytes: int


class Tables(Protocol):
    """What Delta tables offer, read when asked and never written."""

    def table_now(self, name: str) -> UpstreamState:
        """The newest version; an error where the table is gone, or a view that is not live."""
        ...

    def columns(self) -> UpstreamColumns:
        """The columns that all tables have now, as far as the view's query may mean them."""
        ...

    def files(self, name: str, version: int) -> Sequence[int]:
        """How many rows each data file of a version holds, in the order of the files' paths."""
        ...

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        """The versions after one and up to another, oldest first, without a gap; an error where one is gone."""
        ...

    def size(self, name: str) -> TableSize:
        """How much the newest version holds."""
        ...

    def commit_timestamp(self, name: str, version: int) -> int | None:
        """When a version says that it was committed (milliseconds since 1970); None where it is gone or does not say."""
        ...

    def check_readable(self, read: TableRead) -> None:
        """Refuse a read whose files or versions are gone: `VersionsLostError`."""
        ...

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        """Refuse versions in which the view's key is not unique, but for rows that are left out: `DuplicateKeyError`."""
        ...


@dataclass(frozen=True, kw_only=True)
class KeyRanges:
    """A table's key cut into ranges: their inclusive upper ends (the last has none), and about how many rows each holds."""

    bounds: tuple[Key, ...]
    rows: tuple[int, ...]


class KeyedTables(Tables, Protocol):
    """Delta tables that can be read in the order of their keys."""

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        """Cut the key of a version, near-evenly; without rows no ranges. `UpstreamRefusedError` where it has no order."""
        ...


class Upstreams(Protocol):
    """What upstreams offer, read when asked and never written."""

    def topic(self, source: str) -> TopicState:
        """The topic of a source."""
        ...

    def starts(self, source: str, offer: TopicState) -> Mapping[int, int]:
        """The declared start of a source as one offset per partition of `offer`, not yet checked against it."""
        ...

    def diverged(self, source: str, read: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Partitions whose log is not the one that was read up to an offset (exclusive) in a leader epoch, by partition.

        Returns for each such partition the first offset that another leader has written since, as far as records show.
        """
        ...

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:
        """The last record that the topic delivers of each range, by partition; partitions without one are left out."""
        ...

    def bronze(self, source: str) -> BronzeState:
        """The bronze table of a source; `UpstreamChangedError` where there is none (any more)."""
        ...

    def create_bronze(self, source: str) -> BronzeState:
        """The bronze table of a source, which is created here (empty) if it is not there yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class InitialState(Generic[P_co]):
    """How a new life begins: its first position, the offsets of its frozen history, and whether it is live at once."""

    position: P_co
    total: int
    live: bool


@dataclass(frozen=True, kw_only=True)
class NextEpoch(Generic[P_co]):
    """The next epoch as decided: what is read, the position after it, and whether the table is live then."""

    reads: tuple[Read, ...]
    after: P_co
    live: bool


@dataclass(frozen=True, kw_only=True)
class PlannedEpoch(Generic[P_co]):
    """An epoch as an earlier plan has it: what is read, and the positions before and after it."""

    reads: tuple[Read, ...]
    before: P_co
    after: P_co


class Decider(Protocol[P]):
    """Decides what one table, whose positions are of kind `P`, reads next. Knows its declaration and sees upstreams; writes
    nothing."""

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
        """The digests of the declaration that the table is built with."""
        ...

    def begin(self) -> InitialState[P]:
        """Decide how a new life begins."""
        ...

    def columns(self) -> UpstreamColumns:
        """The columns that the upstreams have now, as far as a life that begins now depends on them."""
        ...

    def next(self, position: P, *, live: bool, budget: int) -> NextEpoch[P] | None:
        """Decide the epoch after `position`, of at most `budget` offsets; None where there is nothing to do.

        With `EVERYTHING` it takes all that its tables hold once their history is read, whatever else bounds an epoch.
        """
        ...

    def waits(self, position: P, *, live: bool) -> bool:
        """Whether `next` would find something to do, at whatever cost it takes to find out just that."""
        ...

    def confirm(self, plan: PlannedEpoch[P]) -> None:
        """Refuse a plan whose upstreams are no longer the ones that it was made for (recreated, reset, restored)."""
        ...

    def resumable(self, plan: PlannedEpoch[P]) -> bool:
        """Whether a run that begins may redo a plan that it finds uncommitted; else the life is given up for a new one."""
        ...

    def readable(self, plan: PlannedEpoch[P]) -> bool:
        """Whether an earlier plan can be carried out: its inputs are there, and it leaves out what is to be left out now."""
        ...

    def done(self, position: P) -> int:
        """How many offsets have been consumed since the beginning of this life."""
        ...

    def offsets(self, position: P) -> Mapping[str, int]:
        """The next offset to read, by partition (`<source>/<partition>`)."""
        ...

    def lag(self, position: P) -> Mapping[str, int]:
        """How many offsets are still to be read, by partition (`<source>/<partition>`)."""
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
        """What would commit this: `append`, `overwrite`, or a merge by key in `delta-rs` or `spark`."""
        ...

    def verify(self, staged: Staged) -> None:
        """Check that every staged file is there with its size, rows and columns; `StagingError` if not."""
        ...


class Ledger(Protocol):
    """The plans of all tables. Runs compete for one epoch of one table, and for nothing else."""

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """The number of the newest planned epoch of this life, None if none is known at or after `since`."""
        ...

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        """The plan in force for an epoch."""
        ...

    def append(self, plan: Plan) -> bool:
        """Append a plan unless a rival planned the same epoch since `newest` was read; returns whether it was appended."""
        ...


class Compute(Protocol):
    """Carries out the reads of a plan."""

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        """Compute what the plan does to the table at version `at`, into files that no reader sees yet."""
        ...


class Clock(Protocol):
    """Real time, or a clock that a test moves by hand."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


@dataclass(frozen=True, kw_only=True)
class Controls:
    """What an operator has set for a table: `rows_per_second` None means no limit, 0 means none at all."""

    paused: bool = False
    rows_per_second: float | None = None


OnStep = Callable[[str], None]
