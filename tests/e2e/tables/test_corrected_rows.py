"""A row that cannot be computed and is corrected in its table stops no view for good, whatever kind of query it has."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.adapters.compute.netted_changes import netted_changes
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.errors import PoisonRowError
from tests.support.lake import Lake
from tests.support.local_rows import local_rows
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

NAN = float("nan")
JOINED = "FROM orders AS o JOIN notes AS n ON o.note = n.id"
QUERIES = {
    "rowwise": "SELECT id, 60 DIV parts AS share FROM orders WHERE 60 DIV parts > 1",
    "groups": "SELECT note, sum(60 DIV parts) AS share, min(60 DIV parts) AS least FROM orders GROUP BY note",
    "linear": f"SELECT o.id, n.word, 60 DIV o.parts AS share {JOINED} WHERE 60 DIV o.parts > 1",
    "restricted": f"SELECT o.id, 60 DIV o.parts AS share, rank() OVER (PARTITION BY n.id ORDER BY o.id) AS place {JOINED}",
    "additive": f"SELECT n.word, sum(60 DIV o.parts) AS share {JOINED} GROUP BY n.word",
}
TABLES = {"rowwise": ("orders",), "groups": ("orders",)}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.append("notes", [{"id": number, "word": f"note {number}"} for number in range(3)])
    lake.append("orders", [order(number) for number in range(40)])
    return lake


def order(number: int, parts: int = 2) -> dict[str, Any]:
    return {"id": number, "parts": parts, "note": number % 4}


def refresh(lake: Lake, query: str, *names: str, last: bool = False) -> None:
    """One epoch, after which the view is its query over the tables. Checks of it pass, in the gate after the last one."""
    report = lake.project.refresh("shares").report
    assert len(report.epochs) == 1
    expected = lake.expected("shares", query, *names)
    assert lake.shown("shares") == expected
    assert expected.total() > 0
    if FULL or last:
        lake.passes("shares", ("exactly_once", "rows_conserved"))


@pytest.mark.parametrize("kind", ["rowwise", "linear"])
def test_a_row_that_came_and_went_stops_no_view(lake: Lake, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    query, names = QUERIES[kind], TABLES.get(kind, ("orders", "notes"))
    lake.view("shares", query, *map(lake.table, names), refresh_mode="incremental")
    refresh(lake, query, *names)
    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id = 7", "UPDATE {t} SET parts = 3 WHERE id IN (7, 8)")
    refresh(lake, query, *names)
    if kind not in TABLES:
        assert lake.project.record("shares").rule == kind


@pytest.mark.full
@pytest.mark.parametrize("spark", [False, True])
@pytest.mark.parametrize("kind", QUERIES)
def test_a_view_goes_on_once_the_row_that_stopped_it_is_corrected(
    lake: Lake, kind: str, spark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spark:
        monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)  # read by Spark, as many changes are
    query, names = QUERIES[kind], TABLES.get(kind, ("orders", "notes"))
    lake.view("shares", query, *map(lake.table, names), refresh_mode="incremental")
    refresh(lake, query, *names)

    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id = 7", "UPDATE {t} SET parts = 3 WHERE id IN (7, 8)")
    refresh(lake, query, *names)

    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id IN (9, 11)", "UPDATE {t} SET parts = 5 WHERE id = 12")
    before = lake.project.record("shares")
    for _ in range(2 if FULL else 1):
        with pytest.raises(PoisonRowError, match="DIVIDE_BY_ZERO") as caught:
            lake.project.refresh("shares")
        assert "and refresh again" in caught.value.hint
    assert lake.project.record("shares") == before
    lake.sql("orders", "UPDATE {t} SET parts = 4 WHERE id = 9", "DELETE FROM {t} WHERE id = 11")
    refresh(lake, query, *names, last=True)
    if kind not in TABLES:
        assert lake.project.record("shares").rule == kind


TOLD = "schema_of_variant(value) || ' ' || coalesce(CAST(value AS STRING), 'none')"


def test_variants_are_netted_by_what_they_hold(lake: Lake) -> None:
    changes = [
        (1, '{"a": 1, "b": [2]}', "insert"), (1, '{"b": [2], "a": 1}', "delete"), (2, "1", "insert"), (2, '"1"', "delete"),
        (3, None, "insert"), (3, None, "delete"), (3, "null", "delete"), (4, "1.0", "insert"), (4, "1", "delete"),
    ]  # fmt: skip
    rows = local_rows(lake.spark, changes, "id INT, text STRING, _change_type STRING")
    netted = netted_changes(rows.selectExpr("id", "parse_json(text) AS value", "_change_type"))
    left = Counter(tuple(row) for row in netted.selectExpr("id", TOLD, "_change_type").collect())
    assert left == Counter({
        (2, "BIGINT 1", "insert"): 1, (2, "STRING 1", "delete"): 1, (3, "VOID none", "delete"): 1,
        (4, "DECIMAL(1,0) 1", "insert"): 1, (4, "BIGINT 1", "delete"): 1,
    })  # fmt: skip


@pytest.mark.full
def test_a_row_beside_a_variant_may_be_corrected(lake: Lake) -> None:
    made = "SELECT id, IF(id = 7, 0, 2) AS parts, parse_json('{\"a\": 1}') AS j FROM range(40)"
    lake.write("odd", lake.spark.sql(made.replace("IF(id = 7, 0, 2)", "2")))
    query = "SELECT id, 60 DIV parts AS share, CAST(j AS STRING) AS j FROM odd"
    lake.view("shares", query, lake.table("odd"))
    refresh(lake, query, "odd")
    lake.sql("odd", "UPDATE {t} SET parts = 0 WHERE id = 7", spark=True)
    with pytest.raises(PoisonRowError):
        lake.project.refresh("shares")
    lake.sql("odd", "UPDATE {t} SET parts = 3 WHERE id = 7", spark=True)
    refresh(lake, query, "odd")


MET = {
    "two tables": "SELECT a.id, 60 DIV (a.x - b.y) AS share FROM a JOIN b ON a.id = b.id",
    "groups": "SELECT sum(60 DIV (a.x - b.y)) AS share FROM a JOIN b ON a.id = b.id",
    "a table and itself": "SELECT a.id, 60 DIV (a.x - b.x) AS share FROM a JOIN a AS b ON a.id = b.id + 10",
}


@pytest.mark.parametrize("kind", MET if FULL else ["two tables"])
def test_rows_that_were_never_there_together_stop_no_view(lake: Lake, kind: str) -> None:
    lake.append("a", [{"id": number, "x": 5 + number // 10 * 2} for number in range(40)])
    lake.append("b", [{"id": number, "y": 3} for number in range(40)])
    names = ("a",) if "itself" in kind else ("a", "b")
    lake.view("shares", MET[kind], *map(lake.table, names), refresh_mode="incremental")
    refresh(lake, MET[kind], *names)
    if len(names) == 1:
        lake.sql("a", "UPDATE {t} SET x = x - 2 WHERE id IN (0, 10)")  # 5 and 7 are now 3 and 5
    else:
        lake.sql("b", "UPDATE {t} SET y = 1 WHERE id = 7")
        lake.sql("a", "UPDATE {t} SET x = 3 WHERE id = 7")  # 5 - 3 is now 3 - 1, and a new x met an old y
    refresh(lake, MET[kind], *names)
    record = lake.project.record("shares")
    assert (record.rule, record.why_full) == ("full", "values")
    lake.sql("a", "UPDATE {t} SET x = 9 WHERE id = 8")
    refresh(lake, MET[kind], *names, last=True)
    assert lake.project.record("shares").rule != "full"


def test_what_may_only_follow_changes_is_not_computed_in_full(lake: Lake) -> None:
    lake.append("a", [{"id": number, "x": 5} for number in range(40)])
    lake.append("b", [{"id": number, "y": 3} for number in range(40)])
    lake.view("shares", MET["two tables"], lake.table("a"), lake.table("b"), refresh_mode="incremental_strict")
    refresh(lake, MET["two tables"], "a", "b")
    lake.sql("b", "UPDATE {t} SET y = 1 WHERE id = 7")
    lake.sql("a", "UPDATE {t} SET x = 3 WHERE id = 7")
    with pytest.raises(PoisonRowError, match="DIVIDE_BY_ZERO"):
        lake.project.refresh("shares")


REFUSED = {
    "format_string(word, id)": ("%d", "%q", "Conversion = 'q'"),
    "to_number(word, '99')": ("12", "abc", "INVALID_FORMAT"),
    "size(split('abc', word))": ("b", "(", "Unclosed group"),
    "size(sequence(1, CAST(word AS INT), 1))": ("5", "-5", "Illegal sequence boundaries"),
    "size(array_repeat(1, CAST(word AS INT)))": ("3", "2147483647", "2147483647 elements"),
    "xpath_string(word, 'a')": ("<a>1</a>", "<a>", "RuntimeException"),
    "'a' LIKE word": ("a", "a\\", "INVALID_FORMAT"),
}
"""Expressions, a word that they take, one that Spark refuses, and with which words."""


@pytest.mark.full
@pytest.mark.parametrize("expression", REFUSED if FULL else ["to_number(word, '99')"])
def test_values_that_spark_refuses_in_its_own_words_are_named_and_may_be_corrected(lake: Lake, expression: str) -> None:
    good, bad, why = REFUSED[expression]
    lake.append("words", [{"id": number, "word": good} for number in range(40)])
    query = f"SELECT id, {expression} AS made FROM words"
    lake.view("shares", query, lake.table("words"))
    refresh(lake, query, "words")
    lake.append("words", [{"id": 77, "word": bad}])
    with pytest.raises(PoisonRowError, match=re.escape(why)) as caught:
        lake.project.refresh("shares")
    assert [row["key"] for row in caught.value.facts["rows"]] == [[["id", "77"]]]
    lake.append("words", [{"id": number, "word": good} for number in (77, 78)], mode="overwrite")
    refresh(lake, query, "words")


@pytest.mark.full
def test_groups_go_on_where_the_files_of_what_stopped_them_are_gone(lake: Lake) -> None:
    query = "SELECT note, sum(60 DIV parts) AS share, max(60 DIV parts) AS most FROM orders GROUP BY note"
    lake.view("shares", query, lake.table("orders"))
    refresh(lake, query, "orders")
    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id IN (3, 5)")
    with pytest.raises(PoisonRowError):
        lake.project.refresh("shares")
    lake.sql("orders", "UPDATE {t} SET parts = 5 WHERE id IN (3, 5, 6)")
    DeltaTable(lake.path("orders")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refresh(lake, query, "orders")


def test_a_row_that_was_corrected_in_what_was_captured_stops_no_view(lake: Lake) -> None:
    for first in (40, 80, 120):
        lake.append("orders", [order(number) for number in range(first, first + 40)])
    query = QUERIES["rowwise"]
    lake.view("shares", query, lake.table("orders"), strategy="rearranged")
    lake.project.refresh("shares", Limits(chunk_rows=10, max_rows=10))
    lake.sql("orders", "UPDATE {t} SET parts = 0 WHERE id = 7", "UPDATE {t} SET parts = 3 WHERE id = 7")
    lake.project.refresh("shares", Limits(chunk_rows=10, max_rows=10))
    position = lake.project.record("shares").position
    assert isinstance(position, SnapshotPosition)
    assert position.spooled, "changes that are left to read were captured"
    assert lake.project.refresh("shares").report.record.live
    assert lake.found("shares", ("id", "share")) == lake.expected("shares", query, "orders")


def test_only_rows_that_no_query_tells_apart_are_netted(lake: Lake) -> None:
    changes = [
        (1, 0.0, {"a": 1}, "insert"), (1, 0.0, {"a": 1}, "update_preimage"), (1, -0.0, {"a": 1}, "update_postimage"),
        (2, -0.0, None, "delete"), (2, 0.0, None, "insert"), (3, NAN, None, "delete"), (3, NAN, None, "insert"),
        (4, 1.0, {}, "insert"), (4, 1.0, {}, "insert"), (5, 2.0, None, "delete"),
    ]  # fmt: skip
    rows = local_rows(lake.spark, changes, "id INT, value DOUBLE, words MAP<STRING, INT>, _change_type STRING")
    inside = rows.selectExpr("id", "array(parse_json('1')) AS value", "_change_type")
    assert netted_changes(inside).count() == len(changes), "Spark does not group them"
    left = Counter((row[0], str(row[1]), str(row[2]), row[3]) for row in netted_changes(rows).collect())
    assert left == {
        (1, "-0.0", "{'a': 1}", "insert"): 1, (2, "-0.0", "None", "delete"): 1, (2, "0.0", "None", "insert"): 1,
        (4, "1.0", "{}", "insert"): 2, (5, "2.0", "None", "delete"): 1,
    }  # fmt: skip
