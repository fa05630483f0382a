"""Checking logs while no broker answers: nothing is mistaken for an answer."""

import pytest

from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.adapters.kafka.log import LogReader
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
