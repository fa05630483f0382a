"""The inputs of one view over Delta tables: its tables, their state, its query over them, and what computes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

from backfill_assets.adapters.compute.source_compute import query_schema
from backfill_assets.adapters.compute.table_compute import TableCompute
from backfill_assets.adapters.delta.log_replay import Version
from backfill_assets.adapters.delta.spool import kept_version
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.reaching_runner import ReachingRunner
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.asked_stores import AskedStores
from backfill_assets.adapters.storage.upstream_location import TableElsewhere, located
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.app.wiring.table import Catalog
from backfill_assets.app.wiring.table_upstreams import TableUpstreams
from backfill_assets.app.wiring.view_query import ViewQuery
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.declare.added_columns import missing_columns
from backfill_assets.declare.model import DeltaTable, MaterializedView, Upstream
from backfill_assets.errors import DefinitionChangedError
from backfill_assets.query.ddl import columns_of_delta
from backfill_assets.query.rowwise import CHANGE

__all__ = ["ViewInputs"]


@dataclass(kw_only=True)
class ViewInputs:
    """The inputs of one view, each opened when it is first used. Each run has its own instance.

    `shared` is the run's Spark, `place` the warehouse, `root` the folder that paths of other tables are relative to, and
    `asked` asks the stores of these tables.
    """

    view: MaterializedView
    catalog: Catalog
    shared: SparkRunner
    place: Warehouse
    root: Path
    asked: AskedStores

    @cached_property
    def runner(self) -> SparkRunner:
        """The run's Spark for actions that read the tables, whose stores it reaches first."""
        return ReachingRunner(self.shared, self._elsewhere)

    def _elsewhere(self) -> list[TableElsewhere]:
        found = (table.location for table in self.tables.values())
        return [location for location in found if isinstance(location, TableElsewhere)]

    @cached_property
    def tables(self) -> Mapping[str, DeltaUpstream]:
        """The tables by name, each of which follows its log."""
        return {each.name: self._table(each) for each in self.view.tables}

    @cached_property
    def query(self) -> ViewQuery:
        """The view's query over the tables."""
        return ViewQuery(view=self.view, tables=self.tables, catalog=self.catalog)

    @cached_property
    def upstreams(self) -> TableUpstreams:
        """The state of the tables."""
        return TableUpstreams(
            view=self.view, tables=self.tables, query=self.query, catalog=self.catalog, runner=self.runner
        )

    def compute(self, output: TableLocation) -> TableCompute:
        """What carries out the view's plans."""
        return TableCompute(
            runner=self.runner,
            output=output,
            upstreams=self.tables,
            query=lambda plan: self.query.at(plan.incarnation, plan.after, anew=plan.redefines),
            wider=cache(lambda: self._wider_schema(output)),
            mode=self.view.refresh_mode,
            is_read=self.catalog.is_read(self.view),
        )

    def schema(self) -> str:
        """The Delta schema of the view, as JSON. Errors: `UpstreamNotLiveError` if it reads a view that does not exist."""
        for each in self.view.tables:
            if not isinstance(each, DeltaTable):
                self.upstreams.life(each)
        columns = {name: (*found, CHANGE) for name, found in self.query.columns_now.items()}
        return query_schema(self.runner, self.query.now, columns, self.view.written)

    def _wider_schema(self, output: TableLocation) -> str:
        """The Delta schema that the table gets if the view's query gives more columns. Errors: `DefinitionChangedError` if
        readers would miss a column, or a view over it a hidden one."""
        schema, table = self.schema(), output.last()
        assert table is not None
        is_read = self.catalog.is_read(self.view)
        before = [
            each for each in columns_of_delta(table.schema().to_json()) if is_read or not each.name.startswith("__")
        ]
        missing = missing_columns(before, columns_of_delta(schema))
        if missing:
            raise DefinitionChangedError(
                f"{self.view.target}: with the query's new columns, {', '.join(missing)} would be gone, or of another type",
                hint=f"nothing was written. `backfill replace {self.view.name}` builds the new declaration beside the view",
                changed=["query"],
            )
        return schema

    def _kept(self, name: str, number: int) -> Version | None:
        """A pinned version from the view's spool, for when the table's log no longer has it."""
        output = self.catalog.upstream(self.view).output
        record = output.look().record
        if record is None or not isinstance(record.position, SnapshotPosition):
            return None
        pinned = record.position.tables[name].pinned if name in record.position.tables else None
        return kept_version(output.location, record.spooled, name) if pinned == number else None

    @property
    def _follows(self) -> bool:
        """Whether changes have to be readable: a query over whole tables is computed in full where they are not."""
        return not self.view.whole or self.view.refresh_mode == "incremental_strict"

    def _table(self, upstream: Upstream) -> DeltaUpstream:
        place, kept = self.place, partial(self._kept, upstream.name)
        if not isinstance(upstream, DeltaTable):
            return DeltaUpstream(
                name=upstream.name,
                location=self.catalog.location(upstream),
                key=lambda: self.query.key_of(upstream),
                kept=kept,
                follows=self._follows,
            )
        return DeltaUpstream(
            name=upstream.name,
            location=located(upstream, warehouse=place, root=self.root, asked=self.asked),
            key=lambda: self.query.key_of(upstream),
            needed=lambda: self.query.begun_with(upstream.name),
            kept=kept,
            follows=self._follows,
        )
