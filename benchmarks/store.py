"""A warehouse on S3 of which each request takes 30 ms: a thousand new records into a source, a row-wise view and an
aggregate, against three `availableNow` queries of Structured Streaming as people write them; and a view's first build,
against one plain Spark copy on the same store. A proxy before the S3 server takes the time, and counts the requests.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backfill_assets import materialized_view
from backfill_assets.app.refresh import refresh
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared, DeclaredStrategy
from benchmarks.lake import Lake, lake
from benchmarks.measure import Comparison, compare, timed
from benchmarks.stream import stream_of_topic, view_of
from benchmarks.tables import CHUNKS, Copies, make_table
from benchmarks.world import World, declared_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["run"]

ROWS, SECONDS = 1_000, 0.03
SUMS = "SELECT customer, count(*) AS orders, sum(quantity) AS quantity FROM {} GROUP BY customer"
MERGE = """MERGE INTO delta.`{}` AS t USING changes AS s ON t.customer <=> s.customer
    WHEN MATCHED THEN UPDATE SET t.orders = t.orders + s.orders, t.quantity = t.quantity + s.quantity
    WHEN NOT MATCHED THEN INSERT *"""
COLUMNS = {"large": ("order_id", "customer", "total", "day"), "sums": ("customer", "orders", "quantity")}


RECORDS = "1,000 records, source, view and aggregate on S3"
_Build = tuple[str, Callable[[int], Limits], DeclaredStrategy]
_BUILDS: Final[tuple[_Build, ...]] = (
    ("first build, as auto chooses", lambda _rows: Limits(), "auto"),
    (f"first build, in {CHUNKS} chunks", lambda rows: Limits(chunk_rows=rows // CHUNKS), "snapshot"),
)


def run(
    world: World, *, rows: int = 20_000_000, repetitions: int = 8, seconds: float = SECONDS, only: str = ""
) -> Iterator[Comparison]:
    """`rows` is the size of the table whose copy is built, which is repeated at most three times; cases that have `only` in
    their name."""
    with lake(world.root) as place:
        there = world.elsewhere(place.place, place.storage)
        if only in RECORDS:
            yield _records(there, place, repetitions, seconds)
        if builds := [each for each in _BUILDS if only in each[0]]:
            make_table(there, f"{place.place}/orders", rows)
            place.proxy.slow_down(seconds)
            yield from (_first_build(there, place, rows, min(repetitions, 3), each) for each in builds)


def _records(world: World, place: Lake, repetitions: int, seconds: float, warmups: int = 2) -> Comparison:
    """Repeated refreshes; both sides see the same new records each time, and must hold the same rows in the end."""
    with world.folder() as folder:
        case = _Case(world, folder, place)
        case.round()
        place.proxy.slow_down(seconds)
        rounds = [case.round() for _ in range(warmups + repetitions)][warmups:]
        place.proxy.slow_down(0)
        case.check()
    took = {side: tuple(each[side][0] for each in rounds) for side in ("ours", "theirs")}
    requests = {f"requests of {side}": sum(each[side][1] for each in rounds) / len(rounds) for side in took}
    return Comparison(
        benchmark="store",
        case=RECORDS,
        peer="three availableNow queries",
        rows=ROWS,
        ours=took["ours"],
        theirs=took["theirs"],
        details=requests,
    )


def _first_build(world: World, place: Lake, rows: int, repetitions: int, build: _Build) -> Comparison:
    """A first build of a view over a table in the store."""
    case, limits, strategy = build
    return compare(
        Copies(world, f"{place.place}/orders", limits(rows), strategy),
        repetitions=repetitions,
        warmups=1,
        benchmark="store",
        case=case,
        peer="one plain Spark copy",
        rows=rows,
    )


class _Case:
    """One topic, and the tables of both sides in one bucket."""

    def __init__(self, world: World, folder: Path, place: Lake) -> None:
        self.world, self.folder, self.proxy = world, folder, place.proxy
        self.topic, self.fed, self.turn = world.topic(), 0, 0
        self.place = f"{place.place}/{folder.name}"
        declared = declared_over(self.topic)
        sums = materialized_view("sums", query=SUMS.format("orders"), upstreams=[declared["orders"]])
        self.declared: Mapping[str, Declared] = {**declared, "sums": sums}

    def round(self) -> dict[str, tuple[float, int]]:
        """Put new orders on the topic; the seconds and the requests of each side. Who goes first changes each time."""
        self.world.produce(self.topic, ROWS, first=self.fed)
        self.fed += ROWS
        self.turn += 1
        sides: list[tuple[str, Callable[[], None]]] = [("ours", self._ours), ("theirs", self._theirs)]
        return {name: self._counted(side) for name, side in (sides if self.turn % 2 else reversed(sides))}

    def check(self) -> None:
        """Both sides must hold the same rows."""
        for name, columns in COLUMNS.items():
            ours, theirs = (self._rows(f"{self.place}/{of}/{name}") for of in ("views", "theirs"))
            found = [self.world.digest(rows, *columns) for rows in (ours, theirs)]
            assert found[0] == found[1], f"{name}: both must hold the same rows: {found}"

    def _counted(self, side: Callable[[], None]) -> tuple[float, int]:
        self.proxy.requests()
        return timed(side), len(self.proxy.requests())

    def _ours(self) -> None:
        workspace = self.world.workspace(self.folder, self.declared)
        run_id = uuid.uuid4().hex
        for name in self.declared:
            refresh(workspace, name, Limits(), run_id=run_id)
        workspace.runner.close()

    def _theirs(self) -> None:
        orders = f"{self.place}/theirs/orders"
        self._to_end("orders", stream_of_topic(self.world, self.topic))
        self._to_end("large", view_of(self.world.spark.readStream.format("delta").load(orders)))
        merged = self.world.spark.readStream.format("delta").load(orders)
        self._ended(merged.writeStream.foreachBatch(partial(_merge, f"{self.place}/theirs/sums")), "sums")

    def _to_end(self, name: str, rows: "DataFrame") -> None:
        self._ended(rows.writeStream.format("delta"), name)

    def _ended(self, writer: "DataStreamWriter", name: str) -> None:
        place = f"{self.place}/theirs/{name}"
        query = writer.option("checkpointLocation", f"{place}-checkpoint").trigger(availableNow=True)
        query.start(place).awaitTermination()

    def _rows(self, place: str) -> "DataFrame":
        return self.world.spark.read.format("delta").load(place)


def _merge(place: str, rows: "DataFrame", _batch: int) -> None:
    """The aggregate as a hand-written job keeps it."""
    from delta.tables import DeltaTable

    spark = rows.sparkSession
    changes = spark.sql(SUMS.format("{rows}"), rows=rows)
    if not DeltaTable.isDeltaTable(spark, place):
        changes.write.format("delta").save(place)
        return
    changes.createOrReplaceTempView("changes")
    spark.sql(MERGE.format(place))
