"""Views over Delta tables: copying history, catching up on a change log, and how a refresh grows with its view.

Three questions: what a resumable snapshot costs against one plain Spark copy; how fast two hundred waiting versions are
taken in, against a stream of the change feed that merges by key (the newest change of each key, as it must); and what a
thousand changed rows cost in views of different sizes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from backfill_assets import delta_table, materialized_view
from backfill_assets.backfill.control import Limits
from backfill_assets.model import MaterializedView
from benchmarks.measure import Comparison, compare, timed
from benchmarks.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run"]

CHUNKS = 8
FILES = 16
COLUMNS = ("id", "customer", "amount", "at")
QUERY = f"SELECT {', '.join(COLUMNS)} FROM orders"
FEED = {"delta.enableChangeDataFeed": "true"}
PERCENT = 100
"""Each version updates the hundredth part of the keys."""


def run(
    world: World, *, rows: int = 20_000_000, repetitions: int = 3, warmups: int = 1, versions: int = 200
) -> Iterator[Comparison]:
    """`rows` is the size of the largest table; the change logs are of one with a thousandth and one with a hundredth."""
    with world.folder() as folder:
        yield _history(world, folder, rows, repetitions, warmups)
    for size in (rows // 1_000, rows // 100):
        with world.folder() as folder:
            yield _change_log(world, folder, size, versions, repetitions, warmups)
    sizes = (rows // 100, rows // 10, rows)
    taken = [_refreshes(world, size, repetitions) for size in sizes]
    for size, seconds in zip(sizes[1:], taken[1:], strict=True):
        yield Comparison(
            benchmark="growth",
            case=f"1,000 changed rows, view of {size:,}",
            peer=f"view of {sizes[0]:,}",
            rows=1_000,
            ours=seconds,
            theirs=taken[0],
        )


def _table(world: World, place: Path, rows: int) -> None:
    made = world.spark.range(0, rows, numPartitions=FILES).selectExpr(
        "id",
        "concat('customer-', id % 50000) AS customer",
        "CAST(id % 100000 AS DOUBLE) / 8 AS amount",
        "timestamp_seconds(1700000000 + id) AS at",
    )
    made.write.format("delta").options(**FEED).save(str(place))


def _view(place: Path) -> MaterializedView:
    table = delta_table("orders", path=str(place), primary_key="id")
    return materialized_view("copy", query=QUERY, upstreams=[table], strategy="snapshot")


def _history(world: World, folder: Path, rows: int, repetitions: int, warmups: int) -> Comparison:
    _table(world, folder / "orders", rows)
    return compare(
        _Copies(world, folder / "orders", rows),
        repetitions=repetitions,
        warmups=warmups,
        benchmark="snapshot",
        case=f"{CHUNKS} chunks",
        peer="one plain Spark copy",
        rows=rows,
    )


class _Copies:
    """Both ways of copying a table, and what each of them wrote; creating ours is not part of the measure."""

    def __init__(self, world: World, source: Path, rows: int) -> None:
        self.world, self.source, self.rows = world, source, rows
        self.contents: set[object] = set()

    def ours(self) -> float:
        """One run of a view, in chunks."""
        declared = {"copy": _view(self.source)}
        limits = Limits(chunk_rows=self.rows // CHUNKS)
        with self.world.folder() as place:
            self.world.create(place, declared, "copy")
            seconds = timed(lambda: self.world.refresh(place, declared, "copy", limits))
            self.contents.add(self.world.content(place / "warehouse" / "views" / "copy", *COLUMNS))
        return seconds

    def theirs(self) -> float:
        """One read and one write."""
        rows = self.world.spark.read.format("delta").load(str(self.source)).select(*COLUMNS)
        with self.world.folder() as place:
            seconds = timed(lambda: rows.write.format("delta").save(str(place / "copy")))
            self.contents.add(self.world.content(place / "copy", *COLUMNS))
        return seconds


def _change_log(  # noqa: PLR0913, PLR0917  (each a size of its own)
    world: World, folder: Path, rows: int, versions: int, repetitions: int, warmups: int
) -> Comparison:
    """Both sides begin level with the table, then the versions are made, then each takes them in."""
    declared = {"copy": _view(folder / "orders")}
    _table(world, folder / "orders", rows)
    mine, other = folder / "mine", folder / "other"
    world.refresh(mine, declared, "copy")
    _copied(world, folder, other)
    ours, theirs = [], []
    for number in range(warmups + repetitions):
        _update(folder / "orders", versions)
        ways = (
            (ours, lambda: world.refresh(mine, declared, "copy")),
            (theirs, lambda: _stream(world, folder, other)),
        )
        for taken, way in ways if number % 2 else reversed(ways):
            taken.append(timed(way))
        tables = (mine / "warehouse" / "views" / "copy", other / "copy")
        assert len({world.content(table, *COLUMNS) for table in tables}) == 1, "both must hold the same rows"
    return Comparison(
        benchmark="change log",
        case=f"{versions} versions of 1 % updates of {rows:,}",
        peer="change feed stream, foreachBatch, MERGE",
        rows=versions * rows // PERCENT,
        ours=tuple(ours[warmups:]),
        theirs=tuple(theirs[warmups:]),
    )


def _update(place: Path, versions: int) -> None:
    for number in range(versions):
        DeltaTable(str(place)).update({"amount": "amount + 1.0"}, predicate=f"id % {PERCENT} = {number % PERCENT}")


def _copied(world: World, folder: Path, other: Path) -> None:
    """The peer's copy of the table, and the version that its stream begins after."""
    source = str(folder / "orders")
    rows = world.spark.read.format("delta").load(source).select(*COLUMNS)
    rows.write.format("delta").save(str(other / "copy"))
    (other / "start").write_text(str(DeltaTable(source).version() + 1))


def _stream(world: World, folder: Path, other: Path) -> None:
    """Take in all that waits in the change feed; goes on where its checkpoint is."""
    target = str(other / "copy")

    def merge(batch: "DataFrame", _number: int) -> None:
        batch.createOrReplaceTempView("batch_of_changes")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{target}` t USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id "
            "ORDER BY _commit_version DESC) AS newest FROM batch_of_changes WHERE _change_type <> 'update_preimage') "
            "WHERE newest = 1) s ON t.id = s.id WHEN MATCHED AND s._change_type = 'delete' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in COLUMNS)} "
            f"WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT ({', '.join(COLUMNS)}) "
            f"VALUES ({', '.join(f's.{name}' for name in COLUMNS)})"
        )

    changes = (
        world.spark.readStream
        .format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", int((other / "start").read_text()))
        .load(str(folder / "orders"))
    )
    writer = changes.writeStream.option("checkpointLocation", str(other / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(merge).start().awaitTermination()


def _refreshes(world: World, rows: int, repetitions: int) -> tuple[float, ...]:
    """Refreshes of a thousand changed rows, spread over the whole view of so many rows."""
    with world.folder() as folder:
        _table(world, folder / "orders", rows)
        declared = {"copy": _view(folder / "orders")}
        world.refresh(folder, declared, "copy")
        taken = []
        for number in range(repetitions):
            step = max(1, rows // 1_000)
            DeltaTable(str(folder / "orders")).update({"amount": "amount + 1.0"}, predicate=f"id % {step} = {number}")
            taken.append(timed(lambda: world.refresh(folder, declared, "copy")))
    return tuple(taken)
