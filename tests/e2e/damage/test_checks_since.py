"""What a cheap check of a view over tables sees: everything that was written to the view or changed in its tables since
it passed.

Rows that nobody has changed since then are left to the full proof.
"""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.state.state_store import CheckPass
from backfill_assets.app.table_checks import CHECKS, Checking, Outcome
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import Position
from backfill_assets.core.progress.positions import SnapshotPosition
from tests.support.damage import file_of, files_added, first, forge_epoch, insert_again, missing, rewrite_file
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import one_in_gate

pytestmark = pytest.mark.e2e

VIEWS = {
    "keyed": "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 3",
    "totals": "SELECT name, count(*) AS n, sum(amount) AS amount, max(amount) AS most, "
    "sum(amount / 3.0D) AS third FROM orders GROUP BY name",
    "added": "SELECT name, amount FROM events WHERE amount > 3",
}
KEYED = ("keyed", "totals")
PASSED = "what was written since"


def rows(start: int, end: int) -> list[dict[str, Any]]:
    return [{"id": at, "name": f"n{at // 5}", "amount": at % 7 + 3} for at in range(start, end)]


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Views of several files each, proved in full."""
    lake = Lake(tmp_path_factory.mktemp("passed"))
    for start in range(0, 40, 10):
        lake.append("orders", rows(start, start + 10))
        lake.append("events", rows(start, start + 10))
    for name, query in VIEWS.items():
        lake.view(name, query, lake.table("events", None) if name == "added" else lake.table("orders"))
        lake.project.refresh(name, Limits(chunk_rows=10))
        assert all(lake.project.check(name, check).passed for check in CHECKS)
    return lake


@pytest.fixture
def lake(passed: Lake, tmp_path: Path) -> Lake:
    """A copy of these views after changes of all kinds to a few rows, which the views have followed."""
    shutil.copytree(passed.project.root, tmp_path, dirs_exist_ok=True)
    copy = Lake(tmp_path)
    for name, query in VIEWS.items():
        copy.view(name, query, copy.table("events", None) if name == "added" else copy.table("orders"))
    return copy


def change(lake: Lake, *names: str) -> None:
    lake.append("orders", rows(40, 43))
    lake.append("events", rows(40, 43))
    lake.sql("orders", "UPDATE {t} SET amount = amount + 50 WHERE id = 31", "DELETE FROM {t} WHERE id IN (32, 36)")
    for name in names:
        assert lake.project.refresh(name).report.record.live


def cheap(lake: Lake, name: str, check: str = "exactly_once") -> Outcome:
    return lake.project.check(name, check, full=False)


def newest(project: Project, name: str) -> int:
    return project.workspace().table(project.declared[name]).output.look().version


@pytest.mark.full
@pytest.mark.parametrize("name", VIEWS)
def test_what_was_written_since_is_proved_without_the_rest(lake: Lake, name: str) -> None:
    before = lake.project.record(name)
    assert cheap(lake, name).facts["rows_found"] == 0, "nothing was written"
    change(lake, name)
    outcomes = {check: cheap(lake, name, check) for check in CHECKS}
    assert all(outcome.passed for outcome in outcomes.values()), outcomes
    assert outcomes["exactly_once"].facts["scope"] == PASSED
    assert outcomes["exactly_once"].facts["since_epoch"] == before.epoch
    assert outcomes["exactly_once"].facts["rows_found"] > 0
    again = cheap(lake, name)
    assert (again.passed, again.facts["scope"]) == (True, PASSED)
    assert again.facts["since_epoch"] == lake.project.record(name).epoch > before.epoch
    assert lake.project.check(name).passed


def test_a_pass_of_another_epoch_or_of_a_later_version_does_not_count(lake: Lake) -> None:
    before = Checking(lake.project.workspace(), "keyed")
    assert before.run("exactly_once", full=False).facts["scope"] == PASSED
    change(lake, "keyed")
    for check in ("exactly_once", "positions_contiguous"):
        assert cheap(lake, "keyed", check).passed
        later = before.run(check, full=False)
        assert later.passed, "another check has passed at a version that this one does not see"
        assert later.facts.get("scope") != PASSED
    record, workspace = lake.project.record("keyed"), lake.project.workspace()
    other = CheckPass(incarnation=record.incarnation, epoch=record.epoch - 1, version=newest(lake.project, "keyed"))
    workspace.state.set_passed("views/keyed", "exactly_once", other)
    assert cheap(lake, "keyed").facts["scope"] != PASSED


def test_the_last_digit_of_a_sum_of_floats_is_no_violation(lake: Lake) -> None:
    """It depends on the order in which Spark has added them up."""
    change(lake, "totals")
    (path, *_) = files_added(lake.project, "totals", newest(lake.project, "totals"))
    rewrite_file(path, first(lambda row: {"third": math.nextafter(row["third"], math.inf)}))
    assert cheap(lake, "totals").passed


@pytest.mark.parametrize("name", one_in_gate(*VIEWS))
def test_a_row_lost_among_those_that_were_written_is_missed(lake: Lake, name: str) -> None:
    change(lake, name)
    (path, *_) = files_added(lake.project, name, newest(lake.project, name))
    rewrite_file(path, missing)
    seen = cheap(lake, name)
    assert not seen.passed
    assert (seen.facts["missing"], seen.facts["unexpected"], seen.facts["scope"]) == (1, 0, PASSED)
    assert seen.violations[0]["violation"] == "missing"


@pytest.mark.parametrize("name", one_in_gate(*VIEWS))
def test_a_changed_row_that_nobody_touched_is_left_to_the_full_proof(lake: Lake, name: str) -> None:
    version = newest(lake.project, name)
    held = {path for at in range(1, version + 1) for path in files_added(lake.project, name, at)}
    change(lake, name)
    table = lake.project.workspace().table(lake.project.declared[name]).output.location.load()
    assert table is not None
    still_there = {path for path in held if path.name in str(table.file_uris())}
    column = "twice" if name == "keyed" else "amount"
    rewrite_file(min(still_there), first(lambda row: {column: row[column] + 1}))
    assert cheap(lake, name).passed
    full = lake.project.check(name)
    assert (full.facts["missing"], full.facts["unexpected"]) == (1, 1)


def skipped(position: Position) -> SnapshotPosition:
    """The position as if the waiting versions had been read."""
    assert isinstance(position, SnapshotPosition)
    tables = {name: each.model_copy(update={"version": each.version + 3}) for name, each in position.tables.items()}
    return position.model_copy(update={"tables": tables})


@pytest.mark.parametrize("name", one_in_gate(*KEYED))
def test_changes_that_were_passed_over_are_missed(lake: Lake, name: str) -> None:
    change(lake)
    forge_epoch(lake.project, name, skipped(lake.project.record(name).position))
    seen = cheap(lake, name)
    assert not seen.passed
    assert seen.facts["missing"] > 0
    assert seen.facts["unexpected"] > 0
    assert seen.facts["scope"] == PASSED


@pytest.mark.parametrize("name", one_in_gate("totals", "keyed", "added"))
def test_rows_that_are_inserted_again_should_not_be_there(lake: Lake, name: str) -> None:
    path = file_of(lake.project, name, 1)
    count = insert_again(lake.project, name, path)
    seen = cheap(lake, name)
    assert (seen.passed, seen.facts["missing"], seen.facts["unexpected"]) == (False, 0, count)
    assert cheap(lake, name, "unique_key").passed == (name == "added")


def test_where_the_files_that_passed_are_gone_everything_is_proved_and_the_outcome_says_so(lake: Lake) -> None:
    version = newest(lake.project, "keyed")
    change(lake, "keyed")
    view = lake.project.workspace().table(lake.project.declared["keyed"]).output.location
    before, now = view.load(version=version), view.load()
    assert before is not None
    assert now is not None
    (gone, *_) = set(before.file_uris()) - set(now.file_uris())
    Path(gone.removeprefix("file://")).unlink()
    outcome = cheap(lake, "keyed")
    assert outcome.passed
    assert outcome.facts["scope"] == f"everything: files of version {version}, which passed, no longer exist"
    assert outcome.facts["since_epoch"] == 0
