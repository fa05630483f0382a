"""A real project in a folder of its own: topics on the embedded broker, tables in a fresh warehouse, in-process Spark."""

import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.refresh import Refresh, refresh
from backfill_assets.app.table_checks import Outcome, run_check
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.declare.model import Declared
from tests.support.servers import s3_store
from tests.support.settings import CHECKS_ELSEWHERE, FULL, IN_A_STORE, PLACE, SPARK

SECONDS = 30
SAMPLES = "" if FULL else None
"""The seed of the samples that a check reads without Spark; None: no samples."""


def warehouse_on_s3() -> str:
    """A new warehouse in the run's S3 server."""
    return f"s3a://lake/{uuid.uuid4().hex}"


def storage_on_s3() -> dict[str, str]:
    """How it is declared: its keys are named, and are in the environment."""
    there = s3_store()
    keys = {"access_key_id": "env:S3_TEST_KEY", "secret_access_key": "env:S3_TEST_SECRET"}
    return {"provider": "s3", **keys, "endpoint": there["AWS_ENDPOINT_URL"], "region": there["AWS_REGION"]}


def warehouse_on_azure() -> str:
    """A new warehouse in the account whose name is in the environment."""
    return f"abfs://lake@{os.environ['AZURE_TEST_ACCOUNT']}.dfs.core.windows.net/{uuid.uuid4().hex}"


def storage_on_azure() -> dict[str, str]:
    """How it is declared: its key is named, and is in the environment, as is the emulator's address."""
    account = {"account_name": os.environ["AZURE_TEST_ACCOUNT"], "account_key": "env:AZURE_TEST_KEY"}
    return {"provider": "azure", **account}


def warehouse_on_google() -> str:
    """A new warehouse in the emulator whose address is in the environment."""
    return f"gs://lake/{uuid.uuid4().hex}"


def storage_on_google() -> dict[str, str]:
    """How it is declared: nothing is needed."""
    return {"provider": "gcs"}


WAREHOUSES = {
    "s3": warehouse_on_s3,
    "cluster": warehouse_on_s3,
    "azure": warehouse_on_azure,
    "gcs": warehouse_on_google,
}
STORAGES = {"s3": storage_on_s3, "cluster": storage_on_s3, "azure": storage_on_azure, "gcs": storage_on_google}


@dataclass
class Project:
    """One warehouse over one broker. `declare` first, then `refresh`, `rows`, `check`."""

    root: Path
    servers: str
    declared: dict[str, Declared] = field(default_factory=dict)
    warehouse: str = field(default_factory=lambda: WAREHOUSES[PLACE]() if PLACE in IN_A_STORE else "warehouse")
    storage: dict[str, str] = field(
        default_factory=lambda: STORAGES[PLACE]() if PLACE in IN_A_STORE else {"provider": "local"}
    )

    def declare(self, *tables: Declared) -> None:
        """Add (or replace) declared tables."""
        self.declared.update({each.name: each for each in tables})

    def workspace(self, on_step: Callable[[str], None] = lambda _step: None) -> Workspace:
        """The declared tables with real resources; a new object stands for a new run."""
        return Workspace(
            declared=self.declared,
            store=StateStore(root=str(self.root), warehouse=self.warehouse, storage=self.storage),
            kafka=KafkaConnector(bootstrap_servers=self.servers, connect_seconds=4.0, root=str(self.root)),
            spark=SparkResource(root=str(self.root), config=SPARK),
            on_step=on_step,
        )

    def refresh(self, name: str, limits: Limits = Limits(), **given: Any) -> Refresh:  # noqa: B008
        """A separate run of one table."""
        return refresh(self.workspace(**given), name, limits, run_id=uuid.uuid4().hex)

    def record(self, name: str) -> CommitRecord:
        """The newest commit of a table."""
        record = self.workspace().table(self.declared[name]).output.look().record
        assert record is not None
        return record

    def rows(self, name: str, *columns: str) -> Counter[tuple[Any, ...]]:
        """A table's rows as a multiset, read by delta-rs."""
        table = self.workspace().table(self.declared[name]).output.location.load()
        assert table is not None
        found = table.to_pyarrow_table(columns=list(columns) or None).to_pylist()
        return Counter(tuple(_hashable(row[name]) for name in (columns or row)) for row in found)

    def check(
        self, name: str, check: str = "exactly_once", *, full: bool = True, seed: str | None = SAMPLES
    ) -> Outcome:
        """Run one check. Samples are read without Spark only in the full proof; the gate has separate tests for them."""
        if not CHECKS_ELSEWHERE:
            return run_check(self.workspace(), name, check, full=full, seed=seed)
        there, here = self._copied_to_s3(), self.root / self.warehouse
        outcome = run_check(there.workspace(), name, check, full=full, seed=seed)
        objects = there.workspace().store.place.objects("")
        for path in objects.names("_state/passes"):
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            (here / path).write_bytes(objects.get(path) or b"")
        return outcome

    def _copied_to_s3(self) -> "Project":
        """The same project with a copy of its warehouse, as it is now, on S3."""
        there = replace(self, warehouse=warehouse_on_s3(), storage=storage_on_s3())
        objects = there.workspace().store.place.objects("")
        warehouse = self.root / self.warehouse
        for each in warehouse.rglob("*"):
            if each.is_file():
                objects.put(str(each.relative_to(warehouse)), each.read_bytes())
        return there

    def topic(self, *, partitions: int = 2, config: Mapping[str, str] | None = None) -> str:
        """Create a topic with a new name."""
        name = f"t{uuid.uuid4().hex[:10]}"
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.admin.create_topics([new])[name].result(timeout=SECONDS)
        self._await_partitions(name, partitions)
        return name

    def _await_partitions(self, topic: str, partitions: int) -> None:
        """A busy broker reports a topic's partitions only some time after it created them."""
        deadline = time.monotonic() + SECONDS
        while len(self.admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions) < partitions:
            assert time.monotonic() < deadline, f"topic {topic} has not got its {partitions} partitions"
            time.sleep(0.05)

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client of the broker."""
        return AdminClient({"bootstrap.servers": self.servers})

    def produce(self, topic: str, values: Iterable[object], *, partition: int | None = None) -> None:
        """Send values (JSON unless they are bytes or None), to all partitions in turn unless one is named."""
        producer = Producer({"bootstrap.servers": self.servers})
        partitions = len(self.admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions)
        for number, value in enumerate(values):
            payload = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
            producer.produce(topic, payload, partition=number % partitions if partition is None else partition)
            producer.poll(0)
        assert producer.flush(SECONDS) == 0


def forget_at_once(location: TableLocation) -> None:
    """Make a table keep only those log entries from which its newest version is built."""
    table = location.load()
    assert table is not None
    table.alter.set_table_properties({
        "delta.logRetentionDuration": "interval 0 seconds",
        "delta.checkpointInterval": "1",
    })


def _hashable(value: object) -> object:
    if isinstance(value, list):
        return tuple(_hashable(each) for each in value)
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(each)) for name, each in value.items()))
    return value
