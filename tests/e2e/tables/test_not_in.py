"""Views with NOT IN follow what its subquery reads, unless a null there, or in what is compared, decides about every row."""

from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.settings import FULL, one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

PLAIN = "SELECT id, name FROM customers WHERE id NOT IN (SELECT customer FROM orders)"
CAREFUL = f"{PLAIN[:-1]} WHERE customer IS NOT NULL) AND id IS NOT NULL"
JOINED = """SELECT DISTINCT c.name, t.name AS city FROM customers c LEFT JOIN cities t ON t.id = c.city
    WHERE c.id NOT IN (SELECT customer FROM orders)"""
VIEWS = {
    "plain": (PLAIN, ("customers", "orders")),
    "careful": (CAREFUL, ("customers", "orders")),
    "joined": (JOINED, ("customers", "cities", "orders")),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.append("customers", [{"id": at, "name": f"name {at % 20}", "city": at % 7} for at in range(40)])
    made.append("cities", [{"id": at, "name": f"city {at}"} for at in range(7)])
    made.append("orders", [{"no": at, "customer": at % 25} for at in range(50)])
    return made


def refreshed(lake: Lake, view: str) -> tuple[str, str, int]:
    """The rule of the epoch after which a view is what its query gives, why it is in full, and how many rows there are."""
    record = lake.project.refresh(view).report.record
    query, tables = VIEWS[view]
    columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
    found = lake.found(view, columns)
    assert found == lake.expected(view, query, *tables)
    return record.rule, record.why_full, found.total()


@pytest.mark.parametrize("view", one_in_gate("joined", "plain", "careful"))
def test_nulls_decide_whether_not_in_is_followed(lake: Lake, view: str) -> None:
    query, tables = VIEWS[view]
    lake.view(view, query, *(lake.table(name, None) for name in tables), refresh_mode="incremental")
    refreshed(lake, view)
    followed = ("restricted", "")
    with_nulls = followed if view == "careful" else ("full", "nulls")
    lake.sql("orders", "DELETE FROM {t} WHERE customer = 3", "INSERT INTO {t} VALUES (50, 30), (51, 31), (52, 31)")
    assert refreshed(lake, view)[:2] == followed

    lake.sql("orders", "INSERT INTO {t} VALUES (60, NULL)")
    *rule, rows = refreshed(lake, view)
    assert (*rule, rows == 0) == (*with_nulls, view != "careful")
    if view == "joined":
        lake.sql("cities", "UPDATE {t} SET name = 'moved' WHERE id = 4")
        assert refreshed(lake, view) == (*followed, 0)

    # The null goes together with other rows: now many rows come of which no key was touched.
    lake.sql("orders", "DELETE FROM {t} WHERE customer IS NULL OR customer = 5")
    *rule, rows = refreshed(lake, view)
    assert (*rule, rows > 10) == (*with_nulls, True)
    if not FULL:
        return

    lake.sql("orders", "UPDATE {t} SET customer = 35 WHERE customer = 9")
    assert refreshed(lake, view)[:2] == followed

    lake.sql("customers", "INSERT INTO {t} VALUES (NULL, 'nobody', 1)")
    assert refreshed(lake, view)[0] == ("restricted" if view == "joined" else "linear")
    lake.sql("orders", "DELETE FROM {t}")
    assert refreshed(lake, view)[:2] == with_nulls


def test_only_a_view_that_always_has_a_rule_is_declared_to_follow_changes_alone(lake: Lake) -> None:
    tables = [lake.table(name, None) for name in ("customers", "orders")]
    lake.view("strict", CAREFUL, *tables, refresh_mode="incremental_strict")
    assert lake.project.refresh("strict").report.record.live
