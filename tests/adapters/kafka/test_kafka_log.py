"""Checking logs while no broker answers: nothing is mistaken for an answer; and what makes two records different."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from backfill_assets.adapters.kafka import log as kafka_log
from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.adapters.kafka.log import LogReader, _record
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import BrokerUnavailableError, KafkaRefusedError


def test_a_broker_that_does_not_answer_is_an_error_and_not_a_log() -> None:
    log = LogReader(KafkaClient("localhost:1", {}, timeout=0.2), isolation="read_committed")
    with pytest.raises(BrokerUnavailableError, match=r"partitions \[3\] of topic 'orders'"):
        log.diverged("orders", {3: (5, 1)})
    with pytest.raises(BrokerUnavailableError, match=r"partitions \[3, 4\] of topic 'orders'"):
        log.last_records("orders", {partition: OffsetRange(start=0, end=5) for partition in (3, 4)})


def test_without_names_nothing_is_requested() -> None:
    log = LogReader(KafkaClient("localhost:1", {}, timeout=0.2), isolation="read_committed")
    assert (log.diverged("orders", {}), log.last_records("orders", {})) == ({}, {})


def message(*, time: int = 7, key: bytes | None = b"k", value: bytes | None = b"v") -> Any:
    return SimpleNamespace(
        timestamp=lambda: (1, time), key=lambda: key, value=lambda: value, leader_epoch=lambda: 3, offset=lambda: 5
    )


def test_records_that_differ_in_any_part_have_other_digests() -> None:
    others: list[dict[str, Any]] = [
        {},
        {"time": 8},
        {"key": None},
        {"key": b""},
        {"value": None},
        {"value": b""},
        {"key": b"kv", "value": b""},
    ]
    found = [_record(message(**each), 5).digest for each in others]
    assert len(set(found)) == len(others)


def test_a_consumer_sees_what_spark_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[str, Any]] = []

    def consumer(given: dict[str, Any]) -> None:
        settings.append(given)

    monkeypatch.setattr(kafka_log, "Consumer", consumer)
    for isolation in ("read_committed", "read_uncommitted"):
        LogReader(KafkaClient("localhost:1", {}, timeout=0.2), isolation=isolation)._consumer("error")
    assert [each["isolation.level"] for each in settings] == ["read_committed", "read_uncommitted"]


@pytest.mark.parametrize(("begins", "first"), [(9, 4), (2, 2)])
def test_another_log_is_known_below_the_position_that_was_read(
    begins: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogReader(KafkaClient("localhost:1", {}, timeout=0.2), isolation="read_committed")
    refused = SimpleNamespace(error=lambda: SimpleNamespace(code=lambda: kafka_log._OTHER_LOG), partition=lambda: 3)
    monkeypatch.setattr(log, "_read", lambda _topic, _starts, seen, **_: seen(refused))
    monkeypatch.setattr(log, "_begins", lambda _topic, _starts: {3: begins})
    assert log.diverged("orders", {3: (5, 1)}) == {3: first}


def delivered(offset: int | None, *, error: object = None, partition: int = 3) -> Any:
    return SimpleNamespace(
        offset=lambda: offset, error=lambda: error, partition=lambda: partition, timestamp=lambda: (1, 7),
        key=lambda: None, value=lambda: b"v", leader_epoch=lambda: 3, headers=lambda: [("h", b"1")],
    )  # fmt: skip


class Broker:
    """A consumer that delivers these messages, or refuses to seek so often."""

    def __init__(self, *messages: Any, unready: int = 0, code: int = KafkaError._STATE) -> None:
        self.messages, self.unready, self.code, self.seeks, self.assigned = [*messages], unready, code, 0, set[int]()

    def assign(self, starts: list[TopicPartition]) -> None:
        self.assigned = {each.partition for each in starts}

    def incremental_unassign(self, parts: list[TopicPartition]) -> None:
        self.assigned -= {each.partition for each in parts}

    def unassign(self) -> None:
        self.assigned = set()

    def poll(self, _seconds: float) -> Any:
        return self.messages.pop(0) if self.messages else None

    def seek(self, _start: TopicPartition) -> None:
        self.seeks += 1
        if self.seeks <= self.unready:
            raise KafkaException(KafkaError(self.code))


def reader(monkeypatch: pytest.MonkeyPatch, broker: Broker, *, timeout: float = 0.5) -> LogReader:
    log = LogReader(KafkaClient("localhost:1", {}, timeout=timeout), isolation="read_committed")
    monkeypatch.setattr(log, "_consumer", lambda _reset: broker)
    return log


@pytest.mark.parametrize("end", [delivered(8), delivered(None, error=KafkaError(KafkaError._PARTITION_EOF))])
def test_records_beyond_a_range_are_not_its_own(monkeypatch: pytest.MonkeyPatch, end: Any) -> None:
    """As the last ones of it were compacted, or belong to an aborted transaction."""
    ranges = {3: OffsetRange(start=5, end=8)}
    last = reader(monkeypatch, Broker(delivered(5), delivered(6), end)).last_records("orders", ranges)
    assert {partition: each.offset for partition, each in last.items()} == {3: 6}
    every = reader(monkeypatch, Broker(delivered(5), delivered(6), end)).records("orders", ranges)
    assert [(each.partition, each.offset) for each in every] == [(3, 5), (3, 6)]
    assert reader(monkeypatch, Broker(end)).last_records("orders", ranges) == {}
    assert reader(monkeypatch, Broker(end)).records("orders", ranges) == []


def test_a_partition_that_is_not_ready_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    end = delivered(None, error=KafkaError(KafkaError._PARTITION_EOF))
    broker = Broker(*[None] * 2, end, unready=2)
    assert reader(monkeypatch, broker).diverged("orders", {3: (5, 1)}) == {}
    assert (broker.seeks, broker.assigned) == (3, set())


@pytest.mark.parametrize(
    ("broker", "timeout"),
    [
        (Broker(unready=1, code=KafkaError.TOPIC_AUTHORIZATION_FAILED), 0.5),
        (Broker(unready=10**9), 0.05),
        (Broker(delivered(None, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))), 0.5),
    ],
    ids=["no right to seek", "never ready", "no right to read"],
)
def test_a_broker_that_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch, broker: Broker, timeout: float) -> None:
    with pytest.raises(KafkaRefusedError, match="orders"):
        reader(monkeypatch, broker, timeout=timeout).diverged("orders", {3: (5, 1)})
    assert not broker.assigned
