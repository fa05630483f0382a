"""Views of the first rows of a query follow changes as long as enough of them are known, and are exact either way."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.compute import first_rows, ways
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.settings import FULL, one_in_gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

QUERIES = {
    "rows": "SELECT o.id, o.amount, n.word FROM orders o JOIN notes n ON o.note = n.note ORDER BY o.amount DESC LIMIT 4",
    "groups": "SELECT note, sum(amount) AS total, count(*) AS n FROM orders GROUP BY note ORDER BY total DESC LIMIT 3",
    "keyed": "SELECT id, amount FROM orders WHERE amount > 0 ORDER BY amount DESC NULLS LAST, id LIMIT 4",
    "copies": "SELECT note, amount % 3 AS third FROM orders ORDER BY third, note DESC LIMIT 6",
    "whole": "SELECT * FROM orders ORDER BY amount DESC NULLS LAST LIMIT 4",
    "latest": "SELECT id, note, amount FROM (SELECT *, row_number() OVER (PARTITION BY note ORDER BY amount DESC) AS n "
    "FROM orders) WHERE n = 1 ORDER BY note LIMIT 3",
}
RULES = {
    "rows": "linear",
    "groups": "restricted",
    "keyed": "linear",
    "copies": "linear",
    "latest": "restricted",
    "whole": "linear",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return filled(tmp_path)


def filled(root: Path) -> Lake:
    made = Lake(root)
    made.append("orders", [{"id": at, "amount": 10 * at, "note": f"n{at % 7}"} for at in range(1, 30)])
    made.append("notes", [{"note": f"n{at}", "word": f"word {at}"} for at in range(6)])
    return made


def view(lake: Lake, name: str, **given: Any) -> None:
    key = "id" if name == "keyed" else None
    tables = [lake.table("orders"), lake.table("notes", "note")]
    lake.view(name, QUERIES[name], *tables[: 2 if name == "rows" else 1], primary_key=key, **given)


def refreshed(lake: Lake, name: str) -> tuple[str, str]:
    """By which rule the view follows, and why in full; it is its query then, with the order that leaves nothing open."""
    record, query = lake.project.refresh(name).report.record, lake.declared(name).text
    tables = [each for each in ("orders", "notes") if re.search(rf"\b{each}\b", query)]
    assert lake.shown(name) == lake.expected(name, query, *tables)
    return record.rule, record.why_full


@pytest.mark.full
@pytest.mark.parametrize("name", ["copies", "groups", "keyed", "latest", "rows", "whole"])
def test_changes_are_followed_while_enough_rows_are_known(lake: Lake, name: str) -> None:
    view(lake, name, refresh_mode="incremental")
    refreshed(lake, name)
    rule = RULES[name]
    lake.append("orders", [{"id": 40, "amount": 295, "note": "n1"}, {"id": 41, "amount": 1, "note": "n2"}])
    assert refreshed(lake, name) == (rule, "")
    lake.sql("orders", "UPDATE {t} SET amount = 302 WHERE id = 2", "DELETE FROM {t} WHERE id = 29")
    assert refreshed(lake, name) == (rule, "")
    lake.sql("orders", "UPDATE {t} SET amount = NULL WHERE id IN (3, 5)")
    refreshed(lake, name)
    lake.sql("orders", "DELETE FROM {t} WHERE id > 12 AND id <> 20")
    rule_then, why = refreshed(lake, name)
    assert (rule_then, why) in {("full", "first_rows"), (rule, "")}
    lake.append("orders", [{"id": 50, "amount": 400, "note": "n3"}])
    assert refreshed(lake, name)[0] == rule
    lake.passes(name, ("exactly_once", "rows_conserved"))
    assert lake.shown(name) != Counter()


@pytest.mark.parametrize("name", ["copies", "whole"])
def test_rows_come_in_the_order_that_the_query_says_and_nulls_where_it_says(lake: Lake, name: str) -> None:
    view(lake, name, refresh_mode="incremental")
    refreshed(lake, name)
    lake.append("orders", [{"id": 60 + at, "amount": 600 + at, "note": "n9"} for at in range(3)])
    lake.sql("orders", "UPDATE {t} SET amount = NULL WHERE id = 29")
    assert refreshed(lake, name) == ("linear", "")


def test_a_view_that_lost_rows_is_computed_in_full_and_goes_on(lake: Lake) -> None:
    view(lake, "keyed", refresh_mode="incremental")
    refreshed(lake, "keyed")
    lake.sql("orders", "DELETE FROM {t} WHERE id = 26")
    lake.append("orders", [{"id": 59, "amount": 5, "note": "n0"}])
    assert refreshed(lake, "keyed") == ("full", "first_rows"), (
        "the last one went, and what came may not be the next one"
    )
    lake.append("orders", [{"id": 60, "amount": 600, "note": "n0"}])
    lake.sql("orders", "DELETE FROM {t} WHERE id = 28")
    assert refreshed(lake, "keyed") == ("linear", "")
    lake.sql("orders", "DELETE FROM {t} WHERE id > 2")
    assert refreshed(lake, "keyed") == ("full", "first_rows")
    assert sum(lake.shown("keyed").values()) == 2
    lake.sql("orders", "DELETE FROM {t} WHERE id = 2")
    lake.append("orders", [{"id": at, "amount": at, "note": "n0"} for at in range(70, 75)])
    assert refreshed(lake, "keyed") == ("linear", ""), "all rows that there were are known"


def test_rows_that_are_too_large_for_this_process_are_left_to_spark(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(lake, "keyed", refresh_mode="incremental")
    refreshed(lake, "keyed")
    monkeypatch.setattr(first_rows, "MOST_BYTES", 10)
    lake.append("orders", [{"id": 60, "amount": 600, "note": "n0"}])
    assert refreshed(lake, "keyed") == ("full", "first_rows")


def test_after_three_epochs_in_full_only_every_tenth_tries_the_rule(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger=ways.__name__)
    lake.append("orders", [{"id": -at, "amount": -at, "note": "n0"} for at in range(1, 300)])
    view(lake, "keyed")
    refreshed(lake, "keyed")
    tried = []
    for gone in range(29, 24 if FULL else 28, -1):
        caplog.clear()
        lake.sql("orders", f"DELETE FROM {{t}} WHERE id = {gone}")
        assert refreshed(lake, "keyed") == ("full", "first_rows")
        tried.append(caplog.text.count("rows come before all that the view does not hold"))
    assert tried == ([1, 1, 1, 0, 0] if FULL else [1])


@pytest.mark.full
@pytest.mark.parametrize(
    "query",
    one_in_gate(
        "SELECT -amount AS amount, amount + 1 AS more FROM orders ORDER BY amount + 1 LIMIT 3",
        "SELECT amount, note FROM orders ORDER BY +1 DESC LIMIT 3",
    ),
)
def test_names_in_order_by_that_are_other_columns_than_in_select(lake: Lake, query: str) -> None:
    """Spark looks a name up in the result first, and a number with a sign is no column's number."""
    lake.view("odd", query, lake.table("orders"), refresh_mode="incremental")
    refreshed(lake, "odd")
    lake.append("orders", [{"id": 80, "amount": 500, "note": "n0"}, {"id": 81, "amount": 2, "note": "n0"}])
    assert refreshed(lake, "odd") == ("full", "no_rule")


def rules_over_connect(root: str) -> list[tuple[str, str]]:
    lake = filled(Path(root))
    view(lake, "rows", refresh_mode="incremental")
    found = [refreshed(lake, "rows")]
    lake.append("orders", [{"id": 40, "amount": 295, "note": "n1"}])
    found.append(refreshed(lake, "rows"))
    lake.sql("orders", "DELETE FROM {t} WHERE id > 26")
    return [*found, refreshed(lake, "rows")]


@pytest.mark.full
def test_first_rows_are_told_over_spark_connect(remote: str, tmp_path: Path) -> None:
    found = over_connect(remote, rules_over_connect, tmp_path)
    assert found == [["full", "first"], ["linear", ""], ["full", "first_rows"]]
