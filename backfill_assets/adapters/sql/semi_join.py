"""The rows of one DataFrame whose key another one has, by whichever way of joining was chosen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from backfill_assets.query.spelling import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["semi_join"]


def semi_join(
    rows: "DataFrame", keys: "DataFrame", columns: Mapping[str, str], *, few: bool, how: str = "left_semi"
) -> "DataFrame":
    """The rows whose `columns` are, by the names that each has on either side, some row of `keys`; null is equal to null.

    Keys that are `few` go to every task. Others are sorted with the rows, whatever Spark takes them for: by the sizes of
    compressed files it would send what does not fit in memory.
    """
    other = {name: f"__key_{number}" for number, name in enumerate(columns.values())}
    same = " AND ".join(f"{backquoted(name)} <=> {other[key]}" for name, key in columns.items())
    named = keys.selectExpr(*(f"{backquoted(name)} AS {alias}" for name, alias in other.items()))
    return rows.join(F.broadcast(named) if few else named.hint("merge"), F.expr(same), how)
