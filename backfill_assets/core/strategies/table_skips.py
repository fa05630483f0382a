"""Keys of Delta tables that a view leaves out, in every version of the table: what has to be read when the list changes.

The epoch that changes the list removes the rows of new keys as the view has them, reads everything else without the keys of
the old and the new list, and adds the rows of keys that are no longer on the list as they are when it ends. So a row that
cannot be computed is not read, unless it was taken back and still cannot be computed.
"""

from collections.abc import Iterable

from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.epoch.skips import Skip, keys_of
from backfill_assets.core.progress.positions import NamedKey, SnapshotPosition
from backfill_assets.core.progress.reads import SkipRead, TableRead

__all__ = ["keys_left_out", "leaves_out", "leaving_out", "left_out_alike", "skip_reads"]


def leaving_out(position: SnapshotPosition, wanted: Iterable[Skip]) -> SnapshotPosition:
    """The position, with the rows that an epoch planned now leaves out."""
    asked = list(wanted)
    tables = {
        name: table.model_copy(update={"skipped": keys_of(asked, name)}) for name, table in position.tables.items()
    }
    return position.model_copy(update={"tables": tables})


def left_out_alike(one: SnapshotPosition, two: SnapshotPosition) -> bool:
    """Whether two positions leave out the same rows."""
    return all(table.skipped == two.tables[name].skipped for name, table in one.tables.items())


def leaves_out(plan: Plan) -> bool:
    """Whether a view leaves rows out before an epoch or after it. A row that is taken back is in no table's changes."""
    positions = [each for each in (plan.before, plan.after) if isinstance(each, SnapshotPosition)]
    return any(table.skipped for position in positions for table in position.tables.values())


def keys_left_out(plan: Plan, name: str) -> list[NamedKey]:
    """The keys whose rows all reads of a plan leave out, except its `SkipRead`: those of both its positions, or, if the plan
    replaces the view, of the position after it."""
    positions = [plan.after] if plan.replaces else [plan.before, plan.after]
    every = {
        key: None
        for position in positions
        if isinstance(position, SnapshotPosition)
        for key in position.tables[name].skipped
    }
    return list(every)


def skip_reads(before: SnapshotPosition, after: SnapshotPosition) -> list[TableRead]:
    """What brings a view from the list of one position to that of the next; nothing for tables that were not read yet."""
    reads: list[TableRead] = []
    for name, was in before.tables.items():
        now = after.tables[name]
        out = tuple(key for key in now.skipped if key not in was.skipped) if was.rows else ()
        back = tuple(key for key in was.skipped if key not in now.skipped) if now.rows else ()
        if out or back:
            ends = {"before": was.version, "after": now.version}
            reads.append(SkipRead(source=name, table_id=was.table_id, **ends, out=out, back=back))
    return reads
