"""The records of epochs in a table's log, and the folders of attempts that were never committed."""

import fnmatch
from pathlib import Path
from typing import Any

from backfill_assets.adapters.delta.commits import commits_of, ours_in
from backfill_assets.adapters.storage.warehouse import TableLocation
from tests.support.project import Project

__all__ = ["epochs", "losers", "ours", "staged_folders"]


def ours(project: Project, name: str) -> list[dict[str, Any]]:
    """The records of all epochs in a table's log, oldest first."""
    output = project.workspace().table(project.declared[name]).output
    commits = commits_of(output.location, output.look().version)
    return [found for _, actions in commits if (found := ours_in(actions))][::-1]


def epochs(project: Project, name: str) -> list[int]:
    return [each["epoch"] for each in ours(project, name)]


def losers(project: Project, name: str) -> list[str]:
    """Staged folders of attempts that were never committed."""
    output = project.workspace().table(project.declared[name]).output
    commits = commits_of(output.location, output.look().version)
    added = (action["add"]["path"] for _, actions in commits for action in actions if "add" in action)
    named = {path.partition("/")[0] for path in added}
    won = {f"{each['incarnation']}-{each['epoch']}-{each['attempt']}" for each in ours(project, name)}
    return sorted(staged_folders(output.location) - won - named)


def staged_folders(location: TableLocation) -> set[str]:
    """The names of all folders in which an attempt has staged something."""
    if location.is_local:
        return {each.name for each in Path(location.uri).glob("*-*-*") if each.is_dir()}
    folders = {path.partition("/")[0] for path in location.objects().names("") if "/" in path}
    return set(fnmatch.filter(folders, "*-*-*"))
