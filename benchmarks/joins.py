"""Views as people want them, over tables of which a part changed: against Spark computing all of it again, and against what
people write by hand, a stream of the change feed that computes the touched keys again and merges them.

Lines lie in the order of their number, and so do the orders that they belong to; their parts are spread over all files.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from backfill_assets import delta_table, materialized_view
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared, DeclaredStrategy
from benchmarks.measure import Comparison, compare, timed
from benchmarks.tables import FEED, FILES, change
from benchmarks.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run"]

CHUNKS = 8
SMALL = 10_000
SMALL_VIEW = "join of three, grouped (q3)"
CHANGED = 1_000


@dataclass(frozen=True, kw_only=True)
class _View:
    """A query; the columns by which its rows are told apart; and how what a line touches is told in `lines`, and in `orders`,
    if it reads these whether they have lines or not. Without `touches`, nobody computes a part of it by hand."""

    query: str
    key: tuple[str, ...]
    touches: str = ""
    of_orders: str = ""


VIEWS: Final = {
    "join of two": _View(
        query="SELECT l.id, l.cents, o.customer, o.priority FROM lines l JOIN orders o ON l.order_id = o.id",
        key=("id",),
        touches="id",
    ),
    "join of three, grouped (q3)": _View(
        query="SELECT o.id, o.day, sum(l.cents) AS revenue FROM customers c JOIN orders o ON c.id = o.customer "
        "JOIN lines l ON l.order_id = o.id WHERE c.segment = 'segment-1' GROUP BY o.id, o.day",
        key=("id",),
        touches="order_id",
    ),
    "correlated subquery (q17)": _View(
        query="SELECT sum(l.cents) AS revenue FROM lines l JOIN parts p ON p.id = l.part WHERE p.brand = 'brand-1' "
        "AND l.quantity < (SELECT 0.2 * avg(m.quantity) FROM lines m WHERE m.part = p.id)",
        key=(),
    ),
    "left join": _View(
        query="SELECT o.id, o.customer, l.id AS line, l.cents FROM orders o LEFT JOIN lines l ON l.order_id = o.id",
        key=("id", "line"),
        touches="order_id",
        of_orders="id",
    ),
    "first of each group (q18)": _View(
        query="SELECT order_id, id, cents FROM (SELECT order_id, id, cents, row_number() OVER (PARTITION BY order_id "
        "ORDER BY cents DESC, id) AS place FROM lines) WHERE place = 1",
        key=("order_id",),
        touches="order_id",
    ),
    "count distinct": _View(
        query="SELECT order_id, count(DISTINCT part) AS p, count(DISTINCT cents) AS prices FROM lines GROUP BY order_id",
        key=("order_id",),
        touches="order_id",
    ),
    "the ten largest groups": _View(
        query="SELECT order_id, sum(cents) AS total FROM lines GROUP BY order_id "
        "ORDER BY total DESC, order_id LIMIT 10",
        key=("order_id",),
    ),
}


BUILDS: Final[tuple[tuple[str, DeclaredStrategy], ...]] = (
    ("join of two", "snapshot_once"),
    ("join of three, grouped (q3)", "snapshot_once"),
    ("join of three, grouped (q3)", "snapshot"),
)


def run(
    world: World, *, rows: int = 16_000_000, repetitions: int = 2, warmups: int = 1, only: str = ""
) -> Iterator[Comparison]:
    """Each view over so many lines; then a first build, at once and in chunks, and what an epoch of small tables costs; all
    this of the views that have `only` in their name."""
    for name, view in {name: view for name, view in VIEWS.items() if only in name}.items():
        with world.folder() as folder:
            _make_tables(world, folder, rows)
            ways = _Ways(world=world, folder=folder, view=view)
            for number, (case, condition) in enumerate(_changes(rows).items()):
                by_hand = bool(view.touches) and number == 0
                # The first round of a case may take a way that no round before it took, with code that is not compiled yet.
                every = [ways.round(condition(turn), by_hand=by_hand) for turn in range(warmups + repetitions)]
                found = every[-repetitions:]
                yield from _compared(f"{name}, {case} of {rows:,}", found, rows, by_hand=by_hand)
    for name, strategy in [each for each in BUILDS if only in each[0]]:
        with world.folder() as folder:
            _make_tables(world, folder, rows)
            parts = f"in {CHUNKS} chunks" if strategy == "snapshot" else "at once"
            yield compare(
                _Builds(world, folder, rows, name, strategy),
                repetitions=repetitions,
                warmups=warmups,
                benchmark="joins",
                case=f"first build of {name}, {parts}",
                peer="the query in one plain Spark job",
                rows=rows,
            )
    if only in SMALL_VIEW:
        yield from _small(world, repetitions, warmups)


def _changes(rows: int) -> dict[str, Callable[[int], str]]:
    """Which lines change in each case, in SQL for each turn."""
    apart = max(1, rows // CHANGED)

    def neighbours(many: int) -> Callable[[int], str]:
        def of_turn(turn: int) -> str:
            first = (turn + 1) * many * 7 % max(1, rows - many)
            return f"id >= {first} AND id < {first + many}"

        return of_turn

    return {
        f"{CHANGED:,} neighbours": neighbours(CHANGED),
        f"{CHANGED:,} scattered": lambda turn: f"id % {apart} = {turn % apart}",
        "1 %": neighbours(rows // 100),
        "10 %": neighbours(rows // 10),
    }


def _compared(case: str, found: list[dict[str, float]], rows: int, *, by_hand: bool) -> Iterator[Comparison]:
    peers = {"full": "the query in full, written over a table", "by_hand": "foreachBatch, MERGE"}
    for peer, text in peers.items():
        if peer == "full" or by_hand:
            yield Comparison(
                benchmark="joins",
                case=case,
                peer=text,
                rows=rows,
                ours=tuple(each["ours"] for each in found),
                theirs=tuple(each[peer] for each in found),
            )


def _make_tables(world: World, folder: Path, rows: int) -> None:
    orders, customers, parts = max(1, rows // 4), max(1, rows // 40), max(1, rows // 30)
    made = {
        "lines": world.spark.range(0, rows, numPartitions=FILES).selectExpr(
            "id",
            "id DIV 4 AS order_id",
            f"pmod(xxhash64(id), {parts}) AS part",
            "CAST(pmod(xxhash64(id, 1), 50) AS DECIMAL(15, 2)) AS quantity",
            "pmod(xxhash64(id, 2), 1000000) AS cents",
            "concat('comment ', id % 1000) AS comment",
        ),
        "orders": world.spark.range(0, orders, numPartitions=FILES // 4).selectExpr(
            "id",
            f"pmod(xxhash64(id), {customers}) AS customer",
            "date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS day",
            "concat('priority-', id % 5) AS priority",
        ),
        "customers": world.spark.range(0, customers, numPartitions=1).selectExpr(
            "id", "concat('segment-', id % 5) AS segment"
        ),
        "parts": world.spark.range(0, parts, numPartitions=1).selectExpr("id", "concat('brand-', id % 25) AS brand"),
    }
    for name, table in made.items():
        table.write.format("delta").options(**FEED).save(str(folder / name))


def _declared_tables(view: _View) -> list[str]:
    return [name for name in ("lines", "orders", "customers", "parts") if re.search(rf"\b{name}\b", view.query)]


def _declared(folder: Path, view: _View, strategy: DeclaredStrategy = "auto") -> dict[str, Declared]:
    tables = [delta_table(name, path=str(folder / name)) for name in _declared_tables(view)]
    return {"view": materialized_view("view", query=view.query, upstreams=tables, strategy=strategy)}


@dataclass
class _Ways:
    """Three ways of following the same tables; each round of changes is followed by all that it is for, in turns."""

    world: World
    folder: Path
    view: _View
    turn: int = 0
    first: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.world.refresh(self.folder, _declared(self.folder, self.view), "view")
        self.first = DeltaTable(str(self.folder / "lines")).version() + 1
        self._compute("copy")
        if self.view.touches:
            self._compute("merged")

    def round(self, changed: str, *, by_hand: bool) -> dict[str, float]:
        """The seconds of each way after these lines have changed."""
        change(self.folder / "lines", "cents", "cents + 1", changed)
        ways: list[tuple[str, Callable[[], object]]] = [
            ("ours", lambda: self.world.refresh(self.folder, _declared(self.folder, self.view), "view")),
            ("full", lambda: self._compute("copy")),
        ]
        if by_hand:
            ways.append(("by_hand", self._stream))
        at = self.turn % len(ways)
        self.turn += 1
        seconds = {name: timed(way) for name, way in (*ways[at:], *ways[:at])}
        places = [Path("warehouse", "views", "view"), Path("copy"), *([Path("merged")] if by_hand else [])]
        columns = self.world.spark.read.format("delta").load(str(self.folder / "copy")).columns
        held = {self.world.content(self.folder / place, *columns) for place in places}
        assert len(held) == 1, f"all must hold the same rows: {held}"
        return seconds

    def _tables(self) -> "Mapping[str, DataFrame]":
        read = self.world.spark.read.format("delta")
        return {name: read.load(str(self.folder / name)) for name in ("lines", "orders", "customers", "parts")}

    def _compute(self, name: str) -> None:
        for each, rows in self._tables().items():
            rows.createOrReplaceTempView(each)
        written = self.world.spark.sql(self.view.query).write.format("delta").mode("overwrite")
        written.save(str(self.folder / name))

    def _stream(self) -> None:
        """Take in what waits in the change feed of the lines; goes on where its checkpoint is."""
        changes = (
            self.world.spark.readStream
            .format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", self.first)
            .load(str(self.folder / "lines"))
        )
        writer = changes.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.trigger(availableNow=True).foreachBatch(self._merge).start().awaitTermination()

    def _merge(self, batch: "DataFrame", _number: int) -> None:
        spark, touched = batch.sparkSession, batch.select(self.view.touches).distinct()
        for name, rows in self._tables().items():
            by = {"lines": self.view.touches, "orders": self.view.of_orders}.get(name)
            chosen = rows.join(touched.withColumnRenamed(self.view.touches, by), by, "left_semi") if by else rows
            chosen.createOrReplaceTempView(name)
        spark.sql(self.view.query).createOrReplaceTempView("computed_again")
        same = " AND ".join(f"t.{name} <=> s.{name}" for name in self.view.key)
        spark.sql(
            f"MERGE INTO delta.`{self.folder / 'merged'}` t USING computed_again s ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


class _Builds:
    """Both ways of computing a view for the first time; creating ours is not part of the measure."""

    def __init__(self, world: World, tables: Path, rows: int, name: str, strategy: DeclaredStrategy) -> None:
        self.world, self.tables, self.rows, self.strategy = world, tables, rows, strategy
        self.view = VIEWS[name]
        self.contents: set[object] = set()

    def ours(self) -> float:
        """One run of a view."""
        declared = _declared(self.tables, self.view, self.strategy)
        with self.world.folder() as place:
            self.world.create(place, declared, "view")
            limits = Limits(chunk_rows=self.rows // CHUNKS)
            seconds = timed(lambda: self.world.refresh(place, declared, "view", limits))
            self.contents.add(self._held(place / "warehouse" / "views" / "view"))
        return seconds

    def theirs(self) -> float:
        """One job."""
        for name in _declared_tables(self.view):
            self.world.spark.read.format("delta").load(str(self.tables / name)).createOrReplaceTempView(name)
        with self.world.folder() as place:
            rows = self.world.spark.sql(self.view.query)
            seconds = timed(lambda: rows.write.format("delta").save(str(place / "copy")))
            self.contents.add(self._held(place / "copy"))
        return seconds

    def _held(self, table: Path) -> object:
        shown = [name for name in self.world.spark.read.format("delta").load(str(table)).columns if name[:2] != "__"]
        return self.world.content(table, *shown)


def _small(world: World, repetitions: int, warmups: int) -> Iterator[Comparison]:
    """What an epoch costs that hardly has anything to do: a hundred changed lines of few."""
    with world.folder() as folder:
        _make_tables(world, folder, SMALL)
        ways = _Ways(world=world, folder=folder, view=VIEWS[SMALL_VIEW])
        conditions = [f"id >= {turn * 100} AND id < {turn * 100 + 100}" for turn in range(warmups + repetitions)]
        found = [ways.round(each, by_hand=False) for each in conditions][-repetitions:]
    yield from _compared(f"{SMALL_VIEW}, 100 neighbours of {SMALL:,}", found, 100, by_hand=False)
