"""What an epoch reads: exact offsets of topics and bronze tables, exact files, versions and key ranges of Delta tables.

These are only values: strategies decide on them, and adapters carry them out.
"""

from typing import Annotated, Literal

from pydantic import Field

from backfill_assets.core.progress.positions import KeyRange, NamedKey, OffsetRange, total
from backfill_assets.core.progress.value import Value

__all__ = [
    "BronzeRead",
    "CaptureRead",
    "ChangesRead",
    "FullRead",
    "HashRead",
    "KafkaRead",
    "KeyRead",
    "LookupRead",
    "OffsetRead",
    "Read",
    "SkipRead",
    "SnapshotRead",
    "SpoolRead",
    "TableRead",
    "size_of",
]


class KafkaRead(Value):
    """Exactly these offsets of a topic, by partition."""

    kind: Literal["kafka"] = "kafka"
    source: str
    topic: str
    isolation: str
    ranges: dict[int, OffsetRange]


class BronzeRead(Value):
    """Exactly these offsets, by partition, of a source's bronze table at `version` or any later version of that life."""

    kind: Literal["bronze"] = "bronze"
    source: str
    incarnation: str
    version: int
    ranges: dict[int, OffsetRange]


class SnapshotRead(Value):
    """Exactly these data files of a Delta table at `version`, by bucket.

    The table's files, sorted by path, are distributed in turn to `buckets` buckets; a range is of places in its bucket.
    """

    kind: Literal["snapshot"] = "snapshot"
    source: str
    table_id: str
    version: int
    buckets: int
    ranges: dict[int, OffsetRange]
    rows: int


class KeyRead(Value):
    """Exactly these ranges of a Delta table's key at `version`: as `keys`, and as places within buckets of key ranges.

    `rows` is how many rows they had when the ranges were planned.
    """

    kind: Literal["keys"] = "keys"
    source: str
    table_id: str
    version: int
    ranges: dict[int, OffsetRange]
    keys: tuple[KeyRange, ...]
    rows: int


class ChangesRead(Value):
    """The changes of versions `first` to `last` (both inclusive) of a Delta table; `rows` according to its log.

    With `within`, only what they did to rows in these ranges of the table's key.
    """

    kind: Literal["changes"] = "changes"
    source: str
    table_id: str
    first: int
    last: int
    rows: int
    within: tuple[KeyRange, ...] | None = None


class CaptureRead(Value):
    """The changes of versions `first` to `last` of a Delta table, to be captured in the view's spool as a segment.

    Versions that changed no row make no segment.
    """

    kind: Literal["capture"] = "capture"
    source: str
    table_id: str
    first: int
    last: int
    rows: int

    @property
    def changes(self) -> ChangesRead:
        """What is read for it."""
        return ChangesRead(source=self.source, table_id=self.table_id, first=self.first, last=self.last, rows=self.rows)


class SpoolRead(Value):
    """The changes of versions `first` to `last` of a Delta table, from these `segments` of the view's spool.

    A segment is named by its first version; versions that are in none changed nothing.
    """

    kind: Literal["spool"] = "spool"
    source: str
    table_id: str
    first: int
    last: int
    segments: tuple[int, ...]
    rows: int


class FullRead(Value):
    """All rows of a Delta table at version `last`, which replace the rows of the view. They are read instead of the changes
    of versions `first` to `last` (`rows` according to its log). `held` is roughly how many rows the table then has.

    A plan that reads one table in full reads all tables of the view in full.
    """

    kind: Literal["full"] = "full"
    source: str
    table_id: str
    first: int
    last: int
    rows: int
    held: int

    @property
    def version(self) -> int:
        """The version whose rows are read."""
        return self.last


class LookupRead(Value):
    """All rows of a Delta table at `version`, with which the rows of a chunk of files are joined. `held` is how many there
    are. It is no progress: each chunk reads them again.
    """

    kind: Literal["lookup"] = "lookup"
    source: str
    table_id: str
    version: int
    held: int


class HashRead(Value):
    """All rows of a Delta table at `version`, of which those are kept whose key, at a place of the query, falls into a range
    of the `parts` into which its hashes are divided. The `ranges` are by bucket; there is one. `rows` is their share of all
    rows, of which there are `held`.
    """

    kind: Literal["hashes"] = "hashes"
    source: str
    table_id: str
    version: int
    parts: int
    ranges: dict[int, OffsetRange]
    rows: int
    held: int


class SkipRead(Value):
    """The rows of some keys of a Delta table that a change of the list of left-out keys removes or brings back: new keys at
    version `before`, where the view is now, and keys that are taken back at `after`, where the epoch ends.
    """

    kind: Literal["skips"] = "skips"
    source: str
    table_id: str
    before: int
    after: int
    out: tuple[NamedKey, ...] = ()
    back: tuple[NamedKey, ...] = ()

    @property
    def versions(self) -> list[int]:
        """The versions that are read."""
        return [version for version, keys in ((self.before, self.out), (self.after, self.back)) if keys]


OffsetRead = KafkaRead | BronzeRead
TableRead = SnapshotRead | KeyRead | ChangesRead | CaptureRead | SpoolRead | FullRead | LookupRead | HashRead | SkipRead
Read = Annotated[OffsetRead | TableRead, Field(discriminator="kind")]


def size_of(read: Read) -> int:
    """How much a read counts against a budget: offsets, or rows according to the table's log.

    Captured changes count when they are taken from the spool. A table that is read in full counts as the changes that need
    not be read. Rows of keys that are left out or taken back do not count: they were counted when they arrived. Nor do rows
    that a chunk is joined with.
    """
    match read:
        case CaptureRead() | LookupRead() | SkipRead():
            return 0
        case SnapshotRead() | KeyRead() | ChangesRead() | SpoolRead() | FullRead() | HashRead():
            return read.rows
        case _:
            return total(read.ranges.values())
