"""A table's change log in parts that one read can take: up to a number of rows, with or without a change data feed, over
the same columns."""

from collections.abc import Sequence

from backfill_assets.core.epoch.ports import Commit
from backfill_assets.core.progress.positions import KeyRange, TablePosition
from backfill_assets.core.progress.reads import ChangesRead

__all__ = ["changes_of", "split_reads", "within"]


def within(commits: Sequence[Commit], budget: int) -> list[Commit]:
    """The versions from the oldest on that fit the budget; at least one, and the maintenance versions after it.

    They end where the next one is read in another way (`split_reads`).
    """
    taken: list[Commit] = []
    rows = 0
    for commit in commits:
        if taken and ((commit.rows and rows and rows + commit.rows > budget) or not _goes_on(taken, commit)):
            break
        taken.append(commit)
        rows += commit.rows
    return taken


def split_reads(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Versions divided into parts that are read in the same way: the change data feed was on in a whole part, or off, and
    only the first one of a part may reshape the table."""
    parts: list[list[Commit]] = []
    for commit in commits:
        if parts and _goes_on(parts[-1], commit):
            parts[-1].append(commit)
        else:
            parts.append([commit])
    return parts


def _goes_on(part: Sequence[Commit], commit: Commit) -> bool:
    """Whether a version is read in the same way as those before it."""
    return commit.feed == part[0].feed and not commit.reshapes


def changes_of(
    name: str, table: TablePosition, part: Sequence[Commit], keys: tuple[KeyRange, ...] | None = None
) -> ChangesRead:
    """The changes of versions that are read in the same way; with `keys` only in these ranges of the table's key."""
    return ChangesRead(
        source=name,
        table_id=table.table_id,
        first=part[0].version,
        last=part[-1].version,
        rows=sum(commit.rows for commit in part),
        within=keys,
    )
