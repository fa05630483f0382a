"""A view whose query gives more columns gets them in place: in one epoch of the same life, and views over it go on."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from backfill_assets.app.dry_run import plan
from backfill_assets.app.lifecycle import maintain, reset
from backfill_assets.app.refresh import refresh
from backfill_assets.app.replacing import replace_view
from backfill_assets.cli.printing import plan_text
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.errors import DefinitionChangedError, TableFeatureError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import CHECKS, FULL, one_in_gate

pytestmark = pytest.mark.e2e

ROWS, GROUPS = "SELECT id, v FROM base WHERE v <> 3", "SELECT v, count(*) AS n FROM base GROUP BY v"
JOINED = "SELECT b.id, o.name FROM base b JOIN other o ON b.v = o.v"
LONGER = {
    ROWS: "SELECT id, v, v * 3 AS thrice FROM base WHERE v <> 3",
    GROUPS: "SELECT v, count(*) AS n, sum(id) AS s, max(id) AS largest FROM base GROUP BY v",
    JOINED: "SELECT b.id, o.name, b.v + o.v AS both, max(o.name) OVER (PARTITION BY b.v) AS best "
    "FROM base b JOIN other o ON b.v = o.v",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables."""
    made = Lake(tmp_path)
    for file in range(3):
        made.append("base", ({"id": at, "v": at % 5} for at in range(10 * file, 10 * file + 10)))
    made.append("other", ({"id": at, "v": at % 7, "name": f"name {at}"} for at in range(14)))
    return made


def declare(lake: Lake, query: str, **given: Any) -> None:
    tables = [lake.table(name) for name in ("base", "other") if f" {name}" in query]
    lake.view("view", query, *tables, **given)


def change(lake: Lake, turn: int = 0) -> None:
    lake.sql("base", f"DELETE FROM {{t}} WHERE id = {4 + turn}", f"UPDATE {{t}} SET v = 6 WHERE id = {14 + turn}")
    lake.append("base", [{"id": 100 + turn, "v": 2}])


def assert_right(lake: Lake, query: str) -> None:
    expected = lake.expected("view", query, *(name for name in ("base", "other") if f" {name}" in query))
    assert lake.shown("view") == expected != Counter()
    lake.passes("view", CHECKS)


@pytest.mark.full
@pytest.mark.parametrize("query", [GROUPS, ROWS, JOINED])
def test_columns_are_added_in_one_epoch_of_the_same_life(lake: Lake, query: str) -> None:
    declare(lake, query)
    lake.project.refresh("view")
    change(lake)
    lake.project.refresh("view")
    lake.passes("view", CHECKS)
    before = lake.project.record("view")
    declare(lake, LONGER[query])
    lake.sql("base", "DELETE FROM {t} WHERE id = 7")  # waits, and comes with the same epoch
    done = lake.project.refresh("view").report
    assert [each.epoch for each in done.epochs] == [before.epoch + 1]
    after = lake.project.record("view")
    assert (after.incarnation, after.why_full, after.engine) == (before.incarnation, "definition", "overwrite")
    assert_right(lake, LONGER[query])
    assert lake.project.refresh("view").report.epochs == []
    change(lake, turn=1)
    lake.project.refresh("view")
    assert lake.project.record("view").why_full != "definition"
    assert_right(lake, LONGER[query])
    maintain(lake.project.workspace(), "view")
    assert_right(lake, LONGER[query])


def test_nothing_waits_and_columns_are_added_all_the_same(lake: Lake) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    assert not plan(lake.project.workspace(), "view", Limits()).adds_columns
    declare(lake, LONGER[ROWS])
    planned = plan(lake.project.workspace(), "view", Limits())
    assert planned.document()["adds_columns"]
    assert "adds the columns" in plan_text("view", planned)
    assert len(lake.project.refresh("view").report.epochs) == 1
    assert_right(lake, LONGER[ROWS])
    assert DeltaTable(lake.location("view")).metadata().configuration["backfill.status"] == "live"


def test_an_empty_view_gets_columns(lake: Lake) -> None:
    declare(lake, "SELECT id FROM base WHERE v > 100")
    lake.project.refresh("view")
    declare(lake, "SELECT id, v AS w FROM base WHERE v > 100")
    lake.project.refresh("view")
    lake.append("base", [{"id": 7000, "v": 700}])
    lake.project.refresh("view")
    assert_right(lake, "SELECT id, v AS w FROM base WHERE v > 100")


OVER = {
    "rows": "SELECT id, v * 2 AS twice FROM view",
    "groups": "SELECT v, count(*) AS n, max(id) AS most FROM view GROUP BY v",
    "joined": "SELECT w.id, o.name FROM view w JOIN other o ON w.v = o.v",
}


@pytest.mark.parametrize(
    "over", ["groups", *(pytest.param(each, marks=pytest.mark.full) for each in ("joined", "rows"))]
)
def test_views_over_it_go_on(lake: Lake, over: str) -> None:
    declare(lake, ROWS)
    others = [lake.table("other")] if over == "joined" else []
    lake.view("over", OVER[over], lake.declared("view"), *others)
    for name in ("view", "over"):
        lake.project.refresh(name)
    life = lake.project.record("over").incarnation
    declare(lake, LONGER[ROWS])
    lake.view("over", OVER[over], lake.declared("view"), *others)
    with pytest.raises(DefinitionChangedError, match="views/view"):
        lake.project.refresh("over")
    for turn in range(2 if FULL else 1):
        lake.sql("base", f"DELETE FROM {{t}} WHERE id = {20 + turn}", f"UPDATE {{t}} SET v = 6 WHERE id = {10 + turn}")
        for name in ("view", "over"):
            lake.project.refresh(name)
        assert lake.project.record("over").incarnation == life
        names = ("view", "other") if over == "joined" else ("view",)
        assert lake.shown("over") == lake.expected("over", OVER[over], *names) != Counter()
    lake.passes("over", CHECKS)


@pytest.mark.full
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_while_it_adds_columns_leaves_the_old_rows_or_the_new_ones(lake: Lake, step: str) -> None:
    declare(lake, JOINED, primary_key=("id", "name"))
    lake.project.refresh("view")
    before = lake.shown("view")
    change(lake)
    declare(lake, LONGER[JOINED], primary_key=("id", "name"))
    with pytest.raises(Crash):
        lake.project.refresh("view", on_step=CrashPoint(step))
    if step != "committed":
        assert lake.shown("view") == before
    lake.project.refresh("view")
    assert_right(lake, LONGER[JOINED])


@pytest.mark.parametrize("planned", [ROWS, LONGER[ROWS]])
def test_a_plan_of_one_declaration_is_never_carried_out_by_another(lake: Lake, planned: str) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    change(lake)
    declare(lake, planned)
    with pytest.raises(Crash):
        lake.project.refresh("view", on_step=CrashPoint("planned"))
    other = LONGER[ROWS] if planned == ROWS else ROWS
    declare(lake, other)
    lake.project.refresh("view")
    assert_right(lake, other)


@pytest.mark.full
def test_a_run_of_the_old_declaration_that_comes_in_between_does_no_harm(lake: Lake) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    old = Project(root=lake.project.root, servers="", warehouse=lake.project.warehouse)
    old.declare(lake.declared("view"))
    declare(lake, LONGER[ROWS])
    change(lake)
    staged: list[int] = []

    def go_on(step: str) -> None:
        if step == "staged":
            lake.project.workspace().state.release_lease("views/view", "new")
            staged.append(old.refresh("view").report.epochs[-1].epoch)

    done = refresh(lake.project.workspace(on_step=go_on), "view", Limits(), run_id="new").report
    assert (done.stopped, done.epochs, staged) == (Stop.FENCED, [], [2])
    lake.project.refresh("view")
    assert_right(lake, LONGER[ROWS])
    with pytest.raises(DefinitionChangedError, match="query changed"):
        old.refresh("view")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM base WHERE v <> 3",
        "SELECT id, v, 1 AS one FROM base WHERE v <> 4",
        "SELECT id, v AS w, 1 AS one FROM base WHERE v <> 3",
        "SELECT v, id, 1 AS one FROM base WHERE v <> 3",
        "SELECT DISTINCT id, v, 1 AS one FROM base WHERE v <> 3",
        "SELECT id, v, 1 AS one FROM base WHERE v <> 3 UNION ALL SELECT id, v, 2 FROM base",
    ],
)
def test_other_changes_are_refused_as_before(lake: Lake, query: str) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    before = lake.shown("view")
    declare(lake, query)
    for act in (lake.project.refresh, lambda name: plan(lake.project.workspace(), name, Limits())):
        with pytest.raises(DefinitionChangedError, match="backfill replace view"):
            act("view")
    assert lake.shown("view") == before


def test_columns_are_not_added_in_place_where_readers_could_not_follow_or_it_was_not_asked_for(lake: Lake) -> None:
    declare(lake, ROWS, refresh_mode="incremental_strict")
    lake.project.refresh("view")
    declare(lake, LONGER[ROWS], refresh_mode="incremental_strict")
    with pytest.raises(DefinitionChangedError):
        lake.project.refresh("view")
    declare(lake, LONGER[ROWS])
    stopped = replace_view(lake.project.workspace(), "view", Limits(chunk_rows=5, max_rows=5), run_id="r")
    assert not stopped.switched
    with pytest.raises(DefinitionChangedError):
        lake.project.refresh("view")
    assert replace_view(lake.project.workspace(), "view", Limits(), run_id="r").switched
    assert_right(lake, LONGER[ROWS])


def test_a_view_of_joined_rows_without_a_key_that_others_read_is_replaced(lake: Lake) -> None:
    declare(lake, JOINED)
    lake.view("over", "SELECT id, name FROM view", lake.declared("view"))
    for name in ("view", "over"):
        lake.project.refresh(name)
    declare(lake, LONGER[JOINED])
    with pytest.raises(DefinitionChangedError):
        lake.project.refresh("view")


@pytest.mark.parametrize(
    ("query", "longer"),
    [
        ("SELECT b.v + 0.5 AS w FROM base b JOIN other o ON b.v = o.v", "o.name"),
        pytest.param("SELECT count(DISTINCT id) AS n FROM base GROUP BY v", "v", marks=pytest.mark.full),
        pytest.param("SELECT id, rank() OVER (PARTITION BY v ORDER BY id) AS r FROM base", "v", marks=pytest.mark.full),
    ],
)
def test_files_may_be_laid_out_by_a_column_that_is_added(lake: Lake, query: str, longer: str) -> None:
    declare(lake, query)
    lake.project.refresh("view")
    query = query.replace(" FROM", f", {longer} FROM", 1)
    declare(lake, query)
    for turn in range(2 if FULL else 1):
        change(lake, turn)
        lake.project.refresh("view")
        assert_right(lake, query)


def test_a_proof_since_a_pass_of_another_definition_proves_everything(lake: Lake) -> None:
    for query in (GROUPS, LONGER[GROUPS]):
        declare(lake, query)
        lake.project.refresh("view")
        assert lake.project.check("view", "exactly_once", full=False).passed
    change(lake)
    lake.project.refresh("view")
    assert lake.project.check("view", "exactly_once", full=False).passed


def test_what_is_said_of_columns_stays(lake: Lake) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    DeltaTable(lake.location("view")).alter.set_column_metadata("v", {"comment": "how much"})
    declare(lake, LONGER[ROWS])
    lake.project.refresh("view")
    assert_right(lake, LONGER[ROWS])
    fields = {each.name: each for each in DeltaTable(lake.location("view")).schema().fields}
    assert fields["v"].metadata == {"comment": "how much"}


@pytest.mark.parametrize("act", one_in_gate("refresh", "reset"))
def test_a_view_whose_columns_have_other_names_in_files_keeps_them(lake: Lake, act: str) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    lake.spark.sql(f"ALTER TABLE delta.`{lake.location('view')}` SET TBLPROPERTIES ({mapped})")
    declare(lake, LONGER[ROWS])
    with pytest.raises(TableFeatureError, match="columnMapping"):
        lake.project.refresh("view") if act == "refresh" else reset(lake.project.workspace(), "view")
    declare(lake, ROWS)
    change(lake)
    lake.project.refresh("view")
    rows = lake.spark.read.format("delta").load(lake.location("view")).select("id", "v").collect()
    assert Counter(map(tuple, rows)) == lake.expected("view", ROWS, "base")


def test_columns_of_a_table_that_came_later_may_be_added(lake: Lake) -> None:
    declare(lake, ROWS)
    lake.project.refresh("view")
    lake.append("base", [{"id": 500, "v": 5, "late": "x"}], schema_mode="merge")
    lake.project.refresh("view")
    query = "SELECT id, v, coalesce(late, 'none') AS late FROM base WHERE v <> 3"
    declare(lake, query)
    lake.project.refresh("view")
    lake.append("base", [{"id": 501, "v": 5, "late": "y"}])
    lake.project.refresh("view")
    assert_right(lake, query)


def test_columns_that_views_over_it_need_are_never_lost(lake: Lake) -> None:
    """Rows become one group, which has no rows of its own to be told apart by."""
    declare(lake, "SELECT 1 AS one FROM base b JOIN other o ON b.v = o.v")
    lake.view("over", "SELECT one FROM view", lake.declared("view"))
    for name in ("view", "over"):
        lake.project.refresh(name)
    before = lake.shown("view")
    declare(lake, "SELECT 1 AS one, count(*) AS n FROM base b JOIN other o ON b.v = o.v")
    with pytest.raises(DefinitionChangedError, match="would be gone"):
        lake.project.refresh("view")
    assert lake.shown("view") == before
