"""Views that compare texts by a collation follow their tables: by changed rows, in full, and by groups; and names that
IDENTIFIER gives are names."""

from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.settings import one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

ON = "c.name COLLATE UTF8_LCASE = CAST(o.name AS STRING COLLATE UTF8_LCASE)"
KEYS = {"customers": "id", "orders": "no"}
CHANGES = {
    "customers": ("UPDATE {t} SET name = 'nAmE 3' WHERE id < 6", "DELETE FROM {t} WHERE id = 20"),
    "orders": ("INSERT INTO {t} VALUES (90, 'NAME 19'), (91, NULL)", "DELETE FROM {t} WHERE no IN (2, 3)"),
}
VIEWS = {
    "rows": (
        "SELECT id, IDENTIFIER('upper')(name) AS u FROM IDENTIFIER('customers') WHERE IDENTIFIER('name') COLLATE "
        "UTF8_LCASE IN ('name 1', 'NAME 2') OR startswith(name COLLATE UTF8_LCASE, 'name 3')",
        ("customers",),
        "",
    ),
    "inner": (f"SELECT c.id, o.no, o.name FROM customers c JOIN orders o ON {ON}", ("customers", "orders"), "linear"),
    "outer": (f"SELECT c.id, o.no FROM customers c LEFT JOIN orders o ON {ON}", ("customers", "orders"), "full"),
    "inside": (
        "SELECT id FROM customers WHERE name COLLATE UTF8_LCASE NOT IN (SELECT name FROM orders) AND city = 1",
        ("customers", "orders"),
        "full",
    ),
    "groups": (
        "SELECT city, count(*) AS n, count_if(name COLLATE UTF8_LCASE = 'name 1') AS ones FROM customers GROUP BY city",
        ("customers",),
        "",
    ),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.append(
        "customers",
        [{"id": at, "name": f"{'Name' if at % 3 else 'NAME'} {at % 20}", "city": at % 2} for at in range(40)],
    )
    made.append("orders", [{"no": at, "name": f"name {at}"} for at in range(15)])
    return made


@pytest.mark.parametrize("view", one_in_gate("outer", "rows", "inner", "inside", "groups"))
def test_texts_that_a_collation_makes_equal_are_found_after_each_change(lake: Lake, view: str) -> None:
    query, tables, rule = VIEWS[view]
    lake.view(view, query, *(lake.table(name, KEYS[name]) for name in tables), refresh_mode="incremental")
    for table, statements in {"none": (), **{name: CHANGES[name] for name in tables}}.items():
        if statements:
            lake.sql(table, *statements)
        record = lake.project.refresh(view).report.record
        columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
        found = lake.found(view, columns)
        assert found == lake.expected(view, query, *tables)
        assert found or (view, table) == ("inside", "orders")
    assert not rule or record.rule == rule
