"""What a dead run has left is deleted by the next one, whether there is anything new to read or not."""

from pathlib import Path

import pytest

from backfill_assets.adapters.state.state_store import Lease
from backfill_assets.app.lifecycle import reset
from backfill_assets.core.epoch.staged_folders import StagedFolder
from tests.support.commits import losers
from tests.support.lake import Lake

pytestmark = pytest.mark.e2e


def test_captured_rows_that_a_dead_run_has_drained_go(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": 1, "v": 2}])
    lake.view("large", "SELECT id, v * 2 AS twice FROM base", lake.table("base"), strategy="rearranged")
    record = lake.project.refresh("large").report.record
    left = StagedFolder(incarnation=record.incarnation, epoch=record.epoch, attempt="d" * 12).name
    place = tmp_path / "warehouse" / "views" / "large" / "_spool" / left
    place.mkdir(parents=True)
    lake.project.refresh("large")
    assert not place.exists()
    place.mkdir(parents=True)
    reset(lake.project.workspace(), "large")
    assert not place.exists(), "what a life has captured goes with it"


@pytest.mark.parametrize("new", [0, 1])
def test_what_a_dead_run_has_staged_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: int) -> None:
    monkeypatch.setattr(Lease, "_process_runs", lambda lease: lease.run_id != "dead")
    lake = Lake(tmp_path)
    lake.append("base", [{"id": 1, "v": 2}])
    lake.view("large", "SELECT id, v * 2 AS twice FROM base", lake.table("base"), strategy="snapshot")
    record = lake.project.refresh("large").report.record
    left = StagedFolder(incarnation=record.incarnation, epoch=record.epoch, attempt="d" * 12).name
    place = tmp_path / "warehouse" / "views" / "large" / left
    place.mkdir()
    (place / "part.parquet").touch()
    assert losers(lake.project, "large") == [left]
    lake.project.refresh("large")
    assert losers(lake.project, "large") == [left], "nobody died, so nobody looks for it"
    if new:
        lake.append("base", [{"id": 2, "v": 2}])
    lake.project.workspace().state.put_lease("views/large", "dead")
    assert len(lake.project.refresh("large").report.epochs) == new
    assert losers(lake.project, "large") == []
    assert lake.found("large", ["id", "twice"]).total() == 1 + new
