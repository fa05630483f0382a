"""What Spark does with a view's query of whichever kind: all of it in batch, or the keyed changes of an epoch.

Rows to be written carry what is to be done with them in `__op` (insert, update, delete): the name of the folder that
they are staged in.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.ddl import Column, columns_of_delta, ddl, quoted
from backfill_assets.query.query import Query
from backfill_assets.query.rowwise import CHANGE_COLUMNS
from backfill_assets.resources.warehouse import TableLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "OPERATION",
    "ROWS",
    "batch",
    "changed_groups",
    "empty_batch",
    "rows_at",
    "view_columns",
    "write_changes",
    "write_new",
]

OPERATION = "__op"
ROWS = "rows"
"""The folder, inside of a staged one, that keyed changes are written to."""


def batch(query: Query, inputs: "Mapping[str, DataFrame]") -> "DataFrame":
    """All rows of the view, hidden columns included, from all rows of its upstreams."""
    if isinstance(query, AggregateQuery):
        from backfill_assets.query.apply_aggregate import stored

        return stored(query, inputs[query.upstreams[0]])
    from backfill_assets.query.apply import apply_rowwise

    return apply_rowwise(query, inputs).drop(*(f"__{each.name}" for each in CHANGE_COLUMNS))


def empty_batch(spark: "SparkSession", query: Query, columns: Mapping[str, Sequence[Column]]) -> "DataFrame":
    """The view over upstreams that have these columns and no rows: Spark's own analysis of the query."""
    return batch(query, {name: spark.createDataFrame([], ddl(each)) for name, each in columns.items()})


def changed_groups(
    query: AggregateQuery, changes: "DataFrame", old: "DataFrame", upstream: "DataFrame | None" = None
) -> "DataFrame":
    """The groups that `changes` (with `__sign`) touch, as they are to be, with the view's `old` rows.

    `upstream` has all rows, for what cannot be taken away again; without it rows are only ever added.
    """
    from backfill_assets.query.apply_aggregate import maintained

    return maintained(query, changes, old, upstream)


def rows_at(spark: "SparkSession", table: TableLocation, version: int) -> "DataFrame":
    """All rows of a version of a table."""
    return spark.read.format("delta").option("versionAsOf", version).load(table.uri)


def view_columns(view: TableLocation) -> list[str]:
    """The view's own columns: one that came to an upstream since, and so to `*`, is not among them."""
    table = view.load()
    assert table is not None
    return [quoted(each.name) for each in columns_of_delta(table.schema().to_json())]


def write_new(rows: "DataFrame", folder: str, *, tasks: int) -> dict[str, int]:
    """Write rows that are all to be inserted; as `write_changes`, without the sorting that partitioned writing takes."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    seen = Observation("staged")
    observed = rows.coalesce(tasks).observe(seen, F.count(F.lit(1)).alias("insert"))
    observed.write.parquet(f"{folder}/{OPERATION}=insert", mode="error")
    return {"insert": int(seen.get["insert"]), "update": 0, "delete": 0}


def write_changes(rows: "DataFrame", folder: str, *, tasks: int, twice: str = "FALSE") -> dict[str, int]:
    """Write rows that have `__op`; how many of each kind, and for how many `twice`, a column left out, holds.

    Counts come from Spark's own observation of the write.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    seen = Observation("staged")
    counts = [F.count_if(F.col(OPERATION) == kind).alias(kind) for kind in ("insert", "update", "delete")]
    counts.append(F.count_if(F.expr(twice)).alias("twice"))
    observed = rows.coalesce(tasks).observe(seen, *counts)
    observed.drop(twice).write.partitionBy(OPERATION).parquet(folder, mode="error")
    return {name: int(value) for name, value in seen.get.items()}
