"""Kafka: the state of topics, and the settings with which both clients (librdkafka here, Java in Spark) reach a broker."""

import os
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from dagster import ConfigurableResource
from pydantic import Field

from backfill_assets.adapters.kafka.client_settings import java_settings, with_secret
from backfill_assets.adapters.local.servers import endpoints
from backfill_assets.core.epoch.ports import TopicState
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import (
    BackfillError,
    BrokerUnavailableError,
    EnvironmentSetupError,
    KafkaRefusedError,
    UnknownTopicError,
)

__all__ = ["KafkaClient", "KafkaConnector"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
READING = {
    # Only offsets that exist are read, so waiting for more is useless; by default Kafka waits half a second per partition.
    "fetch.max.wait.ms": "10",
    # History is read in bulk: fewer and larger answers than Kafka's defaults for consumers that wait for each record.
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(8 * 2**20),
}
"""How Spark's tasks read, unless `client_config` says otherwise."""
RATE_SECONDS = 3_600.0
"""The time over which the rate of arriving records is measured."""
ASK_AGAIN_SECONDS = 0.2
"""How long to wait before asking again for a partition whose leader is moving."""
ANSWER_SHARE = 0.8
"""Requests time out before we do, so that each topic has an answer of its own, and waiting times do not add up."""
NO_SUCH_OFFSET = -1
"""Kafka's answer if no record is at or after a time."""
_ISOLATION = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}
_UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._NOENT,  # for offsets, this means that no partition has a leader
}
_MOVING = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    # A new leader does not know yet that it is the leader, or how far its log may be read.
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}
"""Temporary answers of brokers: when a topic was just created, or a broker restarts."""
_UNKNOWN = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_EXCEPTION,  # no topic can have such a name
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


class KafkaConnector(ConfigurableResource[Any]):
    """Dagster resource: which Kafka brokers to use, and how to reach them.

    Attributes:
        bootstrap_servers: Addresses as `host:port,host:port`. By default `KAFKA_BOOTSTRAP_SERVERS`, or the broker of
            `backfill up` if that is not set.
        client_config: Client settings under librdkafka's names (`security.protocol`, `sasl.mechanism`, `sasl.username`,
            `ssl.ca.location`, …). They are translated for Spark's Java client. A value `env:NAME` is read from the
            environment when a client is created, and never stored.
        connect_seconds: How long to wait for a broker's answer.
        root: The project's root folder.

    Examples:
        >>> kafka = KafkaConnector(
        ...     bootstrap_servers="broker-1:9093",
        ...     client_config={"security.protocol": "SASL_SSL", "sasl.password": "env:KAFKA_PASSWORD"},
        ... )
        >>> kafka
        KafkaConnector(bootstrap_servers='broker-1:9093', connect_seconds=8.0, root='.')
    """

    bootstrap_servers: str | None = Field(
        default=None, description="host:port,…; unset: KAFKA_BOOTSTRAP_SERVERS, else the broker of `backfill up`."
    )
    client_config: dict[str, str] = Field(default_factory=dict, repr=False)
    connect_seconds: float = Field(default=8.0, description="How long to wait for a broker's answer.")
    root: str = Field(default=".", description="The project's root folder.")

    def client(self, overrides: Mapping[str, str] | None = None) -> "KafkaClient":
        """A client with this connector's settings and those of a source. It connects when it is first used.

        Args:
            overrides: A source's own `client_config`, which takes precedence.

        Returns:
            The client.

        Raises:
            EnvironmentSetupError: No broker is known, or a variable that a setting names is not set.
        """
        settings = {**self.client_config, **(overrides or {})}
        resolved = {name: with_secret(name, value) for name, value in settings.items()}
        servers = resolved.pop("bootstrap.servers", None) or self._servers()
        return KafkaClient(servers, resolved, timeout=self.connect_seconds)

    def _servers(self) -> str:
        if self.bootstrap_servers:
            return self.bootstrap_servers
        named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
        if named:
            return named
        running = endpoints(Path(self.root))
        if running is not None and running.bootstrap_servers:
            return running.bootstrap_servers
        raise EnvironmentSetupError(
            "no Kafka broker is known: KAFKA_BOOTSTRAP_SERVERS is not set and the embedded broker is not running",
            hint="`backfill up` starts one on this machine, or set KAFKA_BOOTSTRAP_SERVERS=host:port",
        )


class KafkaClient:
    """Offsets and identity of topics; errors are translated to those of this package."""

    def __init__(self, servers: str, settings: Mapping[str, str], *, timeout: float) -> None:
        self.servers = servers
        self.settings = dict(settings)
        self.timeout = timeout
        self._admin: AdminClient | None = None

    def offer(self, topic: str, *, isolation: str) -> TopicState:
        """The present state of a topic. With `read_committed`, ends are last stable offsets: what may be read.

        Errors: `UnknownTopicError`, `KafkaRefusedError`, `BrokerUnavailableError`.
        """
        found = self.offers({(topic, isolation)})[topic, isolation]
        if isinstance(found, BackfillError):
            raise found
        return found

    def offers(self, wanted: Collection[tuple[str, str]]) -> "dict[tuple[str, str], TopicState | BackfillError]":
        """The present state of several topics, each with an isolation level, in two rounds of requests for any number.

        If a topic has a problem, the error takes its place. If leaders are moving, the request is repeated until the time
        is up.
        """
        give_up = time.monotonic() + self.timeout
        found = self._offers(wanted)
        while (moving := [key for key, each in found.items() if _moves(each)]) and time.monotonic() < give_up:
            time.sleep(ASK_AGAIN_SECONDS)
            found |= self._offers(moving)
        return found

    def _offers(self, wanted: Collection[tuple[str, str]]) -> "dict[tuple[str, str], TopicState | BackfillError]":
        topics = sorted({topic for topic, _ in wanted})
        failed: dict[str, BackfillError] = {}
        seconds = self._answer_seconds
        asked = self._call(lambda admin: admin.describe_topics(TopicCollection(topics), request_timeout=seconds))
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        configured = self._call(lambda admin: admin.describe_configs(resources, request_timeout=seconds))
        described = self._results(asked, lambda topic: topic, failed)
        settings = {key.name: found for key, found in self._results(configured, lambda key: key.name, failed).items()}
        partitions = {
            name: [TopicPartition(name, each.id) for each in topic.partitions]
            for name, topic in described.items()
            if name not in failed
        }
        earliest = self._list(partitions.values(), OffsetSpec.earliest(), "read_uncommitted")
        latest = {
            isolation: self._list(
                (partitions[topic] for topic, each in wanted if each == isolation and topic in partitions),
                OffsetSpec.latest(),
                isolation,
            )
            for isolation in {each for _, each in wanted}
        }
        lows = self._listed(earliest, failed, least=0)
        ends = {isolation: self._listed(listed, failed, least=0) for isolation, listed in latest.items()}
        return {
            (name, isolation): failed[name]
            if name in failed
            else _offer(name, described[name], settings[name], lows, ends[isolation])
            for name, isolation in wanted
        }

    def offsets_at(self, offer: TopicState, moment: datetime) -> dict[int, int]:
        """Per partition, the first offset at or after a time; the end if there is none."""
        partitions = [TopicPartition(offer.topic, partition) for partition in offer.partitions]
        spec = OffsetSpec.for_timestamp(int(moment.timestamp() * 1000))
        failed: dict[str, BackfillError] = {}
        listed = self._listed(self._list([partitions], spec, "read_uncommitted"), failed, least=NO_SUCH_OFFSET)
        if failed:
            raise failed[offer.topic]
        found = {partition: each.offset for partition, each in listed.items()}
        return {
            partition: min(held.end, found[offer.topic, partition]) if found[offer.topic, partition] >= 0 else held.end
            for partition, held in offer.partitions.items()
        }

    def arrival_rate(self, offer: TopicState, *, now: datetime) -> float:
        """How many records arrived per second, over the last hour."""
        before = self.offsets_at(offer, now - timedelta(seconds=RATE_SECONDS))
        return (
            sum(held.end - max(held.start, before[partition]) for partition, held in offer.partitions.items())
            / RATE_SECONDS
        )

    def spark_options(self) -> dict[str, str]:
        """The options with which Spark's Kafka source reaches the same broker in the same way."""
        java = {
            "bootstrap.servers": self.servers,
            **READING,
            **java_settings(self.settings),
        }
        return {f"kafka.{name}": value for name, value in java.items()}

    @property
    def _answer_seconds(self) -> float:
        return ANSWER_SHARE * self.timeout

    def _list(
        self, partitions: Iterable[Iterable[TopicPartition]], spec: OffsetSpec, isolation: str
    ) -> "dict[TopicPartition, Future[Any]]":
        wanted = dict.fromkeys(chain.from_iterable(partitions), spec)
        if not wanted:
            return {}
        level, seconds = _ISOLATION[isolation], self._answer_seconds
        return self._call(lambda admin: admin.list_offsets(wanted, isolation_level=level, request_timeout=seconds))

    def _listed(
        self, listed: "Mapping[TopicPartition, Future[Any]]", failed: dict[str, BackfillError], *, least: int
    ) -> dict[tuple[str, int], Any]:
        """The offsets in the answers, with leader epochs. If one broker is silent while others answer, librdkafka returns no
        error for its partitions, but an impossible offset, below the `least` possible one."""
        found = self._results(listed, lambda partition: partition.topic, failed)
        for partition in (partition for partition, each in found.items() if each.offset < least):
            failed.setdefault(
                partition.topic, self.silent(f"partition {partition.partition} of topic {partition.topic!r}")
            )
        return {(partition.topic, partition.partition): each for partition, each in found.items()}

    def _results(
        self, futures: "Mapping[K, Future[T]]", topic_of: Callable[[K], str], failed: dict[str, BackfillError]
    ) -> dict[K, T]:
        """The answers; topics with an error, or without an answer, are put into `failed`."""
        found = {}
        for key, future in futures.items():
            topic = topic_of(key)
            try:
                found[key] = self._result(future, topic)
            except BackfillError as error:
                failed.setdefault(topic, error)
        return found

    def _call(self, call: Callable[[AdminClient], dict[Any, Future[Any]]]) -> dict[Any, Future[Any]]:
        if self._admin is None:
            self._admin = self._connected()
        return call(self._admin)

    def _connected(self) -> AdminClient:
        # Connection errors reach callers as exceptions; librdkafka's own lines on stderr would only repeat them.
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.servers,
            "log_level": 0,
            **self.settings,
        }
        try:
            return AdminClient(settings)
        except KafkaException as error:
            raise EnvironmentSetupError(
                f"the Kafka client refuses its settings: {error.args[0].str()}",
                hint="correct `client_config` of the source or of the resource `backfill_kafka`; names are librdkafka's",
            ) from None

    def _result(self, future: "Future[T]", topic: str) -> T:
        try:
            return future.result(timeout=self.timeout)
        except (FutureTimeoutError, KafkaException) as error:
            raise self.translated(error, topic) from error

    def translated(self, error: Exception, topic: str) -> BackfillError:
        """A client's error in a request about a topic, as an error of this package."""
        code = error.args[0].code() if isinstance(error, KafkaException) else KafkaError._TIMED_OUT
        if code in _UNKNOWN:
            return UnknownTopicError(
                f"Kafka at {self.servers} has no topic {topic!r}",
                hint="check the source's `topic` and the broker's address, or create the topic",
                topic=topic,
            )
        if code in _MOVING:
            return self.silent(f"topic {topic!r}, of which a partition has no leader that may answer", moving=True)
        if code in _UNREACHABLE:
            return self.silent(f"topic {topic!r}")
        return KafkaRefusedError(
            f"Kafka at {self.servers} refused a request about topic {topic!r}: {error}",
            hint="check the topic's name and the rights of this client (describe, describe configs and read on the topic)",
            topic=topic,
        )

    def silent(self, asked: str, **facts: object) -> BrokerUnavailableError:
        """The error for a broker that did not answer in time; `asked` is what the request was about."""
        return BrokerUnavailableError(
            f"no Kafka broker answered at {self.servers} within {self.timeout:g} s ({asked})",
            hint="check that the broker runs and that its address and security settings are right; with the embedded "
            "broker: `backfill up`",
            servers=self.servers,
            **facts,
        )


def _moves(found: TopicState | BackfillError) -> bool:
    """Whether an answer says that a partition's leader is moving, so that another answer is expected soon."""
    return isinstance(found, BackfillError) and "moving" in found.facts


def _offer(
    name: str,
    topic: Any,
    settings: Mapping[str, Any],
    lows: Mapping[tuple[str, int], Any],
    ends: Mapping[tuple[str, int], Any],
) -> TopicState:
    """The state of a topic from Kafka's answers; `topic` and `settings` as its client describes them."""
    held = {each.id: (lows[name, each.id].offset, ends[name, each.id].offset) for each in topic.partitions}
    epochs = {each.id: ends[name, each.id].leader_epoch for each in topic.partitions}
    values = {key: settings[key].value for key in ("cleanup.policy", "retention.ms") if key in settings}
    policy, kept = values.get("cleanup.policy") or "delete", int(values.get("retention.ms") or -1)
    return TopicState(
        topic=name,
        topic_id=str(topic.topic_id) if topic.topic_id is not None else None,
        partitions={partition: OffsetRange(start=low, end=max(low, end)) for partition, (low, end) in held.items()},
        epochs={partition: epoch for partition, epoch in epochs.items() if epoch is not None and epoch >= 0},
        compacted="compact" in policy,
        retention_seconds=None if kept < 0 or "delete" not in policy else kept / 1000,
    )
