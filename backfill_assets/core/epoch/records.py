"""The values of the epoch protocol: reads, plans, commit records, what a look at a table finds, and how to judge it.

This module has no actions: `protocol` does the steps, adapters carry them out.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from backfill_assets.core.progress.positions import IngestPosition, SnapshotPosition, ViewPosition
from backfill_assets.core.progress.reads import CaptureRead, FullRead, OffsetRead, Read, TableRead, size_of
from backfill_assets.core.progress.value import Value

__all__ = [
    "SELECT",
    "Columns",
    "CommitKind",
    "CommitRecord",
    "Fingerprint",
    "Plan",
    "Position",
    "Staged",
    "StagedFile",
    "TableState",
    "UpstreamColumns",
    "Verdict",
    "app_id",
    "changed_parts",
    "fingerprint",
    "judge",
    "nothing_known",
    "spooled_parts",
]

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns, types as `query.ddl` spells them."""
UpstreamColumns = dict[str, Columns]
"""Names and types of the columns of each Delta table that a view reads, in their order."""
Position = Annotated[IngestPosition | ViewPosition | SnapshotPosition, Field(union_mode="left_to_right")]
Fingerprint = dict[str, str]

SELECT = "select"
"""The part of a fingerprint that says of which columns a query is made. It changes with the query alone."""


class Plan(Value):
    """One decided epoch: what is read, and the table's position after it. It is repeated unchanged until it is committed.

    `expected_seconds` is how long it should take, judging from earlier epochs. `spooled` says in which staged folder each
    part of the spool is that `before` needs, as recorded by the commit before. With `redefines`, the table gets the columns
    of a changed definition, and all its rows are computed again.
    """

    target: str
    incarnation: str
    epoch: int = Field(ge=1)
    fingerprint: Fingerprint
    reads: tuple[Read, ...]
    before: Position
    after: Position
    live: bool
    expected_seconds: float = 0.0
    spooled: dict[str, str] = Field(default_factory=dict)
    redefines: bool = False

    @property
    def hash(self) -> str:
        """A short digest of everything above; equal plans have equal hashes."""
        return _digest(self.model_dump(mode="json"))

    @staticmethod
    def hash_of(text: str) -> str:
        """The hash of a plan as it was stored, whichever fields have been added to plans since."""
        return _digest(json.loads(text))

    @property
    def offset_reads(self) -> list[OffsetRead]:
        """The reads of shared sources."""
        return [read for read in self.reads if isinstance(read, OffsetRead)]

    @property
    def table_reads(self) -> list[TableRead]:
        """The reads of Delta tables."""
        return [read for read in self.reads if isinstance(read, TableRead)]

    @property
    def consumed(self) -> list[TableRead]:
        """The reads of Delta tables whose rows go into the view now, and not only into its spool."""
        return [read for read in self.table_reads if not isinstance(read, CaptureRead)]

    @property
    def replaces(self) -> bool:
        """Whether the result replaces all rows of the view."""
        return any(isinstance(read, FullRead) for read in self.reads)

    @property
    def offsets(self) -> int:
        """How many offsets, or rows of Delta tables, are read; an upper bound of the source rows."""
        return sum(size_of(read) for read in self.reads)


def spooled_parts(position: Position) -> list[str]:
    """The parts of the view's spool that a position needs."""
    return position.spooled if isinstance(position, SnapshotPosition) else []


Rule = Literal["", "additive", "full", "linear", "restricted"]
"""How an epoch of a query over whole tables was computed."""

WhyFull = Literal[
    "",
    "changes_lost",
    "definition",
    "first",
    "first_rows",
    "keys_reach_many",
    "many_changes",
    "no_rule",
    "nulls",
    "parameters",
    "refresh_mode",
    "rows_left_out",
    "values",
]
"""Why it was computed in full: files of changes, or a change feed, are missing; columns were added to the query; it is
history, or nothing but versions moved; too few of the first rows of a query are known; the keys of changed rows are expected
to reach more rows than are followed, or so many changed; there is no rule for these changes; a column by which NOT IN
compares may hold nulls; a subquery for one value gives another one; the view asks for it; rows are left out; Spark refused
values that a rule meets on its way."""


class CommitKind(StrEnum):
    """The kinds of commits that this project makes."""

    CREATE = "create"
    EPOCH = "epoch"
    DROP = "drop"
    RESTATE = "restate"


class CommitRecord(Value):
    """What every commit of this project records in its metadata. With it, the table alone is enough to continue.

    Times are seconds since 1970, UTC. `total` is the number of offsets (for Delta tables: rows) in the frozen history of
    this life; `done` is how many have been consumed since its beginning. `rows_written` counts the rows that were inserted
    or replaced (`rows_updated` of them were replaced), `rows_deleted` the deleted ones, `rows_total` the rows in the table
    afterwards. `rule` says how a query over whole tables was computed: `full`, `linear` from the changes alone, `additive`
    from these and the groups that are there, or `restricted` to the values of a key that they touch; empty for other
    queries. `why_full` says why no rule was taken. `keys_touched` counts the values of keys that changed rows have, where a
    rule goes by keys, and `rows_reached` the rows of all tables that the epoch was computed from: those that changed, and
    those that have such a value; or all rows. `engine` says how the commit was made: `append` of staged files, `overwrite`
    with them, or a merge by key in `delta-rs` or `spark`.
    `columns` are the columns of the upstreams when this life began, as far as the query may refer to them.
    `spooled` says in which staged folder each part of the spool is that the position needs.
    """

    kind: CommitKind
    target: str
    incarnation: str
    epoch: int
    attempt: str
    plan_hash: str
    fingerprint: Fingerprint
    position: Position
    live: bool
    rows_read: int = 0
    rows_written: int = 0
    rows_bad: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_total: int = 0
    engine: str = "append"
    rule: Rule = ""
    why_full: WhyFull = ""
    keys_touched: int = 0
    rows_reached: int = 0
    columns: UpstreamColumns = Field(default_factory=dict)
    spooled: dict[str, str] = Field(default_factory=dict)
    total: int = 0
    done: int = 0
    expected_seconds: float = 0.0
    started_at: float
    finished_at: float
    created_at: float


def nothing_known(target: str, fingerprint: Fingerprint, *, incarnation: str, now: float) -> CommitRecord:
    """The record of a life whose own commits cannot be read: only that it existed."""
    return CommitRecord(
        kind=CommitKind.CREATE,
        target=target,
        incarnation=incarnation,
        epoch=0,
        attempt="",
        plan_hash="",
        fingerprint=fingerprint,
        position=ViewPosition(sources={}),
        live=False,
        started_at=now,
        finished_at=now,
        created_at=now,
    )


class StagedFile(Value):
    """A Parquet file that Spark has written and no reader sees yet. `path` is relative to the table; `columns` are those
    in its own footer."""

    path: str
    size: int
    rows: int
    modified_ms: int
    stats: str
    columns: Columns


class Staged(Value):
    """Everything that one attempt wrote, with the counts that Spark itself reported.

    `key` is empty if the files are rows to append. Otherwise they are keyed changes: rows to insert, to replace
    (`rows_updated` of them) and to delete, in folders named after the action. With `replaces` they are all rows that the
    table will have. `delta_schema` is the Delta schema that the table gets with them, if it is not the one that it has.
    """

    files: tuple[StagedFile, ...] = ()
    rows_read: int = 0
    rows_written: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_bad: int = 0
    key: tuple[str, ...] = ()
    replaces: bool = False
    delta_schema: str = ""
    rule: Rule = ""
    why_full: WhyFull = ""
    keys_touched: int = 0
    rows_reached: int = 0

    @property
    def rows(self) -> int:
        """The number of rows that the files must have."""
        return self.rows_written + self.rows_deleted

    @property
    def appends(self) -> bool:
        """Whether the files can be committed unchanged, because no single row is replaced or deleted."""
        return not self.rows_updated and not self.rows_deleted


class TableState(Value):
    """What one loaded version of a table's log says.

    `record` is the newest commit of this project (None if there is none yet), found at version `at`. `external` is the first
    version by somebody else that changed data after that commit, or between it and the one that it continues.
    """

    version: int
    record: CommitRecord | None = None
    at: int = -1
    external: int | None = None

    @property
    def exists(self) -> bool:
        """Whether the table has a present life: it was created, and not dropped."""
        return self.record is not None and self.record.kind is not CommitKind.DROP

    @property
    def life(self) -> tuple[str, bool]:
        """Which life of the table this is, and whether it still lasts."""
        return (self.record.incarnation if self.record else "", self.exists)


class Verdict(StrEnum):
    """The outcome of a commit, judged by looking again."""

    LANDED = "landed"
    DONE_BY_OTHER = "done_by_other"
    FENCED = "fenced"
    RETRY = "retry"
    EXTERNAL = "external"


def judge(found: TableState, mine: CommitRecord, look: TableState) -> Verdict:
    """Judge the outcome of the commit of `mine`, made on `look`, from the state `found` afterwards; never from an error.

    Another life or a later epoch means that other runs have continued. This epoch by another attempt of the same plan is
    equivalent to ours. This epoch by another plan means that we are fenced. Only maintenance in between means that the
    commit is repeated. A new life and a drop end the old life in any case, so later epochs of it and external writes do
    not matter to them.
    """
    record = found.record
    if record is not None and _same_commit(record, mine):
        return Verdict.LANDED
    if mine.kind in {CommitKind.CREATE, CommitKind.DROP}:
        return Verdict.RETRY if found.life == look.life else Verdict.FENCED
    if record is None or found.life != look.life or record.epoch > mine.epoch:
        return Verdict.FENCED
    if record.epoch == mine.epoch and mine.kind is CommitKind.EPOCH:
        return Verdict.DONE_BY_OTHER if record.plan_hash == mine.plan_hash else Verdict.FENCED
    return Verdict.RETRY if found.external is None else Verdict.EXTERNAL


def _same_commit(record: CommitRecord, mine: CommitRecord) -> bool:
    return (record.kind, record.incarnation, record.epoch, record.attempt) == (
        mine.kind,
        mine.incarnation,
        mine.epoch,
        mine.attempt,
    )


def app_id(target: str, incarnation: str) -> str:
    """The application id of the transaction numbers of one life of a table."""
    return f"{target}@{incarnation}"


def fingerprint(**parts: object) -> Fingerprint:
    """A digest for each part of a declaration, so that a change can be named."""
    return {name: _digest(part) for name, part in sorted(parts.items())}


def changed_parts(built_with: Mapping[str, str], declared: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ."""
    names = {*built_with, *declared} - {SELECT}
    return sorted(name for name in names if built_with.get(name) != declared.get(name))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
