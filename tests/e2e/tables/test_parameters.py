"""Views with subqueries for one value: while that stays, changes of what they read are nothing; else all is computed."""

from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.settings import CHECKS, FULL, one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

MOST = "(SELECT max(number) FROM limits WHERE number < 1000)"
VIEWS = {
    "alone": f"SELECT id, name, {MOST} AS most FROM orders WHERE number < {MOST}",
    "groups": f"SELECT name, sum(number) AS total FROM orders GROUP BY name HAVING sum(number) > {MOST}",
    "itself": "SELECT id, number - (SELECT min(number) FROM orders) AS more FROM orders",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return filled(tmp_path)


def filled(root: Path) -> Lake:
    made = Lake(root)
    made.append("orders", [{"id": at, "name": f"name {at % 9}", "number": at} for at in range(40)])
    made.append("limits", [{"number": at} for at in (10, 30, 30, 2000)])
    return made


def refreshed(lake: Lake, view: str) -> tuple[str, str, int, int]:
    """By which rule the view follows, why in full, and how many rows it writes and deletes for it; it is its query then."""
    record = lake.project.refresh(view).report.record
    query = VIEWS[view]
    tables = [name for name in ("orders", "limits") if name in query]
    columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
    found = lake.found(view, columns)
    assert found == lake.expected(view, query, *tables)
    assert found
    return record.rule, record.why_full, record.rows_written, record.rows_deleted


@pytest.mark.full
def test_names_of_with_are_followed_in_each_of_their_places(lake: Lake) -> None:
    view, groups = "named", "WITH s AS (SELECT name, sum(number) AS total FROM orders GROUP BY name)"
    VIEWS[view] = (
        f"{groups} SELECT s.name, total FROM s JOIN limits ON number < total WHERE total = (SELECT max(total) FROM s)"
    )
    lake.view(view, VIEWS[view], lake.table("orders", None), lake.table("limits", None), refresh_mode="incremental")
    refreshed(lake, view)
    lake.sql("orders", "UPDATE {t} SET number = number + 1 WHERE id < 3", "DELETE FROM {t} WHERE id = 9")
    assert refreshed(lake, view)[:2] == ("restricted", "")
    lake.sql("limits", "INSERT INTO {t} VALUES (5), (6)")
    assert refreshed(lake, view)[:2] == ("restricted", "")
    lake.sql("orders", "UPDATE {t} SET number = number + 100 WHERE id = 7")
    assert refreshed(lake, view)[:2] == ("full", "parameters")
    lake.passes(view, CHECKS)


@pytest.mark.parametrize("view", one_in_gate("alone", "groups"))
def test_changes_are_followed_while_the_value_stays(lake: Lake, view: str) -> None:
    rule = {"alone": "linear", "groups": "restricted"}[view]
    lake.view(view, VIEWS[view], lake.table("orders", None), lake.table("limits", None), refresh_mode="incremental")
    refreshed(lake, view)
    lake.sql("limits", "INSERT INTO {t} VALUES (5), (3000)", "DELETE FROM {t} WHERE number = 10")
    found = refreshed(lake, view)
    assert found[1:] == ("", 0, 0)
    lake.sql("limits", "UPDATE {t} SET number = 7 WHERE number = 5")
    lake.sql("orders", "INSERT INTO {t} VALUES (50, 'new', 29), (51, 'new', 2)", "DELETE FROM {t} WHERE id = 3")
    assert refreshed(lake, view)[:2] == (rule, "")

    lake.sql("limits", "INSERT INTO {t} VALUES (35)")
    assert refreshed(lake, view)[:2] == ("full", "parameters")
    if not FULL:
        return
    lake.sql("limits", "UPDATE {t} SET number = 8 WHERE number = 7")
    lake.sql("orders", "UPDATE {t} SET number = 28 WHERE id = 9")
    assert refreshed(lake, view)[:2] == (rule, "")
    lake.sql("limits", "DELETE FROM {t} WHERE number < 1000")
    record = lake.project.refresh(view).report.record
    assert (record.rule, record.why_full, record.rows_total) == ("full", "parameters", 0)


def test_a_value_of_which_a_text_does_not_tell_all_is_taken_for_another_one(lake: Lake) -> None:
    VIEWS["arrays"] = "SELECT id FROM orders WHERE array_contains((SELECT array(min(number), 30) FROM limits), number)"
    lake.view(
        "arrays", VIEWS["arrays"], lake.table("orders", None), lake.table("limits", None), refresh_mode="incremental"
    )
    refreshed(lake, "arrays")
    lake.append("limits", [{"number": 50}])
    assert refreshed(lake, "arrays")[:2] == ("full", "parameters")
    lake.append("orders", [{"id": 50, "name": "new", "number": 10}])
    assert refreshed(lake, "arrays")[:2] == ("linear", "")


@pytest.mark.full
def test_a_table_may_have_a_value_and_rows(lake: Lake) -> None:
    lake.view("itself", VIEWS["itself"], lake.table("orders", None), refresh_mode="incremental")
    refreshed(lake, "itself")
    lake.sql("orders", "UPDATE {t} SET number = 100 WHERE id = 20")
    assert refreshed(lake, "itself") == ("linear", "", 1, 1)
    lake.sql("orders", "DELETE FROM {t} WHERE number = 0")
    assert refreshed(lake, "itself")[:2] == ("full", "parameters")


def rules_over_connect(root: str) -> list[tuple[str, str]]:
    """By which rules a view follows a change of a value's table, and one of the value."""
    lake = filled(Path(root))
    lake.view(
        "alone", VIEWS["alone"], lake.table("orders", None), lake.table("limits", None), refresh_mode="incremental"
    )
    refreshed(lake, "alone")
    found = []
    for number in (5, 35):
        lake.append("limits", [{"number": number}])
        found.append(refreshed(lake, "alone")[:2])
    return found


@pytest.mark.full
def test_values_are_asked_for_over_spark_connect(remote: str, tmp_path: Path) -> None:
    assert over_connect(remote, rules_over_connect, tmp_path) == [["linear", ""], ["full", "parameters"]]
