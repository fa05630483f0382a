"""Declared sources and views tied to the world: for each table the parts that its epochs are made with.

Owns the wiring and nothing else: what happens is decided in `backfill`, done in `resources`.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import TypeVar

from backfill_assets.adapters.compute.merge import merge_large
from backfill_assets.adapters.compute.source_compute import SourceReader, SparkCompute, columns_schema, query_schema
from backfill_assets.adapters.delta.output import DeltaOutput, create_table
from backfill_assets.adapters.kafka.connector import KafkaClient, KafkaConnector
from backfill_assets.adapters.kafka.log import LogReader
from backfill_assets.adapters.runtime.system_clock import SystemClock
from backfill_assets.adapters.spark.resource import SparkResource, SparkRunner
from backfill_assets.adapters.state.state_store import State, StateStore
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.choosing import learned_costs
from backfill_assets.app.upstreams import TablesOf
from backfill_assets.core.epoch.ports import BronzeState, Compute, Decider, LogRecord, OnStep, TopicState
from backfill_assets.core.epoch.protocol import Parts, check_look
from backfill_assets.core.epoch.records import Fingerprint, TableState, fingerprint
from backfill_assets.core.epoch.run import create_if_missing
from backfill_assets.core.progress.positions import IngestPosition, OffsetRange
from backfill_assets.core.strategies.ingest import IngestDecider
from backfill_assets.core.strategies.source import SourceDecider, SourceUpstream
from backfill_assets.declare.arguments import Start
from backfill_assets.declare.model import PARSER, DeltaTable, KafkaSource, MaterializedView
from backfill_assets.errors import DeclarationError, UpstreamChangedError
from backfill_assets.query.ddl import ddl
from backfill_assets.query.query import Query

__all__ = ["Declared", "Table", "Workspace"]

Declared = KafkaSource | MaterializedView
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One declared table with its parts; `ports.TableCreator` for its creation."""

    declared: Declared
    parts: Parts
    output: DeltaOutput
    runner: SparkRunner

    @property
    def target(self) -> str:
        """`sources/<name>` or `views/<name>`."""
        return self.declared.target

    def schema(self) -> str:
        """The table's Delta schema, as JSON."""
        return self.output.schema()

    def empty(self) -> None:
        """Make the empty Delta table."""
        create_table(self.output.location, self.output.schema())


@dataclass
class Workspace:
    """All declared tables of one project over its resources. One object serves one run."""

    declared: Mapping[str, Declared]
    store: StateStore
    kafka: KafkaConnector
    spark: SparkResource
    on_step: OnStep = field(default=lambda _step: None)
    _clients: dict[str, KafkaClient] = field(default_factory=dict, init=False)
    _logs: dict[str, LogReader] = field(default_factory=dict, init=False)
    _read: dict[str, Table] = field(default_factory=dict, init=False)
    _tables: "dict[str, TablesOf]" = field(default_factory=dict, init=False)

    @cached_property
    def state(self) -> State:
        """The state store's tables."""
        return self.store.state()

    @cached_property
    def runner(self) -> SparkRunner:
        """The run's Spark, started with its first action."""
        return self.spark.runner(self.store.place)

    def find(self, name: str) -> Declared:
        """A declared source or view by its name; `DeclarationError` names what there is."""
        if name not in self.declared:
            raise DeclarationError(
                f"there is no source or view {name!r}; declared are {', '.join(sorted(self.declared)) or 'none'}",
                hint="check the name, or declare it in build_definitions(...)",
                argument="name",
            )
        return self.declared[name]

    def table(self, declared: Declared) -> Table:
        """A declared table with its parts."""
        location = self.store.place.table(declared.target)
        output = DeltaOutput(
            location=location,
            target=declared.target,
            schema=_once(lambda: self._schema(declared)),
            merge_large=partial(merge_large, self.runner),
        )
        parts = Parts(
            decider=self._decider(declared),
            output=output,
            ledger=self.state.ledger(),
            compute=self._compute(declared, location),
            clock=SystemClock(),
            new_id=lambda: uuid.uuid4().hex[:12],
            costs=_once(lambda: learned_costs(output)),
            on_step=self.on_step,
        )
        return Table(declared=declared, parts=parts, output=output, runner=self.runner)

    def reader(self, source: KafkaSource) -> SourceReader:
        """How a source's records are read."""
        return SourceReader(
            name=source.name,
            columns=source.columns,
            bronze_columns=source.bronze_columns,
            record_format=source.format,
            kafka_options=lambda: self.client(source).spark_options(),
            bronze=self.store.place.table(source.target),
        )

    def client(self, source: KafkaSource) -> KafkaClient:
        """The Kafka client of a source."""
        if source.name not in self._clients:
            self._clients[source.name] = self.kafka.client(source.client_config)
        return self._clients[source.name]

    def source(self, name: str) -> KafkaSource:
        """A declared source."""
        found = self.find(name)
        assert isinstance(found, KafkaSource)
        return found

    # `ports.Upstreams`

    def topic(self, source: str) -> TopicState:
        """The topic of a source."""
        declared = self.source(source)
        return self.client(declared).offer(declared.topic, isolation=declared.isolation)

    def starts(self, source: str, offer: TopicState) -> Mapping[int, int]:
        """The declared start of a source as one offset per partition."""
        declared = self.source(source)
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
        """Partitions whose log is not the one that was read up to an offset in a leader epoch."""
        return self._log(source).diverged(self.source(source).topic, read)

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:
        """The last record that a source's topic delivers of each range."""
        return self._log(source).last_records(self.source(source).topic, ranges)

    def _log(self, source: str) -> LogReader:
        declared = self.source(source)
        if source not in self._logs:
            self._logs[source] = LogReader(self.client(declared), isolation=declared.isolation)
        return self._logs[source]

    def bronze(self, source: str) -> BronzeState:
        """The bronze table of a source; `UpstreamChangedError` where there is none (any more)."""
        table = self.upstream(self.source(source))
        look = table.output.look()
        if not look.exists:
            raise UpstreamChangedError(
                f"source {source!r} was {'dropped' if look.record else 'never created'}: expected its table",
                hint=f"`backfill refresh {source}` creates it; views that read the dropped one are then to be reset",
            )
        return _offered(check_look(table.parts, look))

    def create_bronze(self, source: str) -> BronzeState:
        """The bronze table of a source, created if it is not there yet."""
        table = self.upstream(self.source(source))
        return _offered(create_if_missing(table.parts, table))

    def upstream(self, declared: Declared) -> Table:
        """A table that others read, kept for the run: looked at again, only its newer commits are loaded."""
        if declared.name not in self._read:
            self._read[declared.name] = self.table(declared)
        return self._read[declared.name]

    def reads(self, view: MaterializedView) -> "TablesOf":
        """The Delta tables and views that a view reads, kept for the run."""
        if view.name not in self._tables:
            self._tables[view.name] = TablesOf(workspace=self, view=view)
        return self._tables[view.name]

    def bound(self, view: MaterializedView) -> Query:
        """A view's query, tied to the columns that its upstreams have."""
        return view.query or self.reads(view).query

    def _decider(self, declared: Declared) -> Decider:
        match declared:
            case KafkaSource():
                return IngestDecider(
                    source=declared.name,
                    topic=declared.topic,
                    isolation=declared.isolation,
                    keep_history=declared.bronze == "all",
                    fingerprint=fingerprint_of(declared),
                    upstreams=self,
                )
            case MaterializedView() if declared.tables:
                return self.reads(declared).decider(fingerprint_of(declared))
            case MaterializedView():
                return SourceDecider(
                    view=declared.name,
                    sources=tuple(
                        SourceUpstream(name=source.name, topic=source.topic, isolation=source.isolation)
                        for source in declared.sources
                    ),
                    fingerprint=fingerprint_of(declared),
                    upstreams=self,
                    order=declared.backfill_order,
                    skips=lambda: self.state.skips(declared.target),
                )

    def _compute(self, declared: Declared, output: TableLocation) -> Compute:
        if isinstance(declared, MaterializedView) and declared.tables:
            return self.reads(declared).compute(output)
        readers = {source.name: self.reader(source) for source in sources_of(declared)}
        query = declared.query if isinstance(declared, MaterializedView) else None
        return SparkCompute(runner=self.runner, output=output, sources=readers, query=query)

    def _schema(self, declared: Declared) -> str:
        for source in sources_of(declared):
            self.topic(source.name)  # a broker that does not answer is found before Spark is started for nothing
        if isinstance(declared, KafkaSource):
            return columns_schema(self.runner, declared.bronze_columns)
        if declared.tables:
            return self.reads(declared).schema()
        columns = {source.name: source.bronze_columns for source in declared.sources}
        return query_schema(self.runner, self.bound(declared), columns)


def _offered(look: TableState) -> BronzeState:
    assert look.record is not None
    assert isinstance(look.record.position, IngestPosition)
    return BronzeState(incarnation=look.record.incarnation, version=look.version, position=look.record.position)


def sources_of(declared: Declared) -> tuple[KafkaSource, ...]:
    """The sources whose records a table is made of."""
    return (declared,) if isinstance(declared, KafkaSource) else declared.sources


def fingerprint_of(declared: Declared) -> Fingerprint:
    """The digests of all that a table's content depends on."""
    match declared:
        case KafkaSource():
            return fingerprint(
                topic=declared.topic,
                schema=ddl(declared.columns),
                parser=f"{declared.format}/{PARSER}",
                start=_start_text(declared.start),
                bronze=declared.bronze,
                isolation=declared.isolation,
            )
        case MaterializedView():
            upstreams = [(source.name, fingerprint_of(source)) for source in declared.sources]
            if declared.query is None:
                keys = [(each.name, each.primary_key) for each in declared.tables if isinstance(each, DeltaTable)]
                own = {"checked": declared.own_key} if declared.own_key else ()
                return fingerprint(query=declared.text, key=[own, keys])
            return fingerprint(
                query=declared.text,
                key=declared.query.key_columns,
                schema=[(name, parts["schema"]) for name, parts in upstreams],
                parser=[(name, parts["parser"]) for name, parts in upstreams],
            )


def _start_text(start: Start) -> str:
    """Equal starts give equal texts, in whatever order offsets were named."""
    return str(dict(sorted(start.items())) if isinstance(start, Mapping) else start)


def _once(make: Callable[[], T]) -> Callable[[], T]:
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get
