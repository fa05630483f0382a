"""Catching up on a change log: waiting versions of a Delta table, against a stream of its change feed that merges by key.

The peer takes the newest change of each key, as it must, and does it in as few batches as Delta's defaults allow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from backfill_assets.declare.model import RefreshMode
from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.tables import COLUMNS, change, copy_of, make_table
from benchmarks.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run"]

ROWS = (20_000, 200_000)
MODES: tuple[RefreshMode, ...] = ("auto", "incremental")
"""By default, tables with far larger changes are read in full; an incremental view follows every version."""
PERCENT = 100
"""Each version updates the hundredth part of the keys."""


def run(
    world: World, *, rows: int | None = None, repetitions: int = 3, warmups: int = 1, versions: int = 200
) -> Iterator[Comparison]:
    """Tables of two sizes, or one of `rows`; each by a view as it is by default, and by one that may only follow."""
    for size, mode in product(ROWS if rows is None else (rows,), MODES):
        with world.folder() as folder:
            make_table(world, folder / "orders", size)
            both = _Followers(world=world, folder=folder, versions=versions, mode=mode)
            ours, theirs = in_turns(both.ours, both.theirs, repetitions=repetitions, warmups=warmups)
        yield Comparison(
            benchmark="changes",
            case=f"{versions} versions of 1 % updates of {size:,}, {mode}",
            peer="change feed stream, foreachBatch, MERGE",
            rows=versions * size // PERCENT,
            ours=ours,
            theirs=theirs,
        )


@dataclass
class _Followers:
    """Both ways of following a table. They begin level with it; each round is made by whoever comes first in it."""

    world: World
    folder: Path
    versions: int
    mode: RefreshMode
    behind: bool = False
    """Whether one of the two has still to take in the versions that the other one has."""

    def __post_init__(self) -> None:
        self.source, self.copy, self.checkpoint = (self.folder / name for name in ("orders", "copy", "checkpoint"))
        self.declared = {"copy": copy_of(self.source, self.mode)}
        self.view = self.folder / "warehouse" / "views" / "copy"
        self.world.refresh(self.folder, self.declared, "copy")
        rows = self.world.spark.read.format("delta").load(str(self.source)).select(*COLUMNS)
        rows.write.format("delta").save(str(self.copy))
        self.start = DeltaTable(str(self.source)).version() + 1

    def ours(self) -> float:
        """A run of the view."""
        return self._turn(lambda: self.world.refresh(self.folder, self.declared, "copy"))

    def theirs(self) -> float:
        """A stream that ends when it is level."""
        return self._turn(self._stream)

    def _turn(self, way: Callable[[], object]) -> float:
        if not self.behind:
            for number in range(self.versions):
                changed = f"id % {PERCENT} = {number % PERCENT}"
                change(self.source, "amount", "amount + 1.0", changed)
        self.behind = not self.behind
        seconds = timed(way)
        if not self.behind:
            held = {self.world.content(table, *COLUMNS) for table in (self.source, self.view, self.copy)}
            assert len(held) == 1, f"table, view and copy must hold the same rows: {held}"
        return seconds

    def _stream(self) -> None:
        """Take in all that waits in the change feed; goes on where its checkpoint is."""
        changes = (
            self.world.spark.readStream
            .format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", self.start)
            .load(str(self.source))
        )
        writer = changes.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        writer.foreachBatch(self._merge).start().awaitTermination()

    def _merge(self, batch: "DataFrame", _number: int) -> None:
        batch.createOrReplaceTempView("batch_of_changes")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{self.copy}` t USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id "
            "ORDER BY _commit_version DESC) AS newest FROM batch_of_changes WHERE _change_type <> 'update_preimage') "
            "WHERE newest = 1) s ON t.id = s.id WHEN MATCHED AND s._change_type = 'delete' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in COLUMNS)} "
            f"WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT ({', '.join(COLUMNS)}) "
            f"VALUES ({', '.join(f's.{name}' for name in COLUMNS)})"
        )
