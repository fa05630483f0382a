"""Reading tables in full instead of a change log that outweighs them: whether, and what an epoch then reads.

The view is recomputed at the newest of the versions that wait, and brought there in one commit. So catching up costs
no more than computing the view once and comparing it, however long the change log has become.
"""

from collections.abc import Mapping, Sequence

from backfill_assets.core.epoch.ports import Commit, TableSize
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import FullRead, TableRead

__all__ = ["FEWEST_BYTES", "MOST_EPOCHS", "TIMES_HELD", "cheaper_to_refresh", "may_outweigh", "read_in_full"]

FEWEST_BYTES = 2**20
"""So many bytes of changes are followed in any case."""

TIMES_HELD = 2.5
"""How much larger than the tables their changes must be. Following costs more from about once on; but what is
recomputed is compared with all rows of the view, and where most of them differ, the view's own feed, which others read, says
that every row went and came. A table that was overwritten once, which makes a change log of twice its size, is followed."""

MOST_EPOCHS = 8
"""The tables may be as large as so many epochs of the size that the next one may have, as it cannot be resumed halfway."""


def may_outweigh(waiting: Mapping[str, Sequence[Commit]]) -> bool:
    """Whether what waits is such that the sizes of the tables are worth a look. Tables that only grew never are: their
    change log is a part of them, and outweighs them only in being cut into small files."""
    deletes = any(commit.deletes for commits in waiting.values() for commit in commits)
    return deletes and _changed(waiting) > FEWEST_BYTES


def cheaper_to_refresh(waiting: Mapping[str, Sequence[Commit]], sizes: Mapping[str, TableSize], budget: int) -> bool:
    """Whether the changes that wait are so much larger than the tables that these are better read in full.

    `budget` is how many rows the next epoch may take.
    """
    held = sum(size.bytes for size in sizes.values())
    rows = sum(size.rows for size in sizes.values())
    return _changed(waiting) > TIMES_HELD * held and rows <= MOST_EPOCHS * budget


def read_in_full(
    position: SnapshotPosition, waiting: Mapping[str, Sequence[Commit]], sizes: Mapping[str, TableSize]
) -> tuple[list[TableRead], SnapshotPosition]:
    """All tables at the newest of the versions that wait, and the position after that."""
    reads: list[TableRead] = []
    tables = dict(position.tables)
    for name, commits in waiting.items():
        table = tables[name]
        rows = sum(commit.rows for commit in commits)
        if commits:
            tables[name] = table.followed(version=commits[-1].version, commit_ms=commits[-1].commit_ms, rows=rows)
        reads.append(
            FullRead(
                source=name,
                table_id=table.table_id,
                first=table.version + 1,
                last=tables[name].version,
                rows=rows,
                held=sizes[name].rows,
            )
        )
    return reads, position.model_copy(update={"tables": tables})


def _changed(waiting: Mapping[str, Sequence[Commit]]) -> int:
    return sum(commit.bytes for commits in waiting.values() for commit in commits)
