"""The peer: the same work by Structured Streaming, with a checkpoint and Delta's exactly-once sink."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.world import QUERY, World, parsed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["stream_of_table", "stream_of_topic", "to_end", "view_of", "write"]


def view_of(orders: "DataFrame") -> "DataFrame":
    """The benchmarks' view of orders."""
    return orders.sparkSession.sql(QUERY.replace("FROM orders", "FROM {orders}"), orders=orders)


def stream_of_topic(world: World, topic: str, *, rows_per_batch: int | None = None) -> "DataFrame":
    """The topic's records from its beginning on, parsed; at most so many in one batch."""
    reader = (
        world.spark.readStream
        .format("kafka")
        .option("kafka.bootstrap.servers", world.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
    )
    if rows_per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", rows_per_batch)
    return parsed(reader.load())


def stream_of_table(world: World, table: Path) -> "DataFrame":
    """A Delta table's rows as they are appended."""
    return world.spark.readStream.format("delta").load(str(table))


def write(rows: "DataFrame", folder: Path, **trigger: Any) -> "StreamingQuery":
    """Start a query into `folder/table`, which goes on where its checkpoint is."""
    return (
        rows.writeStream
        .format("delta")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start(str(folder / "table"))
    )


def to_end(rows: "DataFrame", folder: Path) -> "StreamingQuery":
    """Run a query over everything that is there now."""
    query = write(rows, folder, availableNow=True)
    query.awaitTermination()
    return query
