"""Views over views: each is exact at the versions in its position, and follows the lives of the views that it reads."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.state import ledger
from backfill_assets.app import dependents, heartbeat
from backfill_assets.app.controls import set_controls
from backfill_assets.app.lifecycle import drop, maintain, reset
from backfill_assets.app.status import status
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import BackfillError, StillNeededError, UpstreamChangedError, UpstreamNotLiveError
from tests.support.lake import Lake
from tests.support.project import Project, forget_at_once

pytestmark = pytest.mark.e2e

FIRST = "SELECT id, v * 2 AS v, name FROM base WHERE v < 90"
SECOND = "SELECT v + 1 AS w, name FROM first WHERE v <> 8"
THIRD = "SELECT w, upper(name) AS name FROM second"
LEFT = "SELECT id, v FROM first WHERE v < 50"
RIGHT = "SELECT id, v + 100 AS v FROM first WHERE v >= 50"
DIAMOND = "SELECT id, v FROM left UNION ALL SELECT id, v FROM right"
CHANGES = ("UPDATE {t} SET v = v + 30 WHERE id % 3 = 0", "DELETE FROM {t} WHERE id % 7 = 0")
ONE = Limits(chunk_rows=10, max_rows=10)
ONE_ROW = Limits(chunk_rows=1, max_rows=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table, a chain of three views over it, and a diamond on the first of them."""
    made = Lake(tmp_path)
    for part in range(4):
        made.append("base", ({"id": at, "v": at, "name": f"n{at}"} for at in range(part * 10, part * 10 + 10)))
    first = made.view("first", FIRST, made.table("base"))
    second = made.view("second", SECOND, first)
    made.view("third", THIRD, second)
    left, right = made.view("left", LEFT, first), made.view("right", RIGHT, first)
    made.view("diamond", DIAMOND, left, right)
    return made


def refresh(lake: Lake, *names: str) -> None:
    for name in names:
        assert lake.project.refresh(name).report.record.live, name


def exact(lake: Lake, view: str, query: str, columns: list[str], *parents: str) -> None:
    assert lake.found(view, columns) == lake.expected(view, query, *parents), view


def fails(lake: Lake, name: str, error: type[BackfillError]) -> BackfillError:
    with pytest.raises(error) as found:
        lake.project.refresh(name)
    return found.value


def test_a_child_waits_for_its_parent_and_writes_nothing_before(lake: Lake) -> None:
    fails(lake, "second", UpstreamNotLiveError)
    lake.project.refresh("first", ONE)
    fails(lake, "second", UpstreamNotLiveError)
    shown = status(lake.project.workspace(), "second")
    assert (shown.state, "waits for view 'first'" in shown.problem) == ("waiting", True)
    workspace = lake.project.workspace()
    workspace.state.put_lease("views/second", "another")
    assert status(workspace, "second").state == "starting", "the run at work tells what it waits for"
    workspace.state.free_lease("views/second")
    assert not Path(lake.location("second")).exists(), "nothing was written"


@pytest.mark.full
def test_a_chain_is_exact_at_its_recorded_versions(lake: Lake) -> None:
    refresh(lake, "first", "second", "third")
    lake.append("base", [{"id": 100, "v": 45, "name": "new"}])
    lake.sql("base", *CHANGES)
    refresh(lake, "first", "second")
    exact(lake, "third", THIRD, ["w", "name"], "second")
    lake.sql("base", "UPDATE {t} SET v = v - 25 WHERE id % 2 = 0")
    refresh(lake, "first", "second", "third")
    exact(lake, "first", FIRST, ["id", "v", "name"], "base")
    exact(lake, "second", SECOND, ["w", "name"], "first")
    exact(lake, "third", THIRD, ["w", "name"], "second")
    outcome = lake.project.check("third", "exactly_once")
    assert outcome.passed, outcome.summary


@pytest.mark.full
def test_a_diamond_is_exact_at_its_recorded_versions(lake: Lake) -> None:
    refresh(lake, "first", "left")
    lake.sql("base", *CHANGES)
    refresh(lake, "first", "right", "diamond")
    exact(lake, "diamond", DIAMOND, ["id", "v"], "left", "right")
    lake.sql("base", "UPDATE {t} SET v = v - 25 WHERE id % 2 = 0")
    refresh(lake, "first", "left", "right", "diamond")
    exact(lake, "diamond", DIAMOND, ["id", "v"], "left", "right")
    outcome = lake.project.check("diamond", "exactly_once")
    assert outcome.passed, outcome.summary
    assert lake.project.refresh("diamond").report.epochs == []


def test_a_reset_or_dropped_parent_is_detected_and_the_child_starts_over(lake: Lake) -> None:
    refresh(lake, "first", "left")
    before = lake.project.record("left")
    reset(lake.project.workspace(), "first")
    lake.project.refresh("first", ONE)
    fails(lake, "left", UpstreamNotLiveError)
    refresh(lake, "first")
    assert "reset" in fails(lake, "left", UpstreamChangedError).message
    assert lake.project.record("left") == before
    drop(lake.project.workspace(), "left")
    lake.sql("base", "DELETE FROM {t} WHERE id % 2 = 0")
    refresh(lake, "first", "left")
    again = lake.project.record("left")
    assert isinstance(again.position, SnapshotPosition)
    table = again.position.tables["first"]
    assert (again.incarnation != before.incarnation, table.pinned, table.changes) == (True, table.version, 0)
    exact(lake, "left", LEFT, ["id", "v"], "first")
    drop(lake.project.workspace(), "first")
    assert "dropped" in fails(lake, "left", UpstreamChangedError).message
    assert lake.project.record("left") == again


def test_a_view_over_a_missing_table_does_not_claim_to_wait(lake: Lake) -> None:
    lake.view("lost", "SELECT id FROM nowhere", lake.table("nowhere"))
    shown = status(lake.project.workspace(), "lost")
    assert (shown.state, shown.problem) == ("not created", "")


def test_a_view_that_is_kept_from_its_parent_says_why_and_does_not_claim_to_wait(lake: Lake) -> None:
    refresh(lake, "first")
    parent = DeltaTable(lake.location("first"))
    parent.create_checkpoint()
    for entry in Path(lake.location("first"), "_delta_log").glob("*.json"):
        entry.unlink()
    shown = status(lake.project.workspace(), "second")
    assert (shown.state, "log was cleaned up" in shown.problem) == ("not created", True)


def test_a_vacuum_that_would_take_what_a_view_has_still_to_read_is_refused(lake: Lake) -> None:
    refresh(lake, "first", "left")
    lake.sql("base", "UPDATE {t} SET v = v + 2 WHERE id < 20")
    refresh(lake, "first")
    with pytest.raises(StillNeededError, match="view 'left' has read it up to version"):
        maintain(lake.project.workspace(), "first", vacuum_hours=0)
    maintain(lake.project.workspace(), "first", vacuum_hours=1)
    refresh(lake, "left")
    lake.sql("base", "UPDATE {t} SET v = v + 2 WHERE id < 20")
    maintain(lake.project.workspace(), "first", vacuum_hours=0)
    refresh(lake, "first", "left")
    exact(lake, "left", LEFT, ["id", "v"], "first")


def test_a_log_does_not_expire_under_a_view_that_has_still_to_read_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there are rows to read, or only maintenance to pass over, a month after the last refresh."""
    refresh(lake, "first", "left")
    workspace, log = lake.project.workspace(), Path(lake.location("first"), "_delta_log")
    DeltaTable(lake.location("first")).alter.set_table_properties({"delta.checkpointInterval": "1"})
    behind = log / f"{DeltaTable(lake.location('first')).version():020d}.json"
    entries = set(log.glob("0*.json"))
    touch(log, 0)
    dependents.expire_log(workspace, workspace.table(lake.declared("first")))
    assert set(log.glob("0*.json")) == entries, "the newest version does not say the positions"
    touch(log, time.time())
    in_a_month = SimpleNamespace(time=lambda: time.time() + 31 * 86_400)
    for rows in (False, True):
        if rows:
            lake.sql("base", "UPDATE {t} SET v = v + 2 WHERE id < 20")
            refresh(lake, "first")
        for _ in range(2):
            maintain(workspace, "first")
        with monkeypatch.context() as later:
            later.setattr(dependents, "time", in_a_month)
            touch(log, 0)
            maintain(workspace, "first")
            touch(log, time.time())
        assert behind.exists(), "view 'left' has not read it"
        lake.project.refresh("left")
        exact(lake, "left", LEFT, ["id", "v"], "first")
    touch(log, 0)
    maintain(workspace, "first")
    assert not behind.exists()
    lake.append("base", [{"id": 99, "v": 1, "name": "new"}])
    refresh(lake, "first", "left")
    exact(lake, "left", LEFT, ["id", "v"], "first")
    assert lake.project.check("left").passed


def test_runs_shorten_the_log_of_a_table_and_forget_its_old_plans(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "TIDY_EVERY", 1)
    monkeypatch.setattr(ledger, "KEPT_PLANS", 1)
    refresh(lake, "first")
    forget_at_once(lake.project.workspace().table(lake.declared("first")).output.location)
    begun = lake.project.record("first").epoch
    for at in range(100, 102):
        lake.append("base", [{"id": at, "v": 1, "name": "new"}])
        refresh(lake, "first")
    log, plans = Path(lake.location("first"), "_delta_log"), lake.project.root / "warehouse" / "_state" / "plans"
    assert not (log / f"{1:020d}.json").exists()
    assert len(DeltaTable(lake.location("first")).file_uris()) > 1
    maintain(lake.project.workspace(), "first")
    assert len(DeltaTable(lake.location("first")).file_uris()) == 1, "files are compacted"
    assert len(list(plans.rglob("views/first/**/*.json"))) == 1 < lake.project.record("first").epoch - begun
    exact(lake, "first", FIRST, ["id", "v", "name"], "base")


def touch(log: Path, seconds: float) -> None:
    """Give all entries of a log this time."""
    for entry in log.glob("0*"):
        os.utime(entry, (seconds, seconds))


@pytest.mark.full
def test_parts_over_parts_keep_their_keys_apart(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", ({"id": at, "v": at} for at in range(6)))
    inner = "SELECT id, v FROM base UNION ALL SELECT id, -v AS v FROM base"
    outer = "SELECT v FROM inner UNION ALL SELECT v * 10 AS v FROM inner WHERE v > 2"
    lake.view("outer", outer.replace("inner", "both"), lake.view("both", inner, lake.table("base")))
    refresh(lake, "both", "outer")
    lake.sql("base", "UPDATE {t} SET v = v + 2 WHERE id > 2", "DELETE FROM {t} WHERE id = 0")
    refresh(lake, "both", "outer")
    exact(lake, "outer", outer.replace("inner", "both"), ["v"], "both")


@pytest.mark.full
def test_a_view_over_a_view_that_kafka_feeds(project: Project) -> None:
    topic = project.topic(partitions=2)
    project.produce(topic, [{"id": at} for at in range(20)])
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    fed = materialized_view("fed", query="SELECT id, id % 3 AS third FROM orders", upstreams=[orders])
    child = materialized_view("child", query="SELECT id * 2 AS twice FROM fed WHERE third <> 1", upstreams=[fed])
    project.declare(orders, fed, child)
    with pytest.raises(UpstreamNotLiveError):
        project.refresh("child")
    for rows in (20, 30):
        for name in ("orders", "fed", "child"):
            assert project.refresh(name).report.record.live
        assert project.rows("child", "twice") == {(at * 2,): 1 for at in range(rows) if at % 3 != 1}
        project.produce(topic, [{"id": at} for at in range(20, 30)])
    assert project.check("child").passed


def test_a_parent_that_yields_to_its_views_ends_early_while_one_is_behind_its_bound_and_at_work(lake: Lake) -> None:
    def more(at: int) -> None:
        lake.append("base", [{"id": at, "v": at % 90, "name": "new"}])
        refresh(lake, "first")

    yielding = Limits(yield_to_views=True)
    lake.project.refresh("first", Limits(chunk_rows=10))  # in four files
    lake.project.refresh("second", ONE)
    for at in range(100, 103):
        more(at)
    lake.project.refresh("second", Limits(max_rows=30))  # the rest of the snapshot only
    lake.project.refresh("second", ONE_ROW)
    more(103)
    behind = lake.project.refresh("second", ONE_ROW).report.record
    assert isinstance(behind.position, SnapshotPosition)
    assert not behind.live
    assert behind.position.behind
    lake.append("base", [{"id": 104, "v": 1, "name": "waits"}])

    state = lake.project.workspace().state
    assert lake.project.refresh("first", yielding).report.epochs, "nobody is at work on the view that is behind"
    lake.append("base", [{"id": 105, "v": 1, "name": "waits"}])
    state.put_lease("views/second", "another-run")
    waiting = lake.project.refresh("first", yielding).report
    assert (waiting.stopped, waiting.epochs) == (Stop.WAITING, [])
    assert "view 'second'" in waiting.detail
    assert "another-run" in waiting.detail
    assert not dependents.awaited_view(lake.project.workspace(), "first", run_id="another-run"), (
        "that run refreshes the view itself"
    )
    assert lake.project.refresh("first", Limits()).report.epochs, "who does not ask for it does not wait"

    lake.append("base", [{"id": 106, "v": 1, "name": "waits"}])
    set_controls(lake.project.workspace(), "second", paused=True, by="test")
    assert lake.project.refresh("first", yielding).report.epochs, "a paused view is not waited for"
    set_controls(lake.project.workspace(), "second", paused=False, by="test")
    state.free_lease("views/second")
    refresh(lake, "first", "second")
    exact(lake, "second", SECOND, ["w", "name"], "first")
    lake.append("base", [{"id": 107, "v": 1, "name": "waits"}])
    state.put_lease("views/second", "another-run")
    assert lake.project.refresh("first", yielding).report.epochs, "a view that is live is not waited for"
