"""The changes of a table without those that later ones among them took back."""

from typing import TYPE_CHECKING, Final

from backfill_assets.adapters.sql.map_columns import grouped
from backfill_assets.query.ddl import quoted
from backfill_assets.query.rowwise import CHANGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["IS_INSERT", "netted_changes"]

IS_INSERT: Final = "IN ('insert', 'update_postimage')"
"""The change types in Delta's change data feed for a row that exists after the change; after any other, it does not."""

_ROW, _TEXT, _NET, _VARIANT = "__row", "__text", "__net", "__variant_"


def netted_changes(rows: "DataFrame") -> "DataFrame":
    """Changes, as in Delta's change data feed, without rows that came and went among them: equal rows are added up.

    Only rows of the table before all changes and after them are left. Nothing else is computed of others: rows are generated,
    and Spark moves no condition below that. Rows are equal if Spark groups them together and they have the same text, as 0.0
    and -0.0 are one group. Spark does not group a `VARIANT`: it is told by its schema and text, and rows with one inside of
    another value are all left.
    """
    from pyspark.sql import functions as F  # noqa: N812

    variants = [name for name, kind in rows.dtypes if kind == "variant"]
    if any("variant" in kind for name, kind in rows.dtypes if name not in variants):
        return rows
    names = [name for name in rows.columns if name != CHANGE.name]
    plain = [name for name in names if name not in variants]
    told = {
        f"{_VARIANT}{at}": F.expr(f"concat_ws(' ', schema_of_variant({quoted(name)}), CAST({quoted(name)} AS STRING))")
        for at, name in enumerate(variants)
    }
    alike = rows.withColumns({
        _ROW: F.struct(*map(quoted, names)),
        _TEXT: F.struct(*map(quoted, plain)).cast("string") if plain else F.lit(""),
        **told,
    })
    net = F.expr(f"sum(IF({CHANGE.name} {IS_INSERT}, 1, -1))").alias(_NET)
    one = F.any_value(_ROW).alias(_ROW)
    every = grouped(alike, [*plain, *told, _TEXT], net, one)
    left = every.select(_NET, F.expr(f"explode(array_repeat({_ROW}, CAST(abs({_NET}) AS INT)))").alias(_ROW))
    return left.select(f"{_ROW}.*", F.expr(f"IF({_NET} > 0, 'insert', 'delete')").alias(CHANGE.name))
