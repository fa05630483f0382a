"""Rows of a view without a key of its own: known by their hash, and by a number among those that are alike.

Which number a row has does not matter, as long as it is the only one. So rows of history get numbers of their epoch, without
a look at other rows; changes number those anew that they touch; and rows are compared without their numbers.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from backfill_assets.adapters.compute.attempt import Attempt
from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept, view_columns
from backfill_assets.adapters.compute.laid_out import Counted, over_files
from backfill_assets.adapters.compute.relational_changes import changed_part
from backfill_assets.adapters.compute.selectable_rows import MOST_LOCAL, Part, SelectableRows, united
from backfill_assets.adapters.compute.staged_rows import write_new
from backfill_assets.query.ddl import quoted
from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.rowwise import CARRIED_CHANGE

__all__ = ["by_copies", "unnumbered", "write_numbered"]

_NUMBERS_OF_EPOCH = 32
"""The bits of a number that count within an epoch."""


def unnumbered(key: Sequence[str]) -> list[str]:
    """The columns of a view's key in which rows are alike that their numbers tell apart."""
    return [name for name in key if name != COPY]


def write_numbered(attempt: Attempt, counted: Counted, key: Sequence[str]) -> dict[str, int]:
    """Stage rows that are all new to a view, by files in which they are laid out, with numbers of their epoch."""
    from backfill_assets.adapters.sql.apply_relational import hashed, numbered

    visible = [name for name in counted.rows.columns if name != ROW_HASH]
    parted = over_files(hashed(counted.rows, visible), counted.files, unnumbered(key))
    rows = numbered(parted, visible, key, after=attempt.plan.epoch << _NUMBERS_OF_EPOCH)
    return write_new(
        rows.selectExpr(*view_columns(attempt.view)), attempt.staging, tasks=counted.files, scans=attempt.scans
    )


@contextmanager
def by_copies(changes: Part, held: SelectableRows, *, key: Sequence[str], rows: int) -> "Iterator[Part]":
    """Changes of a view whose rows are identified by hash and copy (`key`), from the changes of its visible rows (about
    `rows`). The rows that it has `held` are read once.

    For each touched hash, the present rows and the changes give the final rows. These are numbered again, and the
    difference from the present rows is the change.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.apply_relational import hashed, numbered
    from backfill_assets.adapters.sql.map_columns import grouped

    visible = [name for name in changes.frame.columns if name != CARRIED_CHANGE]
    columns = list(map(quoted, visible))
    came = grouped(changes.frame, visible, F.expr(f"sum(IF({CARRIED_CHANGE} = 'insert', 1, -1))").alias("__n"))
    with ExitStack() as stack:
        net = stack.enter_context(kept(hashed(came.where("__n <> 0"), visible)))
        found = _with_hashes(held, Part(net, changes.few), key, rows)
        old = stack.enter_context(kept(found.frame.select(*columns, ROW_HASH, COPY)))
        copy = F.lit(1).cast("bigint").alias("__n")
        both = united([Part(old.select(*columns, copy), found.few), Part(net.select(*columns, "__n"), changes.few)])
        left = grouped(both.frame, visible, F.sum("__n").alias("__n")).where("__n <> 0")
        gone = F.raise_error(F.lit("a row would be deleted from the view that is not in it"))
        times = F.sequence(
            F.lit(1).cast("bigint"), F.when(F.col("__n") > 0, F.col("__n")).otherwise(gone.cast("bigint"))
        )
        copies = left.select(*columns, F.explode(times).alias(COPY)).drop(COPY)
        yield changed_part(Part(numbered(copies, visible, key), both.few), Part(old, found.few))


def _with_hashes(held: SelectableRows, net: Part, key: Sequence[str], rows: int) -> Part:
    """The rows of a view that are alike in its key, copies aside, with one of its net changes, of about so many `rows`."""
    from backfill_assets.adapters.sql.semi_join import semi_join

    alike = unnumbered(key)
    touched = net.frame.select(*map(quoted, alike)).distinct()
    if net.few:
        values = touched.limit(MOST_LOCAL + 1).toArrow()
        found = held.alike(values) if len(values) <= MOST_LOCAL else None
        if found is not None:
            return found.part
    few = touched_fit(touched, most=rows)
    return Part(semi_join(held.every(), touched, {name: name for name in alike}, few=few), few=False)
