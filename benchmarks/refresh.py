"""A thousand new rows: one refresh of this project in a warm session, against Structured Streaming.

Four ways to take the same rows in. Ours: a run of the source and of the view, and the view's run alone. The peer's: new
queries on existing checkpoints (what a scheduled job does), and the one micro-batch of a query that runs all the time.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, timed
from benchmarks.stream import stream_of_table, stream_of_topic, to_end, view_of, write
from benchmarks.world import VIEW_COLUMNS, World, declared_over

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

__all__ = ["run"]

ROWS = 1_000
WAIT_SECONDS = 60.0
WAYS = ("ours_ingest", "ours_view", "stream_both", "stream_view", "batch_view")


def run(world: World, *, repetitions: int = 20, warmups: int = 2, history: int = 100_000) -> Iterator[Comparison]:
    """Repeated refreshes of tables that grow from `history` rows on; each way sees the same new rows each time."""
    with world.folder() as folder:
        case = _Case(world, folder)
        try:
            case.round(history)
            rounds = [case.round(ROWS) for _ in range(warmups + repetitions)][warmups:]
        finally:
            case.running.stop()
        case.check()
    taken = {way: tuple(each[way] for each in rounds) for way in WAYS}
    both = tuple(first + second for first, second in zip(taken["ours_ingest"], taken["ours_view"], strict=True))
    for name, peer, ours, theirs in (
        ("source and view", "two availableNow queries", both, taken["stream_both"]),
        ("view alone", "availableNow query", taken["ours_view"], taken["stream_view"]),
        ("view alone", "one micro-batch of a running query", taken["ours_view"], taken["batch_view"]),
    ):
        yield Comparison(benchmark="refresh", case=name, peer=peer, rows=ROWS, ours=ours, theirs=theirs)


class _Case:
    """One topic and the tables of every way. The running query looks for new rows once a second."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.topic = world.topic()
        self.declared = declared_over(self.topic)
        self.fed = 0
        self.turn = 0
        self.running = write(view_of(stream_of_topic(world, self.topic)), folder / "running", processingTime="1 second")

    def round(self, rows: int) -> dict[str, float]:
        """Put new orders on the topic; the seconds of each way to take them in. Who goes first changes each time."""
        self.world.produce(self.topic, rows, first=self.fed)
        self.fed += rows
        taken = self._micro_batch()
        self.turn += 1
        groups: list[Callable[[], dict[str, float]]] = [self._ours, self._queries]
        for group in groups if self.turn % 2 else reversed(groups):
            taken |= group()
        return taken

    def check(self) -> None:
        """All ways must have made the same view."""
        views = [self.folder / "warehouse" / "views" / "large"]
        views += [self.folder / name / "table" for name in ("second", "direct", "running")]
        contents = {self.world.content(view, *VIEW_COLUMNS) for view in views}
        assert len(contents) == 1, f"all must hold the same rows: {contents}"

    def _ours(self) -> dict[str, float]:
        return {
            "ours_ingest": timed(lambda: self.world.refresh(self.folder, self.declared, "orders")),
            "ours_view": timed(lambda: self.world.refresh(self.folder, self.declared, "large")),
        }

    def _queries(self) -> dict[str, float]:
        first, second, direct = (self.folder / name for name in ("first", "second", "direct"))

        def both() -> None:
            to_end(stream_of_topic(self.world, self.topic), first)
            to_end(view_of(stream_of_table(self.world, first / "table")), second)

        return {
            "stream_both": timed(both),
            "stream_view": timed(lambda: to_end(view_of(stream_of_topic(self.world, self.topic)), direct)),
        }

    def _micro_batch(self) -> dict[str, float]:
        """Wait until the running query has taken in all that was fed; the seconds of its last batch."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            batches = [each for each in self.running.recentProgress if each.numInputRows]
            if batches and _end(batches[-1]) >= self.fed:
                return {"batch_view": batches[-1].durationMs["triggerExecution"] / 1000}
            time.sleep(0.05)
        raise TimeoutError(f"the running query did not take in {self.fed} rows within {WAIT_SECONDS:g} s")


def _end(progress: "StreamingQueryProgress") -> int:
    """How many of the topic's offsets a batch has left behind it."""
    ends = json.loads(progress.sources[0].endOffset)
    return sum(offset for partitions in ends.values() for offset in partitions.values())
