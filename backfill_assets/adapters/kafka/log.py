"""Whether a topic's log is still the one that was read: leader epochs and single records, by Kafka's consumer protocol.

An admin client cannot ask where a log ends for a leader epoch. A consumer asks this before it reads at a position with a
leader epoch, and fails if the log of that epoch ends below it. librdkafka does so on seek, not on assignment.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.core.epoch.ports import LogRecord
from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["LogReader", "Record"]

Reset = Literal["error", "earliest"]
_GROUP = "backfill-assets"
"""A consumer must name a group; this one never joins it, and never commits."""
_SETTINGS = {
    "group.id": _GROUP,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
    # Only one record of each partition is needed; a larger batch is delivered anyway.
    "max.partition.fetch.bytes": 2**16,
    "log_level": 0,
}
_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
_AT_END, _OTHER_LOG = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET
_POLL_SECONDS, _READY_SECONDS = 0.5, 0.005
_DIGEST_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of a topic, as it was delivered."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class LogReader:
    """Checks logs at the positions up to which they have been read, with consumers that are kept for the next check.

    Errors of all checks: `BrokerUnavailableError`, `KafkaRefusedError`, `UnknownTopicError`.
    """

    def __init__(self, client: KafkaClient, *, isolation: str) -> None:
        self._client = client
        self._isolation = isolation
        self._consumers: dict[Reset, Consumer] = {}

    def diverged(self, topic: str, read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Partitions whose log is no longer the one that was read, up to an offset (exclusive), in a leader epoch.

        Returns for each such partition the first offset at which another leader's record is delivered; if there is
        none, the last offset below the position.
        """
        starts = [
            TopicPartition(topic, partition, offset, leader_epoch=epoch) for partition, (offset, epoch) in read.items()
        ]
        other: set[int] = set()

        def refused(message: Message) -> bool:
            error = message.error()
            if error is not None and error.code() == _OTHER_LOG:
                other.add(_partition(message))
            return True

        self._read(topic, starts, refused, reset="error")
        begins = self._begins(topic, [start for start in starts if start.partition in other])
        return {partition: min(begins[partition], read[partition][0] - 1) for partition in sorted(other)}

    def last_records(self, topic: str, ranges: Mapping[int, OffsetRange]) -> dict[int, LogRecord]:
        """The last record of each range that is delivered, by partition; partitions without one are missing."""
        found: dict[int, LogRecord] = {}

        def seen(message: Message) -> bool:
            partition, offset = _partition(message), message.offset()
            if message.error() is not None or offset is None or offset >= ranges[partition].end:
                return True
            found[partition] = _record(message, offset)
            return offset == ranges[partition].end - 1

        starts = [TopicPartition(topic, partition, each.start) for partition, each in ranges.items()]
        self._read(topic, starts, seen, reset="error")
        return found

    def records(self, topic: str, ranges: Mapping[int, OffsetRange]) -> list[Record]:
        """All records that are delivered for these ranges. For a partition whose log no longer has the first record,
        there are none."""
        found: list[Record] = []

        def seen(message: Message) -> bool:
            partition, offset = _partition(message), message.offset()
            if message.error() is not None or offset is None or offset >= ranges[partition].end:
                return True
            found.append(_whole_record(message, offset))
            return offset == ranges[partition].end - 1

        starts = [TopicPartition(topic, partition, each.start) for partition, each in ranges.items()]
        self._read(topic, starts, seen, reset="error")
        return found

    def _begins(self, topic: str, starts: Collection[TopicPartition]) -> dict[int, int]:
        """Where a consumer continues in a log that is not the one it read: at the first record that it receives."""
        found: dict[int, int] = {}

        def seen(message: Message) -> bool:
            found[_partition(message)] = message.offset() or 0
            return True

        self._read(topic, starts, seen, reset="earliest")
        return found

    def _read(
        self, topic: str, starts: Collection[TopicPartition], seen: Callable[[Message], bool], *, reset: Reset
    ) -> None:
        """Pass the records and the end of each partition to `seen`, until it has seen enough of the partition."""
        if not starts:
            return
        waiting = {start.partition for start in starts}
        consumer = self._consumer(reset)
        consumer.assign(list(starts))
        try:
            for start in starts:
                if start.leader_epoch is not None:
                    self._seek(consumer, start)
            while waiting:
                message = self._next(consumer, topic, waiting)
                if message.partition() in waiting and seen(message):
                    waiting.remove(_partition(message))
                    consumer.incremental_unassign([TopicPartition(topic, _partition(message))])
        finally:
            consumer.unassign()

    def _seek(self, consumer: Consumer, start: TopicPartition) -> None:
        """Let the broker validate a position. A partition that was just assigned may not be ready for that yet."""
        deadline = time.monotonic() + self._client.timeout
        while True:
            try:
                consumer.seek(start)
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise self._client.translated(error, start.topic) from error
                consumer.poll(_READY_SECONDS)

    def _next(self, consumer: Consumer, topic: str, waiting: Collection[int]) -> Message:
        """What comes next in a partition: a record, its end, or the news that its log is another one."""
        deadline = time.monotonic() + self._client.timeout
        while time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            error = message.error() if message is not None else None
            if message is not None and (error is None or error.code() in {_AT_END, _OTHER_LOG}):
                return message
            if error is not None and error.code() in _REFUSED:
                raise self._client.translated(KafkaException(error), topic)
        raise self._client.silent(f"partitions {sorted(waiting)[:5]} of topic {topic!r}")

    def _consumer(self, reset: Reset) -> Consumer:
        if reset not in self._consumers:
            settings = {
                "bootstrap.servers": self._client.servers,
                **self._client.settings,
                **_SETTINGS,
                "isolation.level": self._isolation,
                "auto.offset.reset": reset,
            }
            self._consumers[reset] = Consumer(settings)
        return self._consumers[reset]


def _partition(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition


def _record(message: Message, offset: int) -> LogRecord:
    _, commit_ms = message.timestamp()
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (str(commit_ms).encode(), message.key(), message.value()):
        digest.update(b"-" if part is None else b"+%d:" % len(part) + bytes(part))
    epoch = message.leader_epoch()
    return LogRecord(
        offset=offset, epoch=epoch if epoch is not None and epoch >= 0 else None, digest=digest.hexdigest()
    )


def _whole_record(message: Message, offset: int) -> Record:
    _, commit_ms = message.timestamp()
    headers: Any = message.headers() or ()
    return Record(
        partition=_partition(message),
        offset=offset,
        timestamp_ms=commit_ms,
        key=message.key(),
        value=message.value(),
        headers=tuple((name, value) for name, value in headers),
    )
