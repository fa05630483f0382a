"""The rows of one DataFrame whose key is in another one, by either kind of join."""

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
    """The rows whose `columns` are in a row of `keys` (with their names on each side); null is equal to null.

    `few` keys are broadcast. Otherwise a sort-merge join is used, whatever Spark estimates: by the sizes of compressed
    files, it would broadcast what does not fit in memory.
    """
    other = {name: f"__key_{number}" for number, name in enumerate(columns.values())}
    same = " AND ".join(f"{backquoted(name)} <=> {other[key]}" for name, key in columns.items())
    named = keys.selectExpr(*(f"{backquoted(name)} AS {alias}" for name, alias in other.items()))
    return rows.join(F.broadcast(named) if few else named.hint("merge"), F.expr(same), how)
