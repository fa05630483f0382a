"""Whatever writes has the store of the warehouse asked first whether it keeps commits apart, and writes nothing if not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backfill_assets.app.lifecycle import drop, maintain, rebuild, reset
from backfill_assets.app.refresh import refresh
from backfill_assets.app.replacing import forget_replaced, replace_view, undo_replacement
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import EnvironmentSetupError
from tests.app.test_other_releases import begin
from tests.support.lake import Lake

WRITES: dict[str, Callable[[Workspace], object]] = {
    "refresh": lambda workspace: refresh(workspace, "old", Limits(), run_id="run"),
    "reset": lambda workspace: reset(workspace, "old"),
    "drop": lambda workspace: drop(workspace, "old"),
    "maintain": lambda workspace: maintain(workspace, "old"),
    "rebuild": rebuild,
    "replace": lambda workspace: replace_view(workspace, "old", Limits(), run_id="run"),
    "undo": lambda workspace: undo_replacement(workspace, "old"),
    "forget": lambda workspace: forget_replaced(workspace, "old"),
}


def stored(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", WRITES)
def test_nothing_is_written_into_a_store_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": 1}])
    lake.view("old", "SELECT id FROM base", lake.table("base"))
    begin(lake, "old")
    before = stored(tmp_path)

    def refuse(_workspace: Workspace) -> None:
        raise EnvironmentSetupError("the store has no conditional put", hint="use another one")

    monkeypatch.setattr(Workspace, "prepare_to_write", refuse)
    with pytest.raises(EnvironmentSetupError, match="no conditional put"):
        WRITES[command](lake.project.workspace())
    assert stored(tmp_path) == before
