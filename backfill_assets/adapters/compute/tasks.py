"""How many tasks compute and write rows, each into a file of its own: Spark says how many it runs at once."""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from backfill_assets.adapters.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["fit_one_task", "parallelism", "tasks_for", "tasks_of_machine"]

ROWS_OF_TASK = 50_000
"""The least number of rows that are worth a task, and a file, of their own."""
FILES_OF_TASK = 32
"""The most files that one task is given: Spark packs no more small ones together, as opening one counts as 4 of 128 MB."""
_MANY = 2**20
_FOUND: "WeakKeyDictionary[SparkSession, int]" = WeakKeyDictionary()


def tasks_for(spark: "SparkSession", rows: int) -> int:
    """The number of tasks for so many rows: at most as many as Spark runs at once.

    Example:
        >>> tasks_for(spark, 1_000)  # doctest: +SKIP
        1
    """
    wanted = -(-rows // ROWS_OF_TASK)
    return 1 if wanted <= 1 else min(wanted, parallelism(spark))


def fit_one_task(rows: int, files: int | None) -> bool:
    """Whether so many rows in so many files are worth no more than one task. None: the files may hold far more than the rows.

    Example:
        >>> fit_one_task(1_000, 3), fit_one_task(1_000, 500), fit_one_task(1_000, None)
        (True, False, False)
    """
    return rows <= ROWS_OF_TASK and files is not None and files <= FILES_OF_TASK


def parallelism(spark: "SparkSession") -> int:
    """How many tasks Spark runs at once, wherever it runs: the processors of this machine say nothing about a cluster."""
    if spark not in _FOUND:
        _FOUND[spark] = max(1, _asked(spark))
    return _FOUND[spark]


def tasks_of_machine(spark: "SparkSession") -> int:
    """How many tasks Spark ever runs at once on one machine; 0 on a cluster, which may grow."""
    return parallelism(spark) if str(spark.conf.get("spark.master", "")).startswith("local") else 0


def _asked(spark: "SparkSession") -> int:
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    # Spark Connect has no such request. Spark cuts a range into as many parts as it runs tasks at once.
    from pyspark.sql import functions as F  # noqa: N812

    (found,) = spark.range(_MANY).select(F.spark_partition_id().alias("part")).agg(F.max("part")).collect()
    return int(found[0]) + 1
