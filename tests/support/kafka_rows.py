"""Rows as Spark's Kafka source gives them."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WHEN", "kafka_rows"]

KAFKA_ROW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
WHEN = datetime(2024, 1, 2, 3, 4, 5, 678000)


def kafka_rows(spark: "SparkSession", values: Iterable[bytes | None]) -> "DataFrame":
    """The rows of a partition that has these values at offsets 0, 1, 2 …"""
    headers = [("h", b"\x00")]
    rows = [(b"k", value, "topic", 3, offset, WHEN, 0, headers) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, KAFKA_ROW).coalesce(1)
