"""Reading tables in full instead of a change log that is far larger: whether to do so, and what an epoch then reads.

The view is recomputed at the newest waiting version, and brought there in one commit. So catching up costs no more than
computing the view once and comparing it, however long the change log has become.
"""

from collections.abc import Mapping, Sequence

from backfill_assets.core.epoch.ports import Commit, TableSize
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.core.progress.reads import FullRead, TableRead

__all__ = ["FEWEST_BYTES", "MAX_EPOCHS", "TIMES_HELD", "cheaper_to_refresh", "may_be_cheaper", "read_in_full"]

FEWEST_BYTES = 2**20
"""Up to this number of bytes, changes are always followed."""

TIMES_HELD = 2.5
"""How much larger than the tables their changes must be. Following costs more already at a factor of about one. But a
recomputed view is compared with all its rows, and if most of them differ, the view's own feed, which others read, shows that
every row was deleted and inserted. A table that was overwritten once, whose change log is twice its size, is followed."""

MAX_EPOCHS = 8
"""The tables may be as large as this many epochs of the size that the next one may have, as it cannot be resumed halfway."""


def may_be_cheaper(waiting: Mapping[str, Sequence[Commit]]) -> bool:
    """Whether the waiting changes make it worthwhile to look at the sizes of the tables. For tables that only grew it never
    is: their change log is a part of them, and larger only because it is cut into small files."""
    deletes = any(commit.deletes for commits in waiting.values() for commit in commits)
    return deletes and _changed(waiting) > FEWEST_BYTES


def cheaper_to_refresh(waiting: Mapping[str, Sequence[Commit]], sizes: Mapping[str, TableSize], budget: int) -> bool:
    """Whether the waiting changes are so much larger than the tables that it is better to read these in full.

    `budget` is how many rows the next epoch may take.
    """
    held = sum(size.bytes for size in sizes.values())
    rows = sum(size.rows for size in sizes.values())
    return _changed(waiting) > TIMES_HELD * held and rows <= MAX_EPOCHS * budget


def read_in_full(
    position: SnapshotPosition, waiting: Mapping[str, Sequence[Commit]], sizes: Mapping[str, TableSize]
) -> tuple[list[TableRead], SnapshotPosition]:
    """All tables at the newest waiting version, and the position after that."""
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
