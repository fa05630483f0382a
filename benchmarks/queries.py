"""Views over several tables of which few rows changed: by the rule for their query, against Spark computing all of it again.

The peer is what is done without this project: the query over the tables as they are, written over a Delta table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from backfill_assets import delta_table, materialized_view
from benchmarks.measure import Comparison, in_turns, timed
from benchmarks.tables import FEED, FILES, change, make_table
from benchmarks.world import World

__all__ = ["run"]

CUSTOMERS = 50_000
CHANGED = 1_000

LINEAR = "SELECT o.id, o.cents, c.region FROM orders o JOIN customers c ON o.customer = c.name"
_TABLES = ("orders", "customers", "regions")
KEYS = {"linear, with a key": "id"}
"""The keys of views that have one."""

QUERIES = {
    "linear": LINEAR,
    "linear, with a key": LINEAR,
    "columns that are not used": "SELECT o.id, o.amount, c.region FROM orders o JOIN customers c ON o.customer = c.name",
    "additive": "SELECT c.region, count(*) AS n, sum(o.cents) AS total FROM orders o JOIN customers c ON o.customer = c.name "
    "GROUP BY c.region",
    "restricted": "SELECT c.name, c.region, o.id, o.cents FROM customers c LEFT JOIN orders o ON o.customer = c.name",
    "restricted to groups": "SELECT customer, percentile(cents, 0.5) AS middle, count(DISTINCT at) AS n FROM orders "
    "GROUP BY customer",
    "three tables, to groups": "SELECT o.customer, r.zone, count(*) AS n, sum(o.cents) AS total FROM orders o "
    "JOIN customers c ON o.customer = c.name JOIN regions r ON c.region = r.name GROUP BY o.customer, r.zone",
    "first of each group": "SELECT customer, id, cents FROM (SELECT customer, id, cents, row_number() OVER (PARTITION BY "
    "customer ORDER BY cents DESC, id) AS place FROM orders) WHERE place = 1",
    "full": "SELECT id, rank() OVER (ORDER BY cents DESC) AS place FROM orders WHERE cents > 1200000",
}


def run(
    world: World, *, rows: int = 2_000_000, repetitions: int = 3, warmups: int = 1, only: str = ""
) -> Iterator[Comparison]:
    """Each rule that has `only` in its name over a table of so many `rows`, of which a thousand neighbours change."""
    for rule, query in {rule: query for rule, query in QUERIES.items() if only in rule}.items():
        with world.folder() as folder:
            _make_tables(world, folder, rows)
            both = _Sides(world=world, folder=folder, query=query, key=KEYS.get(rule), rows=rows)
            ours, theirs = in_turns(both.ours, both.theirs, repetitions=repetitions, warmups=warmups)
        yield Comparison(
            benchmark="queries",
            case=f"{rule}, {CHANGED:,} of {rows:,} rows changed",
            peer="the query in full, written over a table",
            rows=CHANGED,
            ours=ours,
            theirs=theirs,
        )


def _make_tables(world: World, folder: Path, rows: int) -> None:
    make_table(world, folder / "plain", rows)
    plain = world.spark.read.format("delta").load(str(folder / "plain"))
    orders = plain.selectExpr("*", "CAST(amount * 100 AS BIGINT) AS cents")
    orders.write.format("delta").options(**FEED).save(str(folder / "orders"))
    customers = world.spark.range(0, CUSTOMERS, numPartitions=FILES // 8).selectExpr(
        "concat('customer-', id) AS name", "concat('region-', id % 100) AS region"
    )
    customers.write.format("delta").options(**FEED).save(str(folder / "customers"))
    regions = world.spark.range(0, 100, numPartitions=1).selectExpr(
        "concat('region-', id) AS name", "concat('zone-', id % 7) AS zone"
    )
    regions.write.format("delta").options(**FEED).save(str(folder / "regions"))


@dataclass
class _Sides:
    """Both ways of following; each round of changes is made by whoever comes first in it."""

    world: World
    folder: Path
    query: str
    key: str | None
    rows: int
    round: int = 0
    behind: bool = False

    def __post_init__(self) -> None:
        names = [name for name in _TABLES if f" {name}" in self.query]
        tables = [delta_table(name, path=str(self.folder / name)) for name in names]
        self.declared = {"view": materialized_view("view", query=self.query, upstreams=tables, primary_key=self.key)}
        self.view, self.copy = self.folder / "warehouse" / "views" / "view", self.folder / "copy"
        self.world.refresh(self.folder, self.declared, "view")
        self._compute()

    def ours(self) -> float:
        """A run of the view."""
        return self._turn(lambda: self.world.refresh(self.folder, self.declared, "view"))

    def theirs(self) -> float:
        """The query in batch."""
        return self._turn(self._compute)

    def _turn(self, way: Callable[[], object]) -> float:
        if not self.behind:
            first = self.round * CHANGED * 7 % self.rows
            predicate = f"id >= {first} AND id < {first + CHANGED}"
            change(self.folder / "orders", "cents", "cents + 1", predicate)
            self.round += 1
        self.behind = not self.behind
        seconds = timed(way)
        if not self.behind:
            columns = self.world.spark.read.format("delta").load(str(self.copy)).columns
            held = {self.world.content(table, *columns) for table in (self.view, self.copy)}
            assert len(held) == 1, f"view and table must hold the same rows: {held}"
        return seconds

    def _compute(self) -> None:
        spark = self.world.spark
        for name in _TABLES:
            spark.read.format("delta").load(str(self.folder / name)).createOrReplaceTempView(name)
        spark.sql(self.query).write.format("delta").mode("overwrite").save(str(self.copy))
