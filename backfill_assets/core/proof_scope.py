"""What a check that has passed before has to prove: what was written and read since then, or everything.

The view was equal to its query when the check passed. It still is, if what was written since then equals the query over
the changes of its tables since then. If that would cost more than proving everything, or cannot be decided, everything
is proved again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.core.epoch.ports import Commit
from backfill_assets.core.progress.positions import OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, SnapshotRead, TableRead
from backfill_assets.core.strategies.change_log import split_reads
from backfill_assets.core.strategies.full_refresh import FEWEST_BYTES

__all__ = ["MAX_VERSIONS", "Everything", "Since", "followed", "scope"]

MAX_VERSIONS = 1000
"""The maximum number of versions of a table that are followed: for each, its entry in the log is read."""


@dataclass(frozen=True, kw_only=True)
class Everything:
    """Everything has to be proved, for this reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Since:
    """What a view has read between two positions, as if in one epoch."""

    reads: tuple[TableRead, ...]


def followed(before: SnapshotPosition, after: SnapshotPosition) -> dict[str, tuple[int, int]] | Everything:
    """The versions of each table whose changes a view took between two positions: after one and up to another."""
    if before.tables.keys() != after.tables.keys():
        return Everything(reason="the view reads other tables than before")
    for name, table in before.tables.items():
        if reason := _unlike(table, after.tables[name]):
            return Everything(reason=f"{name}: {reason}")
    return {name: (table.version, after.tables[name].version) for name, table in before.tables.items()}


def scope(
    before: SnapshotPosition,
    after: SnapshotPosition,
    commits: Mapping[str, Sequence[Commit]],
    *,
    written: int,
    held: int,
) -> Since | Everything:
    """What to read again of tables between two positions that are `followed`.

    `commits` are the versions in between. `written` is how many bytes of the view's files were added and removed in
    between, `held` the total bytes of view and tables. A small number of bytes is read in any case.
    """
    changed = sum(commit.bytes for each in commits.values() for commit in each)
    if written + changed > max(held, FEWEST_BYTES):
        return Everything(reason=f"{written + changed} bytes changed since, more than the {held} that there are")
    reads = [
        read
        for name, table in sorted(before.tables.items())
        for read in _reads(name, table, after.tables[name], commits.get(name, ()))
    ]
    return Since(reads=tuple(reads))


def _unlike(before: TablePosition, after: TablePosition) -> str:
    """Why two positions of a table do not show what was read between them; empty if they do."""
    life = (before.table_id, before.incarnation, before.pinned) == (after.table_id, after.incarnation, after.pinned)
    same_cut = before.buckets.keys() == after.buckets.keys()
    onwards = same_cut and all(after.buckets[at].next >= bucket.next for at, bucket in before.buckets.items())
    reasons = {
        "another table, or another version of it, was pinned": not life,
        "rows of some keys are left out": before.skipped or after.skipped,
        "its history is read by key, each range at a version of its own": before.expected or after.expected,
        "its history is cut in another way": not same_cut,
        "its position went back": not onwards or after.version < before.version,
        f"more than {MAX_VERSIONS} versions were committed since": after.version - before.version > MAX_VERSIONS,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _reads(
    name: str, before: TablePosition, after: TablePosition, commits: Sequence[Commit]
) -> Iterator[SnapshotRead | ChangesRead]:
    places = {
        at: OffsetRange(start=bucket.next, end=after.buckets[at].next)
        for at, bucket in before.buckets.items()
        if after.buckets[at].next > bucket.next
    }
    if places:
        yield SnapshotRead(
            source=name,
            table_id=before.table_id,
            version=before.pinned,
            buckets=len(before.buckets),
            ranges=places,
            rows=sum(after.buckets[at].rows - before.buckets[at].rows for at in places),
        )
    for some in split_reads(commits):
        rows, first, last = sum(commit.rows for commit in some), some[0].version, some[-1].version
        if rows:
            yield ChangesRead(source=name, table_id=before.table_id, first=first, last=last, rows=rows)
