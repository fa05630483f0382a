"""Rows of which Spark knows that there are none."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["no_rows"]


def no_rows(spark: "SparkSession", schema: "str | StructType") -> "DataFrame":
    """A DataFrame of a schema without rows.

    In its own process PySpark makes a DataFrame of a list by running Python workers, also of an empty one, and Spark learns
    only then what it holds. With the limit nothing runs, and what joins no rows is left out of the plan.
    """
    return spark.createDataFrame([], schema).limit(0)
