"""A table's change log in parts that one read can take: up to a number of rows, with or without a change data feed."""

from collections.abc import Sequence
from itertools import groupby

from backfill_assets.core.epoch.ports import Commit
from backfill_assets.core.progress.positions import KeyRange, TablePosition
from backfill_assets.core.progress.reads import ChangesRead

__all__ = ["by_feed", "changes_of", "within"]


def within(commits: Sequence[Commit], budget: int) -> list[Commit]:
    """The versions from the oldest on that fit the budget; at least one, and the maintenance versions after it.

    They end where the table's change data feed was turned on or off, because the two are read in different ways.
    """
    taken: list[Commit] = []
    rows = 0
    for commit in commits:
        if (commit.rows and rows and rows + commit.rows > budget) or commit.feed != commits[0].feed:
            break
        taken.append(commit)
        rows += commit.rows
    return taken


def by_feed(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Versions divided into parts that are read in the same way: the change data feed was on in a whole part, or off."""
    return [list(part) for _, part in groupby(commits, key=lambda commit: commit.feed)]


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
