"""A view is replaced by another definition while it is read: in one commit, with a way back."""

import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from backfill_assets import materialized_view
from backfill_assets.app.lifecycle import drop, maintain, reset
from backfill_assets.app.replacing import Replacement, forget_replaced, replace_view, undo_replacement
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.errors import (
    DeclarationError,
    DefinitionChangedError,
    DroppedError,
    ExternalWriteError,
    FencedError,
    StateLostError,
    StillNeededError,
    UpstreamChangedError,
)
from backfill_assets.testing.crash_points import Crash, CrashPoint
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

OLD = "SELECT id, v * 2 AS twice FROM base WHERE v <> 3"
NEW = "SELECT id, CAST(v AS STRING) AS twice, v * 3 AS thrice FROM base WHERE v > 0"
GROUPS = "SELECT v, count(*) AS n FROM base GROUP BY v"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A view by its old definition, with rows that have changed."""
    made = Lake(tmp_path)
    for file in range(6):
        made.append("base", ({"id": at, "v": at % 5} for at in range(5 * file, 5 * file + 5)))
    made.view("large", OLD, made.table("base"), strategy="snapshot")
    made.project.refresh("large")
    made.sql("base", "DELETE FROM {t} WHERE id = 4", "UPDATE {t} SET v = 9 WHERE id = 5")
    made.project.refresh("large")
    return made


def redefine(lake: Lake, query: str) -> None:
    lake.view("large", query, lake.table("base"), strategy="snapshot")


def replaced(project: Project, limits: Limits = Limits(), **given: Any) -> Replacement:  # noqa: B008
    return replace_view(project.workspace(**given), "large", limits, run_id=uuid.uuid4().hex)


def rows(lake: Lake, version: int | None = None) -> Counter[tuple[Any, ...]]:
    """All rows, with the names of their columns."""
    found = lake.rows(lake.location("large"), version)
    return Counter(tuple(sorted(row.asDict().items(), key=str)) for row in found.collect())


def right(lake: Lake, query: str, *columns: str) -> bool:
    expected = lake.expected("large", query, "base")
    passed = [lake.project.check("large", check).passed for check in CHECKS]
    return lake.found("large", columns) == expected and expected.total() > 0 and all(passed)


def test_readers_see_all_old_rows_and_then_all_new_ones(lake: Lake) -> None:
    before, seen = rows(lake), []
    redefine(lake, NEW)
    with pytest.raises(DefinitionChangedError, match="backfill replace large"):
        lake.project.refresh("large")
    lake.append("base", [{"id": 100, "v": 7}])
    done = replaced(lake.project, Limits(chunk_rows=10), on_step=lambda step: seen.append((step, rows(lake))))
    assert (done.switched, done.kept, done.report.totals.epochs > 1) == (True, True, True)
    switched = [step for step, _ in seen].index("switched")
    assert {"built", "kept", "copied"} <= {step for step, _ in seen[:switched]}
    assert all(found == before for _, found in seen[:switched])
    assert seen[switched][1] == rows(lake) != before
    assert right(lake, NEW, "id", "twice", "thrice")
    switch, new = lake.project.workspace().table(lake.declared("large")).output.look().version, rows(lake)
    lake.sql("base", "DELETE FROM {t} WHERE id = 7", "UPDATE {t} SET v = 0 WHERE id = 8")
    lake.append("base", [{"id": 101, "v": 3}])
    lake.project.refresh("large")
    assert right(lake, NEW, "id", "twice", "thrice")
    for _ in range(2):  # the first compacts what the second might sweep
        maintain(lake.project.workspace(), "large")
    assert rows(lake, switch) == new, "the copied files are a part of the table's history"


def test_columns_come_in_the_order_of_the_new_definition(lake: Lake) -> None:
    """delta-rs takes schemas with the same columns for the same."""
    redefine(lake, "SELECT v * 2 AS twice, id FROM base WHERE v > 0")
    assert replaced(lake.project).switched
    expected = lake.expected("large", "SELECT v * 2 AS twice, id FROM base WHERE v > 0", "base")
    assert lake.shown("large") == expected != Counter()
    table = DeltaTable(lake.location("large"))
    assert [each.name for each in table.schema().fields] == ["twice", "id"]
    assert table.metadata().configuration["delta.enableChangeDataFeed"] == "true"
    lake.sql("base", "DELETE FROM {t} WHERE id = 6")
    lake.project.refresh("large")
    lake.passes("large", ("exactly_once", "rows_conserved"))


@pytest.mark.full
def test_what_was_replaced_comes_back_and_goes_on(lake: Lake) -> None:
    before = rows(lake)
    redefine(lake, GROUPS)
    assert replaced(lake.project).kept
    assert right(lake, GROUPS, "v", "n")
    undo_replacement(lake.project.workspace(), "large")
    assert rows(lake) == before
    redefine(lake, OLD)
    lake.append("base", [{"id": 102, "v": 4}])
    lake.project.refresh("large")
    assert right(lake, OLD, "id", "twice")
    with pytest.raises(DroppedError, match="not kept"):
        undo_replacement(lake.project.workspace(), "large")


def test_a_replacement_that_stopped_early_goes_on_unless_it_was_changed_again(lake: Lake) -> None:
    before = rows(lake)
    redefine(lake, NEW)
    first = replaced(lake.project, Limits(chunk_rows=5, max_rows=5))
    assert (first.switched, first.report.stopped) == (False, Stop.MAX_ROWS)
    assert rows(lake) == before
    again = replaced(lake.project, Limits(chunk_rows=5, max_rows=5))
    assert not again.switched
    assert again.report.record.incarnation == first.report.record.incarnation
    assert again.report.record.epoch > first.report.record.epoch
    redefine(lake, GROUPS)
    assert replaced(lake.project).switched
    assert right(lake, GROUPS, "v", "n")


def test_runs_of_the_old_definition_may_go_on_until_the_switch(lake: Lake) -> None:
    old = Project(root=lake.project.root, servers="")
    old.declare(lake.declared("large"))
    redefine(lake, NEW)
    went_on: list[int] = []
    before: Counter[tuple[Any, ...]] = Counter()

    def go_on(step: str) -> None:
        if step == "copied" and len(went_on) < 3:  # the first copies are those that are kept
            before.update(lake.found("large", ["id", "twice"]) if not went_on else {})
            lake.append("base", [{"id": 200 + len(went_on), "v": 6}])
            went_on.append(old.refresh("large").report.record.epoch)

    assert replaced(lake.project, on_step=go_on).switched
    assert len(went_on) == 3
    lake.project.refresh("large")
    assert right(lake, NEW, "id", "twice", "thrice")
    again = replaced(lake.project)
    assert (again.switched, again.kept) == (True, False), "the way back leads to another definition"
    undo_replacement(lake.project.workspace(), "large")
    assert lake.found("large", ["id", "twice"]) == before


def test_what_another_call_began_anew_does_not_take_the_place_of_a_view(lake: Lake) -> None:
    before, other = rows(lake), Project(root=lake.project.root, servers="")
    redefine(lake, GROUPS)
    other.declare(lake.declared("large"))
    redefine(lake, NEW)
    begun: list[bool] = []

    def begin(step: str) -> None:
        if step == "built":
            begun.append(replaced(other, Limits(chunk_rows=5, max_rows=5)).switched)

    with pytest.raises(FencedError, match="begun anew"):
        replaced(lake.project, on_step=begin)
    assert begun == [False]
    assert rows(lake) == before
    assert replaced(lake.project).switched
    assert right(lake, NEW, "id", "twice", "thrice")


def test_errors_of_a_replacement_say_how_to_give_it_up(lake: Lake) -> None:
    redefine(lake, NEW)
    half = replaced(lake.project, Limits(chunk_rows=5, max_rows=5))
    plans = lake.project.root / "warehouse" / "_state" / "plans" / "views" / "large" / half.report.record.incarnation
    shutil.rmtree(plans)
    with pytest.raises(StateLostError) as found:
        replaced(lake.project)
    assert "backfill replace large --forget" in found.value.hint
    forget_replaced(lake.project.workspace(), "large")
    assert replaced(lake.project).switched
    assert right(lake, NEW, "id", "twice", "thrice")


def test_a_view_that_a_replacement_is_still_to_read_is_not_vacuumed(lake: Lake) -> None:
    lake.view("over", "SELECT id, twice FROM large", lake.declared("large"), strategy="snapshot")
    lake.project.refresh("over")
    lake.view("over", "SELECT id FROM large", lake.declared("large"), strategy="snapshot")
    with pytest.raises(Crash):
        replace_view(lake.project.workspace(on_step=CrashPoint("planned")), "over", Limits(), run_id="crashed")
    lake.sql("base", "UPDATE {t} SET v = 8 WHERE id < 20")
    lake.project.refresh("large")
    lake.view("over", "SELECT id, twice FROM large", lake.declared("large"), strategy="snapshot")
    lake.project.refresh("over")
    with pytest.raises(StillNeededError):
        maintain(lake.project.workspace(), "large", vacuum_hours=0)
    forget_replaced(lake.project.workspace(), "over")
    maintain(lake.project.workspace(), "large", vacuum_hours=0)


@pytest.mark.full
def test_a_view_over_it_finds_a_new_life(lake: Lake) -> None:
    lake.view("over", "SELECT id FROM large", lake.declared("large"))
    lake.project.refresh("over")
    redefine(lake, NEW)
    lake.view("over", "SELECT id FROM large", lake.declared("large"))
    replaced(lake.project)
    with pytest.raises(UpstreamChangedError, match="backfill reset over"):
        lake.project.refresh("over")
    assert replace_view(lake.project.workspace(), "over", Limits(), run_id=uuid.uuid4().hex).switched
    assert lake.found("over", ["id"]) == lake.expected("over", "SELECT id FROM large", "large")


def test_nothing_is_left_beside_a_view_that_is_forgotten_or_dropped(lake: Lake) -> None:
    planned = lake.project.workspace().state.ledger().incarnations("views/large")
    redefine(lake, NEW)
    replaced(lake.project)
    assert beside(lake) == {"replaced"}
    forget_replaced(lake.project.workspace(), "large")
    assert beside(lake) == set()
    assert lake.project.workspace().state.ledger().incarnations("views/large") == planned, (
        "plans of the replacement go with it"
    )
    assert rows(lake).total() > 0
    redefine(lake, GROUPS)
    replaced(lake.project)
    drop(lake.project.workspace(), "large")
    assert beside(lake) == set()


def beside(lake: Lake) -> set[str]:
    """Where data files lie beside the table that is read; logs with their checkpoints stay."""
    places = ("replacements", "replaced")
    files = {at: (lake.project.root / "warehouse" / at / "large").rglob("*.parquet") for at in places}
    return {at for at, found in files.items() if any(file.parent.name != "_delta_log" for file in found)}


def test_a_damaged_view_is_replaced_and_not_kept(lake: Lake) -> None:
    (lost, *_) = DeltaTable(lake.location("large")).file_uris()
    Path(lost).unlink()
    redefine(lake, NEW)
    done = replaced(lake.project)
    assert (done.switched, done.kept) == (True, False)
    assert right(lake, NEW, "id", "twice", "thrice")


def test_what_others_have_written_is_not_put_back(lake: Lake) -> None:
    redefine(lake, NEW)
    replaced(lake.project)
    kept = str(lake.project.root / "warehouse" / "replaced" / "large")
    DeltaTable(kept).delete("id = 1")
    with pytest.raises(ExternalWriteError, match=r"is not by an epoch(.|\n)*backfill replace large --forget"):
        undo_replacement(lake.project.workspace(), "large")
    assert right(lake, NEW, "id", "twice", "thrice")


def test_a_view_whose_history_is_still_read_is_replaced_and_not_kept(lake: Lake) -> None:
    reset(lake.project.workspace(), "large")
    assert not lake.project.refresh("large", Limits(chunk_rows=5, max_rows=5)).report.record.live
    redefine(lake, NEW)
    done = replaced(lake.project)
    assert (done.switched, done.kept) == (True, False)
    assert right(lake, NEW, "id", "twice", "thrice")


@pytest.mark.parametrize("end", [reset, drop])
def test_a_view_that_another_call_has_ended_while_its_replacement_was_copied_is_left_alone(
    lake: Lake, end: Any
) -> None:
    redefine(lake, NEW)
    seen: list[str] = []

    def end_it(step: str) -> None:
        if step in {"kept", "copied"}:
            seen.append(step)
        if seen == ["copied", "kept", "copied"]:  # copies of what is kept come first
            seen.append("ended")
            end(lake.project.workspace(), "large")

    with pytest.raises(FencedError):
        replaced(lake.project, on_step=end_it)
    assert seen == ["copied", "kept", "copied", "ended"]
    look = lake.project.workspace().table(lake.declared("large")).output.look()
    assert look.exists == (end is reset)
    assert lake.shown("large").total() == 0


def test_what_cannot_be_replaced_is_refused(lake: Lake) -> None:
    redefine(lake, NEW)
    lake.project.declare(materialized_view("never", query="SELECT id FROM base", upstreams=[lake.table("base")]))
    with pytest.raises(DroppedError, match="backfill refresh never"):
        replace_view(lake.project.workspace(), "never", Limits(), run_id="r")
    with pytest.raises(DeclarationError, match="there is no source or view"):
        replace_view(lake.project.workspace(), "unknown", Limits(), run_id="r")
