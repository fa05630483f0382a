"""What Spark has fetched of Kafka is let go soon after each batch: no later one reads it, and a heap may be small."""

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets import kafka_source
from tests.support.broker import wait_until
from tests.support.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


def test_consumers_of_batches_that_were_read_are_closed_within_seconds(project: Project, spark: "SparkSession") -> None:
    topic = project.topic(partitions=3)
    project.produce(topic, [{"id": number} for number in range(30)])
    project.declare(kafka_source("orders", topic=topic, schema="id LONG"))
    project.refresh("orders")
    assert sum(project.rows("orders", "id").values()) == 30

    kept = _Kept(spark)
    assert kept.ever > 0
    wait_until(lambda: kept.now == 0)


class _Kept:
    """The consumers that Spark's Kafka source keeps in this JVM; it shows them to nobody."""

    def __init__(self, spark: "SparkSession") -> None:
        jvm: Any = spark._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = loader.loadClass("org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer$")
        self._pool = _hidden(found, "consumerPool", None)
        self._idle = _hidden(self._pool.getClass(), "pool", self._pool)

    @property
    def now(self) -> int:
        """How many there are, at work or kept."""
        return int(self._pool.size())

    @property
    def ever(self) -> int:
        """How many there have been since this JVM started."""
        return int(self._idle.getCreatedCount())


def _hidden(of: Any, name: str, instance: Any) -> Any:
    """The value of a field that is not public, whose name may have the prefix of its class."""
    for field in of.getDeclaredFields():
        if field.getName().endswith(name):
            field.setAccessible(True)
            return field.get(instance)
    raise AssertionError(name)
