"""Kafka to bronze, against a plain Spark batch job: read, `from_json`, append to Delta, over the same offset ranges.

The plain job remembers nothing and judges no record: it shows what exactness costs.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backfill_assets.core.epoch.limits import Limits
from benchmarks.measure import Comparison, compare, timed
from benchmarks.world import PARSED_SCHEMA, PARTITIONS, World, declared_over, parsed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run"]

EPOCHS = (1, 8)
COLUMNS = ("order_id", "customer", "item", "amount", "quantity", "at")
OURS = ("_partition", "_offset", "_timestamp", "_key", *COLUMNS)
THEIRS = ("partition", "offset", "timestamp", "key", *COLUMNS)


def run(world: World, *, rows: int = 2_000_000, repetitions: int = 5, warmups: int = 1) -> Iterator[Comparison]:
    """The whole topic in one epoch and in eight; `rows` is rounded to whole epochs of whole partitions."""
    rows -= rows % (PARTITIONS * max(EPOCHS))
    topic = world.topic()
    world.produce(topic, rows)
    for epochs in EPOCHS:
        yield compare(
            _Case(world, topic, rows, epochs),
            repetitions=repetitions,
            warmups=warmups,
            benchmark="ingest",
            case=f"{epochs} epoch{'s' if epochs > 1 else ''}",
            peer="plain Spark batch append",
            rows=rows,
        )


class _Case:
    """Both ways of ingesting one topic, and what each of them wrote."""

    def __init__(self, world: World, topic: str, rows: int, epochs: int) -> None:
        self.world, self.topic, self.rows, self.epochs = world, topic, rows, epochs
        self.contents: set[object] = set()

    def ours(self) -> float:
        """One run of the source from its creation on; creating the table is not part of the measure."""
        declared = declared_over(self.topic)
        with self.world.folder() as folder:
            self.world.create(folder, declared, "orders")
            limits = Limits(chunk_rows=self.rows // self.epochs)
            seconds = timed(lambda: self.world.refresh(folder, declared, "orders", limits))
            self.contents.add(self.world.content(folder / "warehouse" / "sources" / "orders", *OURS))
        return seconds

    def theirs(self) -> float:
        """The same ranges, one append each."""
        with self.world.folder() as folder:
            self.world.empty_table(folder, PARSED_SCHEMA)
            seconds = timed(lambda: self._append_all(str(folder)))
            self.contents.add(self.world.content(folder, *THEIRS))
        return seconds

    def _append_all(self, folder: str) -> None:
        for number in range(self.epochs):
            self._append(folder, number)

    def _append(self, folder: str, number: int) -> None:
        share = self.rows // PARTITIONS // self.epochs
        rows = parsed(self._read(number * share, (number + 1) * share))
        rows.write.format("delta").mode("append").save(folder)

    def _read(self, start: int, end: int) -> "DataFrame":
        partitions = [str(partition) for partition in range(PARTITIONS)]
        return (
            self.world.spark.read
            .format("kafka")
            .option("kafka.bootstrap.servers", self.world.servers)
            .option("assign", json.dumps({self.topic: list(range(PARTITIONS))}))
            .option("startingOffsets", json.dumps({self.topic: dict.fromkeys(partitions, start)}))
            .option("endingOffsets", json.dumps({self.topic: dict.fromkeys(partitions, end)}))
            .option("includeHeaders", "true")
            .load()
        )
