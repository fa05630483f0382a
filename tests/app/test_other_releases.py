"""A view that another release stored: all commands report it and write nothing, other tables continue, and it can be
dropped."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable, Schema

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.dependents import awaited_view
from backfill_assets.app.dry_run import plan
from backfill_assets.app.lifecycle import drop, maintain
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import CHECKS, run_check
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import Controls
from backfill_assets.core.epoch.records import CommitKind, Staged
from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.positions import BucketState, SnapshotPosition, TablePosition
from backfill_assets.errors import StoredFormatError
from tests.e2e.dagster.test_sensors import reason, tick
from tests.support.dagster_project import DagsterProject
from tests.support.lake import Lake
from tests.support.old_form import as_stored_by, commits_as_stored_by
from tests.support.outputs import SCHEMA, record

SAID = "version 1 of the table is a commit of format 1, expected format 3"


def begin(lake: Lake, name: str) -> None:
    """A view at the beginning of its first life, without Spark: nothing has been read."""
    table = lake.project.workspace().table(lake.declared(name))
    schema = Schema.from_arrow(SCHEMA).to_json()
    create_table(table.output.location, schema)
    output = replace(table.output, schema=lambda: schema)
    output.look()
    made = {"target": table.target, "fingerprint": table.parts.decider.fingerprint, "live": False}
    base = str(DeltaTable(lake.path("base")).metadata().id)
    at = DeltaUpstream(name="base", location=TableLocation(uri=lake.path("base"))).commit_timestamp(0) or 0
    read = TablePosition(table_id=base, pinned=0, version=0, commit_ms=at, buckets={0: BucketState(parts=1)})
    made["position"] = SnapshotPosition(tables={"base": read})
    output.commit(record(CommitKind.CREATE, "11111111", 0).model_copy(update=made), Staged(replaces=True))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.append("base", [{"id": each} for each in range(3)])
    for name in ("old", "sound"):
        made.view(name, "SELECT id FROM base", made.table("base"))
        begin(made, name)
        state = made.project.workspace().state
        state.set_controls(f"views/{name}", Controls(), by="test")
        state.add_skip(f"views/{name}", KeySkip(source="base", key=(("id", "7"),)), by="test")
    return made


def documents(lake: Lake) -> list[Path]:
    return sorted((lake.project.root / "warehouse" / "_state").rglob("*.json"))


def documents_of_another_release(lake: Lake, kind: str = "") -> None:
    for path in documents(lake):
        if f"views/old/{kind}" in str(path) and path.stat().st_size:
            path.write_text(json.dumps(as_stored_by(json.loads(path.read_text()), None)))


def of_another_release(lake: Lake) -> None:
    """Everything that is stored for view `old` has another format."""
    commits_as_stored_by(Path(lake.location("old")), 1)
    lake.project.workspace().state.put_lease("views/old", "a-run")
    documents_of_another_release(lake)


def test_every_command_reports_it_and_none_changes_it(lake: Lake) -> None:
    of_another_release(lake)
    project, workspace = lake.project, lake.project.workspace
    stored = [path.read_bytes() for path in documents(lake)]
    attempts: list[Callable[[], object]] = [
        lambda: project.refresh("old"),
        lambda: maintain(workspace(), "old"),
        lambda: plan(workspace(), "old", Limits()),
        *[lambda check=check: run_check(workspace(), "old", check, full=True) for check in CHECKS],
    ]
    for attempt in attempts:
        with pytest.raises(StoredFormatError, match=r"expected format [23]") as caught:
            attempt()
        assert "`backfill reset old`" in caught.value.hint
    shown = status(workspace(), "old")
    assert (shown.state, SAID in shown.problem, "`backfill reset old`" in shown.problem) == ("broken", True, True)
    assert status(workspace(), "sound").state == "idle"
    assert DeltaTable(lake.location("old")).version() == 1
    assert [path.read_bytes() for path in documents(lake)] == stored


def test_a_log_that_cannot_be_read_is_told_of_its_table_alone(lake: Lake) -> None:
    (Path(lake.location("old")) / "_delta_log" / f"{2:020d}.json").write_text("{")
    shown = status(lake.project.workspace(), "old")
    assert shown.state == "broken"
    assert "delta-rs cannot read the log of views/old" in shown.problem
    assert status(lake.project.workspace(), "sound").state == "idle"


def test_ticks_and_checks_of_dagster_say_so_and_go_on_with_the_others(lake: Lake) -> None:
    of_another_release(lake)
    with dg.DagsterInstance.ephemeral() as instance:
        shop = DagsterProject(lake.project, instance)
        found = tick(shop, "new_delta_data")
        assert [[key.path[-1] for key in each.asset_selection or ()] for each in found.run_requests or ()] == [
            ["sound"]
        ]
        del lake.project.declared["sound"]
        assert reason(tick(shop, "new_delta_data")) == f"old: [STORED_FORMAT] views/old: {SAID}"
        assert reason(tick(shop, "reap_dead_runs")) == "no dead runs"
        checked = shop.run("verify_old").get_asset_check_evaluations()
        assert [each.passed for each in checked] == [False] * len(CHECKS)
        assert all(SAID in str(each.description) for each in checked)


@pytest.mark.parametrize("kind", ["lease", "controls", "skips"])
def test_a_setting_of_another_release_is_named_and_delays_no_other_table(lake: Lake, kind: str) -> None:
    workspace = lake.project.workspace
    workspace().state.put_lease("views/old", "a-run")
    documents_of_another_release(lake, kind)
    if kind != "lease":
        workspace().state.free_lease("views/old")
    shown = status(workspace(), "old")
    assert shown.state == "broken"
    assert f"object _state/tables/views/old/{kind}" in shown.problem
    assert "delete the object" in shown.problem
    assert status(workspace(), "sound").state == "idle"
    assert awaited_view(workspace(), "base", run_id="another") == ""
    with dg.DagsterInstance.ephemeral() as instance:
        shop = DagsterProject(lake.project, instance)
        assert ["sound"] in [
            [key.path[-1] for key in each.asset_selection or ()]
            for each in tick(shop, "new_delta_data").run_requests or ()
        ]
        assert reason(tick(shop, "reap_dead_runs")) == "no dead runs"
    assert len(workspace().state.forget_unreadable("views/old")) == 1
    assert status(workspace(), "old").state == "idle"


def test_it_can_be_dropped_completely(lake: Lake) -> None:
    of_another_release(lake)
    Path(lake.location("old"), "left.parquet").write_bytes(b"")
    drop(lake.project.workspace(), "old")
    assert status(lake.project.workspace(), "old").state == "dropped"
    assert not [path for path in documents(lake) if "views/old" in str(path)]
    assert [path for path in documents(lake) if "views/sound" in str(path)]
    assert [each.name for each in Path(lake.location("old")).iterdir()] == ["_delta_log"]
