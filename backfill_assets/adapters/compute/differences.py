"""How the result of a recomputed view differs from its present rows.

If a view is replaced, its readers see every row deleted and inserted. Instead, they see only the differences, unless
most rows differ.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backfill_assets.query.ddl import quoted
from backfill_assets.query.rowwise import CARRIED_CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["differences", "rows_if_few_differ"]

COUNTED_ROWS = 1_000_000
"""Up to this number, all rows are compared to decide how they are staged; of more rows, only those of a share of the
keys."""
SHARE = 16


def differences(new: "DataFrame", held: "DataFrame") -> "DataFrame":
    """Inserted and deleted rows, as in Delta's change data feed; a row that is both is not a change."""
    from pyspark.sql import functions as F  # noqa: N812

    come, go = (F.lit(kind) for kind in ("insert", "delete"))
    return new.withColumn(CARRIED_CHANGE, come).unionByName(held.withColumn(CARRIED_CHANGE, go))


def rows_if_few_differ(new: "DataFrame", held: "DataFrame", key: Sequence[str], *, rows: int) -> int | None:
    """How many rows there are at least, old and new together; None if more than half of them have no equal row on the other
    side. New rows are cached, and were made of about so many `rows`.

    The count depends only on the rows: every attempt, in any session, makes the same decision.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.map_columns import grouped

    both = differences(new, held)
    # Of few rows a share may be none, and Spark then would not say how many rows it has read.
    least = new.count() if rows > COUNTED_ROWS else 0
    if least > COUNTED_ROWS:
        both = both.where(F.expr(f"pmod(xxhash64({', '.join(map(quoted, key))}), {SHARE}) = 0"))
    alike = grouped(
        both,
        new.columns,
        F.expr(f"abs(sum(IF({CARRIED_CHANGE} = 'insert', 1, -1)))").alias("__differ"),
        F.count(F.lit(1)).alias("__all"),
    )
    (counted,) = alike.agg(F.sum("__differ").alias("differ"), F.sum("__all").alias("all")).collect()
    every = counted["all"] or 0
    return None if every and 2 * counted["differ"] > every else max(every, least)
