"""A view that another release stored starts again after a reset, and after a drop."""

import json
from pathlib import Path

import pytest

from backfill_assets.app.lifecycle import drop, reset
from backfill_assets.app.status import status
from backfill_assets.errors import StoredFormatError
from tests.support.lake import Lake
from tests.support.old_form import as_stored_by, commits_as_stored_by

pytestmark = pytest.mark.e2e


def of_another_release(lake: Lake) -> None:
    """Everything that is stored has another format: commits, plans, leases, passes."""
    commits_as_stored_by(Path(lake.location("old")), 1)
    for path in (lake.project.root / "warehouse" / "_state").rglob("*.json"):
        if held := path.read_text():  # a lease that was given back is empty
            path.write_text(json.dumps(as_stored_by(json.loads(held), None)))


@pytest.mark.full
def test_a_view_of_another_release_is_right_again_after_a_reset_and_after_a_drop(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": each, "v": each % 3} for each in range(20)])
    lake.view("old", "SELECT id, v FROM base WHERE v > 0", lake.table("base"))
    project = lake.project
    project.refresh("old")
    for begin_anew in (reset, drop):
        assert project.check("old").passed
        lake.append("base", [{"id": 100 + len(project.rows("old")), "v": 1}])
        of_another_release(lake)
        with pytest.raises(StoredFormatError, match="a commit of format 1, expected format"):
            project.refresh("old")
        begin_anew(project.workspace(), "old")
        project.refresh("old")
        assert project.check("old").passed
        assert status(project.workspace(), "old").state == "idle"
