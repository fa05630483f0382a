"""The effect of a change log on a view: consolidated changes, one for each key of the view."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.netted_changes import IS_INSERT
from backfill_assets.query.ddl import quoted
from backfill_assets.query.rowwise import CARRIED_CHANGE
from backfill_assets.query.working_columns import DUPLICATE, MOVED, NET_ROWS, OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["consolidated"]


def consolidated(
    rows: "DataFrame", key: Sequence[str], primary_key: Sequence[str] = (), *, few: bool = False
) -> "DataFrame":
    """Consolidated changes, one row per key: its final value, `__op`, whether the key is duplicate (`__twice`), and
    whether the row has another primary key than before (`__moved`).

    Whole rows are added up first, so that a row that was inserted and deleted again leaves nothing, in whatever order
    that happened. One remaining row is new or deleted; one of each kind is a replacement; anything else means that the
    key is not unique. A `few` rows are in one partition already.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.map_columns import grouped

    columns = [each for each in rows.columns if each != CARRIED_CHANGE]
    sums = F.expr(f"sum(IF({CARRIED_CHANGE} {IS_INSERT}, 1, -1))").alias(NET_ROWS)
    # Rows of a key are shuffled once: Spark then adds up rows, and after that keys, without another shuffle.
    together = rows if few else rows.repartition(*map(quoted, key))
    left = grouped(together, columns, sums).where(f"{NET_ROWS} <> 0")
    netted = left.groupBy(*(F.col(quoted(name)).alias(f"__group_{at}") for at, name in enumerate(key))).agg(
        F.max_by(F.struct(*map(quoted, columns)), NET_ROWS).alias("__last"),
        F.sum(F.greatest(NET_ROWS, F.lit(0))).alias("__came"),
        F.sum(F.least(NET_ROWS, F.lit(0))).alias("__went"),
        *(F.min_by(quoted(name), NET_ROWS).alias(f"__was_{at}") for at, name in enumerate(primary_key)),
    )
    operation = F.expr("CASE WHEN __came = 0 THEN 'delete' WHEN __went = 0 THEN 'insert' ELSE 'update' END")
    twice = F.expr("__came > 1 OR __went < -1")
    same = [f"__last.{quoted(name)} <=> __was_{at}" for at, name in enumerate(primary_key)]
    flags = {OPERATION: operation, DUPLICATE: twice, MOVED: F.expr(f"NOT ({' AND '.join(same) or 'TRUE'})")}
    kept = [F.col(f"__last.{quoted(name)}") for name in columns]
    return netted.withColumns(flags).select(*kept, *flags)
