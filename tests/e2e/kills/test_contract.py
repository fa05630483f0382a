"""The contract that all strategies keep, each with its kind of upstream: a Kafka topic, or a Delta table that changes."""

import signal
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from backfill_assets.app.controls import set_controls
from backfill_assets.app.lifecycle import reset
from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitRecord, Plan
from backfill_assets.core.epoch.report import progress_of
from backfill_assets.core.epoch.run import RunReport
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import DefinitionChangedError
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.commits import losers, ours
from tests.support.contract import (
    CHANGES,
    MAX_EPOCHS,
    NOTHING,
    ONE,
    STRATEGIES,
    TableWorld,
    World,
    world_of,
)
from tests.support.processes import Processes
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

OVER_TABLES = tuple(each for each in STRATEGIES if each != "source")
IN_CHUNKS = Limits(chunk_rows=10)
KINDS = len(CHANGES)
IN_HISTORY: tuple[Strategy, ...] = ("rearranged",)
IN_LOG: tuple[Strategy, ...] = ("source", "arrangement", "rearranged") if FULL else ("rearranged",)
"""Strategies that are killed at all steps here; for the others `test_kill*` and `test_snapshot_once` do so, and two
steps suffice."""
CHANGES_SEEN = 2 * KINDS if FULL else KINDS


def strategies(*in_gate: Strategy) -> pytest.MarkDecorator:
    """All strategies: those of the gate, and in the full proof the others too."""
    chosen = [each if each in in_gate else pytest.param(each, marks=pytest.mark.full) for each in STRATEGIES]
    return pytest.mark.parametrize("strategy", chosen)


@pytest.fixture
def world(strategy: Strategy, tmp_path: Path, broker: str) -> World:
    return world_of(strategy, tmp_path, broker)


@strategies("arrangement")
def test_the_view_is_its_query_after_every_epoch_and_progress_never_goes_back(world: World) -> None:
    """Whatever happens to the upstream while a run is active: two changes after each epoch, in history and after it."""
    seen: list[CommitRecord] = []
    left = iter(range(CHANGES_SEEN))

    def look_and_change(step: str) -> None:
        if step == "committed":
            world.assert_exact()
            seen.append(world.record)
            for number in islice(left, 2):
                world.change(number)

    for _ in range(MAX_EPOCHS):
        if not world.refresh(IN_CHUNKS, look_and_change).report.epochs:
            break
        world.follow()
    assert next(left, None) is None, "all that was to happen has happened"
    assert [each.epoch for each in seen] == list(range(1, len(seen) + 1))
    told = [progress_of([each], None) for each in seen]
    for numbers in ([each.rows_done for each in told], [each.backfill_percent for each in told]):
        assert numbers == sorted(numbers)
    assert (told[-1].phase, told[-1].backfill_percent) == ("live", 100.0)
    assert {each.rows_total for each in told} == {40}, "what history holds is counted once"
    world.finish()


@strategies("rearranged")
def test_an_epoch_that_is_killed_at_step_after_step_is_committed_once(world: World, processes: Processes) -> None:
    """Each process continues what the one before left, while the upstream changes: first in history, then in the change
    log."""
    # All strategies share the steps of the protocol: where not all are tried, each strategy has a different one.
    few = (STEPS[1 + STRATEGIES.index(world.strategy) % 2], "committed")
    world.begin()
    kill(world, processes, STEPS if world.strategy in IN_HISTORY else few, first=0)
    world.leave_history()
    world.change(21)
    kill(world, processes, STEPS if world.strategy in IN_LOG else few, first=22)
    assert not world.in_history(world.record)
    world.finish()
    life = world.record.incarnation
    of_life = [each["epoch"] for each in ours(world.project, "large") if each["incarnation"] == life]
    assert of_life == list(range(world.record.epoch + 1)), "each epoch once"
    assert losers(world.project, "large") == [], "what the dead had staged is gone"


def kill(world: World, processes: Processes, steps: Sequence[str], *, first: int) -> None:
    begun = world.record
    again = world.strategy == "snapshot_once" and world.in_history(begun)
    plans: list[Plan] = []
    lives = [begun.incarnation]
    for number, step in enumerate(steps, start=first):
        world.change(number)
        at = 2 if again and step == "verified" else 1  # a new life is verified too
        processes.kill(world.order, world.job(), step, at=at)
        lives.append(world.record.incarnation)
        assert world.record.epoch == begun.epoch + (step == "committed")
        world.assert_exact()
        ledger = world.project.workspace().state.ledger()
        plan = ledger.plan(begun.target, lives[-1], begun.epoch + 1)
        plans += [plan] if plan is not None else []
    assert len(plans) == len([step for step in steps if step != "looked"])
    assert plans[-1].hash == world.record.plan_hash
    assert len(set(lives)) == (len(plans) if again else 1), (
        "what cannot be resumed starts over, once for each run that had a plan"
    )
    assert again or len({plan.hash for plan in plans}) == 1, "one plan, which all redo as it stands"


@pytest.mark.full
@strategies("source")
def test_what_an_operator_set_holds_between_epochs_and_in_other_processes(world: World, processes: Processes) -> None:
    def set_(**given: object) -> None:
        set_controls(world.project.workspace(), "large", by="test", **given)  # type: ignore[arg-type]

    def move_and_pause() -> None:
        world.change(next(numbers))  # otherwise there might be nothing left to do after the epoch
        set_(paused=True)

    numbers = iter(range(1, 100, 2))
    world.refresh(NOTHING)
    done = world.refresh(IN_CHUNKS, CrashPoint("looked", action=move_and_pause)).report
    assert (done.stopped, len(done.epochs)) == (Stop.PAUSED, 1)
    assert processes.run(world.order, world.job(), world.job()) == (0, [{"stopped": "paused", "epochs": []}] * 2)
    set_(paused=False, throttle=0)
    assert processes.run(world.order, world.job()) == (0, [{"stopped": "paused", "epochs": []}])
    world.assert_exact()

    set_(throttle=15)
    before, epochs = world.record.done, 0
    for _ in range(2):
        for _ in range(2):
            world.change(next(numbers))
        report = world.refresh(Limits(chunk_rows=10, rows_per_second=1000)).report
        *all_but_last, _ = (each.done - before for each in report.epochs)
        assert all(rows <= 15 * report.seconds for rows in all_but_last), "the stored throttle caps that of the run"
        before, epochs = report.record.done, epochs + len(report.epochs)
    assert epochs > 2
    assert world.project.workspace().state.controls("views/large").rows_per_second == 15
    set_(throttle="off")
    world.finish("exactly_once")


@strategies("snapshot")
def test_a_view_over_an_empty_upstream_is_live_at_once_and_continues_from_the_log(
    strategy: Strategy, tmp_path: Path, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(strategy, tmp_path, broker, files=0)
    record = world.refresh().report.record
    assert (record.live, record.total, world.rows) == (True, 0, Counter())
    for number in (0, 1):
        world.change(number)
    world.follow()
    race(world, "planned", monkeypatch)
    world.finish("exactly_once", "positions_contiguous")


@strategies("source")
def test_one_of_two_concurrent_runs_commits_each_epoch_and_the_other_is_fenced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin()
    world.change(1)
    race(world, "verified", monkeypatch)
    world.finish()


def race(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that ignore each other's lease: one overtakes the other at a step, and continues to the end."""
    with monkeypatch.context() as patched:
        patched.setattr("backfill_assets.adapters.state.state_store.State.lease", lambda _self, _target: None)
        others: list[RunReport] = []
        overtake = CrashPoint(step, action=lambda: others.append(world.refresh(IN_CHUNKS).report))
        slow = world.refresh(IN_CHUNKS, overtake).report
    (other,) = others
    assert (slow.stopped, slow.epochs) == (Stop.FENCED, [])
    assert other.stopped is Stop.CAUGHT_UP
    assert other.epochs
    world.assert_exact()
    life = world.record.incarnation
    committed = [each["epoch"] for each in ours(world.project, "large") if each["incarnation"] == life]
    assert committed == list(range(world.record.epoch + 1)), "each epoch once"


@pytest.mark.full
def test_all_strategies_come_to_the_same_rows_through_the_same_history_of_changes_and_kills(
    tmp_path: Path, processes: Processes
) -> None:
    """Four views of one table; when the next change comes, and which run is killed where, is random."""
    seed = 20
    random, world = Random(seed), TableWorld(tmp_path, "snapshot")
    numbers, killed = iter(range(100)), 0
    views = {name: f"by_{name}" for name in OVER_TABLES}
    groups = "SELECT v % 4 AS rest, count(*) AS n, sum(v) AS v, max(id) AS last FROM base GROUP BY v % 4"
    for name, view in views.items():
        world.lake.view(view, groups, world.lake.table("base"), strategy=name)
        world.project.refresh(view, NOTHING)
    for _ in range(3):
        for name, view in views.items():
            if random.random() < 0.4:
                job = {"refresh": view, "query": groups, "strategy": name, "die": [random.choice(STEPS), 1]}
                code, _ = processes.run(world.order, world.job(**job))
                assert code in {0, -signal.SIGKILL}, (seed, view)  # a run that finds nothing to do reaches no step
                killed += code != 0
            else:
                world.project.refresh(view, ONE)
            if random.random() < 0.5:
                world.change(next(numbers))
    assert killed > 3, f"seed {seed} kills too little"
    for view in views.values():
        assert world.project.refresh(view).report.record.live, (seed, view)
        assert world.project.check(view).passed, (seed, view)
    wanted = world.lake.expected(views["snapshot"], groups, "base")
    assert wanted
    columns = ("rest", "n", "v", "last")
    assert [world.lake.found(view, columns) for view in views.values()] == [wanted] * len(views), seed


@pytest.mark.full
def test_a_view_abandoned_mid_way_is_reset_to_another_strategy_and_ends_exact(tmp_path: Path) -> None:
    world = TableWorld(tmp_path, "rearranged")
    world.begin()
    others: tuple[Strategy, ...] = ("arrangement", "snapshot_once", "snapshot", "rearranged")
    for number, strategy in enumerate(others, start=1):
        world.change(number * KINDS)
        world.declare(strategy)
        before = world.record
        with pytest.raises(DefinitionChangedError, match=f"now declared with '{strategy}'"):
            world.refresh()
        assert world.record == before, "nothing was written"
        reset(world.project.workspace(), "large")
        world.begin()
        assert isinstance(world.record.position, SnapshotPosition)
        assert world.record.position.strategy == strategy
        assert world.record.incarnation != before.incarnation
        assert world.project.check("large").passed
    world.finish()
    life = world.record.incarnation
    for number, strategy in enumerate((others[2], others[0], others[1]), start=40):
        world.declare(strategy)
        world.change(number)
        world.finish("exactly_once", "positions_contiguous")
    assert world.record.incarnation == life, "once live, all strategies follow the log alike"
