"""Views over a small table of four files, and runs of them by a session that passes over files it cannot read."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.app.refresh import refresh
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import BackfillError, ReadMismatchError
from tests.support.careless import IGNORE, careless
from tests.support.lake import Lake
from tests.support.project import Project

__all__ = ["FILES", "ROWS", "VIEWS", "made", "newest", "refused", "some"]

FILES, ROWS = 4, 10

VIEWS = {
    "rows": "SELECT id, amount FROM base WHERE amount > 3",
    "groups": "SELECT id % 3 AS part, count(*) AS n, max(amount) AS most FROM base GROUP BY id % 3",
    "joined": "SELECT b.id, o.name FROM base b JOIN other o ON b.id % 3 = o.id",
}


def some(start: int) -> list[dict[str, Any]]:
    return [{"id": at, "amount": at} for at in range(start, start + ROWS)]


def made(folder: Path) -> Lake:
    """A table of four files, another one to join with, and views of each kind."""
    lake = Lake(folder)
    for number in range(FILES):
        lake.append("base", some(number * ROWS))
    lake.append("other", [{"id": at, "name": f"name {at}"} for at in range(3)])
    for name, query in VIEWS.items():
        lake.view(name, query, *(lake.table(each) for each in ("base", "other") if each in query))
    return lake


def newest(folder: str | Path) -> Path:
    """The data file that was written last."""
    return max(Path(folder).rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)


def refused(
    project: Project,
    name: str,
    expected: type[BackfillError] = ReadMismatchError,
    limits: Limits = Limits(),  # noqa: B008
    workspace: Workspace | None = None,
) -> str:
    """What a run says that passes over files which it cannot read. It commits nothing but the beginning of a life."""
    workspace = careless(workspace or project.workspace(), IGNORE)
    look = workspace.table(project.declared[name]).output.look()
    before = (look.record.epoch, look.record.rows_total) if look.record is not None else (0, 0)
    with pytest.raises(expected) as found:
        refresh(workspace, name, limits, run_id=uuid.uuid4().hex)
    record = project.record(name)
    assert (record.epoch, record.rows_total) == before
    return str(found.value)
