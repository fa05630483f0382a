"""A row of a table that a view cannot compute: named by its key, and left out in every version until it is taken back."""

from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.compute import poison_search
from backfill_assets.app import skipping
from backfill_assets.app.lifecycle import reset
from backfill_assets.app.skipping import Named, left_out, set_skips
from backfill_assets.core.epoch.culprits import MAX_NAMED
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import ComputeError, DeclarationError, PoisonRowError
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

QUICK_CHECKS = ("exactly_once", "positions_contiguous", "ledger_matches_table")
QUERY = "SELECT id, 60 DIV parts AS share FROM orders WHERE note <> 'no'"
IN_CONDITION = f"{QUERY} AND 60 DIV parts > 1"
"""Which rows the view has cannot be computed either."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def row(number: int, parts: int = 2, note: str = "yes") -> dict[str, Any]:
    return {"id": number, "parts": parts, "note": note}


def skip(lake: Lake, *ids: object, undo: bool = False) -> dict[str, str]:
    for each in ids:
        named = Named(key=(f"id={each}",))
        found = set_skips(lake.project.workspace(), "shares", named, undo=undo, by="test")
    return {each.place["key"]["id"]: each.status for each in found}


def poison(lake: Lake, view: str = "shares") -> list[dict[str, str]]:
    with pytest.raises(PoisonRowError) as caught:
        lake.project.refresh(view)
    return [dict(each["key"]) for each in caught.value.facts["rows"]]


def refresh(lake: Lake, *left_out: int, query: str = QUERY, **limits: Any) -> None:
    """One run, after which the view is its query over all rows except those left out: proved by the check, and once
    everything has been read, by a separate oracle."""
    live = lake.project.refresh("shares", Limits(**limits)).report.record.live
    others = f"SELECT * FROM orders WHERE id NOT IN ({', '.join(map(str, (-1, *left_out)))})"
    columns = ("id", "share") if "GROUP" not in query else ("note", "share", "least")
    expected = lake.expected("shares", query.replace("FROM orders", f"FROM ({others}) AS orders"), "orders")
    assert not live or lake.found("shares", columns) == expected
    for check in QUICK_CHECKS:
        outcome = lake.project.check("shares", check)
        assert outcome.passed, (check, outcome)
        said = f"{len(left_out)} row{'s are' if len(left_out) > 1 else ' is'} left out on request"
        assert (said in outcome.summary) == bool(left_out), outcome.summary


@pytest.mark.parametrize(
    ("strategy", "query"),
    [
        pytest.param("snapshot", IN_CONDITION, marks=pytest.mark.full),
        pytest.param("snapshot_once", IN_CONDITION, marks=pytest.mark.full),
        pytest.param("arrangement", QUERY, marks=pytest.mark.full),
        pytest.param("rearranged", QUERY, marks=pytest.mark.full),
    ],
)
def test_a_poison_row_is_left_out_of_history_and_comes_back_when_it_was_corrected(
    lake: Lake, strategy: Any, query: str
) -> None:
    lake.append("orders", [row(1), row(2, parts=0), row(3)])
    lake.append("orders", [row(4), row(5, note="no")])
    lake.view("shares", query, lake.table("orders"), strategy=strategy)
    assert poison(lake) == [{"id": "2"}]
    assert skip(lake, 2) == {"2": "waiting"}
    refresh(lake, 2, query=query)
    assert skip(lake, 2) == {"2": "left out"}
    lake.sql("orders", "UPDATE {t} SET parts = 4 WHERE id IN (2, 3)")
    refresh(lake, 2, query=query)
    assert skip(lake, 2, undo=True) == {"2": "coming back"}
    refresh(lake, query=query)


def test_a_row_that_was_sound_before_goes_and_one_that_was_corrected_since_comes_back_at_once(lake: Lake) -> None:
    lake.append("orders", [row(number) for number in range(1, 6)])
    lake.view("shares", QUERY, lake.table("orders"))
    refresh(lake)
    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id IN (2, 4)", "UPDATE {t} SET parts = 3 WHERE id = 5")
    if FULL:
        assert poison(lake) == [{"id": "2"}, {"id": "4"}] or poison(lake) == [{"id": "4"}, {"id": "2"}]
    skip(lake, 2, 4)
    refresh(lake, 2, 4)
    lake.sql("orders", "UPDATE {t} SET parts = 4 WHERE id = 2", "DELETE FROM {t} WHERE id = 4")
    skip(lake, 2, 4, undo=True)
    refresh(lake)


@pytest.mark.full
def test_a_row_goes_and_comes_back_though_nothing_else_is_new(lake: Lake) -> None:
    lake.append("orders", [row(number) for number in range(1, 6)])
    lake.view("shares", QUERY, lake.table("orders"))
    refresh(lake)
    skip(lake, 1)
    refresh(lake, 1)
    assert lake.project.refresh("shares").report.epochs == []
    skip(lake, 1, undo=True)
    refresh(lake)


def test_a_row_that_is_taken_back_comes_though_others_changed_meanwhile(lake: Lake) -> None:
    """It is in no table's changes, so a rule for these does not see it."""
    query = "SELECT o.id, o.parts, n.word FROM orders o JOIN notes n ON o.note = n.note"
    lake.append("orders", [row(number) for number in range(1, 6)])
    lake.append("notes", [{"note": "yes", "word": "oui"}])
    lake.view("shares", query, lake.table("orders"), lake.table("notes", "note"), refresh_mode="incremental")

    def is_right(rule: str, why: str, *, out: bool = False) -> None:
        lake.project.refresh("shares")
        expected = lake.expected("shares", f"{query} WHERE NOT {out} OR o.id <> 1", "orders", "notes")
        assert lake.shown("shares") == expected
        assert (lake.project.record("shares").rule, lake.project.record("shares").why_full) == (rule, why)

    named = Named(source="orders", key=("id=1",))
    lake.project.refresh("shares")
    set_skips(lake.project.workspace(), "shares", named, undo=False, by="test")
    is_right("full", "first", out=True)
    set_skips(lake.project.workspace(), "shares", named, undo=True, by="test")
    lake.append("orders", [row(6)])
    is_right("full", "rows_left_out")
    lake.append("orders", [row(7)])
    is_right("linear", "")


def test_more_poison_rows_than_are_named_are_told_though_their_keys_share_numbers(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poison_search, "_slots", lambda _rows: 2)
    lake.append("orders", [row(number, parts=0) for number in range(MAX_NAMED + 2)])
    lake.view("shares", QUERY, lake.table("orders"))
    with pytest.raises(PoisonRowError) as caught:
        lake.project.refresh("shares")
    assert len(caught.value.facts["rows"]) == MAX_NAMED
    assert "There may be more" in str(caught.value)


@pytest.mark.full
def test_the_list_changes_while_history_is_read_and_a_reset_begins_with_it(lake: Lake) -> None:
    for number in range(1, 7):
        lake.append("orders", [row(number)])
    lake.view("shares", QUERY, lake.table("orders"), strategy="snapshot")
    refresh(lake, chunk_rows=1, max_rows=2)
    skip(lake, *range(1, 6))
    refresh(lake, 1, 2, 3, 4, 5, chunk_rows=1, max_rows=1)
    skip(lake, 1, 2, 3, undo=True)
    refresh(lake, 4, 5, chunk_rows=1, max_rows=1)
    refresh(lake, 4, 5)
    reset(lake.project.workspace(), "shares")
    refresh(lake, 4, 5)


@pytest.mark.parametrize("strategy", ["snapshot", pytest.param("rearranged", marks=pytest.mark.full)])
def test_an_aggregate_leaves_keys_out_that_its_columns_do_not_hold(lake: Lake, strategy: Any) -> None:
    """What is computed of the sum of a group cannot be computed of each row by itself."""
    shares = "sum(60 DIV parts) + 60 DIV sum(parts - 2)"
    query = f"SELECT note, {shares} AS share, min(parts) AS least FROM orders GROUP BY note"
    lake.append("orders", [row(1), row(2, parts=0), row(3, parts=3)])
    lake.append("orders", [row(4, parts=5, note="no")])
    lake.view("shares", query, lake.table("orders"), strategy=strategy)
    assert poison(lake) == [{"id": "2"}]
    skip(lake, 2)
    refresh(lake, 2, query=query)
    skip(lake, 1)
    refresh(lake, 1, 2, query=query)
    lake.sql("orders", "UPDATE {t} SET parts = 4 WHERE id = 2")
    skip(lake, 1, 2, undo=True)
    refresh(lake, query=query)


def test_what_cannot_be_named_or_is_named_wrongly_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append("orders", [row(1, parts=0)])
    lake.view("shares", QUERY, lake.table("orders", key=None))
    with pytest.raises(ComputeError, match="DIVIDE_BY_ZERO") as caught:
        lake.project.refresh("shares")
    assert "rows of table 'orders', which has no primary key" in caught.value.hint
    with pytest.raises(DeclarationError, match="cannot be named"):
        skip(lake, 1)
    lake.view("shares", QUERY, lake.table("orders"))
    for named, said in (
        (Named(key=("id=one",)), "column 'id' of table 'orders' is a BIGINT, found 'one'"),
        (Named(key=("number=1",)), r"the key of table 'orders' is \(id\)"),
        (Named(key=("id=1", "id=2")), "found id=1, id=2"),
        (Named(partition=0, offsets=(1,)), "is named by its key"),
        (Named(source="others", key=("id=1",)), "reads orders; found 'others'"),
    ):
        with pytest.raises(DeclarationError, match=said):
            set_skips(lake.project.workspace(), "shares", named, undo=False, by="test")
    assert set_skips(lake.project.workspace(), "shares", Named(key=("id",)), undo=False, by="test")
    with monkeypatch.context() as few:
        few.setattr(skipping, "MAX_SKIPS", 1)
        with pytest.raises(DeclarationError, match="leave out 2 rows, expected 1 at the most"):
            skip(lake, 1)
    assert len(left_out(lake.project.workspace(), "shares")) == 1, "nothing is recorded"
    reset(lake.project.workspace(), "shares")
    assert poison(lake) == [{"id": "1"}], "no row has the key null"
