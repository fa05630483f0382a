"""The benchmarks run and are fair: each of them checks that both sides produced the same rows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import backfill, changes, counting, epochs, idle, ingest, joins, many, refresh, situations, tables
from benchmarks.measure import Comparison
from benchmarks.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture
def small_world(broker: str, tmp_path: Path) -> World:
    return World(root=tmp_path, servers=broker)


def names(found: list[Comparison]) -> list[tuple[str, str]]:
    for each in found:
        assert len(each.ours) == len(each.theirs) > 0
        assert min(*each.ours, *each.theirs) > 0
        assert each.summary()["ratio_median"] > 0
    return [(each.benchmark, each.case) for each in found]


def test_ingest_and_its_peer_write_the_same_rows(small_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "EPOCHS", (1, 2))
    found = list(ingest.run(small_world, rows=320, repetitions=1, warmups=0))
    assert names(found) == [("ingest", "1 epoch"), ("ingest", "2 epochs")]


def test_backfill_and_its_peer_make_the_same_view_in_as_many_batches(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "BATCHES", (1, 2))
    found = list(backfill.run(small_world, rows=320, repetitions=1, warmups=0))
    assert names(found) == [("backfill", "1 batch"), ("backfill", "2 batches")]


def test_refreshes_of_all_ways_end_with_the_same_view(small_world: World) -> None:
    found = list(refresh.run(small_world, repetitions=1, warmups=0, history=100))
    assert [case for _, case in names(found)] == ["source and view", "view alone", "view alone"]


def test_small_epochs_are_counted_step_by_step(small_world: World) -> None:
    found = list(epochs.run(small_world, epochs=6, window=2))
    assert names(found) == [("epochs", f"the last 2 of 6, log kept for {kept}") for kept in ("30 days", "1 second")]
    assert all(each.details["last_looked"] > 0 for each in found)


def test_much_of_everything_is_measured_in_processes_of_their_own(small_world: World) -> None:
    found = list(many.run(small_world, sizes={"tables": 20, "partitions": 40, "files": 200, "versions": 2_000}))
    assert {benchmark for benchmark, _ in names(found)} == {"many"}
    assert len(found) == 3 + 2 + 2 + 3
    assert all(0 < each.details["mib"] < 1024 for each in found)


def test_an_idle_command_ends_well_on_both_sides(small_world: World) -> None:
    (found,) = idle.run(small_world, repetitions=1)
    assert names([found]) == [("idle", "nothing new, whole command")]


def test_what_is_counted_and_what_is_not_make_the_same_view(small_world: World) -> None:
    found = list(counting.run(small_world, rows=4_000, repetitions=1, warmups=0))
    assert {benchmark for benchmark, _ in names(found)} == {"counting"}
    assert len(found) == 3


def test_views_over_tables_and_their_peers_hold_the_same_rows(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "CHUNKS", 2)
    found = list(tables.run(small_world, rows=20_000, repetitions=1, warmups=0))
    assert [benchmark for benchmark, _ in names(found)] == ["snapshot", *["growth"] * 4]


def test_all_ways_of_following_joins_end_with_the_same_rows(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joins, "CHANGED", 10)
    monkeypatch.setattr(joins, "CHUNKS", 2)
    found = list(joins.run(small_world, rows=2_000, repetitions=1, warmups=0))
    by_hand = sum(bool(each.touches) for each in joins.VIEWS.values())
    assert {benchmark for benchmark, _ in names(found)} == {"joins"}
    assert len(found) == 4 * len(joins.VIEWS) + by_hand + len(joins.BUILDS) + 1


def test_both_ways_of_following_a_table_take_in_all_its_versions(small_world: World) -> None:
    found = list(changes.run(small_world, rows=200, repetitions=1, warmups=0, versions=3))
    cases = [f"3 versions of 1 % updates of 200, {mode}" for mode in ("auto", "incremental")]
    assert names(found) == [("changes", case) for case in cases]


def test_a_choice_is_measured_against_every_strategy_that_could_be_taken(small_world: World) -> None:
    assert len({each.name for each in situations.SITUATIONS}) == len(situations.SITUATIONS) >= 30
    (found,) = situations.run(small_world, situations=1, warmups=0)
    assert names([found]) == [("situations", f"{situations.SITUATIONS[0].name}: snapshot")]
    assert {name for name in found.details if name.startswith("measured_")} == {
        "measured_snapshot",
        "measured_snapshot_once",
        "measured_arrangement",
        "measured_rearranged",
    }


def test_both_sides_make_the_same_views_in_a_store_and_their_requests_are_counted(tmp_path: Path) -> None:
    """In a process of its own, as the session of this one does not reach tables on S3."""
    said = tmp_path / "found.json"
    subprocess.run(
        [sys.executable, "-m", "benchmarks", "store", "--rows", "3200", "--repetitions", "1", "--json", str(said)],
        cwd=Path(__file__).parents[3],
        check=True,
    )
    records, *builds = json.loads(said.read_text())["comparisons"]
    assert {(each["benchmark"], len(each["ours"]), len(each["theirs"])) for each in (records, *builds)} == {
        ("store", 1, 1)
    }
    assert 0 < records["details"]["requests of ours"] < records["details"]["requests of theirs"]
    assert [each["case"] for each in builds] == ["first build, as auto chooses", "first build, in 8 chunks"]
