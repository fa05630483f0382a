"""The memory that a Spark session has for broadcasts, and the memory that keys would take: measured here, decided
elsewhere."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from backfill_assets.adapters.sql.broadcasts import Keys, Memory, fit, has_texts, size_in_bytes, widths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["fit_in", "key_bytes", "touched_fit"]

LONGEST = 64 * 2**10
"""Strings in keys are assumed to be no longer than this if there are so few rows that measuring would cost more."""

_HEAP = "1g"
"""Spark's own defaults, for a driver, an executor, and the size of collected results."""


def fit_in(spark: "SparkSession", keys: Keys) -> bool:
    """Whether keys should be broadcast in a session."""
    return fit(keys, _memory(spark))


def key_bytes(rows: "DataFrame", key: Collection[str]) -> str:
    """SQL for the bytes that the strings and nested values in the keys of all rows take."""
    types = dict(rows.dtypes)
    return f"sum({widths({name: types[name] for name in sorted(key)})})"


def touched_fit(rows: "DataFrame", *, most: int) -> bool:
    """Whether the distinct `rows`, keys of at most `most` rows, should be broadcast; measured only if they may be too
    large."""
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
    """The memory settings of a session. Tasks of a local Spark run in the driver's heap."""
    heaps = [size_in_bytes(_set(spark, f"spark.{each}.memory", _HEAP), unit="m") for each in ("driver", "executor")]
    heap = heaps[0] if _set(spark, "spark.master", "").startswith("local") else min(heaps)
    return Memory(
        heap=heap,
        collect=size_in_bytes(_set(spark, "spark.driver.maxResultSize", _HEAP)) or heap,  # zero: no limit
        threshold=size_in_bytes(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold"))),
    )


def _set(spark: "SparkSession", name: str, default: str) -> str:
    return spark.conf.get(name, default) or default
