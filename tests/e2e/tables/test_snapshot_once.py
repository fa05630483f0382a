"""Strategy `snapshot_once` on real parts: one commit for the whole snapshot, killed at every step, then the change log."""

from collections import Counter
from pathlib import Path

import pytest

from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.lag import CountBound
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.testing.crash_points import CrashPoint
from tests.support.commits import losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of, over_lake
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

ONCE = {"refresh": "large", "strategy": "snapshot_once"}
QUERY = "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"
SMALL = Limits(chunk_rows=10)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of four files with ten rows each, and a view that reads it at once."""
    lake = Lake(tmp_path)
    for file in range(4):
        add(lake, file * 10)
    lake.project.declare(*over_lake(tmp_path, "snapshot_once"))
    return lake


def add(lake: Lake, first: int) -> None:
    lake.append("base", ({"id": at, "v": at % 10} for at in range(first, first + 10)))


def assert_equal(
    lake: Lake, *, view: str = "large", query: str = QUERY, columns: tuple[str, ...] = ("id", "twice")
) -> None:
    names = [name for name in ("base", "other") if name in query]
    assert lake.found(view, columns) == lake.expected(view, query, *names)
    for check in CHECKS:
        outcome = lake.project.check(view, check)
        assert outcome.passed, (check, outcome.summary)


def position(record: CommitRecord) -> SnapshotPosition:
    assert isinstance(record.position, SnapshotPosition)
    return record.position


@pytest.mark.full
def test_nothing_is_visible_before_all_of_it_and_each_epoch_of_the_log_is_equal(lake: Lake) -> None:
    seen: list[int] = []

    def change(step: str) -> None:
        if step == "looked" and not seen:
            lake.sql("base", "DELETE FROM {t} WHERE id < 3", "UPDATE {t} SET v = 50 WHERE id = 20")
            add(lake, 100)
        if step == "staged":
            seen.append(lake.project.record("large").rows_total)

    first = lake.project.refresh("large", Limits(chunk_rows=1, max_rows=1), on_step=change).report
    assert (seen, [each.rows_read for each in first.epochs], first.stopped) == ([0], [40], Stop.MAX_ROWS)
    assert_equal(lake)
    trace = []
    while not first.record.live:
        first = lake.project.refresh("large", Limits(chunk_rows=1, max_rows=1)).report
        trace.append((position(first.record).lag_commits, position(first.record).bound))
        assert_equal(lake)
    assert trace == [(at, CountBound(max_lag=at)) for at in (2, 1, 0)]


@pytest.mark.full
def test_a_creation_that_is_killed_at_any_step_starts_over_over_what_is_newest_and_leaves_nothing(
    lake: Lake, processes: Processes
) -> None:
    lake.project.refresh("large", Limits(max_rows=0))
    lives = [lake.project.record("large").incarnation]
    for number, step in enumerate(STEPS[:-1]):
        at = 2 if step == "verified" and number else 1  # the next life's own first commit is verified too
        processes.kill(order_of(lake.project), ONCE, step, at=at)
        assert lake.project.record("large").epoch == 0
        lives.append(lake.project.record("large").incarnation)
        add(lake, 100 * (number + 1))
    assert len(set(lives)) == 3, "a life that was planned is given up by the next run, one that was not goes on"
    assert len(losers(lake.project, "large")) == 1, "each run swept what the one before had staged"
    done = lake.project.refresh("large").report
    assert (done.record.epoch, done.record.live, done.totals.rows_read) == (1, True, 80)
    assert done.record.incarnation not in lives
    assert losers(lake.project, "large") == []
    assert_equal(lake)


@pytest.mark.full
def test_a_kill_after_the_snapshot_resumes_the_change_log(lake: Lake, processes: Processes) -> None:
    lake.project.refresh("large")
    life = lake.project.record("large").incarnation
    for number, step in enumerate(STEPS):
        add(lake, 100 * (number + 1))
        processes.kill(order_of(lake.project), ONCE, step)
        lake.project.refresh("large")
        assert_equal(lake)
    assert lake.project.record("large").incarnation == life
    assert losers(lake.project, "large") == []


@pytest.mark.full
def test_a_slow_creation_that_another_run_takes_for_dead_is_fenced_and_the_other_finishes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.adapters.state.state_store.State.lease", lambda _self, _target: None)
    others = []
    slow = CrashPoint("staged", action=lambda: others.append(lake.project.refresh("large").report.stopped))
    assert (lake.project.refresh("large", on_step=slow).report.stopped, others) == (Stop.FENCED, [Stop.CAUGHT_UP])
    assert_equal(lake)


@pytest.mark.full
def test_several_tables_and_groups_are_read_at_once_too(lake: Lake) -> None:
    for at in range(3):
        lake.append("other", ({"id": row, "v": 7} for row in range(1000 + at * 10, 1010 + at * 10)))
    both = "SELECT id, v FROM base UNION ALL SELECT id, v FROM other WHERE id < 1015"
    lake.view("both", both, lake.table("base"), lake.table("other"), strategy="snapshot_once")
    groups = "SELECT v, count(*) AS n, max(id) AS last FROM base GROUP BY v"
    lake.view("groups", groups, lake.table("base"), strategy="snapshot_once")
    for view, query, columns in (("both", both, ("id", "v")), ("groups", groups, ("v", "n", "last"))):
        assert [each.rows_read for each in lake.project.refresh(view, SMALL).report.epochs] == [
            70 if view == "both" else 40
        ]
        assert_equal(lake, view=view, query=query, columns=columns)
    lake.sql("base", "DELETE FROM {t} WHERE id > 36", "UPDATE {t} SET v = v + 1 WHERE id < 5")
    lake.sql("other", "DELETE FROM {t} WHERE id = 1001")
    for view, query, columns in (("both", both, ("id", "v")), ("groups", groups, ("v", "n", "last"))):
        for _ in range(3):
            lake.project.refresh(view, Limits(chunk_rows=1, max_rows=1))
            assert_equal(lake, view=view, query=query, columns=columns)


@pytest.mark.full
def test_an_empty_table_is_live_at_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.sql(
        "base",
        "CREATE TABLE {t} (id BIGINT, v BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    )
    lake.view("large", QUERY, lake.table("base"), strategy="snapshot_once")
    assert lake.project.refresh("large").report.record.live
    assert lake.found("large", ("id", "twice")) == Counter()
    add(lake, 0)
    lake.project.refresh("large")
    assert_equal(lake)
