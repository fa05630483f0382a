"""What an epoch's commit records: where parts of the spool are, and how many rows there are; and what it requests."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from backfill_assets.core.epoch.limits import Stop
from backfill_assets.core.epoch.lives import restate
from backfill_assets.core.epoch.ports import NextEpoch, PlannedEpoch
from backfill_assets.core.epoch.protocol import run_epoch
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan, Staged, TableState, changed_parts
from backfill_assets.core.progress.positions import Segment, SnapshotPosition, Spool, TablePosition
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.errors import ExternalWriteError, FencedError
from backfill_assets.testing.simulated_table import SimulatedOutput
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World

SOURCE, VIEW = "sources/orders", "views/orders_view"
CHANGES = ChangesRead(source="a", table_id="a", first=1, last=1, rows=1)


def at(*segments: int) -> SnapshotPosition:
    """A position in a table with these captured versions."""
    held = tuple(Segment(first=each, last=each, rows=1, bytes=1, commit_ms=each) for each in segments)
    table = TablePosition(
        table_id="a", pinned=0, version=1, commit_ms=0, buckets={}, spool=Spool(captured=9, commit_ms=9, segments=held)
    )
    return SnapshotPosition(strategy="rearranged", tables={"a": table})


@dataclass
class Decided:
    """A decider with one step."""

    step: NextEpoch[Any]
    fingerprint: dict[str, str]
    target: str = VIEW
    kind: type[SnapshotPosition] = SnapshotPosition

    def next(self, _position: object, **_given: object) -> NextEpoch[Any]:
        return self.step

    def confirm(self, plan: PlannedEpoch[SnapshotPosition]) -> None:
        pass

    def columns(self) -> dict[str, Any]:
        return {}

    def done(self, _position: object) -> int:
        return 7


@dataclass
class Made:
    """Spark's work, already done; records the plans for which it was requested."""

    staged: Staged
    plans: list[Plan]

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
        self.plans.append(plan)
        return self.staged


def epoch(
    step: NextEpoch[Any], staged: Staged, *, rows: int = 0, spooled: dict[str, str] | None = None
) -> tuple[Any, Made]:
    """The commit of one epoch on a table with this many rows, and what was requested of Spark."""
    world, made = World(), Made(staged, [])
    table = world.table(VIEW)
    table.empty()
    decider: Any = Decided(step, world.fingerprint)
    last = CommitRecord(
        kind=CommitKind.CREATE, target=VIEW, incarnation="0123456789ab", epoch=0, attempt="b", plan_hash="",
        fingerprint=world.fingerprint, position=at(), live=False, rows_total=rows, spooled=spooled or {},
        started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip
    table.commit(last, Staged(), on=0)
    parts = replace(world.parts("sources/none", output=SimulatedOutput(table)), decider=decider, compute=made)
    return run_epoch(parts, parts.output.look(), budget=9), made


def test_parts_of_the_spool_stay_in_the_folder_of_the_attempt_that_captured_them() -> None:
    record, made = epoch(NextEpoch(reads=(CHANGES,), after=at(3, 5), live=False), Staged(), spooled={"a/3": "earlier"})
    assert made.plans[0].spooled == {"a/3": "earlier"}
    assert record.spooled == {"a/3": "earlier", "a/5": f"{record.incarnation}-1-{record.attempt}"}


def test_rows_that_replace_all_others_are_all_that_the_table_holds() -> None:
    record, _ = epoch(NextEpoch(reads=(CHANGES,), after=at(), live=True), Staged(replaces=True, rows_written=5), rows=3)
    assert (record.rows_deleted, record.rows_total, record.done) == (3, 5, 7)


def test_an_epoch_that_reads_nothing_does_not_use_spark() -> None:
    record, made = epoch(NextEpoch(reads=(), after=at(), live=True), Staged(rows_written=99), rows=3)
    assert (made.plans, record.rows_total, record.live) == ([], 3, True)


def made_world() -> World:
    topic = SimulatedTopic("orders")
    topic.append(0, "abcd")
    return World(topic)


def test_a_run_whose_table_was_reset_while_it_computed_is_fenced_and_has_not_failed() -> None:
    world = made_world()

    class Swept:
        def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
            world.reset(SOURCE)
            raise FileNotFoundError("what was staged is gone")

    report = world.refresh(SOURCE, parts=replace(world.parts(SOURCE), compute=Swept()))
    assert (report.stopped, "reset or dropped" in report.detail) == (Stop.FENCED, True)


def test_a_run_whose_staged_files_a_rival_swept_after_it_committed_the_epoch_is_fenced() -> None:
    world = made_world()

    def rival(step: str) -> None:
        if step == "staged":
            world.refresh(SOURCE)
            world.table(SOURCE).files.clear()

    parts = world.parts(SOURCE, on_step=rival)
    with pytest.raises(FencedError, match="committed by another run of the same plan"):
        run_epoch(parts, world.create(SOURCE, parts), budget=9)


def test_positions_are_restated_although_maintenance_comes_in_between() -> None:
    world = made_world()
    world.refresh(SOURCE)
    maintained: list[str] = []

    def maintain_once(step: str) -> None:
        if step == "verified" and not maintained:
            maintained.append(step)
            world.table(SOURCE).maintain()

    parts = world.parts(SOURCE, on_step=maintain_once)
    look: TableState = parts.output.look()
    restate(parts, look)
    assert maintained
    assert world.table(SOURCE).commits[-1].kind is CommitKind.RESTATE


def test_an_external_write_right_after_the_commit_stops_the_run_that_made_it() -> None:
    world = made_world()
    table = world.table(SOURCE)

    class Followed(SimulatedOutput):
        def commit(self, record: CommitRecord, staged: Staged) -> None:
            super().commit(record, staged)
            if record.kind is CommitKind.EPOCH:
                table.write_external([])

    parts = world.parts(SOURCE, output=Followed(table))
    look = world.create(SOURCE, parts)
    with pytest.raises(ExternalWriteError, match="changed data at the same time as epoch 1"):
        run_epoch(parts, look, budget=9)
    assert [each.epoch for each in table.commits] == [0, 1]


def test_parts_that_come_to_a_declaration_or_go_from_it_have_changed() -> None:
    assert changed_parts({"query": "a"}, {"query": "a", "key": "b"}) == ["key"]
    assert changed_parts({"query": "a", "key": "b"}, {"query": "a"}) == ["key"]
    assert changed_parts({"query": "a", "key": "b"}, {"query": "c", "key": "b"}) == ["query"]
