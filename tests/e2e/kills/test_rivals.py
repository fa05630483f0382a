"""Two runs of one view, a run that stalls while others continue, and a run that is interrupted."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from backfill_assets.adapters.state.state_store import State
from backfill_assets.app import heartbeat
from backfill_assets.app.lifecycle import drop, maintain, reset
from backfill_assets.app.refresh import Refresh
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.commits import staged_folders
from tests.support.project import Project, forget_at_once
from tests.support.runner import declared

pytestmark = pytest.mark.e2e

LIMIT = 180
EVENTS = [{"id": number, "amount": number / 4} for number in range(12)]
ALL = Counter((each["id"],) for each in EVENTS)


@pytest.fixture
def orders(project: Project) -> Project:
    """A project whose view `large` will take three epochs of four records."""
    topic = project.topic()
    project.produce(topic, EVENTS)
    project.declare(*declared(topic))
    return project


def in_three_epochs(project: Project, on_step: Callable[[str], None] = lambda _step: None) -> Refresh:
    return project.refresh("large", Limits(chunk_rows=4), on_step=on_step)


def test_the_lease_of_a_living_run_makes_a_second_one_stop(orders: Project) -> None:
    seconds: list[Refresh] = []
    first = in_three_epochs(orders, CrashPoint("staged", action=lambda: seconds.append(in_three_epochs(orders))))
    assert [each.report.stopped for each in seconds] == [Stop.LEASE_HELD]
    assert (first.report.stopped, seconds[0].report.epochs) == (Stop.CAUGHT_UP, [])
    assert_exact(orders, epochs=3)


@pytest.mark.full
def test_one_of_two_concurrent_runs_without_leases_commits_each_epoch(
    orders: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(State, "leases", lambda _self: {})
    barrier = threading.Barrier(2, timeout=LIMIT)

    def meet() -> None:
        barrier.wait()

    def run(_number: int) -> Refresh:
        return in_three_epochs(orders, CrashPoint("looked", action=meet))

    orders.refresh("large", Limits(max_rows=1, chunk_rows=1))
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(run, range(2)))
    stops = {each.report.stopped for each in both}
    assert Stop.CAUGHT_UP in stops
    assert stops <= {Stop.CAUGHT_UP, Stop.FENCED}
    committed = sorted(each.epoch for done in both for each in done.report.epochs)
    assert committed == list(range(2, orders.record("large").epoch + 1))
    assert_exact(orders, epochs=orders.record("large").epoch)


def without_lease(project: Project) -> None:
    """As if the stalled run had not renewed its lease for too long."""
    project.workspace().state.free_lease("views/large")


def rival_commits(project: Project) -> None:
    without_lease(project)
    assert in_three_epochs(project).report.stopped is Stop.CAUGHT_UP


def rival_resets(project: Project) -> None:
    reset(project.workspace(), "large")


def rival_drops(project: Project) -> None:
    drop(project.workspace(), "large")


def rival_drops_and_recreates(project: Project) -> None:
    rival_drops(project)
    rival_commits(project)


@pytest.mark.parametrize(
    ("step", "rival"),
    [
        ("planned", rival_resets),
        ("staged", rival_commits),
        pytest.param("staged", rival_resets, marks=pytest.mark.full),
        pytest.param("staged", rival_drops, marks=pytest.mark.full),
        pytest.param("staged", rival_drops_and_recreates, marks=pytest.mark.full),
        pytest.param("verified", rival_commits, marks=pytest.mark.full),
        ("verified", rival_drops_and_recreates),
    ],
)
def test_a_stalled_run_never_commits_over_what_others_did(
    stalled: Project, rival: Callable[[Project], None], step: str
) -> None:
    life = stalled.record("large").incarnation
    done = in_three_epochs(stalled, CrashPoint(step, action=lambda: rival(stalled)))
    assert (done.report.stopped, done.report.epochs) == (Stop.FENCED, [])
    output = stalled.workspace().table(stalled.declared["large"]).output
    if rival is rival_commits:
        assert stalled.record("large").incarnation == life
        assert stalled.rows("large", "id") == ALL
    elif rival is rival_drops_and_recreates:
        assert stalled.rows("large", "id") == ALL
    else:
        assert output.look().exists == (rival is rival_resets)
        assert stalled.rows("large", "id") == Counter()
    in_three_epochs(stalled)
    assert (stalled.record("large").incarnation == life) == (rival is rival_commits)
    maintain(stalled.workspace(), "large")
    assert [each for each in staged_folders(output.location) if each.startswith(life)] == [] or rival in {
        rival_commits,
        rival_resets,
    }
    assert_exact(stalled, epochs=3)


@pytest.fixture(scope="module")
def world(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose view is created again before each stall."""
    project = Project(root=tmp_path_factory.mktemp("stalls"), servers=broker)
    topic = project.topic()
    project.produce(topic, EVENTS)
    project.declare(*declared(topic))
    project.refresh("large", Limits(max_rows=1, chunk_rows=1))
    return project


@pytest.fixture
def stalled(world: Project) -> Project:
    """The view, created again without any committed epoch."""
    reset(world.workspace(), "large")
    return world


def test_maintenance_vacuum_and_expiry_remove_nothing_from_a_stalled_run(
    orders: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "TIDY_EVERY", 1)
    orders.refresh("large", Limits(max_rows=4, chunk_rows=2))
    forget_at_once(orders.workspace().table(orders.declared["large"]).output.location)

    def tidy() -> None:
        assert maintain(orders.workspace(), "large", vacuum_hours=0) == []

    for step in ("planned", "staged", "verified"):
        done = orders.refresh("large", Limits(max_rows=2, chunk_rows=2), on_step=CrashPoint(step, action=tidy))
        assert len(done.report.epochs) == 1, done.report
    in_three_epochs(orders)
    assert_exact(orders, epochs=6, since=6)


@pytest.mark.disk
@pytest.mark.full
def test_an_interrupt_cancels_spark_and_the_same_process_continues(orders: Project) -> None:
    folder = orders.root / "warehouse" / "views" / "slow"
    orders.refresh("slow", Limits(max_rows=1, chunk_rows=1))
    sent = []

    def interrupt_while_spark_writes() -> None:
        wait_until(lambda: any(folder.glob("*-2-*/_temporary/**/*.parquet")))
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt_while_spark_writes)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        orders.refresh("slow")
    killer.join(LIMIT)
    assert orders.record("slow").epoch == 1
    assert orders.rows("slow", "id").total() == 1
    assert "views/slow" not in orders.workspace().state.leases()
    done = orders.refresh("slow")
    assert (done.report.stopped, [each.epoch for each in done.report.epochs]) == (Stop.CAUGHT_UP, [2])
    assert orders.rows("slow", "id") == ALL
    assert len(list(folder.glob("*-2-*"))) == 1, "what the interrupted run left was swept"


def assert_exact(project: Project, *, epochs: int, since: int = 0) -> None:
    """Each event exists once, and so does each epoch that is still in the log, which must have those from `since` on."""
    assert project.rows("large", "id") == ALL
    records = project.workspace().table(project.declared["large"]).output.life(since=0)
    assert [each.epoch for each in records] == list(range(since, epochs + 1))
    for check in ("positions_contiguous", "ledger_matches_table", "rows_conserved"):
        outcome = project.check("large", check)
        assert outcome.passed, (check, outcome)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
