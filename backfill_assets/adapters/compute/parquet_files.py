"""Reading Parquet files by their addresses."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["parquet_files"]

_OF_PATTERNS = re.compile(r"[\[\]{}*?\\]")


def parquet_files(
    spark: "SparkSession", paths: Iterable[str], schema: "StructType | str | None" = None, **options: str
) -> "DataFrame":
    """The rows of just these files or folders, as they are in the files or with the columns of a schema."""
    reader = spark.read.options(**options)
    # Spark takes an address for a pattern, which other files may match. Its option against that reads files several times.
    literal = (_OF_PATTERNS.sub(r"\\\g<0>", path) for path in paths)
    return (reader if schema is None else reader.schema(schema)).parquet(*literal)
