"""Rows of which Spark knows that there are none."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["no_rows"]


def no_rows(spark: "SparkSession", schema: "str | StructType") -> "DataFrame":
    """A DataFrame of a schema without rows.

    Without Spark Connect, PySpark runs Python workers to make a DataFrame of a list, even of an empty one, and Spark learns
    only then what it holds. With the limit nothing runs, and Spark drops what joins no rows from its plan.
    """
    return spark.createDataFrame([], schema).limit(0)
