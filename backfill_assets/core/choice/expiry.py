"""How long what a strategy reads is kept, and how long it needs it."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from backfill_assets.core.epoch.costs import TableFacts
from backfill_assets.core.progress.retention import FILE_SETTING, LOG_SETTING

__all__ = ["NEVER", "Limit", "Resource", "limits"]

NEVER = 1e12
"""A number of seconds that stands for an endless time."""

Resource = Literal["files", "log", "pinned"]
"""What an upstream's retention may take: data files of old versions with the changes in them, the commits that are the
change log, and the commit of the pinned version, whose age counts."""


class Limit(NamedTuple):
    """One resource of one upstream: how long a setting keeps it from now (None: for ever), and how long it is needed."""

    table: str
    resource: Resource
    what: str
    setting: str
    left: float | None
    needed: float

    @property
    def headroom(self) -> float:
        """Seconds to spare; `NEVER` if it is kept for ever."""
        return NEVER if self.left is None else self.left - self.needed


def limits(facts: Sequence[TableFacts], needed: Mapping[Resource, float]) -> list[Limit]:
    """What is needed of each upstream that may expire, beside how long it is kept."""
    return [
        _limit(table, resource, seconds) for table in facts for resource, seconds in needed.items() if table.expires
    ]


def _limit(table: TableFacts, resource: Resource, needed: float) -> Limit:
    kept = table.log_retention_seconds
    if table.kind == "topic":
        return Limit(table.name, resource, "the records", "retention.ms", kept, needed)
    match resource:
        case "files":
            return Limit(table.name, resource, "the files", FILE_SETTING, table.file_retention_seconds, needed)
        case "log":
            return Limit(table.name, resource, "the change log", LOG_SETTING, kept, needed)
        case "pinned":
            left = None if kept is None else kept - table.newest_commit_age_seconds
            return Limit(table.name, resource, "the commit of the pinned version", LOG_SETTING, left, needed)
