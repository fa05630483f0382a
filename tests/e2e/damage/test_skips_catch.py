"""Rows that are left out do not blind the checks: another missing row is found, and so is a left-out row that came
back."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.skipping import Named, set_skips
from backfill_assets.app.table_checks import CHECKS, Outcome
from backfill_assets.core.progress.positions import SnapshotPosition, ViewPosition
from backfill_assets.errors import PoisonRowError
from tests.support.damage import forge_commit, missing, rewrite
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import order_of

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, 12 DIV CAST(amount AS INT) AS twice FROM orders"
OUT = "1 row is left out on request"


def skip(project: Project, named: Named) -> None:
    set_skips(project.workspace(), "large", named, undo=False, by="test")


@pytest.fixture(scope="module")
def records(broker: str, processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A view that leaves out a poison record; its run was killed before it committed that."""
    project = Project(root=tmp_path_factory.mktemp("records"), servers=broker)
    topic = project.topic(partitions=1)
    project.produce(topic, [{"id": number, "amount": number} for number in (1, 0, 2, 3)])
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DOUBLE")
    project.declare(orders, materialized_view("large", query=QUERY, upstreams=[orders]))
    with pytest.raises(PoisonRowError):
        project.refresh("large")
    skip(project, Named(partition=0, offsets=(1,)))
    processes.kill(order_of(project, topic), {"refresh": "large", "query": QUERY}, "staged")
    assert project.record("large").epoch == 0
    assert len(project.refresh("large").report.epochs) == 1
    return project


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A view that leaves out a row of a table."""
    lake = Lake(tmp_path_factory.mktemp("rows"))
    lake.append("orders", [{"id": number, "amount": number} for number in (1, 0, 2, 3)])
    lake.view("large", QUERY, lake.table("orders"))
    skip(lake.project, Named(key=("id=0",)))
    lake.project.refresh("large")
    return lake.project


@pytest.fixture(params=["records", "rows"])
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A copy of an undamaged project, to be damaged."""
    sound: Project = request.getfixturevalue(request.param)
    shutil.copytree(sound.root, tmp_path, dirs_exist_ok=True)
    return Project(root=tmp_path, servers=sound.servers, declared=dict(sound.declared))


def one_came_back(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row that is left out exists in the view, as it would if it could be computed."""
    hidden = {"__offset": 1} if "__offset" in found[0] else {}
    return [*found, {**found[0], "id": 0, "twice": 0, **hidden}]


def proved(project: Project) -> Outcome:
    return project.check("large", "exactly_once")


def test_a_sound_view_passes_every_check_and_each_says_what_is_left_out(copy: Project) -> None:
    assert sum(copy.rows("large").values()) == 3
    for check in CHECKS:
        outcome = copy.check("large", check)
        assert outcome.passed, (check, outcome)
        assert OUT in outcome.summary
        assert outcome.facts["rows_left_out"] == 1


@pytest.mark.parametrize(("change", "violation"), [(missing, "missing"), (one_came_back, "unexpected")])
def test_a_row_that_is_not_on_the_list_is_missed_and_one_that_is_on_it_is_found(
    copy: Project, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], violation: str
) -> None:
    rewrite(copy, "large", change)
    outcome = proved(copy)
    assert not outcome.passed
    assert [each["violation"] for each in outcome.violations] == [violation]
    assert OUT in outcome.summary


def test_a_list_that_was_altered_after_it_was_taken_is_found(copy: Project) -> None:
    position = copy.record("large").position
    if isinstance(position, ViewPosition):
        source = position.sources["orders"].model_copy(update={"skipped": {0: (0, 1)}})
        forged: ViewPosition | SnapshotPosition = ViewPosition(sources={"orders": source})
    else:
        assert isinstance(position, SnapshotPosition)
        table = position.tables["orders"]
        more = table.model_copy(update={"skipped": (*table.skipped, (("id", "1"),))})
        forged = position.model_copy(update={"tables": {"orders": more}})
    forge_commit(copy, "large", position=forged)
    assert not proved(copy).passed
    assert not copy.check("large", "ledger_matches_table").passed
