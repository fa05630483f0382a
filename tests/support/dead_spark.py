"""Refreshes a view while the Spark of the run's process dies; for a process of its own."""

from pathlib import Path
from typing import Any

import psutil

from backfill_assets.errors import BackfillError
from tests.support.lake import Lake

__all__ = ["refreshed_by_another_spark"]

QUERY = "SELECT id, place + 1 AS next FROM rows"


def refreshed_by_another_spark(root: str) -> dict[str, Any]:
    """What becomes of a refresh after Spark was killed, and of those after it; and whether the view is right."""
    lake = Lake(Path(root))
    lake.append("rows", [{"id": at, "place": at} for at in range(9)])
    lake.view("view", QUERY, lake.table("rows"))
    lake.project.refresh("view")
    for process in psutil.Process().children(recursive=True):
        if "java" in process.name():
            process.kill()
            process.wait(30)
    lake.append("rows", [{"id": 9, "place": 9}])
    codes = []
    for _ in range(2):
        try:
            lake.project.refresh("view")
            codes.append("")
        except BackfillError as error:
            codes.append(error.code)
    again = Lake(Path(root))
    again.project.declare(*lake.project.declared.values())
    return {"codes": codes, "right": again.shown("view") == again.expected("view", QUERY, "rows")}
