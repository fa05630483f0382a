"""Names of staged folders, and the rule that says which of them may be deleted."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

__all__ = ["SPOOL", "StagedFolder", "sweepable"]

SPOOL = "_spool"
"""Inside a view's table: the staged folders with what its epochs captured."""

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
