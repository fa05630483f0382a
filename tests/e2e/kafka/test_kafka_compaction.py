"""A compacted topic keeps the newest record of each key: what was ingested stays exact, and there are no false alarms."""

import time
from collections.abc import Sequence
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from backfill_assets import kafka_source, materialized_view
from tests.support.broker import configure, end_of, wait_until
from tests.support.damage import doubled, first, rewrite
from tests.support.project import SECONDS, Project
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

ROUNDS_SECONDS = 3.0
"""Three rounds of the broker's cleaner (`log.cleaner.backoff.ms`)."""
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}


def send(project: Project, topic: str, records: Sequence[tuple[str, int | None]]) -> None:
    """Records by key; a value of None is a tombstone."""
    producer = Producer({"bootstrap.servers": project.servers})
    for key, number in records:
        value = None if number is None else b'{"id": %d}' % number
        producer.produce(topic, value, key=key.encode(), partition=0)
    assert producer.flush(SECONDS) == 0


def offsets_held(project: Project, topic: str) -> list[int]:
    """The offsets of the partition that still have records."""
    settings = {"bootstrap.servers": project.servers, "group.id": uuid4().hex, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    end, found = end_of(project, topic), [-1]
    while found[-1] < end - 1:  # the newest record is never compacted away
        (record,) = consumer.consume(1, timeout=SECONDS)
        offset = record.offset()
        assert offset is not None
        found.append(offset)
    consumer.close()
    return found[1:]


def compact(project: Project, topic: str) -> list[int]:
    """Make the broker compact what it can (newer segments make older ones cleanable); returns what is left."""

    def compacted() -> bool:
        send(project, topic, [("last", end_of(project, topic))])
        return offsets_held(project, topic)[0] >= 5  # the newest records of "a" and "b" are at 6 and 5

    wait_until(compacted, seconds=120)
    return offsets_held(project, topic)


def keep_what_is_there(project: Project, topic: str) -> None:
    """Stop the broker's compaction: otherwise one table may not find what another one has ingested."""
    configure(project, topic, "min.compaction.lag.ms", "86400000")
    begun, seen = time.monotonic(), [offsets_held(project, topic)]

    def stays() -> bool:
        """Whether nothing has gone for three of the broker's rounds."""
        nonlocal begun
        if (found := offsets_held(project, topic)) != seen[-1]:
            begun = time.monotonic()
            seen.append(found)
        return time.monotonic() - begun > ROUNDS_SECONDS

    wait_until(stays, seconds=SECONDS)


RECORDS = [("a", 0), ("b", 1), ("a", 2), ("b", None), ("a", 4), ("b", 5), ("a", 6)]


def test_records_that_a_compaction_took_are_no_violation_and_groups_of_them_are_unproved(project: Project) -> None:
    topic = project.topic(partitions=1, config=COMPACTED)
    orders, early = (kafka_source(name, topic=topic, schema="id LONG") for name in ("orders", "early"))
    grouped = "SELECT id % 2 AS odd, count(*) AS n FROM early GROUP BY id % 2"
    project.declare(orders, early, materialized_view("groups", query=grouped, upstreams=[early]))
    send(project, topic, RECORDS)
    project.refresh("orders")
    project.refresh("groups")  # of records that their source has not ingested
    assert compact(project, topic)[0] >= 5
    proved = project.check("orders", seed="compacted")
    assert (proved.passed, proved.facts["subset_only"]) == (True, True)
    gone = project.check("groups")
    assert (gone.passed, gone.unproved) == (False, True)
    assert "early: its topic is compacted" in gone.summary
    rewrite(project, "orders", lambda rows: [*rows[:6], {**rows[6], "id": -1}, *rows[7:]])
    assert project.check("orders").facts["missing"] == 1


@pytest.mark.full
def test_views_over_a_compacted_topic_hold_all_that_was_ingested(project: Project) -> None:
    topic = project.topic(partitions=1, config=COMPACTED)
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    copy = materialized_view("copy", query="SELECT id FROM orders", upstreams=[orders])
    late = kafka_source("late", topic=topic, schema="id LONG")
    rest = materialized_view("rest", query="SELECT id FROM late", upstreams=[late])
    project.declare(orders, copy, late, rest)
    send(project, topic, RECORDS)
    project.refresh("orders")
    compact(project, topic)
    keep_what_is_there(project, topic)
    held = offsets_held(project, topic)
    assert held[:2] == [5, 6]
    assert len(held) < end_of(project, topic)

    project.refresh("copy")  # created now: Kafka has lost what bronze has
    assert {row for row in project.rows("copy", "id") if row < (7,)} == {(n,) for n in (0, 1, 2, 4, 5, 6)}
    for name in ("rest", "late", "orders", "copy", "rest"):
        assert project.refresh(name).progress.lag_rows == 0
    assert (6,) in project.rows("late", "id")
    assert (0,) not in project.rows("late", "id")
    assert project.rows("rest", "id") == project.rows("late", "id")
    for name in ("orders", "copy", "late", "rest"):
        for check in CHECKS:
            outcome = project.check(name, check, seed="compacted")
            assert outcome.passed, (name, check, outcome)

    assert project.check("orders").facts["subset_only"]
    rewrite(project, "late", doubled)
    assert project.check("late").facts["unexpected"] == 1
    rewrite(project, "copy", first(lambda _row: {"id": -1}))
    assert project.check("copy").facts["missing"] == 1
    rewrite(project, "orders", lambda rows: [*rows[:6], {**rows[6], "id": -1}, *rows[7:]])
    assert project.check("orders").facts["missing"] == 1
