"""A thousand new records into a warehouse on S3, each request 30 ms: a run over a source, a row-wise view and an aggregate,
against three `availableNow` queries of Structured Streaming as people write them. A proxy before the S3 server takes the
time, and counts the requests of both.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets import materialized_view
from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.local.servers import up
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.app.refresh import refresh
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import Declared
from benchmarks.measure import Comparison, timed
from benchmarks.stream import stream_of_topic, view_of
from benchmarks.world import World, declared_over
from tests.support.s3_proxy import S3Proxy, before

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


def run(world: World, *, repetitions: int = 8, warmups: int = 2, seconds: float = SECONDS) -> Iterator[Comparison]:
    """Repeated refreshes; both sides see the same new records each time, and must hold the same rows in the end."""
    server = up(world.root, kafka=False, spark=False, s3=True).s3_endpoint
    assert server is not None
    with world.folder() as folder, before(server) as proxy:
        case = _Case(world, folder, proxy, _keys(world.root))
        case.round()
        proxy.slow_down(seconds)
        rounds = [case.round() for _ in range(warmups + repetitions)][warmups:]
        proxy.slow_down(0)
        case.check()
    took = {side: tuple(each[side][0] for each in rounds) for side in ("ours", "theirs")}
    requests = {f"requests of {side}": sum(each[side][1] for each in rounds) / len(rounds) for side in took}
    yield Comparison(
        benchmark="store",
        case="1,000 records, source, view and aggregate on S3",
        peer="three availableNow queries",
        rows=ROWS,
        ours=took["ours"],
        theirs=took["theirs"],
        details=requests,
    )


def _keys(root: Path) -> Mapping[str, str]:
    """The storage of a server, as a project declares it."""
    text = (root / ".backfill" / "s3" / "environment").read_text()
    found = dict(line.split("=", 1) for line in text.splitlines())
    return {"access_key_id": found["AWS_ACCESS_KEY_ID"], "secret_access_key": found["AWS_SECRET_ACCESS_KEY"]}


class _Case:
    """One topic, and the tables of both sides in one bucket."""

    def __init__(self, world: World, folder: Path, proxy: S3Proxy, keys: Mapping[str, str]) -> None:
        self.world, self.folder, self.proxy = world, folder, proxy
        self.topic, self.fed, self.turn = world.topic(), 0, 0
        storage = {"provider": "s3", "endpoint": proxy.endpoint, "region": "us-east-1", **keys}
        self.place = f"s3a://lake/{uuid.uuid4().hex}"
        self.store = StateStore(root=str(folder), warehouse=f"{self.place}/ours", storage=storage)
        for setting, value in self.store.place.spark_settings.items():
            world.spark.conf.set(setting, value)
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
            ours, theirs = (self._rows(f"{self.place}/{of}/{name}") for of in ("ours/views", "theirs"))
            found = [self.world.digest(rows, *columns) for rows in (ours, theirs)]
            assert found[0] == found[1], f"{name}: both must hold the same rows: {found}"

    def _counted(self, side: Callable[[], None]) -> tuple[float, int]:
        self.proxy.requests()
        return timed(side), len(self.proxy.requests())

    def _ours(self) -> None:
        workspace = Workspace(
            declared=self.declared,
            store=self.store,
            kafka=KafkaConnector(bootstrap_servers=self.world.servers, root=str(self.folder)),
            spark=self.world.resource(self.folder),
        )
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
