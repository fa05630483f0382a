"""The state of topics if some answers are missing: a problem of one topic does not affect others, and a missing answer
is never an offset.

The client is real; its connection is replaced by one with prepared answers in the form in which librdkafka returns
them.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.core.epoch.ports import TopicState
from backfill_assets.errors import BackfillError, BrokerUnavailableError, KafkaRefusedError, UnknownTopicError

SILENT = -1001
"""librdkafka's offset of a partition whose broker gave no answer while another one did."""
COMMITTED, ANY = "read_committed", "read_uncommitted"
LATEST = -1
"""The request to librdkafka for the latest offset."""


def answered(answer: object) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(answer, KafkaException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


def refused(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@dataclass
class Answers:
    """A connection to brokers with topics of two partitions, each with the offsets 3 to 9."""

    topics: Mapping[str, object]
    settings: Mapping[str, object] = field(default_factory=dict)
    offsets: Mapping[tuple[str, int], object] = field(default_factory=dict)
    """By topic and partition, the answer instead of the latest offset, or of the offset at a time."""
    lows: Mapping[tuple[str, int], object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    levels: dict[int, str] = field(default_factory=dict)
    """The isolation level of each kind of request: the latest offset, the earliest, or the offset at a time."""

    def describe_topics(self, names: Any, **_: object) -> dict[str, "Future[Any]"]:
        self.asked.append("topics")
        partitions = SimpleNamespace(topic_id="id", partitions=[SimpleNamespace(id=0), SimpleNamespace(id=1)])
        return {name: answered(self.topics.get(name) or partitions) for name in names.topic_names}

    def describe_configs(self, resources: Any, **_: object) -> dict[Any, "Future[Any]"]:
        self.asked.append("settings")
        usual = {"cleanup.policy": SimpleNamespace(value="delete"), "retention.ms": SimpleNamespace(value="60000")}
        return {each: answered(self.settings.get(each.name, usual)) for each in resources}

    def list_offsets(
        self, wanted: Mapping[TopicPartition, Any], *, isolation_level: Any, **_: object
    ) -> dict[TopicPartition, "Future[Any]"]:
        self.asked.append("offsets")
        self.levels.update({spec._value: isolation_level.name.lower() for spec in wanted.values()})
        first = all(spec._value == -2 for spec in wanted.values())
        given, usual = (self.lows, 3) if first else (self.offsets, 9)
        found = {partition: given.get((partition.topic, partition.partition), usual) for partition in wanted}
        return {
            partition: answered(
                each if isinstance(each, KafkaException) else SimpleNamespace(offset=each, leader_epoch=7)
            )
            for partition, each in found.items()
        }


def client(**answers: Any) -> KafkaClient:
    made = KafkaClient("broker:9092", {}, timeout=1.0)
    made._admin = Answers(**{"topics": {}, **answers})  # type: ignore[assignment]
    return made


def held(found: TopicState | BackfillError) -> dict[int, tuple[int, int]]:
    assert isinstance(found, TopicState)
    return {partition: (each.start, each.end) for partition, each in found.partitions.items()}


def test_all_topics_are_asked_for_at_once_under_the_isolation_level_of_each() -> None:
    kafka = client()
    found = kafka.offers({("a", COMMITTED), ("b", COMMITTED), ("b", ANY)})
    assert {key: held(each) for key, each in found.items()} == {key: {0: (3, 9), 1: (3, 9)} for key in found}
    assert found.keys() == {("a", COMMITTED), ("b", COMMITTED), ("b", ANY)}
    assert kafka._admin.asked == ["topics", "settings", "offsets", "offsets", "offsets"]  # type: ignore[union-attr]


GONE = refused(KafkaError.UNKNOWN_TOPIC_OR_PART)
TROUBLES: dict[str, tuple[dict[str, Any], type[BackfillError]]] = {
    "the topic is unknown": ({"topics": {"bad": GONE}}, UnknownTopicError),
    "its settings may not be read": (
        {"settings": {"bad": refused(KafkaError.TOPIC_AUTHORIZATION_FAILED)}},
        KafkaRefusedError,
    ),
    "it is deleted while it is asked for": ({"offsets": {("bad", 1): GONE}}, UnknownTopicError),
    "the broker of a partition is silent about the end": ({"offsets": {("bad", 1): SILENT}}, BrokerUnavailableError),
    "the broker of a partition is silent about the begin": ({"lows": {("bad", 0): SILENT}}, BrokerUnavailableError),
    "an end is not known": ({"offsets": {("bad", 1): -1}}, BrokerUnavailableError),
    "a partition has no leader": ({"lows": {("bad", 0): refused(KafkaError._NOENT)}}, BrokerUnavailableError),
    "a leader has just begun": (
        {"offsets": {("bad", 1): refused(KafkaError.UNKNOWN_LEADER_EPOCH)}},
        BrokerUnavailableError,
    ),
    "time is up": ({"topics": {"bad": refused(KafkaError._TIMED_OUT)}}, BrokerUnavailableError),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_error_of_one_topic_does_not_affect_others(trouble: str) -> None:
    answers, error = TROUBLES[trouble]
    found = client(**answers).offers({("good", COMMITTED), ("bad", COMMITTED)})
    assert held(found["good", COMMITTED]) == {0: (3, 9), 1: (3, 9)}
    assert type(found["bad", COMMITTED]) is error
    with pytest.raises(error, match="bad"):
        client(**answers).offer("bad", isolation=COMMITTED)


def test_a_partition_whose_broker_is_silent_is_named() -> None:
    with pytest.raises(BrokerUnavailableError, match="partition 1 of topic 'bad'"):
        client(offsets={("bad", 1): SILENT}).offer("bad", isolation=COMMITTED)


def test_a_partition_whose_leader_moves_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = client(offsets={("a", 1): refused(KafkaError.NOT_LEADER_FOR_PARTITION)})
    answers: Any = kafka._admin
    monkeypatch.setattr("backfill_assets.adapters.kafka.connector.time.sleep", lambda _seconds: answers.offsets.clear())
    found = kafka.offers({("a", COMMITTED), ("b", COMMITTED)})
    assert held(found["a", COMMITTED]) == held(found["b", COMMITTED]) == {0: (3, 9), 1: (3, 9)}
    assert len(answers.asked) == 8, "and no other topic was asked for again"


def test_a_time_after_all_records_is_the_end_and_silence_is_not() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    kafka = client(offsets={("a", 0): -1, ("a", 1): 5})
    offer = client().offer("a", isolation=COMMITTED)
    assert kafka.offsets_at(offer, moment) == {0: 9, 1: 5}
    with pytest.raises(BrokerUnavailableError, match="partition 1 of topic 'a'"):
        client(offsets={("a", 0): 4, ("a", 1): SILENT}).offsets_at(offer, moment)


@pytest.mark.parametrize("level", [COMMITTED, ANY])
def test_the_end_of_a_topic_is_that_of_its_isolation_level(level: str) -> None:
    kafka = client()
    kafka.offer("a", isolation=level)
    assert kafka._admin.levels[LATEST] == level  # type: ignore[union-attr]


def test_an_end_below_the_start_is_an_empty_partition() -> None:
    offer = client(offsets={("a", 1): 1}).offer("a", isolation=COMMITTED)
    assert held(offer) == {0: (3, 9), 1: (3, 3)}


def test_a_time_is_requested_in_milliseconds_and_gives_only_readable_offsets() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    kafka = client(offsets={("a", 0): 12})
    assert kafka.offsets_at(client().offer("a", isolation=COMMITTED), moment) == {0: 9, 1: 9}
    assert list(kafka._admin.levels) == [moment.timestamp() * 1000]  # type: ignore[union-attr]


def test_a_topic_that_is_compacted_among_other_things_is_compacted() -> None:
    both = {"cleanup.policy": SimpleNamespace(value="compact,delete"), "retention.ms": SimpleNamespace(value="60000")}
    offer = client(settings={"a": both}).offer("a", isolation=COMMITTED)
    assert (offer.compacted, offer.retention_seconds) == (True, 60.0)


def test_settings_that_a_broker_does_not_report_are_kafkas_defaults() -> None:
    offer = client(settings={"a": {}}).offer("a", isolation=COMMITTED)
    assert (offer.compacted, offer.retention_seconds) == (False, None)
    compacted = {"cleanup.policy": SimpleNamespace(value="compact"), "retention.ms": SimpleNamespace(value="60000")}
    offer = client(settings={"a": compacted}).offer("a", isolation=COMMITTED)
    assert (offer.compacted, offer.retention_seconds) == (True, None)
    assert client().offer("a", isolation=COMMITTED).retention_seconds == 60.0
