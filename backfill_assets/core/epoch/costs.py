"""The basis for the choice of a strategy: facts about upstreams that are known without reading data, and costs.

This module has no clock and reads no table. All times are seconds.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Annotated, Literal, NamedTuple, Self, get_args

from pydantic import Field

from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Position
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import (
    BronzeRead,
    ChangesRead,
    FullRead,
    HashRead,
    KafkaRead,
    LookupRead,
    Read,
    SpoolRead,
    size_of,
)
from backfill_assets.core.progress.value import Value

__all__ = ["STRATEGIES", "Costs", "EpochRan", "Strategy", "TableFacts", "TableStrategy", "epochs_ran"]

TableStrategy = Literal["snapshot", "snapshot_once", "rearranged", "arrangement"]
Strategy = Literal["source"] | TableStrategy
STRATEGIES: tuple[Strategy, ...] = ("source", *get_args(TableStrategy))
"""All strategies, the simplest first; of two with the same cost, the earlier one is chosen."""

Amount = Annotated[float, Field(ge=0, le=1e18)]
Count = Annotated[int, Field(ge=0, le=10**18)]
Constant = Annotated[float, Field(ge=1e-3, le=1e18)]


class TableFacts(Value):
    """What metadata says about one upstream: a Delta `table`, a `view` of this project, or a Kafka `topic`.

    `rows`, `bytes` (as stored) and `files` are those of the newest version; for a topic, its present records and bytes.
    `append_only`: rows are never updated or deleted; `has_feed`: the change data feed is on; `keyed`: there is
    a declared primary key, or a view's own; `key_sortable`: its columns have an order. `clustering` is the share of
    the files that one key range of `chunk_rows` rows has to touch: about 1/chunks if the table is clustered by its
    key, 1 if every range touches every file, None if there are no statistics.

    Retention is how long removed files and old commits are kept. For a topic, `log_retention_seconds` is how long its
    records are kept (None: for ever). Rates are means over the recent history, so a table without a recent commit counts
    as unchanging. `versions_per_second` includes maintenance, because it removes files. `inserts_per_second` counts the
    changes in versions that only added rows.
    """

    name: str
    kind: Literal["table", "view", "topic"]
    rows: Count
    bytes: Count
    files: Count = 0
    append_only: bool = False
    has_feed: bool = False
    keyed: bool = False
    key_sortable: bool = False
    clustering: Annotated[float, Field(ge=0, le=1)] | None = None
    file_retention_seconds: Amount | None = None
    log_retention_seconds: Amount | None = None
    changes_per_second: Amount = 0.0
    inserts_per_second: Amount = 0.0
    versions_per_second: Amount = 0.0
    change_bytes_per_second: Amount = 0.0
    newest_commit_age_seconds: Amount = 0.0

    @property
    def only_grows(self) -> bool:
        """Whether the only changes are new rows, so that nothing in a view has to be rewritten."""
        return self.append_only or 0 < self.changes_per_second <= self.inserts_per_second

    @property
    def moves(self) -> bool:
        """Whether commits are expected while history is read; only then can anything be removed."""
        return self.changes_per_second > 0 or self.versions_per_second > 0

    @property
    def expires(self) -> bool:
        """Whether what has to be read may be removed before: files that a table replaced, or records of a topic."""
        return self.moves or self.kind == "topic"


class EpochRan(NamedTuple):
    """Measurements of one epoch: rows read, rows changed in the view, seconds, and what it read."""

    rows: int
    rows_changed: int
    seconds: float
    kind: Literal["source", "snapshot", "changes"]


class Costs(Value):
    """The constants of the estimates. The defaults were measured on 2 cores (`docs/benchmarks.md`), except those
    marked as assumed.

    `snapshot_rows_per_second`: a table's rows read and written; `scan_rows_per_second`: rows read and discarded;
    `source_rows_per_second`: records read from Kafka, parsed and written; `merge_rows_per_second`: changed rows read
    from the change log and merged; `rewrite_rows_per_second`: the view's rows in files that a merge has to rewrite.

    `epoch_seconds`: the fixed time of an epoch that appends; `merge_seconds`: the fixed time of one that merges;
    `version_seconds`: each version of a change log (assumed); `capture_seconds`: one capture into a spool (assumed).

    `row_bytes`: the least memory of one row, even if the table's own bytes suggest less (assumed); `expansion`: bytes in
    memory for one stored byte (assumed); `spool_bytes_per_second`: writing a spool (assumed); `kills_per_hour`: how often
    a run is killed and has to repeat its unfinished epoch (assumed).
    """

    snapshot_rows_per_second: Constant = 3_500_000.0
    scan_rows_per_second: Constant = 6_000_000.0
    source_rows_per_second: Constant = 300_000.0
    merge_rows_per_second: Constant = 170_000.0
    rewrite_rows_per_second: Constant = 4_700_000.0
    epoch_seconds: Constant = 0.15
    merge_seconds: Constant = 0.5
    version_seconds: Constant = 0.005
    capture_seconds: Constant = 0.3
    row_bytes: Constant = 100.0
    expansion: Constant = 4.0
    spool_bytes_per_second: Constant = 50_000_000.0
    kills_per_hour: Amount = 0.05

    def expected_seconds(self, reads: Sequence[Read]) -> float:
        """How long an epoch of these reads should take."""
        if not reads:
            return 0.0
        seconds = 0.0
        for read in reads:
            match read:
                case ChangesRead() | SpoolRead():
                    seconds += size_of(read) / self.merge_rows_per_second
                case FullRead():
                    seconds += read.held / self.snapshot_rows_per_second
                case HashRead():
                    seconds += size_of(read) / self.snapshot_rows_per_second
                    seconds += read.held / self.scan_rows_per_second
                case LookupRead():
                    seconds += read.held / self.scan_rows_per_second
                case KafkaRead() | BronzeRead():
                    seconds += size_of(read) / self.source_rows_per_second
                case _:
                    seconds += size_of(read) / self.snapshot_rows_per_second
        merges = any(isinstance(read, ChangesRead | SpoolRead) for read in reads)
        return round(seconds + (self.merge_seconds if merges else self.epoch_seconds), 3)

    @classmethod
    def learned(cls, history: Iterable[EpochRan]) -> Self:
        """The defaults, corrected by measured epochs. Medians are used, so that one or two slow epochs change nothing.

        Epochs that are too small for their rows to matter give the fixed time, the others the rate. A constant with fewer
        than three measurements stays as it is; none changes by more than a factor of a hundred. Epochs without a length,
        or with negative numbers, are ignored.
        """
        costs = cls()
        kept = [
            ran for ran in history if isfinite(ran.seconds) and ran.seconds > 0 and ran.rows >= 0 <= ran.rows_changed
        ]
        found: dict[str, float] = {}
        for kind, rate, fixed in _LEARNED:
            sizes = [
                (ran.rows_changed if kind == "changes" else ran.rows, max(1e-6, ran.seconds))
                for ran in kept
                if ran.kind == kind
            ]
            learned = costs.model_copy(update=found)
            found |= _fit(sizes, (rate, getattr(costs, rate)), (fixed, getattr(learned, fixed)), getattr(costs, fixed))
        return costs.model_copy(update=found)


def epochs_ran(records: Sequence[tuple[CommitRecord, float]]) -> list[EpochRan]:
    """Measurements of the epochs among a table's records (newest first, each with the time of its commit).

    Epochs whose predecessor is not among the records are left out. So are epochs that read history and changes together,
    or that read tables in full instead of their changes.
    """
    found = []
    for (after, committed), (before, _) in pairwise(records):
        if (after.incarnation, after.epoch) != (before.incarnation, before.epoch + 1) or after.kind != CommitKind.EPOCH:
            continue
        kind = _kind_of(before.position, after.position)
        if kind is not None and after.engine != "overwrite":
            changed = after.rows_written + after.rows_deleted
            found.append(EpochRan(after.rows_read, changed, committed - after.started_at, kind))
    return found


def _kind_of(before: Position, after: Position) -> Literal["source", "snapshot", "changes"] | None:
    if not (isinstance(before, SnapshotPosition) and isinstance(after, SnapshotPosition)):
        return "source"
    if before.backfilled:
        return "changes"
    moved = any(after.tables[name].version != table.version for name, table in before.tables.items())
    return None if moved or any(table.spool for table in after.tables.values()) else "snapshot"


_LEARNED = (
    ("source", "source_rows_per_second", "epoch_seconds"),
    ("snapshot", "snapshot_rows_per_second", "epoch_seconds"),
    ("changes", "merge_rows_per_second", "merge_seconds"),
)
_FEWEST = 3
_SMALL = 0.1
"""An epoch is small if its rows are expected to take less than this share of an epoch's fixed time."""


def _fit(
    epochs: Sequence[tuple[int, float]], rate: tuple[str, float], fixed: tuple[str, float], default: float
) -> dict[str, float]:
    """What epochs of `rows` and `seconds` say about the two named constants, given their present values, and the `default` of
    the fixed time, which epochs of another kind may have changed."""
    small = [seconds for rows, seconds in epochs if rows / rate[1] < _SMALL * fixed[1]]
    found: dict[str, float] = {}
    least = fixed[1]
    if len(small) >= _FEWEST:
        found[fixed[0]] = least = _near(median(small), default)
    rates = [
        rows / max(seconds - least, _SMALL * seconds) for rows, seconds in epochs if rows / rate[1] >= _SMALL * fixed[1]
    ]
    if len(rates) >= _FEWEST:
        found[rate[0]] = _near(median(rates), rate[1])
    return found


def _near(value: float, believed: float) -> float:
    return min(max(value, believed / 100, 1e-3), believed * 100, 1e18)
