"""A view's own primary key is a constraint: rows are merged by where they came from. A duplicate key is refused, with
its name and the parts that have it, until it has been corrected. No reset is ever needed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute.consolidated import consolidated
from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import DuplicateKeyError
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.working_columns import DUPLICATE
from tests.support.damage import recompact
from tests.support.lake import Lake
from tests.support.large import large
from tests.support.settings import CHECKS, FULL, one_in_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

BOTH = "SELECT id, v FROM hot UNION ALL SELECT id, v FROM cold"
COLUMNS = ["id", "v"]
HIDDEN = ["__branch", "__id", *COLUMNS]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A live view `both` of two tables, between which keys are moved."""
    made = Lake(tmp_path)
    made.append("hot", ({"id": at, "v": at} for at in range(6)))
    made.append("cold", ({"id": at, "v": at} for at in range(10, 14)))
    made.view("both", BOTH, made.table("hot"), made.table("cold"), primary_key="id")
    made.project.refresh("both")
    return made


def test_a_key_of_which_two_rows_went_was_not_unique(spark: "SparkSession") -> None:
    rows = "(1, 'a'), (1, 'b'), (2, 'a')"
    gone = spark.sql(f"SELECT id, v, 'delete' AS {CARRIED_CHANGE} FROM VALUES {rows} AS t(id, v)")
    found = {row["id"]: row[DUPLICATE] for row in consolidated(gone, ["id"]).collect()}
    assert found == {1: True, 2: False}


def exact(
    lake: Lake,
    view: str = "both",
    query: str = BOTH,
    names: Sequence[str] = ("hot", "cold"),
    checks: Iterable[str] = (),
) -> None:
    found = lake.found(view, COLUMNS)
    assert found == lake.expected(view, query, *names)
    assert found.total() > 0
    for check in checks:
        outcome = lake.project.check(view, check)
        assert outcome.passed, (check, outcome.summary)


def refused(lake: Lake, view: str = "both") -> DuplicateKeyError:
    """Refused, and nothing was written."""
    before = lake.project.record(view), lake.found(view, COLUMNS)
    with pytest.raises(DuplicateKeyError) as error:
        lake.project.refresh(view)
    assert (lake.project.record(view), lake.found(view, COLUMNS)) == before
    return error.value


def test_a_key_that_moves_within_an_epoch_is_merged_by_where_it_came_from_by_either_engine(lake: Lake) -> None:
    for at, workspace in enumerate((lake.project.workspace(), large(lake))):
        lake.sql("hot", f"DELETE FROM {{t}} WHERE id = {at}", f"UPDATE {{t}} SET v = v + 100 WHERE id = {at + 4}")
        lake.append("cold", [{"id": at, "v": at + 10}])
        done = refresh(workspace, "both", Limits(), run_id=str(at)).report
        assert len(done.epochs) == 1
        assert (done.record.rows_written, done.record.rows_updated, done.record.rows_deleted) == (2, 1, 1)
        exact(lake)
    exact(lake, checks=CHECKS)
    moved = [row[:2] for row in lake.found("both", HIDDEN) if row[2] < 2]
    assert sorted(moved) == [(1, 0), (1, 1)], "they are rows of the second part now"


def test_a_key_that_is_in_both_tables_is_refused_until_one_has_deleted_it(lake: Lake) -> None:
    lake.append("cold", [{"id": 3, "v": 30}, {"id": 20, "v": 1}])
    for _ in range(2 if FULL else 1):
        error = refused(lake)
        assert "the same key (id), first: (3,) in part 1 (hot) and part 2 (cold)" in error.message
        assert (error.facts["keys"], "being moved from one table to another" in error.hint) == ([["3"]], True)
    lake.sql("hot", "UPDATE {t} SET v = v + 1 WHERE id = 3")
    refused(lake)
    lake.sql("hot", "DELETE FROM {t} WHERE id = 3")
    report = lake.project.refresh("both").report
    assert (len(report.epochs), report.record.live) == (1, True)
    exact(lake, checks=CHECKS)


@pytest.mark.full
def test_small_epochs_that_see_the_table_of_a_move_first_take_more_at_once(lake: Lake) -> None:
    for at in range(4):  # many versions of the first table wait, and the last one deletes the keys
        lake.sql("hot", f"UPDATE {{t}} SET v = v + {at} WHERE id < 6")
    lake.sql("hot", "DELETE FROM {t} WHERE id < 3")
    lake.append("cold", ({"id": at, "v": 0} for at in range(3)))
    report = lake.project.refresh("both", Limits(chunk_rows=4)).report
    assert report.record.live
    exact(lake)


def test_a_key_that_moves_to_another_row_of_its_table(lake: Lake) -> None:
    query = "SELECT name AS id, v FROM people"
    lake.append("people", ({"id": at, "name": f"n{at}", "v": at} for at in range(6)))
    lake.view("named", query, lake.table("people"), primary_key="id")
    lake.view("child", "SELECT id, v FROM named", lake.declared("named"))
    for view in ("named", "child"):
        lake.project.refresh(view)
    assert lake.found("named", ["__id", "id"])[3, "n3"] == 1, "the row that it came from is carried"
    assert set(lake.found("child", ["*"])) == set(lake.found("child", COLUMNS)), "readers go by the view's own key"
    lake.sql("people", "UPDATE {t} SET name = CASE id WHEN 1 THEN 'n2' ELSE 'n1' END WHERE id IN (1, 2)")
    report = lake.project.refresh("named").report
    assert (report.record.rows_written, report.record.rows_updated) == (2, 2)
    lake.sql("people", "UPDATE {t} SET name = 'n5' WHERE id = 4")
    error = refused(lake, "named")
    assert error.facts["keys"] == [["n5"]], "without a single new row"
    lake.sql("people", "UPDATE {t} SET name = 'n4' WHERE id = 5")
    lake.project.refresh("named")
    lake.project.refresh("child")
    exact(lake, "named", query, ["people"], CHECKS)
    exact(lake, "child", "SELECT id, v FROM named", ["named"])


@pytest.mark.parametrize("key", one_in_gate("", "code"))
def test_tables_whose_keys_differ_or_are_none_are_followed_by_the_views_own(lake: Lake, key: str) -> None:
    lake.append("old", ({"code": f"{at}", "v": at} for at in range(20, 24)))
    query = "SELECT id, v FROM hot UNION ALL SELECT CAST(code AS BIGINT), v FROM old"
    lake.view("mixed", query, lake.table("hot"), lake.table("old", key=key or None), primary_key="id")
    lake.project.refresh("mixed")
    lake.sql("hot", "DELETE FROM {t} WHERE id = 3", "UPDATE {t} SET v = 7 WHERE id = 2")
    lake.append("old", [{"code": "3", "v": 33}])
    lake.project.refresh("mixed")
    exact(lake, "mixed", query, ["hot", "old"], ["unique_key"])
    lake.append("old", [{"code": "4", "v": 1}])
    assert refused(lake, "mixed").facts["keys"] == [["4"]]


def test_a_life_does_not_begin_over_a_key_in_two_tables_and_the_check_finds_one_that_slipped_in(lake: Lake) -> None:
    def doubled(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{**row, "id": 3} if row["id"] == 12 else row for row in rows]

    recompact(lake.project, "both", doubled)
    outcome = lake.project.check("both", "unique_key")
    assert outcome.violations == [{"id": 3, "rows": 2, "upstreams": ["hot", "cold"]}]
    lake.append("cold", [{"id": 5, "v": 1}])
    lake.view("late", BOTH, lake.table("hot"), lake.table("cold"), primary_key="id")
    with pytest.raises(DuplicateKeyError, match=r"\(5,\) in part 1 \(hot\) and part 2 \(cold\)"):
        lake.project.refresh("late")
    assert not Path(lake.location("late")).exists()
