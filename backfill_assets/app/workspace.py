"""The declared tables of a project with its resources: opens each with the parts that its epochs need.

It only connects parts: `core` decides what happens, and `adapters` carry it out.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from backfill_assets.adapters.compute.merge import merge_large
from backfill_assets.adapters.compute.source_compute import SourceReader, SparkCompute, columns_schema, query_schema
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.kafka.connector import KafkaConnector
from backfill_assets.adapters.runtime.system_clock import SystemClock
from backfill_assets.adapters.spark.resource import SparkResource, SparkRunner
from backfill_assets.adapters.state.state_store import State, StateStore
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.put_if_absent import check_store
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.wiring.choosing import Chooser, learned_costs
from backfill_assets.app.wiring.deciding import over_sources, over_tables, over_topic
from backfill_assets.app.wiring.registry import Registry
from backfill_assets.app.wiring.sources import Sources
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.wiring.view_inputs import ViewInputs
from backfill_assets.core.epoch.merge_groups import ROWS_OF_FILE
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import Compute, Decider, OnStep
from backfill_assets.declare.model import Declared, KafkaSource, MaterializedView, Place, sources_of
from backfill_assets.query.query import Query

__all__ = ["Workspace"]

T = TypeVar("T")


@dataclass
class Workspace:
    """Opens the tables of one project; it is the `table.Catalog` of code that reads them. One object serves one run."""

    declared: Mapping[str, Declared]
    store: StateStore
    kafka: KafkaConnector
    spark: SparkResource
    on_step: OnStep = field(default=lambda _step: None)
    _may_write: bool = field(default=False, init=False)
    _asked: AskedStores = field(default_factory=AskedStores, init=False)
    _read: dict[str, Table] = field(default_factory=dict, init=False)
    _inputs: dict[str, ViewInputs] = field(default_factory=dict, init=False)
    _locations: dict[str, TableLocation] = field(default_factory=dict, init=False)

    @cached_property
    def registry(self) -> Registry:
        """What is declared, by name."""
        return Registry(self.declared)

    def prepare_to_write(self) -> None:
        """Check, once for a run, that the store may be written to. Errors: `EnvironmentSetupError`, `StoredFormatError`."""
        if not self._may_write:
            if not check_store(self.store.place):
                self.state.check_layout()
            self._may_write = True

    def prepare_to_read(self) -> None:
        """Check, once for a run, that the store can be read. Errors: `EnvironmentSetupError`."""
        self._asked.check("the warehouse", self.store.place.objects(""))

    def beside(self, view: MaterializedView, place: Place) -> "Workspace":
        """The project with one view's table in another place."""
        return replace(self, declared={**self.declared, view.name: replace(view, place=place)})

    @cached_property
    def state(self) -> State:
        """The state store's tables."""
        return self.store.state()

    @cached_property
    def runner(self) -> SparkRunner:
        """The run's Spark, started with its first action."""
        return self.spark.runner(self.store.place, stores=self.registry.stores)

    @cached_property
    def sources(self) -> Sources:
        """The state of the shared sources."""
        return Sources(registry=self.registry, kafka=self.kafka, catalog=self)

    def table(self, declared: Declared) -> Table:
        """A declared table with its parts."""
        location = self.location(declared)
        output = DeltaOutput(
            location=location,
            target=declared.target,
            schema=_once(lambda: self._schema(declared)),
            merge_large=partial(merge_large, self.runner),
            rows_of_file=ROWS_OF_FILE if isinstance(declared, MaterializedView) and declared.whole else None,
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

    def upstream(self, declared: Declared) -> Table:
        """A table that others read, kept for the run: when it is read again, only its newer commits are loaded."""
        if declared.name not in self._read:
            self._read[declared.name] = self.table(declared)
        return self._read[declared.name]

    def location(self, declared: Declared) -> TableLocation:
        """Where a table is: one object for a run, so that its log is loaded once."""
        return self._locations.setdefault(declared.folder, self.store.place.table(declared.folder))

    def inputs(self, view: MaterializedView) -> ViewInputs:
        """The inputs of a view over Delta tables, kept for the run."""
        if view.name not in self._inputs:
            self._inputs[view.name] = ViewInputs(
                view=view,
                catalog=self,
                shared=self.runner,
                place=self.store.place,
                root=Path(self.store.root),
                asked=self._asked,
            )
        return self._inputs[view.name]

    def is_read(self, view: MaterializedView) -> bool:
        """Whether other views read a view."""
        return bool(self.registry.readers(view.name))

    def bound(self, view: MaterializedView) -> Query:
        """A view's query, bound to the columns of its upstreams."""
        return view.query or self.inputs(view).query.present

    def chooser(self, view: MaterializedView) -> Chooser:
        """What chooses the strategy of a view."""
        return Chooser(
            view=view,
            output=self.upstream(view).output,
            spark=self.spark,
            sources=self.sources,
            inputs=self.inputs(view),
        )

    def reader(self, source: KafkaSource) -> SourceReader:
        """How a source's records are read."""
        return SourceReader(
            name=source.name,
            columns=source.columns,
            bronze_columns=source.bronze_columns,
            record_format=source.format,
            kafka_options=lambda: self.sources.client(source).spark_options(),
            bronze=self.location(source),
        )

    def _decider(self, declared: Declared) -> Decider[Any]:
        if isinstance(declared, KafkaSource):
            return over_topic(declared, self.sources)
        skips = partial(self.state.skips, declared.target, again=False)
        if declared.tables:
            tables, choose = self.inputs(declared).upstreams, lambda: self.chooser(declared).decided()
            return over_tables(declared, tables, choose, skips, SystemClock())
        return over_sources(declared, self.sources, skips)

    def _compute(self, declared: Declared, output: TableLocation) -> Compute:
        if isinstance(declared, MaterializedView) and declared.tables:
            return self.inputs(declared).compute(output)
        readers = {source.name: self.reader(source) for source in sources_of(declared)}
        query = declared.query if isinstance(declared, MaterializedView) else None
        return SparkCompute(runner=self.runner, output=output, sources=readers, query=query)

    def _schema(self, declared: Declared) -> str:
        for source in sources_of(declared):
            self.sources.topic(source.name)  # if the broker does not answer, Spark is not started in vain
        if isinstance(declared, KafkaSource):
            return columns_schema(self.runner, declared.bronze_columns)
        if declared.tables:
            return self.inputs(declared).schema()
        columns = {source.name: source.bronze_columns for source in declared.sources}
        return query_schema(self.runner, self.bound(declared), columns, declared.written)


def _once(make: Callable[[], T]) -> Callable[[], T]:
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get
