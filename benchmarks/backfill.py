"""A view's history straight from Kafka, against Structured Streaming with the same query in as many batches.

Structured Streaming keeps a checkpoint and writes to its Delta sink exactly once, so this is like for like.
"""

from collections.abc import Iterator
from pathlib import Path

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared
from benchmarks.measure import Comparison, compare, timed
from benchmarks.stream import stream_of_topic, to_end, view_of
from benchmarks.world import PARTITIONS, VIEW_COLUMNS, VIEW_SCHEMA, World, declared_over

__all__ = ["run"]

BATCHES = (1, 8)


def run(world: World, *, rows: int = 2_000_000, repetitions: int = 5, warmups: int = 1) -> Iterator[Comparison]:
    """The whole topic in one batch and in eight; `rows` is rounded to whole batches of whole partitions."""
    rows -= rows % (PARTITIONS * max(BATCHES))
    topic = world.topic()
    world.produce(topic, rows)
    for batches in BATCHES:
        yield compare(
            _Case(world, topic, rows, batches),
            repetitions=repetitions,
            warmups=warmups,
            benchmark="backfill",
            case=f"{batches} batch{'es' if batches > 1 else ''}",
            peer="Structured Streaming availableNow",
            rows=rows,
        )


class _Case:
    """Both ways of computing the view, and what each of them wrote."""

    def __init__(self, world: World, topic: str, rows: int, batches: int) -> None:
        self.world, self.topic, self.rows, self.batches = world, topic, rows, batches
        self.contents: set[object] = set()

    def ours(self) -> float:
        """One run of the view from its creation on; creating the tables is not part of the measure."""
        declared = declared_over(self.topic)
        limits = Limits(chunk_rows=self.rows // self.batches)
        with self.world.folder() as folder:
            self.world.create(folder, declared, "large")
            seconds = timed(lambda: self._checked(folder, declared, limits))
            self.contents.add(self.world.content(folder / "warehouse" / "views" / "large", *VIEW_COLUMNS))
        return seconds

    def theirs(self) -> float:
        """One query from its start until it has read the topic."""
        with self.world.folder() as folder:
            self.world.empty_table(folder / "table", VIEW_SCHEMA)
            seconds = timed(lambda: self._stream(folder))
            self.contents.add(self.world.content(folder / "table", *VIEW_COLUMNS))
        return seconds

    def _checked(self, folder: Path, declared: dict[str, Declared], limits: Limits) -> None:
        done = self.world.refresh(folder, declared, "large", limits)
        assert done.report.totals.epochs == self.batches

    def _stream(self, folder: Path) -> None:
        orders = stream_of_topic(self.world, self.topic, rows_per_batch=self.rows // self.batches)
        query = to_end(view_of(orders), folder)
        assert sum(each.numInputRows > 0 for each in query.recentProgress) == self.batches
