"""The rules by which views follow changes, on plain rows in Spark: what a view holds after each change of its tables."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backfill_assets.adapters.compute.relational_changes import Changed, TableChanges
from backfill_assets.adapters.compute.rules import followed
from backfill_assets.adapters.compute.selectable_rows import SelectableRows
from backfill_assets.adapters.sql.apply_relational import apply_relational, own_rows
from backfill_assets.query.relational import COPY, ROW_HASH, RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.working_columns import OPERATION
from tests.support.local_rows import local_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Tables", "after", "frames", "visible"]

Row = tuple[object, ...]
Tables = dict[str, list[Row]]
"""Rows of tables, by name."""


@contextmanager
def frames(
    spark: "SparkSession", rows: Mapping[str, Sequence[Sequence[object]]], schemas: Mapping[str, str]
) -> "Iterator[dict[str, DataFrame]]":
    """The rows of tables as DataFrames that are computed once."""
    made = {name: local_rows(spark, each, schemas[name]).coalesce(1).persist() for name, each in rows.items()}
    try:
        yield made
    finally:
        for each in made.values():
            each.unpersist()


def after(
    query: RelationalQuery,
    old: "Mapping[str, DataFrame]",
    new: "Mapping[str, DataFrame]",
    changed: Sequence[str],
) -> Counter[Row]:
    """The visible rows of a view that held its query over the old tables, after it has followed what changed."""
    found = {name: _changed(old[name], new[name]) for name in changed}
    computed = apply_relational(query, old)
    held = computed.localCheckpoint() if query.is_lateral else computed.persist()
    steps = query.steps(changed)
    view = Counter(map(_known, held.collect()))
    work = TableChanges(
        new=lambda name: SelectableRows(every=lambda: new[name]),
        changed=found,
        held=SelectableRows(every=lambda: held),
        spark=held.sparkSession,
        rows=100,
        measure=lambda rows, _name: rows,
        note=lambda _name, _rows: None,
        computed=lambda _rows: None,
    )
    with followed(query, steps, work) as changes:
        if OPERATION in changes.frame.columns:
            _merge(query, view, held.columns, changes.frame.collect())
        else:
            view = _added(held, changes.frame)
    held.unpersist()
    return _visible(view, [name for name in held.columns if name not in {ROW_HASH, COPY}])


def visible(query: RelationalQuery, tables: "Mapping[str, DataFrame]") -> Counter[Row]:
    """What the user's own text gives."""
    rows = own_rows(query, tables)
    return _visible(Counter(map(_known, rows.collect())), rows.columns)


def _changed(old: "DataFrame", new: "DataFrame") -> Changed:
    come, gone = (each.localCheckpoint() for each in (new.exceptAll(old), old.exceptAll(new)))
    return Changed(
        come=lambda: come, go=None if gone.isEmpty() else lambda: gone, old=SelectableRows(every=lambda: old)
    )


def _added(held: "DataFrame", changes: "DataFrame") -> Counter[Row]:
    names = [name for name in held.columns if name not in {ROW_HASH, COPY}]
    view = Counter(map(_known, held.select(*names).collect()))
    for row in changes.select(CARRIED_CHANGE, *names).collect():
        view[_known(row[1:])] += 1 if row[0] == "insert" else -1
    assert min(view.values(), default=0) >= 0, "a row is to go that the view does not hold"
    return Counter({row: count for row, count in view.items() if count})


def _merge(query: RelationalQuery, view: Counter[Row], columns: Sequence[str], rows: Sequence[Any]) -> None:
    """Take rows into a view, by their keys."""
    at = [columns.index(name) for name in query.key_columns]
    keyed = {tuple(row[each] for each in at): row for row in view}
    for row in rows:
        key = _known(row[name] for name in query.key_columns)
        assert (row["__op"] != "insert") == (key in keyed), "rows come once, and go only if they are there"
        if key in keyed:
            del view[keyed.pop(key)]
        if row["__op"] != "delete":
            keyed[key] = _known(row[name] for name in columns)
            view[keyed[key]] = 1


def _visible(view: Counter[Row], columns: Sequence[str]) -> Counter[Row]:
    at = [number for number, name in enumerate(columns) if not name.startswith("__")]
    found: Counter[Row] = Counter()
    for row, count in view.items():
        found[tuple(row[each] for each in at)] += count
    return found


def _known(row: Any) -> Row:
    """A row in a form that can be compared: floats by nine digits."""
    return tuple(float(f"{each:.9g}") if isinstance(each, float) else each for each in row)
