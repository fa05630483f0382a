"""A view whose query reads the clock: each refresh computes it once for a time of its own, which a redone epoch keeps."""

from dataclasses import dataclass, field, replace

import pytest

from backfill_assets.core.audit import LedgerEntry, contiguous, ledger_agrees
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitRecord, Plan, Staged
from backfill_assets.core.epoch.run import RunReport, create_if_missing, plan_next, run
from backfill_assets.core.epoch.skips import KeySkip, Skip
from backfill_assets.core.progress.positions import SnapshotPosition, micros
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.core.strategies.whole_history import WholeHistory
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.simulated_table import SimulatedOutput
from backfill_assets.testing.simulation import Operator, World
from tests.support.tables_world import FINGERPRINT, Lake, Table

TARGET = "views/timed"


@dataclass
class Computing:
    """`ports.Compute` that records for which time it computed which epoch."""

    done: list[tuple[int, int]] = field(default_factory=list)

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
        self.done.append((plan.epoch, instant_of(plan.after)))
        return Staged(rows_read=plan.offsets)


def instant_of(position: object) -> int:
    assert isinstance(position, SnapshotPosition)
    assert position.instant is not None
    return position.instant


@dataclass
class Timed:
    """A view over table `base`, of a world whose clock moves by hand: a minute for each refresh."""

    lake: Lake = field(default_factory=lambda: Lake({"base": Table((3,))}))
    world: World = field(default_factory=World)
    compute: Computing = field(default_factory=Computing)
    skips: set[Skip] = field(default_factory=set)
    crash: CrashPoint | None = None

    def __post_init__(self) -> None:
        self.table = self.world.table(TARGET)

    @property
    def seconds(self) -> float:
        return self.world.clock.now()

    def parts(self) -> Parts[SnapshotPosition]:
        """The parts of a run that begins now."""
        others = self.world.parts("sources/none")
        decider = TablesDecider(
            view="timed",
            upstreams=(TableUpstream(name="base", keyed=True),),
            fingerprint=FINGERPRINT,
            tables=self.lake,
            histories={"snapshot_once": WholeHistory(tables=self.lake)},
            choose=lambda: "snapshot_once",
            whole=True,
            skips=lambda: tuple(self.skips),
            now=lambda: micros(self.seconds),
            since=micros(self.seconds),
        )
        return Parts(
            decider=decider,
            output=SimulatedOutput(self.table),
            ledger=others.ledger,
            compute=self.compute,
            clock=self.world.clock,
            new_id=others.new_id,
            on_step=self._step,
        )

    def _step(self, step: str) -> None:
        self.world.clock.advance(1)
        if self.crash is not None:
            self.crash(step)

    def refresh(self, limits: Limits = Limits()) -> RunReport:  # noqa: B008
        self.world.clock.advance(60)
        parts = self.parts()
        return run(parts, create_if_missing(parts, self.table), limits, Operator())

    def plan(self, epoch: int) -> Plan | None:
        """The plan of an epoch."""
        return self.parts().ledger.plan(TARGET, self.table.commits[0].incarnation, epoch)

    def instants(self) -> list[int]:
        """The times of all epochs."""
        return [instant_of(each.position) for each in self.table.commits if each.epoch]


def waits(view: Timed) -> bool:
    record = view.table.commits[-1]
    parts = view.parts()
    return parts.decider.waits(parts.position(record), live=record.live)


def test_each_refresh_computes_the_view_once_for_a_time_since_it_began() -> None:
    view = Timed()
    for number in range(1, 5):
        began = view.seconds + 60
        report = view.refresh()
        assert (report.stopped, report.record.live, report.record.epoch) == (Stop.CAUGHT_UP, True, number)
        assert micros(began) <= view.instants()[-1] <= micros(view.seconds)
        assert not waits(view), "no sensor starts a run because time passes"
    assert view.instants() == sorted(set(view.instants()))
    assert view.compute.done == list(enumerate(view.instants(), 1))


def test_new_data_is_computed_for_the_same_new_time_and_not_once_more() -> None:
    view = Timed()
    view.refresh()
    view.lake.tables["base"].commit(2)
    assert waits(view)
    assert len(view.refresh().epochs) == 1
    view.lake.tables["base"].commit(0)
    assert not waits(view)
    assert len(view.refresh().epochs) == 1
    assert position_of(view.table.commits[-1]).tables["base"].version == 2


def position_of(record: CommitRecord) -> SnapshotPosition:
    assert isinstance(record.position, SnapshotPosition)
    return record.position


def test_rows_that_are_left_out_are_computed_with_the_same_epoch() -> None:
    view = Timed()
    view.refresh()
    view.skips.add(KeySkip(source="base", key=(("id", "1"),)))
    assert waits(view)
    assert len(view.refresh().epochs) == 1


def test_a_query_that_reads_no_clock_is_not_computed_again() -> None:
    view = Timed()
    view.refresh()
    record = view.table.commits[-1]
    view.world.clock.advance(60)
    parts = view.parts()
    assert plan_next(parts, record, Limits()) is not None
    assert isinstance(parts.decider, TablesDecider)
    assert plan_next(replace(parts, decider=replace(parts.decider, now=None)), record, Limits()) is None


@pytest.mark.parametrize("step", STEPS)
def test_a_redone_epoch_keeps_the_time_of_its_plan_and_the_refresh_then_computes_its_own(step: str) -> None:
    view = Timed()
    view.refresh()
    view.crash = CrashPoint(step)
    with pytest.raises(Crash):
        view.refresh()
    view.crash = None
    plan = view.plan(2)
    began = view.seconds + 60
    view.refresh()
    assert view.instants()[-1] >= micros(began)
    assert (plan is None, len(view.instants())) == ((True, 2) if step == "looked" else (False, 3))
    if plan is not None:
        assert view.instants()[1] == instant_of(plan.after) < micros(began)
        assert {instant for epoch, instant in view.compute.done if epoch == 2} <= {view.instants()[1]}


def test_what_the_audit_says_of_epochs_that_time_alone_caused() -> None:
    view = Timed()
    for _ in range(3):
        view.refresh()
    view.lake.tables["base"].commit(2)
    view.refresh()
    commits = view.table.commits
    plans = [plan for each in commits if (plan := view.plan(each.epoch)) is not None]
    entries = [LedgerEntry(epoch=each.epoch, plan_hash=each.hash, plan=each, found_hash=each.hash) for each in plans]
    assert contiguous(commits, entries) == []
    assert ledger_agrees(commits, entries, 4) == []
    moved = commits[-1].model_copy(update={"position": position_of(commits[-1]).model_copy(update={"instant": 7})})
    assert ledger_agrees([*commits[:-1], moved], entries, 4) == [
        "epoch 4: the position in the ledger's plan is not the one in the table"
    ]


def test_positions_without_a_time_are_stored_as_before() -> None:
    position = position_of(Timed().refresh().record)
    stored = position.model_dump(mode="json")
    assert SnapshotPosition.model_validate(stored) == position
    timeless = position.model_copy(update={"instant": None})
    assert timeless.model_dump(mode="json") == {name: each for name, each in stored.items() if name != "instant"}
    assert SnapshotPosition.model_validate_json(timeless.model_dump_json()) == timeless
