"""The groups of a view that changes touch, as they are to be."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import changed_groups, kept
from backfill_assets.adapters.compute.selectable_rows import Part, SelectableRows
from backfill_assets.adapters.compute.tasks import fit_one_task
from backfill_assets.query.aggregate import AggregateQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["maintained_groups"]


@contextmanager
def maintained_groups(
    query: AggregateQuery,
    changes: Part,
    held: SelectableRows,
    upstream: "Callable[[], DataFrame] | None" = None,
    *,
    rows: int,
) -> "Iterator[DataFrame]":
    """The groups that `changes` (about `rows` of them, see `signed`) touch, given the rows that the view has `held`. One task
    does it where both are few. `upstream` is that of `changed_groups`."""
    few = fit_one_task(rows + held.rows, held.files)
    # They may be spread over many files or partitions, which are read side by side.
    together = changes.frame.repartition(1) if few and not changes.few else changes.frame
    with kept(together) as once:
        old = held.every() if held.files else None
        yield changed_groups(query, once, old, upstream, rows=None if few else rows)
