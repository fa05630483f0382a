"""Names of staged folders, and the rule that says which of them may be deleted."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

__all__ = ["OPERATIONS", "SPOOL", "Leftovers", "StagedFolder", "changes_in", "leftovers", "sweepable"]

SPOOL = "_spool"
"""Inside a view's table: the staged folders with what its epochs captured."""

TEMPORARY = "_temporary"
"""Inside a staged folder: what Spark's tasks have written until their job is committed."""

OPERATIONS = "__op="
"""How the folders begin, inside a staged folder, that hold rows which an epoch inserts, updates or deletes."""

_EMPTY_FILES = {"_SUCCESS"}
"""What Spark writes as an empty file, not as the mark of a folder."""

_FOLDER = re.compile(r"([0-9a-f]{8,})-(\d+)-([0-9a-f]{8,})")


@dataclass(frozen=True, kw_only=True)
class StagedFolder:
    """The folder into which one attempt at one epoch writes, inside the table's folder."""

    incarnation: str
    epoch: int
    attempt: str

    @property
    def name(self) -> str:
        """`<incarnation>-<epoch>-<attempt>`."""
        return f"{self.incarnation}-{self.epoch}-{self.attempt}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """A folder from its name; None for any other folder."""
        match = _FOLDER.fullmatch(name)
        if match is None:
            return None
        return cls(incarnation=match[1], epoch=int(match[2]), attempt=match[3])


def sweepable(folder: StagedFolder, *, incarnation: str, epoch: int, needed: Collection[str] = ()) -> bool:
    """Whether a staged folder that was never committed may be deleted, given the table's life and last epoch.

    Folders of later epochs are never deleted, because a slow run may be about to commit them. Nor are folders of the spool
    that the life still needs.
    """
    return folder.incarnation != incarnation or (folder.epoch <= epoch and folder.name not in needed)


def changes_in(paths: Iterable[str], is_over: Callable[[StagedFolder], bool]) -> Iterator[str]:
    """Of the files in a table's folder those that hold changes which past epochs have staged, in a folder for each operation.

    Args:
        paths: Files, by their paths in the table's folder.
        is_over: Whether the epoch of a staged folder is over.
    """
    for path in paths:
        first, *inside = path.split("/")
        staged = StagedFolder.parse(first)
        if staged is not None and is_over(staged) and any(each.startswith(OPERATIONS) for each in inside):
            yield path


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """Objects below a table that no reader and no run needs: `files`, and `markers` of folders, without their slash."""

    files: tuple[str, ...]
    markers: tuple[str, ...]


def leftovers(sizes: Mapping[str, int], may_go: Callable[[StagedFolder], bool]) -> Leftovers:
    """What Spark's jobs have left behind in a table's folder on an object store.

    These are what tasks wrote in staged folders and no job committed, and empty objects that mark folders, wherever they are.
    Nothing in the folder of an epoch that may be in progress is among them.

    Args:
        sizes: All objects in the table's folder, with their sizes; markers without their slash.
        may_go: Whether the epoch of a staged folder is over, so that nobody writes into it any more.
    """
    files, markers = [], []
    for path, size in sizes.items():
        parts = path.split("/")
        staged = StagedFolder.parse(parts[1] if parts[0] == SPOOL and len(parts) > 1 else parts[0])
        if staged is not None and not may_go(staged):
            continue
        uncommitted = staged is not None and TEMPORARY in parts
        if uncommitted:
            files.append(path)
        if not size and (uncommitted or parts[-1] not in _EMPTY_FILES):
            markers.append(path)
    return Leftovers(files=tuple(files), markers=tuple(markers))
