"""Strategy `rearranged` (a CDC spool): from the start every version is captured into the view's spool, then drained in order.

    snapshot (files of the pinned versions; new versions are captured) ──► drain (captured versions, oldest first; new
    versions are captured) ──► change log, as soon as an epoch drains everything that is captured

So a view needs the change log of its upstreams for one epoch only, however long the snapshot takes: what VACUUM and log
clean-up remove after that is in the spool. An epoch that drains the rest captures nothing, so the drain ends even if the
upstream never rests. Commit records say where the files of the spool are (`CommitRecord.spooled`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.core.epoch.ports import Commit, UpstreamState
from backfill_assets.core.progress.positions import Segment, SnapshotPosition, Spool, TablePosition, allocate
from backfill_assets.core.progress.reads import CaptureRead, SpoolRead, TableRead
from backfill_assets.core.strategies.change_log import within
from backfill_assets.core.strategies.snapshot import SnapshotHistory
from backfill_assets.core.strategies.table_views import EpochBudget, Step
from backfill_assets.errors import SpoolFullError

__all__ = ["RearrangedHistory"]

MAX_SEGMENTS = 16
"""The maximum number of segments of a table that an epoch captures: each is a Spark job, and a line in every position."""


@dataclass(frozen=True, kw_only=True)
class RearrangedHistory(SnapshotHistory):
    """`History` over pinned files and a spool of at most `limit` bytes, according to the upstreams' logs.

    With `at_once` everything that is captured is drained in one epoch: an aggregate may have to read its upstream at the
    version that it drains to, and only the newest captured version is certain to exist.
    """

    view: str
    limit: int
    at_once: bool = False

    def _begin(self, name: str, offer: UpstreamState) -> tuple[TablePosition, int]:
        """As in a snapshot, with an empty spool."""
        position, rows = super()._begin(name, offer)
        spool = Spool(captured=offer.version, commit_ms=offer.commit_ms)
        return position.model_copy(update={"spool": spool}), rows

    def finished(self, position: SnapshotPosition) -> bool:
        """Whether every file has been read and every captured version drained."""
        return position.backfilled and not any(
            table.spool and table.spool.segments for table in position.tables.values()
        )

    def read(self, position: SnapshotPosition, turn: EpochBudget) -> Step:
        """The next files, or the next captured versions; in both cases new versions go into the spool."""
        if position.backfilled:
            reads, after = self._drained(position, turn.budget)
        else:
            reads, after = super().read(position, turn)
        if self.finished(after):
            tables = {name: _ended(table) for name, table in after.tables.items()}
            after = after.model_copy(update={"tables": tables})
        else:
            captures, after = self._captured(after, turn.offers, turn.budget)
            reads = [*reads, *captures]
        return reads, after

    def left(self, name: str, table: TablePosition) -> int:
        """Rows of files that still have to be read, and of captured versions that still have to be drained."""
        return super().left(name, table) + (table.spool.waiting if table.spool else 0)

    def _drained(self, position: SnapshotPosition, budget: int) -> Step:
        """The oldest captured versions of each table up to the budget, at least one segment of each."""
        spools = {
            name: each.spool for name, each in sorted(position.tables.items()) if each.spool and each.spool.segments
        }
        shares = allocate(budget, {index: spool.waiting for index, spool in enumerate(spools.values())})
        reads: list[TableRead] = []
        tables = dict(position.tables)
        for index, (name, spool) in enumerate(spools.items()):
            table = position.tables[name]
            taken = spool.segments if self.at_once else _first_of(spool.segments, shares.get(index, 0))
            left = spool.segments[len(taken) :]
            # versions that changed nothing may follow the last segment
            last, commit_ms = (taken[-1].last, taken[-1].commit_ms) if left else (spool.captured, spool.commit_ms)
            read = SpoolRead(
                source=name,
                table_id=table.table_id,
                first=table.version + 1,
                last=last,
                segments=tuple(each.first for each in taken),
                rows=sum(each.rows for each in taken),
            )
            reads.append(read)
            tables[name] = table.model_copy(
                update={
                    "version": last,
                    "commit_ms": commit_ms,
                    "changes": table.changes + read.rows,
                    "spool": spool.model_copy(update={"segments": left}),
                }
            )
        return reads, position.model_copy(update={"tables": tables})

    def _captured(self, after: SnapshotPosition, offers: Mapping[str, UpstreamState], budget: int) -> Step:
        """All waiting versions, as far as the spool has room; an error if there is none for the next one.

        While the spool is drained, room becomes free, so versions that do not fit can wait.
        """
        reads: list[TableRead] = []
        tables = dict(after.tables)
        held = sum(table.spool.bytes for table in tables.values() if table.spool)
        for name, table in sorted(after.tables.items()):
            assert table.spool is not None
            commits = self.tables.commits(name, table.spool.captured, offers[name].version)
            fitting = _fitting(commits, self.limit - held)
            if commits and not fitting and not after.backfilled:
                raise self._full(name, commits[0], held)
            parts = _parts(fitting, max(budget, sum(commit.rows for commit in fitting) // MAX_SEGMENTS))
            found = tuple(map(_segment, parts))
            segments = tuple(each for each in found if each.rows)
            held += sum(each.bytes for each in segments)
            reads.extend(  # also parts without rows, so that reads follow each other; nothing is written for them
                CaptureRead(source=name, table_id=table.table_id, first=each.first, last=each.last, rows=each.rows)
                for each in (found if segments else ())
            )
            if fitting:
                tables[name] = table.model_copy(update={"spool": _longer(table.spool, fitting[-1], segments)})
        return reads, after.model_copy(update={"tables": tables})

    def _full(self, name: str, commit: Commit, held: int) -> SpoolFullError:
        return SpoolFullError(
            f"view {self.view!r}: its spool of captured changes is full: expected at most {self.limit:,} bytes, found "
            f"{held:,}, and version {commit.version} of table {name!r} needs {commit.bytes:,} more",
            hint="raise BACKFILL_SPOOL_BYTES and refresh again: it continues where it stopped. Nothing is lost as long as "
            f"the log of {name!r} has version {commit.version}",
            limit=self.limit,
            held=held,
            needed=commit.bytes,
            version=commit.version,
        )


def _first_of(segments: Sequence[Segment], budget: int) -> tuple[Segment, ...]:
    """The oldest segments that fit the budget; at least one."""
    taken: list[Segment] = []
    rows = 0
    for segment in segments:
        if taken and rows + segment.rows > budget:
            break
        taken.append(segment)
        rows += segment.rows
    return tuple(taken)


def _fitting(commits: Sequence[Commit], room: int) -> Sequence[Commit]:
    """The oldest versions that fit into a number of bytes."""
    for count, commit in enumerate(commits):
        room -= commit.bytes
        if commit.bytes and room < 0:
            return commits[:count]
    return commits


def _parts(commits: Sequence[Commit], budget: int) -> list[Sequence[Commit]]:
    """Versions, divided into parts that one read of the change log can take."""
    parts: list[Sequence[Commit]] = []
    while commits:
        parts.append(within(commits, budget))
        commits = commits[len(parts[-1]) :]
    return parts


def _segment(part: Sequence[Commit]) -> Segment:
    return Segment(
        first=part[0].version,
        last=part[-1].version,
        rows=sum(commit.rows for commit in part),
        bytes=sum(commit.bytes for commit in part),
        commit_ms=part[-1].commit_ms,
    )


def _longer(spool: Spool, newest: Commit, segments: tuple[Segment, ...]) -> Spool:
    return Spool(
        captured=newest.version,
        commit_ms=newest.commit_ms,
        rows=spool.rows + sum(each.rows for each in segments),
        segments=(*spool.segments, *segments),
    )


def _ended(table: TablePosition) -> TablePosition:
    """The position when the spool is empty: the last captured versions changed no row, or are drained."""
    assert table.spool is not None
    return table.model_copy(update={"version": table.spool.captured, "commit_ms": table.spool.commit_ms, "spool": None})
