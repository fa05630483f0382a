"""What can happen to a topic on a real broker: transactions, retention, new partitions, deletion and re-creation."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import tenacity
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.support.project import SECONDS, Project


@contextmanager
def transaction(project: Project, topic: str, *values: object) -> Iterator[Producer]:
    """A transaction with these records (in partition 0), open while the block runs, then committed."""
    producer = Producer({
        "bootstrap.servers": project.servers,
        "transactional.id": f"{topic}-{id(values)}",
        "transaction.timeout.ms": 600_000,  # on a busy machine the broker would end it in the middle of a test
    })
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, json.dumps(value).encode(), partition=0)
    assert producer.flush(SECONDS) == 0
    yield producer
    producer.commit_transaction(SECONDS)


def configure(project: Project, topic: str, name: str, value: str) -> None:
    """Give a topic another setting."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (done,) = project.admin.incremental_alter_configs([asked]).values()
    done.result(timeout=SECONDS)


def commit(project: Project, topic: str, *values: object) -> None:
    """Send records in a transaction that commits."""
    with transaction(project, topic, *values):
        pass


def abort(project: Project, topic: str, *values: object) -> None:
    """Send records in a transaction that aborts: its records and the marker after them take up offsets."""
    with transaction(project, topic, *values) as producer:
        producer.abort_transaction(SECONDS)
        producer.begin_transaction()


def delete_before(project: Project, topic: str, offset: int, *, partition: int = 0) -> None:
    """Remove the records of a partition before an offset, as retention does."""
    asked = TopicPartition(topic, partition, offset)
    next(iter(project.admin.delete_records([asked]).values())).result(timeout=SECONDS)


def add_partitions(project: Project, topic: str, partitions: int) -> None:
    """Increase the partitions of a topic, and wait until the broker has them."""
    project.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(timeout=SECONDS)
    wait_until(lambda: len(project.admin.list_topics(topic).topics[topic].partitions) == partitions)


def delete_topic(project: Project, topic: str) -> None:
    """Delete a topic with all its records."""
    project.admin.delete_topics([topic])[topic].result(timeout=SECONDS)


def recreate(project: Project, topic: str, *, partitions: int = 1) -> None:
    """Delete a topic and create a new one with the same name."""
    delete_topic(project, topic)

    def create() -> bool:
        try:
            project.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=SECONDS)
        except KafkaException:
            return False
        return True

    wait_until(create)
    wait_until(lambda: end_of(project, topic) == 0)


def end_of(project: Project, topic: str, partition: int = 0) -> int:
    """The offset after the last record of a partition; -1 as long as the broker does not answer."""
    asked = TopicPartition(topic, partition)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent_kafka has no annotations there
    try:
        return int(project.admin.list_offsets({asked: latest})[asked].result(timeout=SECONDS).offset)
    except KafkaException:
        return -1


def wait_until(holds: Callable[[], bool], *, seconds: float = SECONDS) -> None:
    """Check repeatedly until a condition holds; fail after a limit."""
    tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: not result),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_fixed(0.1),
    )(holds)
