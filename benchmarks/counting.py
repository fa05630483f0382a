"""What it costs that an epoch counts the rows which Spark reads: the same runs with and without.

A scan that is counted hands on all its rows, so Parquet's reader leaves out none by the conditions of the query. The case
in which that costs most is a table that is ordered by what the query selects by.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from backfill_assets import delta_table, materialized_view
from backfill_assets.adapters.compute.scans import Scans, uncounted
from backfill_assets.core.epoch.limits import Limits
from benchmarks.measure import Comparison, compare, in_turns, timed
from benchmarks.tables import COLUMNS, change, copy_of, make_table
from benchmarks.world import World

if TYPE_CHECKING:
    from backfill_assets.declare.model import MaterializedView

__all__ = ["run"]

CHANGED = 1_000
CHUNKS = 4


def run(world: World, *, rows: int = 4_000_000, repetitions: int = 5, warmups: int = 1) -> Iterator[Comparison]:
    """`rows` is the size of the table; its history is read in four epochs."""
    with world.folder() as folder:
        make_table(world, folder / "orders", rows)
        for case, where in (("all rows", ""), ("one row of a hundred, ordered by it", f" WHERE id < {rows // 100}")):
            yield compare(
                _History(world, folder / "orders", where, rows // CHUNKS),
                repetitions=repetitions,
                warmups=warmups,
                benchmark="counting",
                case=f"history, {case}",
                peer="not counted",
                rows=rows,
            )
        yield _changes(world, folder, repetitions, warmups)


def _view(source: Path, where: str) -> "MaterializedView":
    table = delta_table("orders", path=str(source), primary_key="id")
    query = f"SELECT {', '.join(COLUMNS)} FROM orders{where}"
    return materialized_view("copy", query=query, upstreams=[table], strategy="snapshot")


class _History:
    """The history of a view, in several epochs."""

    def __init__(self, world: World, source: Path, where: str, chunk: int) -> None:
        self.world, self.declared, self.chunk = world, {"copy": _view(source, where)}, chunk
        self.contents: set[object] = set()

    def ours(self) -> float:
        """As it is."""
        with self.world.folder() as place:
            self.world.create(place, self.declared, "copy")
            seconds = timed(lambda: self.world.refresh(place, self.declared, "copy", Limits(chunk_rows=self.chunk)))
            self.contents.add(self.world.content(place / "warehouse" / "views" / "copy", *COLUMNS))
        return seconds

    def theirs(self) -> float:
        """Without any count."""
        with mock.patch.object(Scans, "by", return_value=uncounted):
            return self.ours()


def _changes(world: World, folder: Path, repetitions: int, warmups: int) -> Comparison:
    """Epochs of a few changed rows of a view that holds the table."""
    declared, number = {"copy": copy_of(folder / "orders")}, 0
    world.refresh(folder, declared, "copy")

    def ours() -> float:
        nonlocal number
        number += 1
        where = f"id >= {number * CHANGED} AND id < {(number + 1) * CHANGED}"
        change(folder / "orders", "amount", "amount + 1.0", where)
        return timed(lambda: world.refresh(folder, declared, "copy"))

    def theirs() -> float:
        with mock.patch.object(Scans, "by", return_value=uncounted):
            return ours()

    taken, without = in_turns(ours, theirs, repetitions=repetitions, warmups=warmups)
    return Comparison(
        benchmark="counting",
        case=f"an epoch of {CHANGED:,} changed rows",
        peer="not counted",
        rows=CHANGED,
        ours=taken,
        theirs=without,
    )
