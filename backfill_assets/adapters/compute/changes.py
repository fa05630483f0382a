"""Runs a view's query of any kind: all of it in batch, or the keyed changes of an epoch.

Rows to be written have their operation in `__op` (insert, update, delete): the name of the folder in which they are
staged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.broadcast_memory import touched_fit
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.sql.named_rows import named_rows
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column, columns_of_delta, ddl, quoted
from backfill_assets.query.query import Query
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.spelling import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ROWS",
    "DuplicateKey",
    "batch",
    "changed_groups",
    "columns_of_schema",
    "duplicate_keys",
    "empty_batch",
    "kept",
    "schema_of",
    "signed",
    "view_columns",
]

ROWS = "rows"
"""The folder, inside a staged one, for keyed changes."""


@dataclass(frozen=True, kw_only=True)
class DuplicateKey:
    """A key that more than one row has, with the number of these `rows`, and the `parts` of UNION ALL that have it (0
    is the first)."""

    key: tuple[object, ...]
    rows: int
    parts: tuple[int, ...] = ()


def batch(
    query: Query, inputs: "Mapping[str, DataFrame]", chunks: "Mapping[int, DataFrame] | None" = None
) -> "DataFrame":
    """All rows of the view, including hidden columns, from all rows of its upstreams, by name; in some places of a query over
    several tables only from these `chunks`."""
    if isinstance(query, AggregateQuery):
        from backfill_assets.adapters.sql.apply_aggregate import stored

        return stored(query, inputs[query.upstreams[0]])
    if isinstance(query, RelationalQuery):
        from backfill_assets.adapters.sql.apply_relational import apply_relational

        return apply_relational(query, inputs, chunks)
    from backfill_assets.adapters.sql.apply_rowwise import apply_rowwise

    return apply_rowwise(query, inputs).drop(CARRIED_CHANGE)


def empty_batch(spark: "SparkSession", query: Query, columns: Mapping[str, Sequence[Column]]) -> "DataFrame":
    """The view over upstreams with these columns and no rows: Spark's own analysis of the query."""
    return batch(query, {name: no_rows(spark, ddl(each)) for name, each in columns.items()})


def changed_groups(
    query: AggregateQuery,
    changes: "DataFrame",
    old: "DataFrame | None",
    upstream: "Callable[[], DataFrame] | None" = None,
    *,
    rows: int | None,
) -> "DataFrame":
    """The final rows of the groups that `changes` (about `rows` of them, see `signed`; None where one task is to take them
    and the old ones) touch, given the view's `old` rows, None if it has none.

    `upstream` returns all rows, for aggregates from which a value cannot be removed; without it, rows are only ever
    added.
    """
    from backfill_assets.adapters.sql.apply_aggregate import Reach, groups_of_rows, maintained

    if rows is None:
        reach = Reach.ONE_TASK
    else:
        few = touched_fit(groups_of_rows(query, changes), most=rows)
        reach = Reach.FEW_GROUPS if few else Reach.MANY_GROUPS
    return maintained(query, changes, old, upstream, reach=reach)


def signed(query: AggregateQuery, rows: "DataFrame", sign: str) -> "DataFrame":
    """The columns of an upstream that a query reads, and `__sign`: 1 for an added row, -1 for a removed one."""
    return rows.selectExpr(*(backquoted(column.name) for column in query.columns), f"{sign} AS __sign")


def duplicate_keys(
    rows: "DataFrame", key: Sequence[str], *, branch: str = "", most: int, scans: Scans | None = None
) -> "list[DuplicateKey]":
    """The first keys that more than one row has, with the parts of UNION ALL that have them, according to `branch`. The rows
    may come from `scans`."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = [F.col(quoted(name)).alias(f"__key_{at}") for at, name in enumerate(key)]
    parts = F.sort_array(F.collect_set(quoted(branch))) if branch else F.array()
    counted = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("__rows"), parts.alias("__parts"))
    twice = counted.where("__rows > 1").orderBy(*(f"__key_{at}" for at in range(len(key)))).limit(most)
    found = named_rows(twice, kept=("__rows", "__parts"))
    if scans is not None:
        scans.computed(twice)
    return [DuplicateKey(key=tuple(row[: len(key)]), rows=row["__rows"], parts=tuple(row["__parts"])) for row in found]


def view_columns(view: TableLocation) -> list[str]:
    """The view's own columns, each as an expression with the type that it has in the table."""
    return columns_of_schema(schema_of(view))


def schema_of(view: TableLocation) -> str:
    """The Delta schema of a view, as JSON."""
    table = view.last()
    assert table is not None
    return str(table.schema().to_json())


def columns_of_schema(schema: str) -> list[str]:
    """The columns of a Delta schema (JSON), each as an expression with the type that it has there."""
    return [
        f"CAST({backquoted(column.name)} AS {column.type}) AS {backquoted(column.name)}"
        for column in columns_of_delta(schema)
    ]


@contextmanager
def kept(rows: "DataFrame", *, cut: bool = False) -> "Iterator[DataFrame]":
    """Rows that are used several times: computed once and cached meanwhile, on disk if they do not fit in memory. Where they
    are `cut`, their plan does not say how they are computed, and an executor that is lost takes them with it."""
    once = rows.localCheckpoint() if cut else rows.persist()
    try:
        yield once
    finally:
        once.unpersist()
