"""The Delta tables and views that one view reads: `ports.Tables` over the real ones, and the view's query over them.

Owns the wiring between a view and what it reads; what is read is decided in `backfill.snapshot`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.key_checks import KeysAndLeftOut, check_unique
from backfill_assets.adapters.compute.key_ranges import key_ranges
from backfill_assets.adapters.compute.source_compute import query_schema
from backfill_assets.adapters.compute.table_compute import TableCompute
from backfill_assets.adapters.delta.log_replay import Version
from backfill_assets.adapters.delta.spool import kept_version
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.app.choosing import decided
from backfill_assets.core.epoch.ports import Commit, KeyRanges, KeysLeftOut, TableSize, UpstreamState
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Fingerprint, UpstreamColumns
from backfill_assets.core.epoch.report import TableProgress
from backfill_assets.core.progress.order import waits_for
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import TableRead
from backfill_assets.core.progress.retention import forecast
from backfill_assets.core.strategies.arrangement import ArrangementHistory, left_by_key
from backfill_assets.core.strategies.rearranged import RearrangedHistory
from backfill_assets.core.strategies.snapshot import SnapshotHistory
from backfill_assets.core.strategies.snapshot_once import SnapshotOnceHistory
from backfill_assets.core.strategies.table_views import TablesDecider, TableUpstream
from backfill_assets.declare.model import DeltaTable, MaterializedView, has_key
from backfill_assets.environment import spool_bytes
from backfill_assets.errors import QueryError, UpstreamChangedError, UpstreamNotLiveError, UpstreamRefusedError
from backfill_assets.query.aggregate import AggregateQuery, is_aggregate
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query, analyze, named_in, reader_key, unique_keys
from backfill_assets.query.rowwise import CHANGE

if TYPE_CHECKING:
    from backfill_assets.app.workspace import Workspace

__all__ = ["TablesOf"]


@dataclass
class TablesOf:
    """What one view over Delta tables reads. One object serves one run."""

    workspace: "Workspace"
    view: MaterializedView
    _queries: dict[str, Query] = field(default_factory=dict, init=False)

    @cached_property
    def tables(self) -> Mapping[str, DeltaUpstream]:
        """The tables by name, each followed along its log."""
        return {each.name: self._table(each) for each in self.view.tables}

    @cached_property
    def columns_now(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each table as a life that begins in this run takes them."""
        return {name: table.columns() for name, table in self.tables.items()}

    @property
    def query(self) -> Query:
        """The view's query over the columns that its tables had when its present life began. Errors: `QueryError`.

        A column that came to a table since means nothing to the view: a name of the query goes on meaning what it meant.
        """
        record = self.workspace.upstream(self.view).output.look().record
        begun = record.columns if record is not None and record.kind is not CommitKind.DROP else {}
        return self._query_over(_as_columns(begun) or self.columns_now)

    def query_of(self, incarnation: str) -> Query:
        """The view's query in one of its lives, which is looked up once."""
        if incarnation not in self._queries:
            self._queries.clear()
            self._queries[incarnation] = self.query
        return self._queries[incarnation]

    def _query_over(self, columns: Mapping[str, tuple[Column, ...]]) -> Query:
        keys = {each.name: self._key(each) for each in self.view.tables}
        try:
            analyzed = analyze(self.view.text, columns, keys, self.view.own_key)
        except QueryError as error:
            raise QueryError(
                f"materialized_view {self.view.name!r}: {error.message}",
                reason=error.reason,
                hint=error.hint,
                argument="query",
            ) from None
        if not self.view.own_key:
            return analyzed
        unknown = sorted(set(self.view.own_key) - set(analyzed.output_columns))
        if unknown:
            raise QueryError(
                f"materialized_view {self.view.name!r}: the query does not give {', '.join(unknown)}",
                reason="UNKNOWN_KEY",
                hint=f"the query's columns are {', '.join(analyzed.output_columns)}",
                argument="primary_key",
            )
        if isinstance(analyzed, AggregateQuery) and set(self.view.own_key) != set(analyzed.key_columns):
            raise QueryError(
                f"materialized_view {self.view.name!r}: an aggregate is keyed by its groups, "
                f"({', '.join(analyzed.key_columns)}), expected as primary_key, found ({', '.join(self.view.own_key)})",
                reason="UNKNOWN_KEY",
                hint="leave primary_key out",
                argument="primary_key",
            )
        return analyzed

    def _key(self, upstream: DeltaTable | MaterializedView) -> tuple[str, ...]:
        """The columns that identify a row of a table, hidden ones of a view included; none if it declares none."""
        if isinstance(upstream, MaterializedView):
            return reader_key(self.workspace.bound(upstream))
        columns = self.tables[upstream.name].columns()
        unknown = sorted(set(upstream.primary_key) - {each.name for each in columns})
        if unknown:
            raise UpstreamRefusedError(
                f"table {upstream.name!r} has no column {', '.join(unknown)}, which its primary_key names; it has "
                f"{', '.join(each.name for each in columns)}",
                hint="correct primary_key in delta_table(...)",
                reason="UNKNOWN_KEY",
            )
        return upstream.primary_key

    def decider(self, fingerprint: Fingerprint) -> TablesDecider:
        """What decides the view's epochs."""
        own = bool(self.view.own_key) or is_aggregate(self.view.text)
        # A view without a key that is replaced could not be followed by those that read it.
        keyed = own or all(map(has_key, self.view.tables))
        return TablesDecider(
            view=self.view.name,
            upstreams=tuple(TableUpstream(name=each.name, keyed=own or has_key(each)) for each in self.view.tables),
            fingerprint=fingerprint,
            tables=self,
            histories={
                "snapshot": SnapshotHistory(tables=self),
                "snapshot_once": SnapshotOnceHistory(tables=self),
                "arrangement": ArrangementHistory(tables=self),
                "rearranged": RearrangedHistory(
                    tables=self, view=self.view.name, limit=spool_bytes(), at_once=is_aggregate(self.view.text)
                ),
            },
            order=self.view.backfill_order,
            strategy=self.view.strategy,
            in_full=keyed and self.view.refresh_mode == "auto",
            choose=lambda: decided(self.workspace, self.view),
            skips=lambda: self.workspace.state.skips(self.view.target),
        )

    def compute(self, output: TableLocation) -> TableCompute:
        """What carries them out."""
        return TableCompute(runner=self.workspace.runner, output=output, upstreams=self.tables, query=self.query_of)

    def schema(self) -> str:
        """The Delta schema, as JSON, of the view. Errors: `UpstreamNotLiveError` where it reads a view without a table."""
        for each in self.view.tables:
            if isinstance(each, MaterializedView):
                self._life(each)
        columns = {name: (*found, CHANGE) for name, found in self.columns_now.items()}
        return query_schema(self.workspace.runner, self._query_over(self.columns_now), columns)

    def progress(self, record: CommitRecord, lag: Mapping[str, int], rate: float) -> list[TableProgress]:
        """Where the view stands in each table, with a forecast of what is still to be read. `rate` is in rows a second."""
        position = record.position
        assert isinstance(position, SnapshotPosition)
        unfinished = [name for name, table in position.tables.items() if not table.backfilled]
        found = []
        for name, table in sorted(position.tables.items()):
            progress = self._progress_in(name, table, lag.get(name, 0), rate)
            awaited = waits_for(self.view.backfill_order, name, unfinished)
            if awaited and not table.backfilled:
                progress = replace(progress, phase="waiting", awaits=awaited)
            found.append(progress)
        return found

    def _kept(self, name: str, number: int) -> Version | None:
        """A pinned version as the view's spool has it, for when the table's log has forgotten it."""
        output = self.workspace.upstream(self.view).output
        record = output.look().record
        if record is None or not isinstance(record.position, SnapshotPosition):
            return None
        pinned = record.position.tables[name].pinned if name in record.position.tables else None
        return kept_version(output.location, record.spooled, name) if pinned == number else None

    def _progress_in(self, name: str, table: TablePosition, lag: int, rate: float) -> TableProgress:
        newest = self.tables[name].now()
        done = table.backfilled and newest.version == table.version
        files, log = self.tables[name].retention()
        captured = (table.held[1] - table.commit_ms) / 1000  # from when on the log is needed, after the pin
        seen = forecast(
            now=time.time(),
            pinned_at=table.commit_ms / 1000,
            left_rows=lag - left_by_key(table),  # what is read by key is read from what is newest
            rows_per_second=rate or None,
            file_retention_seconds=files + (captured if table.backfilled else 0),
            log_retention_seconds=log + captured,
        )
        return TableProgress(
            upstream=name,
            phase="level" if done else _phase(table),
            version=table.version,
            newest=newest.version,
            files_read=sum(bucket.next for bucket in table.buckets.values()),
            files=sum(bucket.parts for bucket in table.buckets.values()),
            lag_rows=lag,
            lag_seconds=max(0, newest.commit_ms - table.held[1]) / 1000,
            captured=table.spool.captured if table.spool else None,
            spool_bytes=table.spool.bytes if table.spool else 0,
            level="safe" if done else seen.level,
            headroom_seconds=None if done else seen.headroom_seconds,
            forecast="" if done else seen.message,
        )

    def awaits(self) -> str:
        """Which view this one waits for before it reads anything, in a sentence; empty if for none."""
        for each in self.view.tables:
            if isinstance(each, MaterializedView):
                try:
                    self._life(each)
                except UpstreamNotLiveError as error:
                    return error.message
        return ""

    # `ports.Tables`

    def table_now(self, name: str) -> UpstreamState:
        """The newest version of a table; of a view, only if it is live."""
        upstream = next(each for each in self.view.tables if each.name == name)
        life = self._life(upstream) if isinstance(upstream, MaterializedView) else None
        return replace(self.tables[name].now(), incarnation=life)

    def columns(self) -> UpstreamColumns:
        """The columns that a life which begins now depends on."""
        return {
            each.name: tuple(
                (column.name, column.type)
                for column in named_in(self.view.text, self.columns_now[each.name], self._key(each))
            )
            for each in self.view.tables
        }

    def files(self, name: str, version: int) -> Sequence[int]:
        """Rows of each data file of a version."""
        return self.tables[name].rows(version)

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        """What each version after one and up to another changed."""
        return self.tables[name].commits(after, until)

    def size(self, name: str) -> TableSize:
        """How much the newest version of a table holds."""
        return self.tables[name].size()

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        """The key of a version, cut into ranges. Errors: `UpstreamRefusedError` for a key that has no order."""
        return key_ranges(self.workspace.runner, self.tables[name], version)

    def commit_timestamp(self, name: str, version: int) -> int | None:
        """When a version says that it was committed."""
        return self.tables[name].commit_timestamp(version)

    def check_readable(self, read: TableRead) -> None:
        """Refuse a read whose files or versions are gone."""
        self.tables[read.source].check_readable(read)

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        """Refuse versions in which a declared key is not unique. Views have unique keys already."""
        declared = any(isinstance(each, DeltaTable) for each in self.view.tables)
        query = self._query_over(self.columns_now)
        if isinstance(query, AggregateQuery):
            return  # groups are unique by themselves
        keys = [key for key in unique_keys(query) if declared or key == query.primary_key]
        if keys:
            found = {name: (self.tables[name], version) for name, version in versions.items()}
            wanted = KeysAndLeftOut(unique=keys, left_out=left_out)
            check_unique(self.workspace.runner, self.view.target, query, found, wanted)

    def _life(self, upstream: MaterializedView) -> str:
        table = self.workspace.upstream(upstream)
        look = table.output.look()
        if look.record is None or not look.exists:
            if look.record is not None:
                raise UpstreamChangedError(
                    f"view {self.view.name!r}: view {upstream.name!r}, which it reads, was dropped",
                    hint=f"`backfill refresh {upstream.name}` creates it anew; then `backfill reset {self.view.name}`",
                )
            raise UpstreamNotLiveError(
                f"view {self.view.name!r} waits for view {upstream.name!r}, which was never created",
                hint=f"`backfill refresh {upstream.name}` creates it; nothing was read",
                waits_for=upstream.name,
            )
        record = check_look(table.parts, look).record
        assert record is not None
        if not record.live:
            raise UpstreamNotLiveError(
                f"view {self.view.name!r} waits for view {upstream.name!r}, which is not live yet",
                hint=f"refresh {upstream.name} until it has caught up; nothing was read",
                waits_for=upstream.name,
            )
        return record.incarnation

    def _table(self, upstream: DeltaTable | MaterializedView) -> DeltaUpstream:
        place, kept = self.workspace.store.place, partial(self._kept, upstream.name)
        if isinstance(upstream, MaterializedView):
            return DeltaUpstream(
                name=upstream.name, location=place.table(upstream.target), key=lambda: self._key(upstream), kept=kept
            )
        root = Path(self.workspace.store.root)
        location = Warehouse.at(upstream.path, root=root, storage_options=place.storage_options)
        found = TableLocation(uri=location.uri, storage_options=location.storage_options)
        return DeltaUpstream(name=upstream.name, location=found, key=lambda: self._key(upstream), kept=kept)


def _as_columns(recorded: UpstreamColumns) -> dict[str, tuple[Column, ...]]:
    return {table: tuple(Column(*column) for column in columns) for table, columns in recorded.items()}


def _phase(table: TablePosition) -> str:
    if not table.backfilled:
        return "keys" if table.expected else "snapshot"
    return "spool" if table.spool else "change log"
