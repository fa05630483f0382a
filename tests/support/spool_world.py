"""Delta tables in memory that forget each version as soon as it is captured, and a view with strategy `rearranged` over
them."""

from dataclasses import dataclass, field, replace
from typing import Any

from backfill_assets.core.audit import LedgerEntry, contiguous
from backfill_assets.core.epoch.ports import Commit, NextEpoch
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan
from backfill_assets.core.progress.reads import (
    CaptureRead,
    HashRead,
    KeyRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
    TableRead,
)
from backfill_assets.core.strategies.rearranged import RearrangedHistory
from backfill_assets.core.strategies.table_views import TablesDecider
from backfill_assets.errors import VersionsLostError
from tests.support.tables_world import FINGERPRINT, PLENTY, Follower, Lake, Table

__all__ = ["ROW", "Forgetful", "Spooling", "busy"]

ROW = 10
"""The size of a changed row in bytes."""


@dataclass
class Forgetful(Lake):
    """Tables whose logs have forgotten all versions up to a given one, by table."""

    cleaned: dict[str, int] = field(default_factory=dict)

    def commits(self, name: str, after: int, until: int) -> list[Commit]:
        if after < min(until, self.cleaned.get(name, 0)):
            raise VersionsLostError("gone", hint="none", version=after + 1)
        return [replace(each, bytes=ROW * each.rows) for each in super().commits(name, after, until)]

    def check_readable(self, read: TableRead) -> None:
        if isinstance(read, SpoolRead | SnapshotRead | SkipRead | LookupRead):
            return
        assert not isinstance(read, KeyRead | HashRead), "no table here is read by key"
        assert read.first > self.cleaned.get(read.source, 0)


@dataclass
class Spooling(Follower):
    """Follows a view that captures, and removes each captured version from the table's log."""

    limit: int = 10**12
    at_once: bool = False
    captured: dict[str, list[int]] = field(default_factory=dict)
    records: list[CommitRecord] = field(default_factory=list)
    entries: list[LedgerEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._commit(None)

    @property
    def decider(self) -> TablesDecider:
        history = RearrangedHistory(
            tables=self.lake, buckets=self.buckets, view="large", limit=self.limit, at_once=self.at_once
        )
        return replace(
            super().decider, histories={"rearranged": history}, strategy="rearranged", choose=lambda: "rearranged"
        )

    def step(self, budget: int = PLENTY) -> NextEpoch[Any] | None:
        before = self.position
        found = super().step(budget)
        if found is None:
            return None
        for read in found.reads:
            match read:
                case CaptureRead():
                    self.captured.setdefault(read.source, []).extend(range(read.first, read.last + 1))
                case SpoolRead():
                    self._note_drain(read)
        self._commit(
            Plan(
                target="views/large",
                incarnation="a" * 12,
                epoch=len(self.records),
                fingerprint=FINGERPRINT,
                reads=found.reads,
                before=before,
                after=found.after,
                live=found.live,
            )
        )
        assert isinstance(self.lake, Forgetful)
        self.lake.cleaned = {name: table.held[0] for name, table in self.position.tables.items()}
        return found

    def _note_drain(self, read: SpoolRead) -> None:
        table = self.lake.tables[read.source]
        rows = {each.version: each.rows for each in table.commits if each.rows}
        held = set(self.captured[read.source])
        assert set(read.segments) <= held
        assert all(at in held for at in range(read.first, read.last + 1) if at in rows), "what is drained was captured"
        assert sum(rows.get(at, 0) for at in range(read.first, read.last + 1)) == read.rows

    def _commit(self, plan: Plan | None) -> None:
        record = CommitRecord(
            kind=CommitKind.EPOCH if plan else CommitKind.CREATE,
            target="views/large",
            incarnation="a" * 12,
            epoch=len(self.records),
            attempt="b" * 12,
            plan_hash=plan.hash if plan else "",
            fingerprint=FINGERPRINT,
            position=self.position,
            live=self.live,
            started_at=0.0,
            finished_at=0.0,
            created_at=0.0,
        )
        self.records.append(record)
        self.entries.append(
            LedgerEntry(epoch=record.epoch, plan_hash=record.plan_hash, plan=plan, found_hash=record.plan_hash)
        )

    def finish(self, budget: int = PLENTY) -> int:
        steps = super().finish(budget)
        self.assert_all_read_once()
        for each in self.captured.values():
            assert each == sorted(set(each)), "no version is captured twice"
        assert contiguous(self.records, self.entries) == []
        assert all(table.spool is None or not table.spool.segments for table in self.position.tables.values())
        return steps


def busy(files: int, commits: int, rows: int = 10, **given: Any) -> Spooling:
    """A table of files with ten rows each, and some commits after the view's first step."""
    follower = Spooling(Forgetful({"a": Table((10,) * files)}), **given)
    for _ in range(commits):
        follower.lake.tables["a"].commit(rows)
    return follower
