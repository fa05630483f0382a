"""What changes of tables do to a view whose query has a rule for them, by whichever rule it is."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import changed_groups, kept, signed
from backfill_assets.adapters.compute.copies import by_copies
from backfill_assets.adapters.compute.first_rows import first_rows
from backfill_assets.adapters.compute.relational_changes import TableChanges, relational_changes
from backfill_assets.adapters.compute.restricted import restricted_changes, signed_changes
from backfill_assets.adapters.compute.selectable_rows import MOST_LOCAL, Part, SelectableRows, united
from backfill_assets.adapters.delta.key_statistics import WHOLE
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.steps import Steps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["followed"]

_MANY_GROUPS = 200_000
"""Of no more groups, all are read to change some: finding them takes a job of Spark of its own."""

_GROUP = "__group_0"
"""The first column by which rows are grouped, before the view gives it a name."""


@contextmanager
def followed(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[Part | pa.Table]":
    """What changes of tables do to the rows of a view. Errors: `TooFewRowsError`.

    Rows that come and go, as Delta's change data feed tells them; groups (rule `additive`) and rows without a key of their
    own with what becomes of each in `__op`, few of the latter as this process holds them.
    """
    if steps.rule == "additive":
        with _added(query, steps, work) as groups:
            yield groups
        return
    with ExitStack() as stack:
        before = query.first.query if query.first is not None else query
        if steps.rule == "restricted":
            feed = stack.enter_context(restricted_changes(before, steps, work))
        else:
            feed = relational_changes(before, work, steps.linear)
        # Caching also cuts the plan: Spark's optimizer fails where conditions of a union's parts meet in a longer one.
        changes = Part(stack.enter_context(kept(feed.frame, cut=query.is_lateral)), feed.few)
        if query.first is not None:
            first = first_rows(query.first, changes, work)
            changes = Part(stack.enter_context(kept(first.frame)), first.few)
        if query.by_copies:
            copies = by_copies(changes, work.held, key=query.key_columns, rows=work.rows, computed=work.computed)
            yield stack.enter_context(copies)
        else:
            yield changes


@contextmanager
def _added(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[Part]":
    """The groups that changes of joined rows touch, as they are to be."""
    from backfill_assets.adapters.sql.apply_relational import joined_rows, row_of_nulls

    assert query.grouped is not None
    joined, groups = query.grouped.rows, query.grouped.groups
    sign = f"IF({CARRIED_CHANGE} = 'insert', 1, -1)"
    rows_go = bool(steps.by_class) or any(each.go is not None for each in work.changed.values())
    with signed_changes(joined, steps, work) as rows:
        feed = rows
        if query.grouped.of_all and work.first:
            nothing = row_of_nulls(feed.frame)
            named = nothing.selectExpr(f"* EXCEPT ({CARRIED_CHANGE})", f"'insert' AS {CARRIED_CHANGE}")
            feed = united([feed, Part(named, few=False)])

        def whole() -> "DataFrame":
            return joined_rows(query, [work.new(name).every() for name in joined.occurrences])

        with kept(signed(groups, feed.frame, sign)) as changes:
            old = _old_groups(groups, changes, work.held) if feed.few else _near_groups(groups, changes, work)
            yield Part(changed_groups(groups, changes, old, whole if rows_go else None, rows=work.rows), few=False)


def _old_groups(query: AggregateQuery, changes: "DataFrame", held: SelectableRows) -> "DataFrame":
    """The rows of a view with a group that changes touch, found in this process if they are few among many; or all rows."""
    from backfill_assets.adapters.sql.apply_aggregate import groups_of_rows

    if held.rows < _MANY_GROUPS:
        return held.every()
    values = groups_of_rows(query, changes).select(_GROUP).distinct().limit(MOST_LOCAL + 1).toArrow()
    found = held.having(query.key_columns[0], values.column(0)) if len(values) <= MOST_LOCAL else None
    return held.every() if found is None else found.part.frame


def _near_groups(query: AggregateQuery, changes: "DataFrame", work: TableChanges) -> "DataFrame":
    """The rows of a view in files that may have a group that many changes touch, by the least and the greatest of these, if
    they are whole numbers."""
    from backfill_assets.adapters.sql.apply_aggregate import groups_of_rows

    if work.held.rows < _MANY_GROUPS:
        return work.held.every()
    touched = groups_of_rows(query, changes)
    if dict(touched.dtypes).get(_GROUP, "").upper() not in WHOLE:
        return work.held.every()
    bounds = touched.selectExpr(f"min({_GROUP})", f"max({_GROUP})", f"count_if({_GROUP} IS NULL)")
    ((low, high, nulls),) = bounds.collect()
    work.computed(bounds)
    near = work.held.near(query.key_columns[0], [(low, high)]) if low is not None and not nulls else None
    return work.held.every() if near is None else near()
