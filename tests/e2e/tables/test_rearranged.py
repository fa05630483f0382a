"""Strategy `rearranged` on real parts: changes are captured while files are read, then drained in order, whatever the
log forgets."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.app.lifecycle import drop, reset
from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import SpoolFullError, VersionsLostError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from tests.support.commits import losers
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of, over_lake
from tests.support.settings import CHECKS
from tests.support.statements import updated

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"
COLUMNS = ("id", "twice")
CHUNK = Limits(chunk_rows=10, max_rows=10)
FILES = 3
PLACE = Path("warehouse/views/large/_spool")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of files with ten rows each, and a view that captures its changes while it reads them."""
    lake = Lake(tmp_path)
    for file in range(FILES):
        add(lake, file * 10)
    lake.project.declare(*over_lake(tmp_path, "rearranged"))
    return lake


def add(lake: Lake, first: int, name: str = "base") -> None:
    lake.append(name, ({"id": at, "v": at % 10} for at in range(first, first + 10)))


def change(lake: Lake, number: int, name: str = "base") -> None:
    """A delete, an update and an insert, each a version of its own; by delta-rs, which takes milliseconds."""
    table = DeltaTable(lake.path(name))
    table.delete(f"id = {number}")
    updated(table, {"v": f"{50 + number}"}, f"id = {number + 10} OR id = {number + 21}")
    lake.append(name, [{"id": 1000 + number, "v": 1}])


def forget(lake: Lake, name: str = "base") -> None:
    """Clean up the log of a table up to its newest version, and VACUUM all but the newest and the pinned files."""
    table, root = DeltaTable(lake.path(name)), Path(lake.path(name))
    pinned = position(lake.project.record("large")).tables[name].pinned
    table.create_checkpoint()
    files = DeltaTable(lake.path(name)).file_uris() + _files_of(lake, name, pinned)
    for entry in (root / "_delta_log").glob("*.json"):
        if int(entry.stem) < table.version():
            entry.unlink()
    shutil.rmtree(root / "_change_data", ignore_errors=True)
    for file in root.glob("*.parquet"):
        if file.name not in {Path(each).name for each in files}:
            file.unlink()


def _files_of(lake: Lake, name: str, version: int) -> list[str]:
    kept = lake.root / f"{name}.pinned"
    if not kept.exists():
        kept.write_text("\n".join(DeltaTable(lake.path(name), version=version).file_uris()))
    return kept.read_text().split("\n")


def position(record: CommitRecord) -> SnapshotPosition:
    assert isinstance(record.position, SnapshotPosition)
    return record.position


def check(lake: Lake, *checks: str, view: str = "large") -> None:
    for each in checks or CHECKS:
        outcome = lake.project.check(view, each)
        assert outcome.passed, (each, outcome.summary)


def spool(lake: Lake) -> set[str]:
    """The staged folders in the view's spool."""
    return {each.name for each in (lake.project.root / PLACE).glob("*")}


def needed(lake: Lake) -> set[str]:
    return set(lake.project.record("large").spooled.values())


def finish(lake: Lake, limits: Limits = CHUNK) -> None:
    for _ in range(60):
        if lake.project.refresh("large", limits).report.record.live:
            break
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "base")
    check(lake)
    assert not (lake.project.root / PLACE).exists(), "nothing is left of the spool"


@pytest.mark.full
def test_what_comes_while_files_are_read_is_captured_and_every_epoch_equals_the_query(lake: Lake) -> None:
    phases = []
    for number in range(30):
        done = lake.project.refresh("large", CHUNK)
        if done.report.record.live:
            break
        if number < FILES:
            change(lake, number)
        view = DeltaTable(lake.location("large"))
        view.vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)
        (table,) = done.tables
        phases.append(table.phase)
        assert position(done.report.record).lag_ms == 0, "freshness is that of what is captured"
        assert spool(lake) == needed(lake)
        check(lake, "exactly_once", "positions_contiguous")
    assert phases[: FILES - 1] == ["snapshot"] * (FILES - 1)
    assert "spool" in phases
    finish(lake)
    change(lake, 7)
    finish(lake)


def test_rows_and_groups_are_exact_after_each_part_of_what_was_captured(lake: Lake) -> None:
    groups = "SELECT v, count(*) AS n, min(id) AS least FROM base GROUP BY v"
    lake.view("groups", groups, lake.table("base"), strategy="rearranged")

    def epoch(view: str, limits: Limits) -> bool:
        done = refresh(lake.project.workspace(), view, limits, run_id=view).report.record
        check(lake, "exactly_once", view=view)
        return done.live

    views = ("large", "groups")
    few = Limits(chunk_rows=1, max_rows=1)
    assert not any(epoch(view, few) for view in views)
    change(lake, 0)
    for _ in range(FILES - 1):
        assert not any(epoch(view, few) for view in views)
    steps = {view: next(at for at in range(1, 10) if epoch(view, few)) for view in views}
    assert steps["large"] > 2, "captured versions are drained one by one"
    assert lake.found("large", COLUMNS) == lake.expected("large", QUERY, "base")
    assert lake.shown("groups") == lake.expected("groups", groups, "base")


def test_it_finishes_exact_though_log_and_files_are_cleaned_away_behind_it(lake: Lake) -> None:
    for number in range(FILES - 1):
        lake.project.refresh("large", CHUNK)
        check(lake, "exactly_once")
        change(lake, number)
    lake.project.refresh("large", CHUNK)
    forget(lake)
    assert position(lake.project.record("large")).backfilled
    with pytest.raises(VersionsLostError):
        lake.project.workspace().inputs(lake.declared("large")).tables["base"].commits(FILES, FILES + 1)
    check(lake, "exactly_once")
    assert not lake.project.refresh("large", Limits(chunk_rows=1, max_rows=1)).report.record.live
    outcome = lake.project.check("large")
    assert (outcome.passed, outcome.summary.split(":")[0]) == (False, "cannot be proved"), "the log forgot that version"
    finish(lake)


@pytest.mark.full
def test_files_are_read_by_what_was_pinned_though_the_log_forgot_it(lake: Lake) -> None:
    lake.project.refresh("large", CHUNK)
    for number in range(2):
        change(lake, number)
        lake.project.refresh("large", Limits(chunk_rows=1, max_rows=1))
        forget(lake)
        check(lake, "exactly_once")
    finish(lake)


@pytest.mark.full
def test_a_crash_at_any_step_of_a_capture_or_a_drain_loses_and_doubles_nothing(lake: Lake) -> None:
    lake.project.refresh("large", CHUNK)
    for drains in (False, True):
        for number, step in enumerate(STEPS):
            if not drains:
                add(lake, 100 * (number + 1))
                change(lake, number)
            with pytest.raises(Crash):
                lake.project.refresh(
                    "large", CHUNK if drains else Limits(chunk_rows=1, max_rows=1), on_step=CrashPoint(step)
                )
            if not drains and step == "staged":
                assert spool(lake) > needed(lake), "the dead attempt left a segment"
            lake.project.refresh("large", Limits(chunk_rows=1, max_rows=1))
            assert spool(lake) == needed(lake)
            assert losers(lake.project, "large") == []
            check(lake, "exactly_once", "positions_contiguous")
    finish(lake, Limits(chunk_rows=30, max_rows=30))


@pytest.mark.full
def test_killed_processes_are_resumed_and_leave_nothing(lake: Lake, processes: Processes) -> None:
    lake.project.refresh("large", CHUNK)
    for number, step in enumerate(("staged", "committed", "verified")):
        change(lake, number)
        processes.kill(order_of(lake.project), {"refresh": "large", "chunk_rows": 10, "strategy": "rearranged"}, step)
    finish(lake, Limits())


@pytest.mark.full
def test_a_full_spool_stops_by_name_and_goes_on_once_it_may_hold_more(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.project.refresh("large", CHUNK)
    change(lake, 0)
    monkeypatch.setenv("BACKFILL_SPOOL_BYTES", "100")
    before = lake.project.record("large").epoch
    with pytest.raises(SpoolFullError, match="at most 100 bytes"):
        lake.project.refresh("large", CHUNK)
    assert lake.project.record("large").epoch == before
    monkeypatch.setenv("BACKFILL_SPOOL_BYTES", str(2**20))
    finish(lake)


@pytest.mark.full
def test_reset_and_drop_leave_nothing_of_the_spool_and_the_next_life_is_exact(lake: Lake) -> None:
    lake.project.refresh("large", CHUNK)
    change(lake, 0)
    lake.project.refresh("large", CHUNK)
    assert len(spool(lake)) == 2
    reset(lake.project.workspace(), "large")
    assert spool(lake) == set()
    lake.project.refresh("large", CHUNK)
    change(lake, 1)
    lake.project.refresh("large", CHUNK)
    drop(lake.project.workspace(), "large")
    assert spool(lake) == set()
    finish(lake)


@pytest.mark.full
def test_groups_with_extremes_and_several_tables_are_exact_at_every_epoch(lake: Lake) -> None:
    for at in range(2):
        add(lake, 2000 + at * 10, "other")
    both = "SELECT id, v FROM base UNION ALL SELECT id, v FROM other WHERE v < 8"
    lake.view("both", both, lake.table("base"), lake.table("other"), strategy="rearranged")
    groups = "SELECT v, count(*) AS n, min(id) AS least, max(id) AS last FROM base GROUP BY v"
    lake.view("groups", groups, lake.table("base"), strategy="rearranged")
    for number in range(12):
        live = []
        for view in ("both", "groups"):
            done = refresh(lake.project.workspace(), view, CHUNK, run_id=f"{view}-{number}").report
            live.append(done.record.live)
            check(lake, "exactly_once", view=view)
        if all(live):
            break
        if number < 2:
            change(lake, number)
            DeltaTable(lake.path("other")).delete(f"id = {2000 + number}")
    for view, query, columns in (("both", both, ("id", "v")), ("groups", groups, ("v", "n", "least", "last"))):
        names = ("base", "other") if view == "both" else ("base",)
        assert lake.project.refresh(view).report.record.live
        assert lake.found(view, columns) == lake.expected(view, query, *names)
        check(lake, view=view)
        assert not (lake.project.root / "warehouse" / "views" / view / "_spool").exists()
