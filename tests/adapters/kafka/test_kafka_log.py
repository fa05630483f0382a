"""Checking logs while no broker answers: nothing is mistaken for an answer; and what makes two records different."""

from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.kafka import log as kafka_log
from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.adapters.kafka.log import LogReader, _record
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import BrokerUnavailableError


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
