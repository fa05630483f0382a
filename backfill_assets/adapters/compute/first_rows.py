"""How a view of the first rows of a query changes (`query.limited`).

The rows that the view holds, and those that it is to hold, are kept in this process: they are few, and Spark would otherwise
repeat a long plan wherever they are used.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from backfill_assets.adapters.compute.relational_changes import TableChanges, changed_part
from backfill_assets.adapters.compute.selectable_rows import Part, part_of
from backfill_assets.query.ddl import quoted
from backfill_assets.query.limited import By, copies_of_first
from backfill_assets.query.relational import FirstRows
from backfill_assets.query.rowwise import CARRIED_CHANGE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

__all__ = ["TooFewRowsError", "first_rows"]

MOST_BYTES = 64 * 2**20
"""The size of a view's files. Its rows, and as many others, are read into this process."""

_NET, _HELD = "__net", "__held"


class TooFewRowsError(Exception):
    """Fewer of the first rows are known than a view is to hold: it has to be computed in full."""


def first_rows(first: FirstRows, changes: Part, work: TableChanges) -> Part:
    """The rows that come to a view and those that go from it, as Delta's change data feed tells them; most do both.

    Args:
        first: Which rows of which query the view holds.
        changes: What changes in the result of that query, told in the same way. Of rows that the view does not hold, those
            that go need not be told.
        work: What holds the view's rows.

    Errors: `TooFewRowsError`.
    """
    from backfill_assets.adapters.sql.apply_relational import are_told_apart

    if work.held.bytes > MOST_BYTES:
        raise TooFewRowsError("the rows of the view are too large to be held in this process")
    fields = [field for field in changes.frame.schema.fields if field.name != CARRIED_CHANGE]
    if not are_told_apart(fields):
        raise TooFewRowsError("values that are equal are not the same")
    held = work.held.every().select(*(quoted(field.name) for field in fields))
    of_view = held.toArrow()
    work.computed(held)
    listed = _listed(first, changes, _for_spark(work, of_view, fields), [quoted(field.name) for field in fields])
    rows = listed.toArrow()
    work.computed(listed)
    copies = copies_of_first(
        rows.column(_NET).to_pylist(), rows.column(_HELD).to_pylist(), of_view=len(of_view), rows=first.rows
    )
    if copies is None:
        raise TooFewRowsError(f"fewer than {first.rows} rows come before all that the view does not hold")
    places = pa.array([at for at, many in enumerate(copies) for _ in range(many)], pa.int64())
    come = rows.select(of_view.column_names).take(places)
    return changed_part(_for_spark(work, come, fields), _for_spark(work, of_view, fields))


def _for_spark(work: TableChanges, rows: pa.Table, fields: "Sequence[StructField]") -> Part:
    """Rows that this process holds, with the types that they had."""
    from pyspark.sql import functions as F  # noqa: N812

    part = part_of(work.spark, rows)
    typed = (F.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in fields)
    return Part(part.frame.select(*typed), part.few)


def _listed(first: FirstRows, changes: Part, held: Part, columns: Sequence[str]) -> "DataFrame":
    """Different rows in their order, with how many copies there are now (of those that the view does not hold, how many more
    or fewer), and how many it holds: so many that the first ones are among them, although each that it holds may be gone."""
    from pyspark.sql import functions as F  # noqa: N812

    more = F.expr(f"IF({CARRIED_CHANGE} = 'insert', 1, -1)")
    changed = changes.frame.select(*columns, more.alias(_NET), F.lit(0).alias(_HELD))
    before = held.frame.select(*columns, F.lit(1).alias(_NET), F.lit(1).alias(_HELD))
    counted = changed.unionAll(before).groupBy(*columns).agg(F.sum(_NET).alias(_NET), F.sum(_HELD).alias(_HELD))
    order = [_ordered(F.col(columns[each.column]), each) for each in first.by]
    return counted.where(f"{_NET} > 0 OR {_HELD} > 0").orderBy(*order).limit(2 * first.rows + 1)


def _ordered(column: "Column", by: By) -> "Column":
    if by.descending:
        return column.desc_nulls_first() if by.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if by.nulls_first else column.asc_nulls_last()
