"""How a query's result changes where it is computed again for some values of a key alone (`key_classes`): those that changed
rows have, old and new. All other rows of the result stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.differences import differences
from backfill_assets.adapters.compute.relational_changes import Changed, TableChanges, at_once, relational_changes
from backfill_assets.query.key_classes import KeyClass
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery, Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KEYS", "REACHED", "restricted_changes", "signed_changes"]

KEYS, REACHED = "keys", "reached"
"""What is measured: the values that changes touch, and the rows that have them."""

VALUE = "__value"
"""The hash of a class's value, in rows of a table and of the view, and in those that name what is touched."""


@dataclass(frozen=True, kw_only=True)
class _Touched:
    """The hashes of the values of a class that changes of some places touch, each once, and whether they fit in every task's
    memory."""

    key: KeyClass
    places: Sequence[int]
    values: "DataFrame"
    few: bool

    def only(self, rows: "DataFrame", value: str, *, how: str = "left_semi") -> "DataFrame":
        """The rows whose `value`, in SQL, is touched; with `left_anti` those whose is not."""
        from pyspark.sql import functions as F  # noqa: N812

        from backfill_assets.adapters.sql.semi_join import semi_join

        marked = rows.withColumn(VALUE, F.expr(value))
        return semi_join(marked, self.values, {VALUE: VALUE}, few=self.few, how=how).drop(VALUE)


@contextmanager
def restricted_changes(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[DataFrame]":
    """The rows that come to a view and those that go from it, as Delta's change data feed tells them; a row may do both.

    No older version of a table is read: rows of the view that tell a touched value go, and are computed again. What changed
    rows alone do (`steps.linear`) counts where no value is touched: there it does not matter whether the other places hold
    new rows or old ones.
    """
    from backfill_assets.adapters.sql.apply_relational import result_rows

    with _touched(query, steps, work) as classes:
        come = _parts(classes, [result_rows(query, _reached(each, at_once(query, work, ()), work)) for each in classes])
        go = _parts(classes, [each.only(work.held(), each.key.carrier) for each in classes])
        feed = differences(come, go.drop(COPY, ROW_HASH).select(come.columns))
        if steps.linear:
            feed = feed.unionByName(_beyond(classes, relational_changes(query, work, steps.linear)))
        yield feed


@contextmanager
def signed_changes(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[DataFrame]":
    """How the result of a query changes, as Delta's change data feed tells it, where no view holds its rows.

    For each class the rows of the touched values come as they are now, and go as they were before. Places are taken from old
    to new one after the other: the linear ones first, then those of each class.
    """
    from backfill_assets.adapters.sql.apply_relational import result_rows

    with _touched(query, steps, work) as classes:
        parts = []
        if steps.linear:
            later = [place for each in classes for place in each.places]
            parts.append(relational_changes(query, work, steps.linear, later=later))
        for number, each in enumerate(classes, 1):
            left = [place for other in classes[number:] for place in other.places]
            come = result_rows(query, _reached(each, at_once(query, work, left), work))
            before = _touched_rows(each, at_once(query, work, [*each.places, *left]))
            parts.append(differences(come, result_rows(query, before)))
        yield reduce(lambda some, more: some.unionByName(more), parts)


@contextmanager
def _touched(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[list[_Touched]]":
    """The values that changes touch, of each class; they are looked up once."""
    with ExitStack() as stack:
        found = []
        for number, places in steps.by_class.items():
            key = query.classes.classes[number]
            values = stack.enter_context(kept(work.measure(_values(query, key, places, work.changed), KEYS)))
            found.append(_Touched(key=key, places=places, values=values, few=touched_fit(values, most=work.rows)))
        yield found


def _beyond(touched: "Sequence[_Touched]", rows: "DataFrame") -> "DataFrame":
    """The rows of which no class is touched."""
    return reduce(lambda some, each: each.only(some, each.key.carrier, how="left_anti"), touched, rows)


def _values(
    query: RelationalQuery, key: KeyClass, places: Sequence[int], changed: Mapping[str, Changed]
) -> "DataFrame":
    """The hashes of a class's values in all rows that came to some places or went from them."""
    found = [
        rows().selectExpr(f"{key.of_occurrence(place)} AS {VALUE}")
        for place in places
        for rows in (changed[query.occurrences[place]].come, changed[query.occurrences[place]].go)
        if rows is not None
    ]
    return reduce(lambda some, more: some.unionAll(more), found).distinct()


def _touched_rows(touched: _Touched, rows: "Sequence[DataFrame]") -> "list[DataFrame]":
    """The rows of each place that have a touched value, and all rows of those places that are not of the class."""
    return [
        touched.only(each, touched.key.of_occurrence(at)) if at in touched.key.columns else each
        for at, each in enumerate(rows)
    ]


def _reached(touched: _Touched, rows: "Sequence[DataFrame]", work: TableChanges) -> "list[DataFrame]":
    """The same, and how many rows have a touched value is to be told."""
    return [
        work.measure(each, REACHED) if at in touched.key.columns else each
        for at, each in enumerate(_touched_rows(touched, rows))
    ]


def _parts(touched: Sequence[_Touched], parts: "Sequence[DataFrame]") -> "DataFrame":
    """All rows of which some class is touched, each once: those of a later class without those of the classes before it."""
    found = []
    for number, part in enumerate(parts):
        found.append(_beyond(touched[:number], part))
    return reduce(lambda some, more: some.unionAll(more), found)
