"""The topics of Kafka sources, and the bronze tables into which they are ingested."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from backfill_assets.adapters.kafka.connector import KafkaClient, KafkaConnector
from backfill_assets.adapters.kafka.log import LogReader, Record
from backfill_assets.app.wiring.registry import Registry
from backfill_assets.app.wiring.table import Catalog
from backfill_assets.core.epoch.ports import BronzeState, LogRecord, TopicState, of_kind
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import TableState
from backfill_assets.core.epoch.run import create_if_missing
from backfill_assets.core.progress.positions import IngestPosition, OffsetRange
from backfill_assets.declare.model import KafkaSource
from backfill_assets.errors import UpstreamChangedError

__all__ = ["Sources"]


@dataclass
class Sources:
    """`ports.Upstreams` over real topics and tables. Each run has its own instance."""

    registry: Registry
    kafka: KafkaConnector
    catalog: Catalog
    _clients: dict[str, KafkaClient] = field(default_factory=dict, init=False)
    _logs: dict[str, LogReader] = field(default_factory=dict, init=False)
    _bronze: dict[str, BronzeState] = field(default_factory=dict, init=False)
    _used: set[str] = field(default_factory=set, init=False)
    """Sources of which what was found has been asked for as what is new."""

    def client(self, source: KafkaSource) -> KafkaClient:
        """The Kafka client of a source."""
        if source.name not in self._clients:
            self._clients[source.name] = self.kafka.client(source.client_config)
        return self._clients[source.name]

    def topic(self, source: str) -> TopicState:
        """The topic of a source."""
        declared = self.registry.source(source)
        return self.client(declared).offer(declared.topic, isolation=declared.isolation)

    def starts(self, source: str, offer: TopicState) -> Mapping[int, int]:
        """The declared start of a source as one offset per partition."""
        declared = self.registry.source(source)
        match declared.start:
            case "earliest":
                return {partition: held.start for partition, held in offer.partitions.items()}
            case "latest":
                return {partition: held.end for partition, held in offer.partitions.items()}
            case datetime() as moment:
                return self.client(declared).offsets_at(offer, moment)
            case offsets:
                return offsets

    def diverged(self, source: str, read: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Partitions whose log is no longer the one that was read."""
        return self._log(source).diverged(self.registry.source(source).topic, read)

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:
        """The last record of each range that a source's topic delivers."""
        return self._log(source).last_records(self.registry.source(source).topic, ranges)

    def records(self, source: str, ranges: Mapping[int, OffsetRange]) -> list[Record]:
        """The records of a source's topic at these offsets, as far as the topic has them."""
        return self._log(source).records(self.registry.source(source).topic, ranges)

    def _log(self, source: str) -> LogReader:
        declared = self.registry.source(source)
        if source not in self._logs:
            self._logs[source] = LogReader(self.client(declared), isolation=declared.isolation)
        return self._logs[source]

    def bronze(self, source: str, *, again: bool = True) -> BronzeState:
        """The bronze table of a source; as it was found before, if not `again`. A run's goal and its first decision come from
        one look. `UpstreamChangedError` if it does not exist (any more)."""
        if source not in self._bronze or (again and source in self._used):
            self._bronze[source] = self._bronze_now(source)
        if again:
            self._used.add(source)
        return self._bronze[source]

    def _bronze_now(self, source: str) -> BronzeState:
        table = self.catalog.upstream(self.registry.source(source))
        look = table.output.look()
        if not look.exists:
            raise UpstreamChangedError(
                f"source {source!r} was {'dropped' if look.record else 'never created'}: expected its table",
                hint=f"`backfill refresh {source}` creates it; then reset the views that read the dropped one",
            )
        return _offered(check_look(table.parts, look))

    def create_bronze(self, source: str) -> BronzeState:
        """The bronze table of a source, created if it does not exist yet."""
        table = self.catalog.upstream(self.registry.source(source))
        return _offered(create_if_missing(table.parts, table))


def _offered(look: TableState) -> BronzeState:
    assert look.record is not None
    position = of_kind(look.record.position, IngestPosition)
    return BronzeState(incarnation=look.record.incarnation, version=look.version, position=position)
