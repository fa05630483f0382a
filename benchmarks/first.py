"""The first refresh of tables that do not exist yet, over a thousand rows: what it costs to begin.

Ours creates the tables, checks the key, and enters plans; the peers begin a checkpoint or write a table, and keep no
record of what they have read.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Comparison, compare, timed
from benchmarks.stream import stream_of_table, stream_of_topic, to_end, view_of
from benchmarks.tables import COLUMNS, copy_of, make_table
from benchmarks.world import VIEW_COLUMNS, World, declared_over

__all__ = ["run"]

ROWS = 1_000


def run(world: World, *, repetitions: int = 7, warmups: int = 2) -> Iterator[Comparison]:
    """Each repetition begins with nothing but the topic, or the table that is read."""
    topic = world.topic()
    world.produce(topic, ROWS)
    yield compare(
        _FromTopic(world, topic),
        repetitions=repetitions,
        warmups=warmups,
        benchmark="first",
        case="source and view of a topic",
        peer="two availableNow queries",
        rows=ROWS,
    )
    with world.folder() as folder:
        make_table(world, folder / "orders", ROWS)
        yield compare(
            _FromTable(world, folder / "orders"),
            repetitions=repetitions,
            warmups=warmups,
            benchmark="first",
            case="view of a table",
            peer="one plain Spark copy",
            rows=ROWS,
        )


class _FromTopic:
    """A source and a view of it, both from nothing."""

    def __init__(self, world: World, topic: str) -> None:
        self.world, self.topic = world, topic
        self.contents: set[object] = set()

    def ours(self) -> float:
        """A run of the source and one of the view."""
        declared = declared_over(self.topic)
        with self.world.folder() as place:
            seconds = timed(lambda: [self.world.refresh(place, declared, name) for name in ("orders", "large")])
            self.contents.add(self.world.content(place / "warehouse" / "views" / "large", *VIEW_COLUMNS))
        return seconds

    def theirs(self) -> float:
        """A query that ingests, and one over what it ingested."""
        with self.world.folder() as place:
            seconds = timed(lambda: self._queries(place))
            self.contents.add(self.world.content(place / "second" / "table", *VIEW_COLUMNS))
        return seconds

    def _queries(self, place: Path) -> None:
        to_end(stream_of_topic(self.world, self.topic), place / "first")
        to_end(view_of(stream_of_table(self.world, place / "first" / "table")), place / "second")


class _FromTable:
    """A view that holds what a table holds, from nothing."""

    def __init__(self, world: World, source: Path) -> None:
        self.world, self.source = world, source
        self.contents: set[object] = set()

    def ours(self) -> float:
        """A run of the view."""
        with self.world.folder() as place:
            seconds = timed(lambda: self.world.refresh(place, {"copy": copy_of(self.source)}, "copy"))
            self.contents.add(self.world.content(place / "warehouse" / "views" / "copy", *COLUMNS))
        return seconds

    def theirs(self) -> float:
        """One read and one write."""
        with self.world.folder() as place:
            rows = self.world.spark.read.format("delta").load(str(self.source)).select(*COLUMNS)
            seconds = timed(lambda: rows.write.format("delta").save(str(place / "copy")))
            self.contents.add(self.world.content(place / "copy", *COLUMNS))
        return seconds
