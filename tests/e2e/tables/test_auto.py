"""`strategy="auto"` on real tables: a life begins with the strategy that `plan` shows, and nothing unsafe is begun."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from backfill_assets.app.dry_run import plan
from backfill_assets.core.choice.choose import Choice
from backfill_assets.core.choice.reasons import Code
from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import SnapshotPosition, ViewPosition
from backfill_assets.errors import NoStrategyError, UpstreamRefusedError
from tests.support.broker import configure
from tests.support.contract import NOTHING, TableWorld, TopicWorld, World
from tests.support.dagster_project import DagsterProject, observed

pytestmark = pytest.mark.e2e

FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
MILLION = 1_000_000
TWO_DAYS_MS = 2 * 24 * 3_600_000

SITUATIONS: Mapping[Strategy, tuple[int, dict[str, str]]] = {
    "snapshot": (40, {}),
    "snapshot_once": (3 * MILLION, {}),
    "arrangement": (40 * MILLION, {FILES: "interval 20 seconds"}),
    "rearranged": (40 * MILLION, {LOG: "interval 20 seconds"}),
}
"""For each strategy, a table that it reads best: its rows according to the log, and its properties."""


def a_table(root: Path, *, rows: int = 40, properties: dict[str, str] | None = None) -> TableWorld:
    """A table that moves, whose log states so many rows: nothing else is looked at when a strategy is chosen.

    A file has a million rows at the most. All of them were loaded two days ago; of today are a few changes.
    """
    files = max(4, rows // MILLION)
    world = TableWorld(root, "auto", files=files)
    if properties:
        DeltaTable(world.lake.path("base")).alter.set_table_properties(properties, raise_if_not_exists=False)
    for entry in Path(world.lake.path("base")).glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for added in (each["add"] for each in actions if "add" in each):
            stated = json.loads(added["stats"])
            added["stats"] = json.dumps({**stated, "numRecords": stated["numRecords"] * rows // (10 * files)})
        for info in (each["commitInfo"] for each in actions if "commitInfo" in each):
            info["timestamp"] -= TWO_DAYS_MS
        entry.write_text("".join(json.dumps(each) + "\n" for each in actions))
    for number in (0, 6):
        world.change(number)
    return world


def planned(world: World) -> Choice:
    """The output of `plan`, which changes nothing."""
    before = everything(world)
    found = plan(world.project.workspace(), "large", Limits())
    assert everything(world) == before
    assert (found.record, found.step) == (None, None)
    assert found.choice is not None
    assert found.document()["choice"]["chosen"] == found.choice.chosen
    return found.choice


def everything(world: World) -> dict[str, int]:
    """Every file below the project."""
    return {str(each): each.stat().st_size for each in world.project.root.rglob("*") if each.is_file()}


def began_with(world: World) -> str:
    """The strategy of the life that a run begins."""
    world.refresh(NOTHING)
    position = world.record.position
    return position.strategy if isinstance(position, SnapshotPosition) else "source"


@pytest.mark.parametrize("expected", SITUATIONS)
def test_a_life_over_a_table_begins_with_the_strategy_that_plan_has_named(tmp_path: Path, expected: Strategy) -> None:
    rows, properties = SITUATIONS[expected]
    world = a_table(tmp_path, rows=rows, properties=properties)
    choice = planned(world)
    assert choice.chosen == expected, choice.words
    assert began_with(world) == expected


def test_a_life_over_a_topic_begins_with_source(tmp_path: Path, broker: str) -> None:
    world = TopicWorld(tmp_path, broker)
    choice = planned(world)
    assert choice.chosen == "source"
    assert choice.words.startswith("`source` reads orders: nothing else can.")
    assert "Nothing it needs can expire." in choice.words
    world.refresh(NOTHING)
    assert isinstance(world.record.position, ViewPosition)
    world.finish("exactly_once")


def test_a_topic_that_may_lose_records_before_they_are_read_is_begun_with_a_warning(
    tmp_path: Path, broker: str
) -> None:
    world = TopicWorld(tmp_path, broker)
    keep(world, "60000")
    found = planned(world).estimate_of("source")
    assert found is not None
    assert 59 < (found.headroom_seconds or 0) < 60
    keep(world, "1")
    choice = planned(world)
    assert choice.chosen == "source", "there is no other way to read it, and waiting makes it worse"
    assert f"Warning: {Code.RETENTION_TOO_SHORT}: the records of orders may be deleted after" in choice.words
    assert "raise retention.ms of orders" in choice.words


def test_where_nothing_is_safe_nothing_is_written_unless_a_strategy_is_named(tmp_path: Path) -> None:
    world = a_table(tmp_path, properties={FILES: "interval 0 hours"})
    choice = planned(world)
    assert choice.chosen is None
    with pytest.raises(NoStrategyError) as caught:
        world.refresh()
    assert choice.words in caught.value.message
    assert caught.value.facts["reason"] == Code.RETENTION_TOO_SHORT
    assert {each["strategy"] for each in caught.value.facts["ruled_out"]} >= set(SITUATIONS)
    assert FILES in caught.value.hint
    assert not (world.project.root / "warehouse" / "views").exists()

    world.declare("snapshot")
    asked = planned(world)
    assert asked.chosen == "snapshot"
    found = asked.estimate_of("snapshot")
    assert found is not None
    assert Code.RETENTION_TOO_SHORT in {risk.code for risk in found.risks}
    world.finish("exactly_once")


def test_what_cannot_be_followed_at_all_is_refused_even_if_asked_for(tmp_path: Path) -> None:
    world = a_table(tmp_path)
    DeltaTable(world.lake.path("base")).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    for strategy in ("auto", "snapshot"):
        world.declare(strategy)
        with pytest.raises((NoStrategyError, UpstreamRefusedError)) as caught:
            world.refresh()
        assert caught.value.facts["reason"] == Code.NO_CHANGE_FEED
    assert not (world.project.root / "warehouse" / "views").exists()


def test_a_dry_run_shows_the_same_plan_and_writes_nothing(tmp_path: Path) -> None:
    world = a_table(tmp_path)
    choice, before = planned(world), everything(world)
    with dg.DagsterInstance.ephemeral() as instance:
        result = DagsterProject(project=world.project, instance=instance).refresh("large", dry_run=True)
    assert result.success
    assert everything(world) == before
    (seen,) = observed(result, "large")
    assert seen["stopped_reason"] == "dry_run"
    assert str(seen["strategy"]) == choice.chosen
    assert began_with(world) == choice.chosen
    world.refresh(Limits())
    said: Any = plan(world.project.workspace(), "large", Limits())
    assert (said.choice, said.step) == (None, None), "a live view goes on as it is"


def keep(world: TopicWorld, milliseconds: str) -> None:
    """Set the retention of the topic."""
    configure(world.project, world.topic, "retention.ms", milliseconds)
