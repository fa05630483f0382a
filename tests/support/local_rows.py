"""Rows of this process for Spark, by way of Arrow: of a list PySpark makes a DataFrame by running Python workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["local_rows"]


def local_rows(spark: "SparkSession", rows: Sequence[Sequence[object]], schema: "str | StructType") -> "DataFrame":
    """A DataFrame of rows."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    kinds = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(kinds, StructType)
    columns: pa.Schema = to_arrow_schema(kinds, timezone="UTC")
    values = [pa.array([_plain(row[at]) for row in rows], field.type) for at, field in enumerate(columns)]
    made: DataFrame = spark.createDataFrame(pa.Table.from_arrays(values, schema=columns), kinds)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        return {name: _plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return list(value.items()) if isinstance(value, dict) else value
