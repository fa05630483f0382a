"""Views over several tables lie in files by their keys: few changes are in few files, and `maintain` restores that."""

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute import laid_out, value_parts
from backfill_assets.adapters.compute.value_parts import FEWEST
from backfill_assets.adapters.delta.layout import commit_layout, is_laid_out
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.app.lifecycle import maintain
from backfill_assets.core.epoch import merge_groups
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.strategies import rule_choice
from backfill_assets.errors import StagingError
from tests.support.lake import Lake
from tests.support.settings import FULL

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("spark")]

ROWS, PLACES = 50, 40
QUERIES: dict[str, tuple[str, str, str | None]] = {
    "rows": ("SELECT o.id, o.place, p.region FROM orders o JOIN places p ON o.place = p.name", "id", None),
    "keyed": ("SELECT o.id, o.place, p.region FROM orders o JOIN places p ON o.place = p.name", "id", "id"),
    "classes": ("SELECT o.id, o.twice, p.name FROM places p LEFT JOIN orders o ON o.place = p.name", "name", None),
    "groups": (
        "SELECT o.place AS name, count(*) AS n FROM orders o JOIN places p ON o.place = p.name GROUP BY o.place",
        "name",
        None,
    ),
}
"""Queries, the column by which each is laid out, and the key that is declared."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Tables of a project, whose views are laid out as on a cluster."""
    monkeypatch.setattr(merge_groups, "ROWS_OF_FILE", ROWS)
    monkeypatch.setattr(value_parts, "tasks_of_machine", lambda _spark: 0)
    made = Lake(tmp_path)
    made.append("places", ({"name": f"place {at:02}", "region": at % 3} for at in range(PLACES)))
    for part in range(4):  # each file holds values from all over the table
        rows = [
            {"id": at, "place": f"place {at % PLACES:02}", "twice": at // 2} for at in range(400) if at % 7 % 4 == part
        ]
        made.append("orders", rows)
    return made


@pytest.fixture
def small(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The same on a machine of two processors."""
    monkeypatch.setattr(value_parts, "tasks_of_machine", lambda _spark: 2)
    return lake


def view_of(lake: Lake, name: str, **given: Any) -> None:
    query, _, key = QUERIES[name]
    lake.view(name, query, lake.table("orders"), lake.table("places", "name"), primary_key=key, **given)


def is_right(lake: Lake, name: str) -> None:
    columns = [each for each in lake.rows(lake.location(name)).columns if not each.startswith("__")]
    assert lake.found(name, columns) == lake.expected(name, QUERIES[name][0], "orders", "places") != Counter()


def loaded(lake: Lake, name: str) -> DeltaTable:
    return DeltaTable(lake.location(name))


def newest(lake: Lake, name: str, *, since: int | None = None) -> list[dict[str, Any]]:
    """What the newest commit did, or all commits from a version on."""
    last = loaded(lake, name).version()
    log = Path(lake.location(name)) / "_delta_log"
    versions = range(last if since is None else since, last + 1)
    return [json.loads(line) for each in versions for line in (log / f"{each:020d}.json").read_text().splitlines()]


def removed(lake: Lake, name: str) -> int:
    """How many files the newest commit took away."""
    return sum("remove" in each for each in newest(lake, name))


def changes_rows(lake: Lake, name: str, *, since: int) -> bool:
    """Whether commits from a version on, which put files in the place of others, tell readers that rows changed."""
    actions = newest(lake, name, since=since)
    told = {each[kind]["dataChange"] for each in actions for kind in ("add", "remove") if kind in each}
    assert told
    return True in told


@pytest.mark.parametrize("name", QUERIES if FULL else ["classes"])
def test_the_first_build_is_laid_out_and_neighbours_that_change_are_in_few_files(lake: Lake, name: str) -> None:
    view_of(lake, name)
    lake.project.refresh(name)
    is_right(lake, name)
    column = QUERIES[name][1]
    files = pa.table(loaded(lake, name).get_add_actions(flatten=True)).to_pydict()
    if name == "groups":
        assert len(files["path"]) == 1
        return
    spans = sorted(zip(files[f"min.{column}"], files[f"max.{column}"], strict=True))
    assert len(spans) >= 6
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))
    assert max(files["num_records"]) < 2 * ROWS
    first = "id IN (120, 121, 122)" if column == "id" else "place IN ('place 17', 'place 18')"
    lake.sql("orders", f"UPDATE {{t}} SET place = 'place 17' WHERE {first}")
    lake.project.refresh(name)
    is_right(lake, name)
    assert 1 <= removed(lake, name) <= 3


@pytest.mark.parametrize("name", ["groups", "keyed", "rows"] if FULL else ["rows"])
def test_history_in_chunks_is_laid_out_by_maintain_and_goes_on(
    lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view_of(lake, name, strategy="snapshot")
    for _ in range(4):
        lake.project.refresh(name, Limits(chunk_rows=1, max_rows=1))
    is_right(lake, name)
    column = QUERIES[name][1]
    monkeypatch.setattr("backfill_assets.adapters.delta.layout.MOST_OVERLAP", 1)
    # One file would be made of so few rows.
    monkeypatch.setattr("backfill_assets.adapters.delta.output.compact", lambda *_: None)
    before = loaded(lake, name)
    assert is_laid_out(before, column) == (name == "groups")
    maintain(lake.project.workspace(), name)
    assert is_laid_out(loaded(lake, name), column)
    assert name == "groups" or not changes_rows(lake, name, since=before.version() + 1)
    is_right(lake, name)
    version = loaded(lake, name).version()
    maintain(lake.project.workspace(), name)
    assert loaded(lake, name).version() <= version + 1, "what is laid out is only restated"
    lake.sql("orders", "UPDATE {t} SET place = 'place 03' WHERE id < 3", "DELETE FROM {t} WHERE id = 100")
    lake.append("orders", [{"id": 1000, "place": "place 39", "twice": 1}])
    lake.project.refresh(name)
    is_right(lake, name)
    for check in ("exactly_once", "rows_conserved"):
        outcome = lake.project.check(name, check)
        assert outcome.passed, outcome


def test_a_column_that_a_union_gives_another_type_has_no_bounds_of_its_own(lake: Lake) -> None:
    """Bounds of texts say nothing of numbers, and are none."""
    for first in range(1000, 1400, 50):
        lake.append("codes", ({"code": f"c{at}" if first < 1200 else f"{at}"} for at in range(first, first + 50)))
    query = "SELECT code AS k FROM codes WHERE code NOT LIKE 'c%' UNION SELECT id FROM orders"
    lake.view("mixed", query, lake.table("codes", None), lake.table("orders"), primary_key="k", refresh_mode="full")
    lake.project.refresh("mixed")
    lake.sql("orders", "UPDATE {t} SET id = id + 5000")
    lake.project.refresh("mixed")
    assert lake.shown("mixed") == lake.expected("mixed", query, "codes", "orders") != Counter()
    assert lake.project.record("mixed").engine == "overwrite"


@pytest.mark.parametrize("in_files", [True, False], ids=["in order", "in no order"])
def test_rows_that_are_alike_in_many_tasks_are_laid_out_and_told_apart(lake: Lake, in_files: bool) -> None:
    made = [{"id": at, "k": at // 3 if at % 10 else None, "place": f"place {at % 3:02}"} for at in range(600)]
    schema = pa.schema({"id": pa.int64(), "k": pa.int64(), "place": pa.string()})
    for at in range(6):
        part = made[at * 100 : at * 100 + 100] if in_files else made[at::6]
        lake.append("many", pa.Table.from_pylist(part, schema=schema))
    query = "SELECT m.k, p.region FROM many m JOIN places p ON m.place = p.name"
    lake.view("copied", query, lake.table("many"), lake.table("places", "name"))
    lake.project.refresh("copied")
    assert lake.found("copied", ["k", "region"]) == lake.expected("copied", query, "many", "places") != Counter()
    rows = lake.rows(lake.location("copied"))
    assert rows.select("k", "__row_hash", "__copy").distinct().count() == rows.count() == 600
    files = pa.table(loaded(lake, "copied").get_add_actions(flatten=True)).to_pydict()
    spans = sorted((low, high) for low, high in zip(files["min.k"], files["max.k"], strict=True) if low is not None)
    assert len(files["path"]) > FEWEST
    assert max(files["num_records"]) <= ROWS
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))
    lake.sql("many", "DELETE FROM {t} WHERE id % 7 = 0", "UPDATE {t} SET k = 5 WHERE id < 9")
    lake.project.refresh("copied")
    assert lake.found("copied", ["k", "region"]) == lake.expected("copied", query, "many", "places")


def test_rows_that_are_alike_in_the_tasks_of_a_small_machine_are_told_apart(small: Lake) -> None:
    made = [{"id": at, "k": at // 9 if at % 3 else None, "place": f"place {at % 2:02}"} for at in range(600)]
    schema = pa.schema({"id": pa.int64(), "k": pa.int64(), "place": pa.string()})
    for at in range(6):
        small.append("many", pa.Table.from_pylist(made[at::6], schema=schema))
    query = "SELECT m.k, p.region FROM many m JOIN places p ON m.place = p.name"
    small.view("copied", query, small.table("many"), small.table("places", "name"))
    for statements in ([], ["DELETE FROM {t} WHERE id % 7 = 0"], ["UPDATE {t} SET k = 5 WHERE id < 300"]):
        small.sql("many", *statements)
        small.project.refresh("copied")
        assert small.found("copied", ["k", "region"]) == small.expected("copied", query, "many", "places") != Counter()
        rows = small.rows(small.location("copied"))
        assert rows.select("k", "__row_hash", "__copy").distinct().count() == rows.count() > 500
        if not statements:
            numbers = sorted(row["__copy"] - 1 for row in rows.select("__copy").collect())
            assert numbers == sorted({*range(1 << 32, (1 << 32) + 600)})
            assert is_laid_out(loaded(small, "copied"), "k")


@pytest.mark.parametrize("name", QUERIES if FULL else ["groups", "rows"])
def test_a_small_machine_sorts_rows_where_they_are(small: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without counting them, unless a view is known to have few."""
    monkeypatch.setattr(rule_choice, "LARGE", 100)
    view_of(small, name)
    for statement in ("", "UPDATE {t} SET place = 'place 05', twice = twice + 1 WHERE id < 200"):
        if statement:
            small.sql("orders", statement)
        with monkeypatch.context() as patch:
            if not statement or name != "groups":
                patch.setattr(laid_out, "_counted", None)
            record = small.project.refresh(name).report.record
        is_right(small, name)
        assert record.engine == "overwrite"
        assert is_laid_out(loaded(small, name), QUERIES[name][1])
        sizes = pa.table(loaded(small, name).get_add_actions())["num_records"].to_pylist()
        assert len(sizes) > 2 or name == "groups"
        assert max(sizes) <= ROWS


def test_rows_of_which_nothing_is_known_are_counted_and_laid_out(lake: Lake) -> None:
    query = "SELECT id, place, rank() OVER (PARTITION BY place ORDER BY id) AS r FROM orders"
    lake.view("ranked", query, lake.table("orders"))
    lake.project.refresh("ranked")
    assert lake.found("ranked", ["id", "place", "r"]) == lake.expected("ranked", query, "orders") != Counter()
    files = pa.table(loaded(lake, "ranked").get_add_actions(flatten=True)).to_pydict()
    assert len(files["path"]) > FEWEST
    assert is_laid_out(loaded(lake, "ranked"), "place")


def test_files_of_wide_rows_hold_fewer_of_them(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_groups, "_BYTES_OF_FILE", 1_000)  # for rows of some sixty bytes
    view_of(lake, "rows")
    lake.project.refresh("rows")
    is_right(lake, "rows")
    assert max(pa.table(loaded(lake, "rows").get_add_actions())["num_records"].to_pylist()) < ROWS / 2


@pytest.mark.full
def test_chunks_of_history_are_laid_out_by_the_log_of_their_table(lake: Lake) -> None:
    for at in range(0, 800, 50):
        lake.append("lines", ({"id": each, "place": f"place {each % PLACES:02}"} for each in range(at, at + 50)))
    query = "SELECT l.id, p.region FROM lines l JOIN places p ON l.place = p.name"
    lake.view("chunked", query, lake.table("lines"), lake.table("places", "name"), strategy="snapshot")
    report = lake.project.refresh("chunked", Limits(chunk_rows=400)).report
    assert report.record.epoch == 2
    assert lake.found("chunked", ["id", "region"]) == lake.expected("chunked", query, "lines", "places") != Counter()
    files = pa.table(loaded(lake, "chunked").get_add_actions(flatten=True)).to_pydict()
    assert sorted(files["num_records"]) == [ROWS] * 16
    assert not is_overlapping(files, "id")


def is_overlapping(files: dict[str, list[Any]], column: str) -> bool:
    spans = sorted(zip(files[f"min.{column}"], files[f"max.{column}"], strict=True))
    return any(low <= high for (_, high), (low, _) in pairwise(spans))


def test_a_large_view_of_which_all_rows_go_is_empty(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_choice, "LARGE", 100)
    view_of(lake, "rows")
    assert lake.project.refresh("rows").report.record.rows_total >= 100
    lake.sql("orders", "UPDATE {t} SET place = 'nowhere'")
    record = lake.project.refresh("rows").report.record
    assert (record.why_full, record.rows_total) == ("many_changes", 0)
    assert lake.shown("rows").total() == 0


@pytest.mark.parametrize(
    ("name", "is_read"),
    [(name, is_read) for name in QUERIES for is_read in (False, True)]
    if FULL
    else [("rows", True), ("groups", False), ("rows", False)],
)
def test_a_large_view_of_which_many_rows_change_is_replaced_if_no_other_view_reads_it(
    lake: Lake, name: str, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_choice, "LARGE", 100)
    view_of(lake, name)
    if is_read:
        lake.view("reader", f"SELECT {QUERIES[name][1]} AS v FROM {name}", lake.declared(name))
    lake.project.refresh(name)
    before = set(loaded(lake, name).file_uris())
    lake.sql("orders", "UPDATE {t} SET place = 'place 05', twice = twice + 1 WHERE id BETWEEN 100 AND 132")
    record = lake.project.refresh(name).report.record
    is_right(lake, name)
    assert (record.rule == "full") is not is_read
    assert record.why_full == ("" if is_read else "many_changes")
    assert before.isdisjoint(loaded(lake, name).file_uris()) or is_read
    if name == "rows" and not is_read:
        files = pa.table(loaded(lake, name).get_add_actions(flatten=True)).to_pydict()
        assert not is_overlapping(files, "id")
    if FULL or not is_read:
        monkeypatch.undo()
        lake.sql("orders", "UPDATE {t} SET place = 'place 09' WHERE id = 8")
        lake.project.refresh(name)
        is_right(lake, name)
    for check in ("exactly_once", "rows_conserved") if FULL else ():
        assert lake.project.check(name, check).passed


def test_a_layout_of_other_rows_or_of_an_older_version_is_not_committed(lake: Lake) -> None:
    view_of(lake, "rows")
    lake.project.refresh("rows")
    workspace = lake.project.workspace()
    location = workspace.table(workspace.registry.find("rows")).output.location
    before = loaded(lake, "rows")
    folders = [f"{'a' * 8}-{at}-{'b' * 8}" for at in (1, 2)]
    every = laid_out.laid_out_again(workspace.runner, location, before, ["id"], folders[0])
    with pytest.raises(StagingError, match="laid out again"):
        commit_layout(location, before, every[1:])
    lake.sql("orders", "DELETE FROM {t} WHERE id = 100")
    lake.project.refresh("rows")
    newest = loaded(lake, "rows").version()
    assert not commit_layout(location, before, collect(location, folders[0]))
    assert loaded(lake, "rows").version() == newest
    is_right(lake, "rows")


PAIR = "SELECT o.a, o.b FROM pairs o JOIN lone l ON o.place = l.name"


def in_chunks(lake: Lake, *files: list[tuple[int | None, int | None]]) -> None:
    """A view whose history is read file by file."""
    schema = pa.schema({"id": pa.int64(), "a": pa.int32(), "b": pa.int32(), "place": pa.string()})
    lake.append("lone", [{"name": "place 01"}])  # history goes by the files of the larger table
    for number, rows in enumerate(files):
        named = [{"id": 10 * number + at, "a": a, "b": b, "place": "place 01"} for at, (a, b) in enumerate(rows)]
        lake.append("pairs", pa.Table.from_pylist(named, schema=schema))
    lone = lake.table("lone", "name")
    lake.view("pair", PAIR, lake.table("pairs"), lone, strategy="snapshot", refresh_mode="incremental")
    for epoch, _ in enumerate(files, 1):
        record = lake.project.refresh("pair", Limits(chunk_rows=1, max_rows=1)).report.record
        assert (record.epoch, record.rows_read) == (epoch, 2)
    assert lake.project.refresh("pair").report.record.live
    assert lake.found("pair", ["a", "b"]) == lake.expected("pair", PAIR, "pairs", "lone") != Counter()


def test_copies_of_a_row_in_several_chunks_are_told_apart(lake: Lake) -> None:
    in_chunks(lake, [(1, 1), (1, 1)], [(1, 1), (2, 2)])
    held = lake.rows(lake.location("pair"))
    assert held.select("a", "__row_hash", "__copy").distinct().count() == held.count() == 4
    lake.sql("pairs", "DELETE FROM {t} WHERE id IN (1, 10)", "INSERT INTO {t} VALUES (30, 2, 2, 'place 01')")
    lake.project.refresh("pair")
    assert lake.found("pair", ["a", "b"]) == Counter({(1, 1): 1, (2, 2): 2})


def test_rows_of_one_hash_and_other_values_are_left_alone(lake: Lake) -> None:
    # Spark's hashes ignore nulls.
    in_chunks(lake, [(1, None), (None, 1)], [(None, 1), (5, 5)])
    lake.sql("pairs", "DELETE FROM {t} WHERE a = 1")
    record = lake.project.refresh("pair").report.record
    assert (record.rows_written, record.rows_deleted) == (0, 1)
    assert lake.found("pair", ["a", "b"]) == Counter({(None, 1): 2, (5, 5): 1})


def test_a_view_whose_tables_are_gone_is_maintained_all_the_same(lake: Lake) -> None:
    view_of(lake, "rows")
    lake.project.refresh("rows")
    shutil.rmtree(lake.path("orders"))
    before = lake.rows(lake.location("rows")).count()
    maintain(lake.project.workspace(), "rows", vacuum_hours=1_000)
    assert lake.rows(lake.location("rows")).count() == before
