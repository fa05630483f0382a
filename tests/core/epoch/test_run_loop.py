"""How long a run works and why it ends: control, throttle, limits, and what "caught up" means."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Plan, Staged, TableState
from backfill_assets.core.epoch.report import lag_numbers
from backfill_assets.core.epoch.run import RunReport, _is_of_before, catch_up_factor, plan_next, run
from backfill_assets.core.progress.lag import CountBound, TimeBound
from backfill_assets.core.progress.positions import IngestPosition, SnapshotPosition
from backfill_assets.core.progress.reads import size_of
from backfill_assets.errors import ExternalWriteError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.manual_clock import ManualClock
from backfill_assets.testing.simulated_topic import Row, SimulatedTopic
from backfill_assets.testing.simulation import Operator, World
from tests.support.one_source import SOURCE, make, produce, right

VIEW = "views/orders_view"


def test_a_pause_is_seen_between_epochs_and_resuming_goes_on_where_it_stopped() -> None:
    world = make(10)
    operator = Operator()
    operator.after = lambda epochs: setattr(operator, "paused", epochs == 2)
    report = world.refresh(SOURCE, Limits(chunk_rows=3), operator=operator)
    assert (report.stopped, report.offsets, len(report.epochs)) == (Stop.PAUSED, 6, 2)
    operator.paused = False
    assert world.refresh(SOURCE, operator=operator).offsets == 4
    assert right(world)


def test_a_run_that_yields_to_a_view_ends_after_its_epoch_and_names_the_view() -> None:
    world = make(10)
    operator = Operator()
    operator.after = lambda _epochs: setattr(operator, "waits_for", "view 'late' is behind")
    report = world.refresh(SOURCE, Limits(chunk_rows=3), operator=operator)
    assert (report.stopped, report.detail, report.offsets) == (Stop.WAITING, "view 'late' is behind", 3)


def test_a_throttle_lets_its_rows_through_each_second_and_no_more() -> None:
    world = make(100)
    report = world.refresh(SOURCE, operator=Operator(rows_per_second=10))
    assert report.offsets == 100
    assert all(
        later.done - earlier.done <= 10 for earlier, later in zip(report.epochs, report.epochs[1:], strict=False)
    )
    assert world.clock.slept == pytest.approx(10)


def test_a_runs_own_rate_is_capped_by_the_stored_throttle() -> None:
    for own, stored in [(100.0, 10.0), (10.0, 100.0), (10.0, None), (None, 10.0)]:
        world = make(50)
        world.refresh(SOURCE, Limits(rows_per_second=own), operator=Operator(rows_per_second=stored))
        assert world.clock.slept == pytest.approx(5)


def test_a_throttle_that_changes_while_running_holds_from_the_next_epoch_on() -> None:
    world = make(100)
    operator = Operator(rows_per_second=10)
    operator.after = lambda epochs: setattr(operator, "rows_per_second", 40 if epochs >= 2 else 10)
    world.refresh(SOURCE, operator=operator)
    assert world.clock.slept == pytest.approx(2 + 80 / 40)
    assert right(world)


def test_a_throttle_of_zero_stops_the_run_whenever_it_is_set() -> None:
    world = make(100)
    operator = Operator(rows_per_second=10)
    operator.after = lambda epochs: setattr(operator, "rows_per_second", 0 if epochs == 3 else 10)
    report = world.refresh(SOURCE, operator=operator)
    assert (report.stopped, report.offsets) == (Stop.PAUSED, 30)


@pytest.mark.parametrize(("limit", "chunk", "read"), [(7, 3, 7), (7, 100, 7), (1, 100, 1), (0, 5, 0), (99, 5, 20)])
def test_max_rows_is_never_exceeded_and_reached_if_there_are_as_many(limit: int, chunk: int, read: int) -> None:
    world = make(20)
    report = world.refresh(SOURCE, Limits(max_rows=limit, chunk_rows=chunk))
    assert report.offsets == read
    assert report.stopped is (Stop.CAUGHT_UP if limit > 20 else Stop.MAX_ROWS)


def test_max_seconds_ends_the_run_at_the_next_epoch_and_while_it_waits_for_the_throttle() -> None:
    world = make(100)
    operator = Operator()
    operator.after = lambda _epochs: world.clock.advance(4)
    report = world.refresh(SOURCE, Limits(max_seconds=10, chunk_rows=1), operator=operator)
    assert (report.stopped, report.offsets, report.seconds) == (Stop.MAX_SECONDS, 3, 12)
    slow = world.refresh(SOURCE, Limits(max_seconds=10, rows_per_second=0.01))
    assert (slow.stopped, slow.offsets) == (Stop.MAX_SECONDS, 0)
    assert slow.seconds == pytest.approx(10, abs=0.5)


def test_caught_up_is_judged_against_what_there_was_at_the_start_though_the_producer_never_stops() -> None:
    world = make(100)
    operator = Operator(after=lambda _epochs: produce(world, 5))
    report = world.refresh(SOURCE, Limits(chunk_rows=30), operator=operator)
    assert (report.stopped, report.record.live) == (Stop.CAUGHT_UP, True)
    assert report.offsets < 140
    again = world.refresh(SOURCE, Limits(chunk_rows=3), operator=operator)
    assert (again.stopped, again.offsets) == (Stop.CAUGHT_UP, 6), "a live table's run ends even where it is outpaced"


def test_a_live_view_ends_its_run_at_the_bronze_of_its_start() -> None:
    world = make(10)
    world.refresh(SOURCE)
    world.refresh(VIEW)

    def more(_epochs: int = 0) -> None:
        produce(world, 8)
        world.refresh(SOURCE)

    more()
    report = world.refresh(VIEW, Limits(chunk_rows=4), operator=Operator(after=more))
    assert (report.stopped, report.offsets) == (Stop.CAUGHT_UP, 8)


def test_until_forever_waits_for_more_and_ends_only_when_stopped() -> None:
    world = make(4)
    operator = Operator()
    waits = 0

    def wait_later() -> str:
        nonlocal waits
        waits += 1
        if waits == 4:
            produce(world, 2)
        return "others" if waits > 6 else ""

    operator.backpressure = wait_later  # type: ignore[method-assign]
    report = world.refresh(SOURCE, Limits(until="forever"), operator=operator)
    assert (report.stopped, report.offsets) == (Stop.WAITING, 6)
    assert world.clock.sleeps >= 3


def meanwhile(world: World, change: str) -> RunReport:
    operator = Operator(after=lambda epochs: getattr(world, change)(SOURCE) if epochs == 1 else None)
    return world.refresh(SOURCE, Limits(chunk_rows=3), operator=operator)


@pytest.mark.parametrize("change", ["reset", "drop"])
def test_a_run_whose_table_is_reset_or_dropped_is_fenced_and_writes_nothing_into_the_new_life(change: str) -> None:
    world = make(10)
    report = meanwhile(world, change)
    assert report.stopped is Stop.FENCED
    assert "reset or dropped" in report.detail
    assert world.table(SOURCE).rows.total() == 0
    world.refresh(SOURCE)
    assert right(world)


def test_an_external_write_between_two_epochs_of_a_run_is_named_and_stops_it() -> None:
    world = make(10)
    table = world.table(SOURCE)

    def write_once(epochs: int) -> None:
        if epochs == 1:
            table.write_external([Row("orders", 0, 99, "z")])

    with pytest.raises(ExternalWriteError, match=f"version {table.version + 2} of the table changed data"):
        world.refresh(SOURCE, Limits(chunk_rows=3), operator=Operator(after=write_once))
    assert [each.epoch for each in table.commits] == [0, 1]


def test_a_life_that_another_run_began_meanwhile_is_joined_and_not_ended() -> None:
    topic = SimulatedTopic("orders")
    topic.append(0, "xyz")
    world = World(topic)
    table = world.table(SOURCE)

    def rival(_table: object) -> None:
        table.on_commit.clear()
        world.create(SOURCE)

    table.on_commit.append(rival)
    look = world.create(SOURCE)
    assert [each.kind for each in table.commits] == [CommitKind.CREATE]
    assert look.record == table.commits[0]


def test_a_run_continues_from_another_runs_epochs_and_reports_the_newest_record() -> None:
    world = make(10)

    def let_a_rival_run(epochs: int) -> None:
        if epochs == 1:
            world.refresh(SOURCE)

    report = world.refresh(SOURCE, Limits(chunk_rows=3), operator=Operator(after=let_a_rival_run))
    assert (report.stopped, report.offsets) == (Stop.CAUGHT_UP, 3)
    assert report.record == world.table(SOURCE).commits[-1]
    assert right(world)


def test_a_crash_passes_through_the_run_and_redoes_at_most_one_epoch() -> None:
    world = make(10)
    with pytest.raises(Crash):
        world.refresh(SOURCE, Limits(chunk_rows=3), parts=world.parts(SOURCE, on_step=CrashPoint("staged", at=3)))
    assert world.table(SOURCE).commits[-1].done == 6
    report = world.refresh(SOURCE, Limits(chunk_rows=100))
    assert [each.done for each in report.epochs] == [9, 10], "the planned epoch is redone as it stands"


def test_crash_points_and_clocks_refuse_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="expected one of looked, planned"):
        CrashPoint("commited")
    with pytest.raises(ValueError, match="counted from 1"):
        CrashPoint("looked", at=0)
    with pytest.raises(ValueError, match="does not go back"):
        ManualClock().advance(-1)


@pytest.mark.parametrize(
    ("lag_ms", "bound_ms", "live", "times"),
    [(900, 1000, False, 1), (1000, 1000, False, 1), (1001, 1000, False, 2), (90_000, 1000, False, 8), (5, 0, False, 5),
     (90_000, 1000, True, 1), (90_000, None, False, 1)],
)  # fmt: skip
def test_a_view_behind_its_bound_takes_larger_batches_the_further_it_is_behind(
    lag_ms: int, bound_ms: int | None, live: bool, times: int
) -> None:
    position = SnapshotPosition(tables={}, lag_ms=lag_ms, bound=TimeBound(max_lag=bound_ms))
    record = CommitRecord(
        kind=CommitKind.EPOCH, target=VIEW, incarnation="a", epoch=1, attempt="b", plan_hash="c", fingerprint={},
        position=position, live=live, started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip
    assert catch_up_factor(record) == times
    assert bool(position.behind) == (bound_ms is not None and lag_ms > bound_ms)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (TimeBound(max_lag=1000), "it is 2.5 s behind, and its bound is 1 s"),
        (TimeBound(max_lag=2500), ""),
        (CountBound(max_lag=2), "it is 3 commits behind, and its bound is 2"),
        (CountBound(max_lag=3), ""),
        (CountBound(max_lag=None), ""),
    ],
)
def test_how_far_a_view_is_behind_is_said_in_the_unit_of_its_bound(bound: TimeBound | CountBound, said: str) -> None:
    assert SnapshotPosition(tables={}, lag_ms=2500, lag_commits=3, bound=bound).behind == said


@pytest.mark.parametrize(("lags", "converging", "pace"), [((4000, 3000, 2000), True, 1.0), ((2000,) * 6, False, 0.0)])
def test_a_lag_in_time_is_reported_in_seconds(lags: tuple[int, ...], converging: bool, pace: float) -> None:
    records = [
        CommitRecord(
            kind=CommitKind.EPOCH, target=VIEW, incarnation="a", epoch=at, attempt="b", plan_hash="c", fingerprint={},
            position=SnapshotPosition(tables={}, lag_ms=lag, bound=TimeBound(max_lag=2500)), live=False,
            started_at=0, finished_at=at, created_at=0,
        )
        for at, lag in enumerate(lags, 1)
    ]  # fmt: skip
    assert lag_numbers(records[::-1]) == {
        "lag_seconds": 2.0,
        "lag_bound_seconds": 2.5,
        "converging": converging,
        "lag_shrinks_by_seconds_per_epoch": pace,
    }


@dataclass
class Resting:
    """A decider with nothing to read; records the budgets that it was given."""

    fingerprint: dict[str, str]
    target: str = VIEW
    kind: type[SnapshotPosition] = SnapshotPosition
    budgets: list[int] = field(default_factory=list)

    def next(self, _position: object, *, budget: int, **_given: object) -> None:
        self.budgets.append(budget)


def test_a_run_gives_a_view_behind_its_bound_more_rows_though_never_more_than_it_may_read() -> None:
    world = make(1)
    decider: Any = Resting(world.fingerprint)
    parts = replace(world.parts(VIEW), decider=decider)
    record = CommitRecord(
        kind=CommitKind.CREATE, target=VIEW, incarnation="a", epoch=0, attempt="b", plan_hash="",
        fingerprint=world.fingerprint, position=SnapshotPosition(tables={}, lag_ms=4000, bound=TimeBound(max_lag=1000)),
        live=False, started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip
    for limits in (Limits(chunk_rows=10), Limits(chunk_rows=10, max_rows=25)):
        run(parts, TableState(version=0, record=record), limits, Operator())
    assert decider.budgets == [40, 25]


def test_a_run_whose_inputs_a_rival_swept_after_committing_the_epoch_is_fenced_and_has_not_failed() -> None:
    world = make(4)
    mine = world.parts(SOURCE)

    class Swept:
        def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002
            world.refresh(SOURCE)
            raise FileNotFoundError("the segment was drained")

    report = world.refresh(SOURCE, parts=replace(mine, compute=Swept()))
    assert (report.stopped, report.epochs) == (Stop.FENCED, [])
    assert right(world)


def test_a_dry_run_shows_the_plan_that_a_killed_run_left_and_that_will_be_redone() -> None:
    world = make(4)
    crash = CrashPoint("planned")
    with pytest.raises(Crash):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=crash))
    produce(world, 3)
    record = world.create(SOURCE).record
    assert record is not None
    step = plan_next(world.parts(SOURCE), record, Limits())
    assert step is not None
    assert sum(size_of(read) for read in step.reads) == 4, "not the 7 that there are now"
    report = world.refresh(SOURCE)
    assert report.epochs[0].position == step.after
    assert right(world)


def test_a_dry_run_passes_over_a_plan_that_began_elsewhere_as_a_run_does() -> None:
    world = make(4)
    with pytest.raises(Crash):
        world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("planned")))
    record = world.create(SOURCE).record
    assert record is not None
    assert isinstance(record.position, IngestPosition)
    plans = world.ledger.plans[SOURCE, record.incarnation]
    plans[0] = plans[0].model_copy(update={"before": record.position.model_copy(update={"next": {0: 2}})})
    produce(world, 3)
    step = plan_next(world.parts(SOURCE), record, Limits())
    assert step is not None
    assert sum(size_of(read) for read in step.reads) == 7
    assert world.refresh(SOURCE).epochs[0].position == step.after


@pytest.mark.parametrize(
    ("instant", "before"),
    [(None, False), (4_999_999, True), (5_000_000, False), (5_000_001, False)],
)
def test_an_epoch_for_a_time_before_the_run_has_another_one_follow(instant: int | None, before: bool) -> None:
    record: Any = SimpleNamespace(position=SnapshotPosition(tables={}, instant=instant))
    assert _is_of_before(record, 5.0) is before
    assert not _is_of_before(SimpleNamespace(position=None), 5.0)  # type: ignore[arg-type]
