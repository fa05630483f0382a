"""How much memory a Spark session has for what it broadcasts, and how much keys would take: measured, not decided here."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from backfill_assets.adapters.sql.broadcasts import Keys, Memory, fit, has_texts, size_in_bytes, widths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["fit_in", "key_bytes", "touched_fit"]

LONGEST = 64 * 2**10
"""Texts in keys are taken to be no longer than this, where so few rows would fit that measuring them costs more."""

_HEAP = "1g"
"""Spark's own default, of a driver and of an executor, and of what the driver collects."""


def fit_in(spark: "SparkSession", keys: Keys) -> bool:
    """Whether keys are to be broadcast in a session."""
    return fit(keys, _memory(spark))


def key_bytes(rows: "DataFrame", key: Collection[str]) -> str:
    """SQL for the bytes that the texts and nested values in the keys of all rows take."""
    types = dict(rows.dtypes)
    return f"sum({widths({name: types[name] for name in sorted(key)})})"


def touched_fit(rows: "DataFrame", *, most: int) -> bool:
    """Whether the distinct `rows`, keys of at `most` so many rows, are to be broadcast: measured where it may be too many."""
    types = dict(rows.dtypes)
    memory = _memory(rows.sparkSession)
    if fit(Keys(rows=most, columns=len(types), bytes=most * LONGEST if has_texts(types) else 0), memory):
        return True
    if memory.threshold < 0:
        return False
    return fit(_measured(rows.distinct()), memory)


def _measured(keys: "DataFrame") -> Keys:
    from pyspark.sql import functions as F  # noqa: N812

    types = dict(keys.dtypes)
    found = keys.agg(F.count(F.lit(1)).alias("rows"), F.expr(f"sum({widths(types)})").alias("bytes")).first()
    assert found is not None
    return Keys(rows=found["rows"], columns=len(types), bytes=found["bytes"] or 0)


def _memory(spark: "SparkSession") -> Memory:
    """What a session says of itself. A local Spark's tasks run in the driver's heap."""
    heaps = [size_in_bytes(_set(spark, f"spark.{each}.memory", _HEAP), unit="m") for each in ("driver", "executor")]
    heap = heaps[0] if _set(spark, "spark.master", "").startswith("local") else min(heaps)
    return Memory(
        heap=heap,
        collect=size_in_bytes(_set(spark, "spark.driver.maxResultSize", _HEAP)) or heap,  # zero: as much as there is
        threshold=size_in_bytes(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold"))),
    )


def _set(spark: "SparkSession", name: str, default: str) -> str:
    return spark.conf.get(name, default) or default
