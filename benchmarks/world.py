"""What the benchmarks share: a broker, a topic of orders, one warm Spark session, this project's runs, and peers' sinks."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.local.servers import down, up
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.app.refresh import Refresh, refresh
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.run import create_if_missing
from backfill_assets.declare.model import Declared, KafkaSource, MaterializedView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "PARSED_SCHEMA",
    "PARTITIONS",
    "QUERY",
    "SCHEMA",
    "VIEW_COLUMNS",
    "VIEW_SCHEMA",
    "World",
    "declared_over",
    "parsed",
    "world",
]

PARTITIONS = 4
HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
SCHEMA = "order_id LONG, customer STRING, item STRING, amount DOUBLE, quantity INT, at TIMESTAMP"
PARSED_SCHEMA = f"partition INT, offset LONG, timestamp TIMESTAMP, key BINARY, headers {HEADERS}, {SCHEMA}"
QUERY = """
    SELECT order_id, upper(customer) AS customer, round(amount * quantity, 2) AS total, to_date(at) AS day
    FROM orders
    WHERE quantity > 2
"""
VIEW_COLUMNS = ("order_id", "customer", "total", "day")
VIEW_SCHEMA = "order_id LONG, customer STRING, total DOUBLE, day DATE"


@dataclass
class World:
    """One broker and one Spark session for a whole run of benchmarks; `root` is removed afterwards. `s3`: whether the session
    reaches tables on S3. `warehouse`: the URI below which each folder has its tables, and how it is reached; by default
    they are in the folder."""

    root: Path
    servers: str
    s3: bool = False
    warehouse: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict)

    def elsewhere(self, warehouse: str, storage: Mapping[str, str]) -> "World":
        """The same with its tables in an object store."""
        return replace(self, s3=True, warehouse=warehouse, storage=storage)

    @cached_property
    def spark(self) -> "SparkSession":
        """The session that both sides use."""
        place = self.store(self.root).place
        session: SparkSession = (
            self.resource(self.root).runner(place, stores={"s3"} if self.s3 else ()).run(lambda spark: spark)
        )
        return session

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def workspace(self, folder: Path, declared: Mapping[str, Declared]) -> Workspace:
        """What one run of this project works with."""
        return Workspace(
            declared=declared,
            store=self.store(folder),
            kafka=KafkaConnector(bootstrap_servers=self.servers, root=str(folder)),
            spark=self.resource(folder),
        )

    def store(self, folder: Path) -> StateStore:
        """Where the tables of a folder are."""
        if self.warehouse is None:
            return StateStore(root=str(folder))
        return StateStore(root=str(folder), warehouse=f"{self.warehouse}/{folder.name}", storage=dict(self.storage))

    def resource(self, folder: Path) -> SparkResource:
        """Spark as every benchmark starts it, or finds it started."""
        return SparkResource(root=str(folder), driver_memory="4g")

    def refresh(
        self, folder: Path, declared: Mapping[str, Declared], name: str, limits: Limits | None = None
    ) -> Refresh:
        """One run of its own, as Dagster would make it, in the session that is there."""
        workspace = self.workspace(folder, declared)
        try:
            return refresh(workspace, name, limits or Limits(), run_id=uuid.uuid4().hex)
        finally:
            workspace.runner.close()

    def create(self, folder: Path, declared: Mapping[str, Declared], *names: str) -> None:
        """Create tables empty, with their history still to be read."""
        workspace = self.workspace(folder, declared)
        for name in names:
            table = workspace.table(workspace.registry.find(name))
            create_if_missing(table.parts, table)
        workspace.runner.close()

    def empty_table(self, folder: Path, schema: str) -> None:
        """A peer's table, made empty before it is measured, as ours are."""
        self.spark.createDataFrame([], schema).write.format("delta").mode("append").save(str(folder))

    def topic(self) -> str:
        """A new empty topic."""
        name = f"orders-{uuid.uuid4().hex[:8]}"
        new = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)
        self._admin.create_topics([new])[name].result(timeout=30)
        return name

    def remove_topic(self, name: str) -> None:
        """Let the broker forget a topic: it stalls where it holds too many records."""
        self._admin.delete_topics([name])[name].result(timeout=30)

    def produce(self, topic: str, rows: int, *, first: int = 0) -> None:
        """Write orders as JSON, spread evenly over the partitions."""
        numbers = self.spark.range(first, first + rows, numPartitions=PARTITIONS)
        made = numbers.selectExpr(
            "CAST(id % 50000 AS STRING) AS key",
            "to_json(named_struct('order_id', id, 'customer', concat('customer-', id % 50000), 'item', "
            "concat('item-', id % 997), 'amount', CAST(id % 100000 AS DOUBLE) / 8, 'quantity', CAST(id % 7 AS INT), "
            "'at', timestamp_seconds(1700000000 + id))) AS value",
            f"CAST(id % {PARTITIONS} AS INT) AS partition",
        )
        made.write.format("kafka").option("kafka.bootstrap.servers", self.servers).option("topic", topic).save()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A fresh folder for one repetition."""
        made = Path(tempfile.mkdtemp(dir=self.root))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def content(self, table: Path | str, *columns: str) -> tuple[int, Any]:
        """The number of rows of a table and a digest of these columns that does not depend on order."""
        return self.digest(self.spark.read.format("delta").load(str(table)), *columns)

    def digest(self, rows: "DataFrame", *columns: str) -> tuple[int, Any]:
        """The same of any rows."""
        digest = f"sum(CAST(xxhash64({', '.join(columns)}) AS DECIMAL(38, 0)))"
        (found,) = rows.selectExpr("count(*) AS rows", f"{digest} AS digest").collect()
        return found["rows"], found["digest"]


def declared_over(topic: str) -> dict[str, Declared]:
    """The source of orders and a view over it."""
    orders: KafkaSource = kafka_source("orders", topic=topic, schema=SCHEMA)
    large: MaterializedView = materialized_view("large", query=QUERY, upstreams=[orders])
    return {"orders": orders, "large": large}


def parsed(raw: "DataFrame") -> "DataFrame":
    """How a plain Spark job reads the same records: a bare `from_json`, no word on records that do not parse."""
    from pyspark.sql import functions as F  # noqa: N812

    record = F.from_json(F.col("value").cast("string"), SCHEMA).alias("record")
    return raw.select("partition", "offset", "timestamp", "key", "headers", record).select(
        "partition", "offset", "timestamp", "key", "headers", "record.*"
    )


@contextmanager
def world(*, s3: bool = False) -> Iterator[World]:
    """A broker of its own on free ports, stopped in the end; with `s3`, its Spark session reaches tables on S3."""
    root = Path(tempfile.mkdtemp(prefix="backfill-bench-"))
    try:
        servers = up(root, spark=False).bootstrap_servers
        assert servers is not None
        yield World(root=root, servers=servers, s3=s3)
    finally:
        down(root)
        shutil.rmtree(root, ignore_errors=True)
