"""Finds the rows of an epoch's input that Spark cannot compute because of their values: records by offset, rows of
tables by key.

The input is cached in Spark, and the query is computed over parts of it, each row by itself (`core.epoch.culprits`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.changes import batch, kept
from backfill_assets.adapters.compute.spark_errors import is_of_values, reason_of
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.sql.keys import NAMEABLE, among_keys, one_spelling
from backfill_assets.adapters.sql.offset_ranges import within
from backfill_assets.core.epoch.culprits import MAX_NAMED, Culprit, Places, culprits
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.epoch.skips import KeySkip
from backfill_assets.core.progress.positions import NamedKey
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query
from backfill_assets.query.record_columns import RECORD_KEY
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.spelling import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Suspects", "poison_records", "poison_rows"]

_NUMBER = "__number"
MAX_SEARCHED = 50_000_000
"""At most this many rows are searched, because they are cached in Spark meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """The result of a search; `unnamed` describes rows that cause errors but cannot be named."""

    culprits: tuple[Culprit, ...] = ()
    complete: bool = True
    unnamed: tuple[str, ...] = ()


def poison_records(
    query: Query | None, plan: Plan, inputs: "Mapping[str, DataFrame]", columns: Sequence[str]
) -> Suspects:
    """Which records of a plan's `inputs` (bronze rows by source) the query cannot compute as the view's `columns`."""
    places = Places.of(plan.offset_reads)
    if query is None or len(places) > MAX_SEARCHED:
        return Suspects() if query is None else _too_many(len(places))

    def fails(start: int, end: int) -> str:
        wanted = places.between(start, end)
        some = {name: once[name].where(within(*RECORD_KEY, wanted[name])) for name in wanted}
        return _refused(query, some, columns)

    with ExitStack() as stack:
        once = {name: stack.enter_context(kept(rows)) for name, rows in inputs.items()}
        found = culprits(len(places), fails)
    named = tuple(Culprit(skip=places.at(number), reason=reason) for number, reason in found.found)
    return Suspects(culprits=named, complete=found.complete)


def poison_rows(
    query: Query,
    inputs: "Mapping[str, DataFrame]",
    upstreams: Mapping[str, DeltaUpstream],
    columns: Sequence[str],
    *,
    rows: int,
) -> Suspects:
    """Which of about `rows` rows of tables, by name, the query cannot compute as the view's `columns`: by their keys."""
    if isinstance(query, RelationalQuery):
        together = "rows of several tables" if len(query.upstreams) > 1 else f"rows of table {query.upstreams[0]!r}"
        return Suspects(complete=False, unnamed=(f"{together} together",))
    if rows > MAX_SEARCHED:
        return _too_many(rows)
    found: list[Culprit] = []
    unnamed: list[str] = []
    complete = True
    for name, some in inputs.items():
        table = _Table(query=query, name=name, columns=columns, key=_nameable(upstreams[name]), slots=_slots(rows))
        if table.key:
            suspects = table.search(some)
            found += suspects.culprits
            unnamed += suspects.unnamed
            complete = complete and suspects.complete
        elif table.fails(some):
            unnamed.append(f"rows of table {name!r}, which has no primary key that can be written as text")
    few = tuple(found[:MAX_NAMED])
    return Suspects(culprits=few, complete=complete and len(few) == len(found), unnamed=tuple(unnamed))


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table that is searched. Keys have no numbers, so each gets one of `slots` by its hash; keys with the same
    number are tried one by one."""

    query: Query
    name: str
    columns: Sequence[str]
    key: tuple[Column, ...]
    slots: int

    def search(self, rows: "DataFrame") -> Suspects:
        """The keys whose rows fail."""
        hashed = ", ".join(self._key_names)
        with kept(rows.selectExpr("*", f"pmod(xxhash64({hashed}), {self.slots}) AS {_NUMBER}")) as once:
            numbers = culprits(self.slots, lambda start, end: self.fails(_part(once, start, end)))
            tried = [each for number, _ in numbers.found for each in self._tried(_part(once, number, number + 1))]
        return Suspects(
            culprits=tuple(each for each in tried if isinstance(each, Culprit)),
            complete=numbers.complete,
            unnamed=tuple(each for each in tried if isinstance(each, str)),
        )

    def fails(self, rows: "DataFrame") -> str:
        """Why rows cannot be computed; empty if they can."""
        return _refused(self.query, {self.name: rows}, self.columns)

    def _tried(self, rows: "DataFrame") -> Iterator[Culprit | str]:
        """The failing rows among those with a few keys; a description if a key cannot be written as text."""
        texts = rows.selectExpr(*(f"CAST({each} AS STRING) AS k{at}" for at, each in enumerate(self._key_names)))
        for values in texts.distinct().limit(MAX_NAMED).collect():
            named = _named(self.key, values)
            if named is None:
                yield f"a row of table {self.name!r} whose key {tuple(values)} cannot be written as text"
            elif reason := self.fails(rows.where(among_keys(self.key, [named]))):
                yield Culprit(skip=KeySkip(source=self.name, key=named), reason=reason)

    @property
    def _key_names(self) -> list[str]:
        return [backquoted(column.name) for column in self.key]


def _refused(query: Query, inputs: "Mapping[str, DataFrame]", columns: Sequence[str]) -> str:
    """Spark's error when each of these rows is computed by itself; empty if there is none.

    For an aggregate, expressions over a whole group are not computed.
    """
    if isinstance(query, AggregateQuery):
        from backfill_assets.adapters.sql.apply_aggregate import of_each_row

        rows = of_each_row(query, inputs[query.upstreams[0]])
    else:
        rows = batch(query, inputs).selectExpr(*columns)
    try:
        rows.selectExpr("max(length(CAST(struct(*) AS STRING)))").collect()  # uses every value, and keeps none
    except Exception as error:
        if is_of_values(error):
            return reason_of(error)
        raise
    return ""


def _too_many(rows: int) -> Suspects:
    return Suspects(complete=False, unnamed=(f"some of {rows:,} rows, which are too many for one search",))


def _nameable(upstream: DeltaUpstream) -> tuple[Column, ...]:
    """The key of a table, if its values can be written as text."""
    columns = {column.name: column for column in upstream.columns()}
    key = tuple(columns[name] for name in upstream.key())
    return key if all(NAMEABLE.fullmatch(column.type) for column in key) else ()


def _named(key: Sequence[Column], values: Sequence[str | None]) -> NamedKey | None:
    try:
        return tuple(
            (column.name, None if text is None else one_spelling(column.type, text))
            for column, text in zip(key, values, strict=True)
        )
    except ValueError:
        return None


def _slots(rows: int) -> int:
    """How many numbers are used for keys, so that few keys share one."""
    return 1 << min(24, max(4, (4 * rows).bit_length()))


def _part(rows: "DataFrame", start: int, end: int) -> "DataFrame":
    return rows.where(f"{_NUMBER} >= {start} AND {_NUMBER} < {end}").drop(_NUMBER)
