"""How a view that is recomputed differs from the rows that it holds.

To readers of a view that is replaced every row went and came. They see what differs instead, unless most
rows do.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backfill_assets.query.ddl import quoted
from backfill_assets.query.rowwise import CARRIED_CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["differences", "mostly_differ"]

COUNTED_ROWS = 1_000_000
"""So many rows are compared before it is decided how they are staged; of more, those of a share of the keys."""
SHARE = 16


def differences(new: "DataFrame", held: "DataFrame") -> "DataFrame":
    """Rows that come and rows that go, as Delta's change data feed lists them; one that does both is no change."""
    from pyspark.sql import functions as F  # noqa: N812

    come, go = (F.lit(kind) for kind in ("insert", "delete"))
    return new.withColumn(CARRIED_CHANGE, come).unionByName(held.withColumn(CARRIED_CHANGE, go))


def mostly_differ(new: "DataFrame", held: "DataFrame", key: Sequence[str], *, rows: int) -> bool:
    """Whether more than half of all rows, old and new, have no equal on the other side; `rows` is how many there are, about.

    What is counted depends on nothing but the rows: whoever counts again, in whatever session, decides the same.
    """
    from pyspark.sql import functions as F  # noqa: N812

    both = differences(new, held)
    if rows > COUNTED_ROWS:
        both = both.where(F.expr(f"pmod(xxhash64({', '.join(map(quoted, key))}), {SHARE}) = 0"))
    alike = both.groupBy(*map(quoted, new.columns)).agg(
        F.expr(f"abs(sum(IF({CARRIED_CHANGE} = 'insert', 1, -1)))").alias("__differ"), F.count(F.lit(1)).alias("__all")
    )
    (counted,) = alike.agg(F.sum("__differ").alias("differ"), F.sum("__all").alias("all")).collect()
    return bool(counted["all"]) and 2 * counted["differ"] > counted["all"]
