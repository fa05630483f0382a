"""A run: epoch after epoch of one table; controls are read only between epochs."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol

from backfill_assets.core.epoch.limits import Limits, Stop, TokenBucket
from backfill_assets.core.epoch.lives import begin_life
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import Controls, NextEpoch, P
from backfill_assets.core.epoch.protocol import check_look, decided, may_repeat, run_epoch
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.core.progress.positions import SnapshotPosition, micros
from backfill_assets.errors import ExternalWriteError, FencedError

__all__ = [
    "KEPT_EPOCHS",
    "RunHooks",
    "RunReport",
    "RunTotals",
    "TableCreator",
    "catch_up_factor",
    "create_if_missing",
    "plan_next",
    "run",
    "slowest",
]

POLL_SECONDS = 0.5

KEPT_EPOCHS = 20
"""This many of a run's epochs are kept: enough for its rate and its lag. A position of 10,000 partitions takes
megabytes."""

MAX_CATCH_UP_FACTOR = 8
"""The maximum size of an epoch, as a multiple of its usual rows."""


class RunHooks(Protocol):
    """What a run does between epochs: read the operator's settings, report progress, learn that it has to stop."""

    def controls(self) -> Controls:
        """What the operator has set."""
        ...

    def after_epoch(self, record: CommitRecord) -> None:
        """Called after each commit: report progress, renew the lease, maintain the table."""
        ...

    def backpressure(self) -> str:
        """Why the run has to end at the next opportunity so that others can catch up; empty if it may continue."""
        ...


class TableCreator(Protocol):
    """Creates the empty table of an output."""

    def schema(self) -> str:
        """The table's schema; finds out whether the declaration can be computed at all."""
        ...

    def empty(self) -> None:
        """Create the empty table, unless another run does so at the same moment."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunTotals:
    """The totals of all epochs of a run; `seconds` are those of its epochs alone."""

    epochs: int = 0
    rows_read: int = 0
    rows_written: int = 0
    rows_bad: int = 0
    seconds: float = 0.0
    expected_seconds: float = 0.0

    def plus(self, record: CommitRecord) -> "RunTotals":
        """The totals with one more epoch."""
        return RunTotals(
            epochs=self.epochs + 1,
            rows_read=self.rows_read + record.rows_read,
            rows_written=self.rows_written + record.rows_written,
            rows_bad=self.rows_bad + record.rows_bad,
            seconds=self.seconds + record.finished_at - record.started_at,
            expected_seconds=self.expected_seconds + record.expected_seconds,
        )


@dataclass
class RunReport:
    """What one run did, and why it ended. `record` is the newest commit of the table; `epochs` are the newest
    `KEPT_EPOCHS` epochs of the run, in order, because a run may never end. `totals` are those of all its epochs."""

    record: CommitRecord
    stopped: Stop = Stop.CAUGHT_UP
    detail: str = ""
    epochs: list[CommitRecord] = field(default_factory=list)
    totals: RunTotals = RunTotals()
    seconds: float = 0.0
    offsets: int = 0

    def count(self, record: CommitRecord, offsets: int) -> None:
        """Add one epoch to the report."""
        self.epochs = [*self.epochs, record][-KEPT_EPOCHS:]
        self.totals = self.totals.plus(record)
        self.offsets += offsets
        self.record = record


def create_if_missing(parts: Parts[P], make: "TableCreator") -> TableState:
    """Look at the table, and begin its first life (or the next one after a drop) if it has none.

    Everything that can be wrong with the declaration is found before anything is written. A life whose first commit was
    planned and cannot be resumed is replaced by a new one.
    """
    look = parts.output.look()
    if look.exists:
        look = check_look(parts, look, redefines=True)
        return _begun(parts, make, look) if _abandoned(parts, look) else look
    if look.external is not None:
        raise ExternalWriteError(
            f"{parts.decider.target}: there is a table in its place already, with data of version {look.external} that "
            "no epoch wrote",
            hint="move that table away, or declare this one under another name",
            version=look.external,
        )
    return _begun(parts, make, look)


def _begun(parts: Parts[P], make: "TableCreator", look: TableState) -> TableState:
    """The table with the life that is begun here, or that another run began first."""
    make.schema()
    begin, old = parts.decider.begin(), look.life
    if look.version < 0:
        make.empty()
        look = parts.output.look()
    if look.life == old:
        with suppress(FencedError):  # another run began a life, or finished the one to be given up: both are fine
            begin_life(parts, look, begin, incarnation=parts.new_id(), gives_up=look.exists)
        look = parts.output.look()
    return check_look(parts, look, redefines=True)


def _abandoned(parts: Parts[P], look: TableState) -> bool:
    """Whether a run planned the next epoch and did not commit it, and no other run may repeat it.

    This is checked once, when a run begins and before it plans anything itself. A run ends at most one life, and a
    fenced run ends too, so competing runs cannot block each other for ever.
    """
    record = look.record
    assert record is not None
    if record.live or parts.ledger.newest(record.target, record.incarnation, since=record.epoch) != record.epoch + 1:
        return False
    plan = parts.ledger.plan(record.target, record.incarnation, record.epoch + 1)
    return plan is not None and not parts.decider.resumable(parts.planned(plan))


def plan_next(parts: Parts[P], record: CommitRecord, limits: Limits) -> NextEpoch[P] | None:
    """What the next epoch would read (a dry run): a plan that exists and would be repeated, otherwise a new decision."""
    epoch = record.epoch + 1
    if parts.ledger.newest(record.target, record.incarnation, since=record.epoch) == epoch:
        plan = parts.ledger.plan(record.target, record.incarnation, epoch)
        if plan is not None and may_repeat(parts, record, plan) and parts.decider.resumable(parts.planned(plan)):
            return NextEpoch(reads=plan.reads, after=parts.planned(plan).after, live=plan.live)
    return decided(parts, record, limits.chunk_rows)


def run(parts: Parts[P], look: TableState, limits: Limits, between: RunHooks) -> RunReport:
    """Work on one table, starting from a checked look, until it has caught up or something stops it.

    "Caught up" refers to the state of the upstreams when the run started, so that a busy topic cannot keep a run from
    ending. If another run is ahead, the run ends with `Stop.FENCED`. Errors of deciding and computing are passed on.
    """
    assert look.record is not None
    work = _Run(parts=parts, limits=limits, between=between, report=RunReport(record=look.record))
    try:
        work.loop(look)
    except FencedError as error:
        work.report.stopped, work.report.detail = Stop.FENCED, error.message
    work.report.seconds = parts.clock.now() - work.started
    return work.report


@dataclass
class _Run(Generic[P]):
    parts: Parts[P]
    limits: Limits
    between: RunHooks
    report: RunReport
    bucket: TokenBucket = field(init=False)
    started: float = field(init=False)
    goal: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.bucket = TokenBucket(clock=self.parts.clock)
        self.started = self.parts.clock.now()
        self.goal = self._goal()

    def loop(self, look: TableState) -> None:
        while (stopped := self._await_turn()) is None:
            record = run_epoch(self.parts, look, budget=self._budget())
            if record is not None:
                self._count(record)
                self.between.after_epoch(record)
            if self.limits.until == "caught_up" and (record is None or self._reached(record)):
                return
            if record is None:
                self.parts.clock.sleep(POLL_SECONDS)
            look = self._look_again()
        self.report.stopped = stopped

    def _await_turn(self) -> Stop | None:
        """Wait for the throttle, or return the reason to stop instead."""
        while True:
            controls = self.between.controls()
            self.bucket.set_rate(slowest(self.limits.rows_per_second, controls.rows_per_second))
            wait = self.bucket.wait_seconds()
            stopped = self._reason(controls, wait)
            if stopped is not None or wait <= 0:
                return stopped
            self.parts.clock.sleep(min(wait, POLL_SECONDS))

    def _reason(self, controls: Controls, wait: float) -> Stop | None:
        if waits := self.between.backpressure():
            self.report.detail = waits
            return Stop.WAITING
        if controls.paused or wait == math.inf:
            return Stop.PAUSED
        limits = self.limits
        if limits.max_rows is not None and self.report.offsets >= limits.max_rows:
            return Stop.MAX_ROWS
        if limits.max_seconds is not None and self.parts.clock.now() - self.started >= limits.max_seconds:
            return Stop.MAX_SECONDS
        return None

    def _budget(self) -> int:
        chunk = self.limits.chunk_rows * catch_up_factor(self.report.record)
        if self.limits.max_rows is not None:
            chunk = min(chunk, self.limits.max_rows - self.report.offsets)
        return max(1, self.bucket.allowance(chunk))

    def _count(self, record: CommitRecord) -> None:
        offsets = record.done - self.report.record.done
        self.bucket.take(offsets)
        self.report.count(record, offsets)

    def _goal(self) -> Mapping[str, int]:
        """What has to be consumed. A view over tables that is not live has caught up when it becomes live. Rows do not show
        that, because changes of keys that are not read yet are never counted."""
        if isinstance(self.report.record.position, SnapshotPosition) and not self.report.record.live:
            return {}
        position = self.parts.position(self.report.record)
        offsets = self.parts.decider.offsets(position)
        return {
            partition: offsets.get(partition, 0) + lag for partition, lag in self.parts.decider.lag(position).items()
        }

    def _reached(self, record: CommitRecord) -> bool:
        if isinstance(record.position, SnapshotPosition) and not record.live:
            return False  # a version that changed no row may still be left, which the number of rows does not show
        if _is_of_before(record, self.started):
            return False  # the epoch was planned by an earlier run
        offsets = self.parts.decider.offsets(self.parts.position(record))
        return all(offsets.get(partition, 0) >= goal for partition, goal in self.goal.items())

    def _look_again(self) -> TableState:
        look = self.parts.output.look()
        if look.life != (self.report.record.incarnation, True):
            raise FencedError(
                f"{self.report.record.target}: fenced: the table was reset or dropped during this run",
                hint="nothing to do: this run stopped without writing to the new life",
            )
        self.report.record = check_look(self.parts, look, redefines=True).record or self.report.record
        return look


def _is_of_before(record: CommitRecord, began: float) -> bool:
    """Whether a query that reads the clock was computed for a time before a run began."""
    instant = record.position.instant if isinstance(record.position, SnapshotPosition) else None
    return instant is not None and instant < micros(began)


def catch_up_factor(record: CommitRecord) -> int:
    """The size of the next epoch as a multiple of its usual rows: above one while a view is behind its lag bound.

    A larger batch costs less per row; nothing else can be done, because producers do not wait.
    """
    position = record.position
    if record.live or not isinstance(position, SnapshotPosition) or position.bound.max_lag is None:
        return 1
    return min(MAX_CATCH_UP_FACTOR, max(1, math.ceil(position.lag / max(1, position.bound.max_lag))))


def slowest(*rates: float | None) -> float | None:
    """The smallest of the given limits; None if there is none."""
    return min((rate for rate in rates if rate is not None and math.isfinite(rate)), default=None)
