"""The rows that tell which values of a key a table's changes touch: those that changed, or the rows of another table to which
they lead (`query.lifting`)."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.relational_changes import TableChanges, sought_in
from backfill_assets.adapters.compute.selectable_rows import LocalChanges
from backfill_assets.query.key_classes import KeyClass, Lookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RAW", "VALUE", "hashes", "known_rows", "leading_rows"]

VALUE = "__value"
"""The hash of a class's value, in rows of a table and of the view, and in those that name what is touched."""
RAW = "__raw"
"""The value itself, where rows of some place have several."""


def known_rows(
    names: Sequence[str], place: int, key: KeyClass, steps: Sequence[Lookup], work: TableChanges
) -> list[tuple[int, pa.Table]] | None:
    """The rows, each with its place, that changes of a place lead to by some steps, found in this process; None where it does
    not hold them. They tell values of a key. `names` are the tables of all places."""
    local = work.changed[names[place]].local
    found = None if local is None else _changed(local, place, steps[0].key if steps else key)
    for step in steps:
        sought = sought_in(step.key, found) if found is not None else None
        found = None
        if sought is not None:
            (to,) = step.others
            there = work.new(names[to]).found(step.key.columns[to], sought)
            gone = _known_gone(names[to], work)
            found = (
                [(to, there.rows), *((to, each) for each in gone)] if there is not None and gone is not None else None
            )
    return found


def _changed(local: LocalChanges, place: int, key: KeyClass) -> list[tuple[int, pa.Table]]:
    """The rows that came to a place and those that went from it; of a key that is computed, its values."""
    rows = [local.come, local.go]
    if place in key.computed:
        value = key.columns[place]
        rows = [local.part(each).frame.selectExpr(value).toArrow().rename_columns([value]) for each in rows]
    return [(place, each) for each in rows]


def _known_gone(name: str, work: TableChanges) -> list[pa.Table] | None:
    """The rows that went from a table: together with the new rows, those are all that it had."""
    if name not in work.changed:
        return []
    local = work.changed[name].local
    return None if local is None else [local.go]


def leading_rows(
    names: Sequence[str], place: int, steps: Sequence[Lookup], work: TableChanges
) -> "list[tuple[int, DataFrame]]":
    """The same, found by Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.semi_join import semi_join

    changed = work.changed[names[place]]
    found = [(place, rows()) for rows in (changed.come, changed.go) if rows is not None]
    for number, step in enumerate(steps):
        (to,) = step.others
        parts = [hashes(step.key, at, rows) for at, rows in found]
        touched = reduce(lambda some, more: some.unionAll(more), parts).distinct()
        few = number == 0 and touched_fit(touched, most=work.rows)
        there = work.changed.get(names[to])
        gone = [there.go()] if there is not None and there.go is not None else []
        marked = [
            rows.withColumn(VALUE, F.expr(step.key.of_occurrence(to))) for rows in (work.new(names[to]).every(), *gone)
        ]
        found = [(to, semi_join(rows, touched, {VALUE: VALUE}, few=few).drop(VALUE)) for rows in marked]
    return found


def hashes(key: KeyClass, place: int, rows: "DataFrame") -> "DataFrame":
    """The hashes of a key's values in rows of a place; with the values, if there are rows that have several."""
    raw = (f"{key.value(place)} AS {RAW}",) if key.hops else ()
    return rows.selectExpr(f"{key.of_occurrence(place)} AS {VALUE}", *raw)
