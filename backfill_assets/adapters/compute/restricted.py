"""How a query's result changes where it is computed again for some values of a key alone (`key_classes`): those that changed
rows have, old and new. All other rows of the result stay.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.leading_rows import RAW, VALUE, hashes, known_rows, leading_rows
from backfill_assets.adapters.compute.relational_changes import (
    TableChanges,
    at_once,
    changed_part,
    relational_changes,
    sought_in,
)
from backfill_assets.adapters.compute.selectable_rows import Held, Part, SelectableRows, part_of, united
from backfill_assets.adapters.delta.found_rows import HASH, Sought
from backfill_assets.query.computed_keys import Hops
from backfill_assets.query.key_classes import KeyClass, Lookup
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.steps import Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KEYS", "REACHED", "restricted_changes", "signed_changes"]

KEYS, REACHED = "keys", "reached"
"""What is measured: the values that changes touch, and the rows that have them."""


@dataclass(frozen=True, kw_only=True)
class _Touched:
    """The hashes of the values of a class that changes of some places touch, and whether they fit in every task's memory.
    `lifts` are the steps by which places that are not of the class lead to it. `sought` are the values, if this process holds
    them, and `hashes` their hashes, if the view holds only these."""

    key: KeyClass
    places: Sequence[int]
    values: "DataFrame"
    few: bool
    lifts: Mapping[int, Sequence[Lookup]]
    sought: Sought | None = None
    hashes: Sought | None = None

    def leading(self, rows: Sequence[SelectableRows], at: int) -> Held | None:
        """The rows of a place that is not of the class which lead to a touched value; None where they are not found in this
        process, or cannot be told.

        Nothing comes of others: they would need rows of the places to which they lead, and these have touched values only.
        """
        steps = self.lifts.get(at, ())
        asks = at not in self.places and any(step.nulls for step in steps)
        if not steps or asks or self.sought is None or steps[-1].others[0] not in self.key.columns:
            return None
        last = steps[-1].others[0]
        found = rows[last].found(self.key.columns[last], self.sought)
        for step in reversed(steps):
            there = [(step.others[0], found.rows)] if found is not None else []
            sought = sought_in(step.key, there) if there else None
            found = rows[step.known].found(step.key.columns[step.known], sought) if sought is not None else None
        return found

    def of_place(self, rows: SelectableRows, at: int, count: "Callable[[Part | Held], Part]") -> Part:
        """The rows of a place that have a touched value, each once, which `count` may count."""
        if hops := self.key.hops.get(at):
            return count(Part(self._in_tiles(rows.every(), hops), few=False))
        found = rows.found(self.key.columns[at], self.sought) if self.sought is not None else None
        if found is not None:
            return count(found)
        return count(Part(self.only(rows.every(), self.key.of_occurrence(at)), few=False))

    def _in_tiles(self, rows: "DataFrame", hops: Hops) -> "DataFrame":
        tiles = self.values.selectExpr(f"explode({hops.tiles(RAW)}) AS {RAW}").distinct()
        return self.only(rows, self.key.hashed(hops.tile), among=tiles.selectExpr(f"{self.key.hashed(RAW)} AS {VALUE}"))

    def told(self, result: Part) -> Part:
        """What a query gives of such rows; where they have several values, what has a touched one: the rest lacks rows."""
        return Part(self.only(result.frame, self.key.carrier), result.few) if self.key.hops else result

    def of_view(self, rows: SelectableRows) -> Part:
        """The rows of the view that tell a touched value."""
        sought = self.hashes if self.key.is_hidden else self.sought
        found = rows.found(self.key.output, sought) if sought is not None else None
        return found.part if found is not None else Part(self.only(rows.every(), self.key.carrier), few=False)

    def only(
        self, rows: "DataFrame", value: str, *, how: str = "left_semi", among: "DataFrame | None" = None
    ) -> "DataFrame":
        """The rows whose `value`, in SQL, is touched, or is `among` others; with `left_anti` those whose is not."""
        from pyspark.sql import functions as F  # noqa: N812

        from backfill_assets.adapters.sql.semi_join import semi_join

        marked = rows.withColumn(VALUE, F.expr(value))
        return semi_join(marked, self.values if among is None else among, {VALUE: VALUE}, few=self.few, how=how).drop(
            VALUE
        )


@contextmanager
def restricted_changes(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[Part]":
    """The rows that come to a view and those that go from it, as Delta's change data feed tells them; a row may do both.

    No older version of a table is read: rows of the view that tell a touched value go, and are computed again. What changed
    rows alone do (`steps.linear`) counts where no value is touched: there it does not matter whether the other places hold
    new rows or old ones.
    """
    with _touched(query, steps, work) as classes:
        news = at_once(query, work, ())
        come = _parts(classes, [each.told(_result(query, _reached(each, news, work))) for each in classes])
        go = _parts(classes, [each.of_view(work.held) for each in classes])
        gone = go.frame.drop(COPY, ROW_HASH).select(come.frame.columns)
        feed = changed_part(come, Part(gone, go.few))
        if steps.linear:
            linear = relational_changes(query, work, steps.linear)
            feed = united([feed, Part(_beyond(classes, linear.frame), linear.few)])
        yield feed


@contextmanager
def signed_changes(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[Part]":
    """How the result of a query changes, as Delta's change data feed tells it, where no view holds its rows.

    For each class the rows of the touched values come as they are now, and go as they were before. Places are taken from old
    to new one after the other: the linear ones first, then those of each class.
    """
    with _touched(query, steps, work) as classes:
        parts = []
        if steps.linear:
            later = [place for each in classes for place in each.places]
            parts.append(relational_changes(query, work, steps.linear, later=later))
        for number, each in enumerate(classes, 1):
            left = [place for other in classes[number:] for place in other.places]
            come = _result(query, _reached(each, at_once(query, work, left), work))
            before = _touched_rows(each, at_once(query, work, [*each.places, *left]), _uncounted)
            parts.append(changed_part(come, _result(query, before)))
        yield united(parts)


def _result(query: RelationalQuery, bound: Sequence[Part]) -> Part:
    """The query's result over these rows."""
    from backfill_assets.adapters.sql.apply_relational import result_rows

    return Part(result_rows(query, [each.frame for each in bound]), all(each.few for each in bound))


@contextmanager
def _touched(query: RelationalQuery, steps: Steps, work: TableChanges) -> "Iterator[list[_Touched]]":
    """The values that changes touch, of each class; they are looked up once."""
    with ExitStack() as stack:
        found = []
        for number, places in steps.by_class.items():
            key = query.classes.classes[number]
            found.append(stack.enter_context(_touched_values(query, key, places, work)))
        yield found


def _beyond(touched: "Sequence[_Touched]", rows: "DataFrame") -> "DataFrame":
    """The rows of which no class is touched."""
    return reduce(lambda some, each: each.only(some, each.key.carrier, how="left_anti"), touched, rows)


@contextmanager
def _touched_values(
    query: RelationalQuery, key: KeyClass, places: Sequence[int], work: TableChanges
) -> "Iterator[_Touched]":
    """The values of a class in all rows that came to some places or went from them."""
    lifts = query.classes.lifts
    found = [known_rows(query.occurrences, place, key, lifts.get(place, ()), work) for place in places]
    known = [each for each in found if each is not None]
    sought = sought_in(key, [each for some in known for each in some]) if len(known) == len(found) else None
    if sought is None:
        values = work.measure(_values(query, key, places, work), KEYS)
        with kept(values) as once:
            # What changed rows lead to may be more values than there are changed rows.
            most = once.count() if lifts.keys() & set(places) else work.rows
            yield _Touched(key=key, places=places, values=once, few=touched_fit(once, most=most), lifts=lifts)
        return
    work.note(KEYS, len(sought.values))
    given = part_of(work.spark, pa.table({VALUE: sought.values})).frame
    raw = (f"{VALUE} AS {RAW}",) if key.hops else ()
    values = given.selectExpr(f"{key.hashed(VALUE)} AS {VALUE}", *raw)
    hashes = Sought.of(HASH, [values.toArrow()[VALUE]]) if key.is_hidden else None
    yield _Touched(key=key, places=places, values=values, few=True, lifts=lifts, sought=sought, hashes=hashes)


def _values(query: RelationalQuery, key: KeyClass, places: Sequence[int], work: TableChanges) -> "DataFrame":
    """The hashes of the values."""
    found = [
        hashes(key, at, rows)
        for place in places
        for at, rows in leading_rows(query.occurrences, place, query.classes.lifts.get(place, ()), work)
    ]
    return reduce(lambda some, more: some.unionAll(more), found).distinct()


def _touched_rows(
    touched: _Touched, rows: Sequence[SelectableRows], count: "Callable[[Part | Held], Part]"
) -> list[Part]:
    """The rows of each place that have a touched value; of places that are not of the class those that lead to one, if this
    process finds them, or all rows."""
    parts = []
    for at, each in enumerate(rows):
        if at in touched.key.columns:
            parts.append(touched.of_place(each, at, count))
        else:
            found = touched.leading(rows, at)
            parts.append(Part(each.every(), few=False) if found is None else count(found))
    return parts


def _reached(touched: _Touched, rows: Sequence[SelectableRows], work: TableChanges) -> list[Part]:
    """The same, and how many rows have a touched value is to be told."""

    def counted(found: Part | Held) -> Part:
        if isinstance(found, Held):
            work.note(REACHED, len(found.rows))
            return found.part
        return Part(work.measure(found.frame, REACHED), found.few)

    return _touched_rows(touched, rows, counted)


def _uncounted(found: Part | Held) -> Part:
    return found.part if isinstance(found, Held) else found


def _parts(touched: Sequence[_Touched], parts: Sequence[Part]) -> Part:
    """All rows of which some class is touched, each once: those of a later class without those of the classes before it."""
    return united([Part(_beyond(touched[:number], part.frame), part.few) for number, part in enumerate(parts)])
