"""What was read of a table's log and is kept in memory, by version."""

from dataclasses import dataclass, field

from backfill_assets.adapters.delta.log_replay import Version
from backfill_assets.adapters.delta.logged_changes import Changed
from backfill_assets.adapters.storage.lru import LeastRecentlyUsed
from backfill_assets.core.epoch.ports import Commit

__all__ = ["KEPT_COMMITS", "KEPT_VERSIONS", "KnownLog"]

KEPT_VERSIONS = 3
"""How many versions are kept in memory with their files: a pinned one, and the newest."""

KEPT_COMMITS = 5000
"""For how many versions the changes are kept in memory."""


@dataclass(kw_only=True)
class KnownLog:
    """What was read of a log, by version, since it was loaded for the `loads`-th time: a log that was restored has other
    commits under the same numbers."""

    loads: int
    versions: LeastRecentlyUsed[int, Version] = field(init=False)
    rows: LeastRecentlyUsed[int, tuple[int, ...]] = field(init=False)
    commits: LeastRecentlyUsed[int, tuple[Commit, Changed]] = field(init=False)
    commit_timestamps: LeastRecentlyUsed[int, int | None] = field(init=False)

    def __post_init__(self) -> None:
        self.versions, self.rows = LeastRecentlyUsed(KEPT_VERSIONS), LeastRecentlyUsed(KEPT_VERSIONS)
        self.commits, self.commit_timestamps = LeastRecentlyUsed(KEPT_COMMITS), LeastRecentlyUsed(KEPT_COMMITS)
