"""Whether Spark has read what is there: the rows of each scan, compared with what the upstream's log or Kafka says.

A scan is counted where its rows leave the files, below all conditions of a query, so the count does not depend on the query.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backfill_assets.core.epoch.records import Staged
from backfill_assets.core.progress.positions import total
from backfill_assets.core.progress.reads import (
    BronzeRead,
    ChangesRead,
    FullRead,
    HashRead,
    KafkaRead,
    KeyRead,
    LookupRead,
    SnapshotRead,
    SpoolRead,
)
from backfill_assets.errors import ReadMismatchError

__all__ = [
    "MOST_ALONE",
    "CountedRead",
    "Found",
    "Judgement",
    "MergedRows",
    "Scan",
    "check_merged",
    "is_worth_counting",
    "judged",
    "mismatch",
    "scan_of",
    "scan_of_version",
    "total_rows",
]

CountedRead = (
    BronzeRead | ChangesRead | FullRead | HashRead | KafkaRead | KeyRead | LookupRead | SnapshotRead | SpoolRead
)
"""The reads of which something is known about their rows before they are read."""

MOST_ALONE = 10_000_000
"""A scan that Spark did not count is counted alone up to so many rows: beyond them, that takes longer than most epochs."""

_HINT = (
    "nothing was committed. Either files are missing or damaged and Spark passes over them (a cluster can force "
    "ignoreMissingFiles or ignoreCorruptFiles, a storage can list or serve too little), or they are not those that the log "
    "describes. Correct that and refresh again: the epoch is repeated"
)

FEW_ROWS, MOST_PER_ROW, MANY_FILES = 1_000_000, 8, 1_000
"""Ranges of a key are counted if the files that may have their keys hold no more rows than this, or than this for each row of
the ranges, and are not more than this: Spark lists them by name, and reads all their rows, so that it is known how many."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One scan of Spark: `what` of which `table`, in words, and how many rows there are, from `least` to `most`.

    `implied`: what it gives is empty whenever another scan is, so it need not be counted where Spark has left it out.
    `ends_early`: Spark may stop reading it, as the query has a LIMIT.
    """

    table: str
    what: str
    least: int
    most: int
    implied: bool = False
    ends_early: bool = False

    @property
    def expected(self) -> str:
        """How many rows there are, in words."""
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """How many rows Spark has read; `again` if it has read some of them more than once."""

    rows: int
    again: bool = False


class Judgement(StrEnum):
    """What follows from a count of Spark."""

    RIGHT = "right"
    WRONG = "wrong"
    COUNT_ALONE = "count alone"


def judged(scan: Scan, found: Found | None, *, alone: bool = False) -> Judgement:
    """Judge how many rows Spark has counted: while it computed an epoch, or in a job that only reads the scan (`alone`).

    None: Spark took the scan out of its plan. It does so where the result is empty without it, which may be due to just the
    rows that are missing. What was read again proves nothing: half of the rows, read twice, are as many as there are. More
    rows than there are: a task was repeated. None of this happens in a job that does nothing else.
    """
    if found is None:
        needless = scan.implied or scan.least == 0 or scan.most > MOST_ALONE
        return Judgement.RIGHT if needless else Judgement.COUNT_ALONE
    if scan.least <= found.rows <= scan.most and not found.again:
        return Judgement.RIGHT
    unclear = found.again or found.rows > scan.most or scan.ends_early
    return Judgement.COUNT_ALONE if unclear and not alone else Judgement.WRONG


def is_worth_counting(read: KeyRead, stated: Sequence[int | None]) -> bool:
    """Whether ranges of a key are read from all rows of the files that may have their keys (`stated`: of each, as the log
    says), so that they are counted."""
    rows = total_rows(stated)
    return rows is not None and 0 < len(stated) <= MANY_FILES and rows <= max(FEW_ROWS, MOST_PER_ROW * read.rows)


def total_rows(stated: Iterable[int | None]) -> int | None:
    """The rows of several files; None if they are not known of one of them."""
    rows = 0
    for each in stated:
        if each is None:
            return None
        rows += each
    return rows


def scan_of(read: CountedRead, rows: int) -> Scan:
    """The scan of a read that has so many rows. Of a topic, these are the offsets, which only limit how many records there
    are: which of them are compacted, aborted or markers of transactions is known to the broker alone."""
    least = 0 if isinstance(read, KafkaRead) else rows
    return Scan(table=read.source, what=_words(read), least=least, most=rows)


def scan_of_version(table: str, version: int, rows: int) -> Scan:
    """The scan of all rows of a version of a table."""
    return Scan(table=table, what=f"version {version}", least=rows, most=rows)


@dataclass(frozen=True, kw_only=True)
class MergedRows:
    """How many rows a merge has in the files that it `removed` and in those that it `added`, and in those of the change feed
    (`fed`)."""

    removed: int
    added: int
    fed: int


def check_merged(view: str, staged: Staged, found: MergedRows) -> None:
    """Refuse a merge whose rows do not add up: what was in the files, and what came and went.

    A row that is to be replaced or deleted, and was not found, is one too many, as is one that was to be new and was found.
    A row that was not read is one too few. Errors: `ReadMismatchError`.
    """
    inserted = staged.rows_written - staged.rows_updated
    expected = found.removed + inserted - staged.rows_deleted
    fed = inserted + 2 * staged.rows_updated + staged.rows_deleted
    if (found.added, found.fed) != (expected, fed):
        raise ReadMismatchError(
            f"{view}: a merge put {inserted} inserts, {staged.rows_updated} updates and {staged.rows_deleted} deletes into "
            f"files of {found.removed} rows, which gave {found.added} rows and {found.fed} in the change feed, expected "
            f"{expected} and {fed}",
            hint=_HINT,
            table=view,
            expected=(expected, expected),
            found=found.added,
        )


def _words(read: CountedRead) -> str:
    """What of an upstream a read names."""
    match read:
        case KafkaRead():
            return f"{total(read.ranges.values())} offsets of topic {read.topic!r}"
        case BronzeRead():
            return f"the files with its offsets, at version {read.version} or later,"
        case SnapshotRead():
            return f"its files in version {read.version}"
        case FullRead() | HashRead() | LookupRead():
            return f"version {read.version}"
        case KeyRead():
            return f"the files that may have its keys, in version {read.version},"
        case ChangesRead() | SpoolRead():
            captured = "captured " if isinstance(read, SpoolRead) else ""
            return f"the {captured}changes of versions {read.first} to {read.last}"


def mismatch(target: str, epoch: int, scan: Scan, found: int) -> ReadMismatchError:
    """The error of an epoch of which Spark has read another number of rows than there are."""
    return ReadMismatchError(
        f"{target}: epoch {epoch}: Spark read {found} rows of {scan.what} of {scan.table!r}, expected {scan.expected}",
        hint=_HINT,
        table=scan.table,
        expected=(scan.least, scan.most),
        found=found,
    )
