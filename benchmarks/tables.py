"""Views over Delta tables: what a resumable snapshot costs against one plain Spark copy, and what a thousand changed rows
cost in views of different sizes.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from backfill_assets import delta_table, materialized_view
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import DeclaredStrategy, MaterializedView, RefreshMode
from benchmarks.measure import Comparison, compare, timed
from benchmarks.world import World

__all__ = ["COLUMNS", "FEED", "FILES", "Copies", "change", "copy_of", "make_table", "run"]

CHUNKS = 8
CHANGED = 1_000
FILES = 16
COLUMNS = ("id", "customer", "amount", "at")
QUERY = f"SELECT {', '.join(COLUMNS)} FROM orders"
FEED = {"delta.enableChangeDataFeed": "true"}


def run(world: World, *, rows: int = 20_000_000, repetitions: int = 3, warmups: int = 1) -> Iterator[Comparison]:
    """`rows` is the size of the largest table."""
    with world.folder() as folder:
        yield _history(world, folder, rows, repetitions, warmups)
    sizes = (rows // 100, rows // 10, rows)
    for where in ("scattered", "next to each other"):
        taken = [_refreshes(world, size, repetitions, apart=where == "scattered") for size in sizes]
        for size, seconds in zip(sizes[1:], taken[1:], strict=True):
            yield Comparison(
                benchmark="growth",
                case=f"{CHANGED:,} changed rows, {where}, view of {size:,}",
                peer=f"view of {sizes[0]:,}",
                rows=CHANGED,
                ours=seconds,
                theirs=taken[0],
            )


def make_table(world: World, place: Path | str, rows: int) -> None:
    """A table of orders in several files, with a change feed."""
    made = world.spark.range(0, rows, numPartitions=FILES).selectExpr(
        "id",
        "concat('customer-', id % 50000) AS customer",
        "CAST(id % 100000 AS DOUBLE) / 8 AS amount",
        "timestamp_seconds(1700000000 + id) AS at",
    )
    made.write.format("delta").options(**FEED).save(str(place))


def change(table: Path, column: str, value: str, where: str) -> None:
    """Give a column of some rows another value, by MERGE: what delta-rs's UPDATE writes of its changes is not complete."""
    once = pa.table({"__once": [True]})
    merge = DeltaTable(str(table)).merge(once, where, source_alias="__source", target_alias="__target")
    merge.when_matched_update(updates={column: value}).execute()


def copy_of(place: Path | str, mode: RefreshMode = "auto", strategy: DeclaredStrategy = "snapshot") -> MaterializedView:
    """A view that holds what such a table holds."""
    table = delta_table("orders", path=str(place), primary_key="id")
    return materialized_view("copy", query=QUERY, upstreams=[table], strategy=strategy, refresh_mode=mode)


def _history(world: World, folder: Path, rows: int, repetitions: int, warmups: int) -> Comparison:
    make_table(world, folder / "orders", rows)
    return compare(
        Copies(world, folder / "orders", Limits(chunk_rows=rows // CHUNKS)),
        repetitions=repetitions,
        warmups=warmups,
        benchmark="snapshot",
        case=f"{CHUNKS} chunks",
        peer="one plain Spark copy",
        rows=rows,
    )


class Copies:
    """Both ways of copying a table, and what each of them wrote; creating ours is not part of the measure."""

    def __init__(
        self, world: World, source: Path | str, limits: Limits, strategy: DeclaredStrategy = "snapshot"
    ) -> None:
        self.world, self.source, self.limits, self.strategy = world, source, limits, strategy
        self.contents: set[object] = set()

    def ours(self) -> float:
        """One run of a view."""
        declared = {"copy": copy_of(self.source, strategy=self.strategy)}
        with self.world.folder() as folder:
            self.world.create(folder, declared, "copy")
            seconds = timed(lambda: self.world.refresh(folder, declared, "copy", self.limits))
            self.contents.add(self.world.content(f"{self.world.store(folder).place.uri}/views/copy", *COLUMNS))
        return seconds

    def theirs(self) -> float:
        """One read and one write."""
        rows = self.world.spark.read.format("delta").load(str(self.source)).select(*COLUMNS)
        with self.world.folder() as folder:
            copy = f"{self.world.store(folder).place.uri}/copy"
            seconds = timed(lambda: rows.write.format("delta").save(copy))
            self.contents.add(self.world.content(copy, *COLUMNS))
        return seconds


def _refreshes(world: World, rows: int, repetitions: int, *, apart: bool) -> tuple[float, ...]:
    """Refreshes of a thousand changed rows of a view of so many: spread over the whole view, or next to each other."""
    with world.folder() as folder:
        make_table(world, folder / "orders", rows)
        declared = {"copy": copy_of(folder / "orders")}
        world.refresh(folder, declared, "copy")
        taken = []
        for number in range(repetitions):
            step = max(1, rows // CHANGED)
            first = rows // 3 + number * CHANGED
            changed = f"id % {step} = {number}" if apart else f"id >= {first} AND id < {first + CHANGED}"
            change(folder / "orders", "amount", "amount + 1.0", changed)
            taken.append(timed(lambda: world.refresh(folder, declared, "copy")))
    return tuple(taken)
