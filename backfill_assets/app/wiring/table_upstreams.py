"""The Delta tables and views that one view reads: `ports.KeyedTables` over real tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backfill_assets.adapters.compute.key_checks import KeysAndLeftOut, check_unique
from backfill_assets.adapters.compute.key_ranges import key_ranges
from backfill_assets.adapters.delta.created_table import STATUS_PROPERTY
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.app.wiring.table import Catalog
from backfill_assets.app.wiring.view_query import ViewQuery
from backfill_assets.core.epoch.ports import Commit, KeyRanges, KeysLeftOut, TableSize, UpstreamState
from backfill_assets.core.epoch.protocol import check_look
from backfill_assets.core.epoch.records import UpstreamColumns
from backfill_assets.core.progress.reads import TableRead
from backfill_assets.declare.model import Declared, DeltaTable, KafkaSource, MaterializedView
from backfill_assets.errors import ComputeError, UpstreamChangedError, UpstreamNotLiveError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.query import unique_keys
from backfill_assets.query.relational import RelationalQuery

__all__ = ["TableUpstreams"]


@dataclass(frozen=True, kw_only=True)
class TableUpstreams:
    """`ports.KeyedTables` for one view; and whether the views that it reads are live."""

    view: MaterializedView
    tables: Mapping[str, DeltaUpstream]
    query: ViewQuery
    catalog: Catalog
    runner: SparkRunner

    def table_now(self, name: str) -> UpstreamState:
        """The newest version of a table; for a view, only if it is live."""
        upstream = next(each for each in self.view.tables if each.name == name)
        life = None if isinstance(upstream, DeltaTable) else self.life(upstream)
        return replace(self.tables[name].now(), incarnation=life)

    def columns(self) -> UpstreamColumns:
        """The columns on which a life that begins now depends."""
        return self.query.columns()

    def may_extend(self) -> bool:
        """Whether the view may get more columns in place. Not while `backfill replace` builds it beside; and not if other
        views read rows without a key of their own, which may be told apart by another column then."""
        if self.view.place != "views" or self._is_being_replaced():
            return False
        query = self.query.now
        return not (isinstance(query, RelationalQuery) and query.by_copies and self.catalog.is_read(self.view))

    def _is_being_replaced(self) -> bool:
        beside = self.catalog.location(replace(self.view, place="replacements")).load()
        return beside is not None and beside.metadata().configuration.get(STATUS_PROPERTY) != "dropped"

    def files(self, name: str, version: int) -> Sequence[int]:
        """Rows of each data file of a version."""
        return self.tables[name].rows(version)

    def commits(self, name: str, after: int, until: int) -> Sequence[Commit]:
        """The changes of each version after one and up to another."""
        return self.tables[name].commits(after, until)

    def size(self, name: str) -> TableSize:
        """The size of the newest version of a table."""
        return self.tables[name].size()

    def key_ranges(self, name: str, version: int) -> KeyRanges:
        """The key of a version, cut into ranges. Errors: `UpstreamRefusedError` for a key that cannot be sorted."""
        return key_ranges(self.runner, self.tables[name], version)

    def commit_timestamp(self, name: str, version: int) -> int | None:
        """The commit time recorded in a version."""
        return self.tables[name].commit_timestamp(version)

    def check_readable(self, read: TableRead) -> None:
        """Refuse a read whose files or versions are gone."""
        self.tables[read.source].check_readable(read)

    def check_keys(self, versions: Mapping[str, int], left_out: KeysLeftOut) -> None:
        """Refuse versions in which a declared key is not unique. Views have unique keys already."""
        declared = any(isinstance(each, DeltaTable) for each in self.view.tables)
        query = self.query.now
        if isinstance(query, AggregateQuery | RelationalQuery):
            return  # groups are unique by themselves, and rows of several tables are checked when they are staged
        keys = [key for key in unique_keys(query) if declared or key == query.primary_key]
        if keys:
            found = {name: (self.tables[name], version) for name, version in versions.items()}
            wanted = KeysAndLeftOut(unique=keys, left_out=left_out)
            try:
                check_unique(self.runner, self.view.target, query, found, wanted)
            except ComputeError:
                for name, version in versions.items():
                    self.tables[name].check_whole(version)
                raise

    def awaits(self) -> str:
        """The view that this one waits for before it reads anything, in a sentence; empty if there is none."""
        for each in self.view.tables:
            if not isinstance(each, DeltaTable):
                try:
                    self.life(each)
                except UpstreamNotLiveError as error:
                    return error.message
        return ""

    def life(self, upstream: Declared) -> str:
        """The incarnation of a view or source that is read as a table.

        Errors: `UpstreamNotLiveError`; others if it was dropped, or if somebody else wrote to it.
        """
        table, kind = self.catalog.upstream(upstream), "source" if isinstance(upstream, KafkaSource) else "view"
        look = table.output.look()
        if look.record is None or not look.exists:
            if look.record is not None:
                raise UpstreamChangedError(
                    f"view {self.view.name!r}: {kind} {upstream.name!r}, which it reads, was dropped",
                    hint=f"`backfill refresh {upstream.name}` creates it again; then `backfill reset {self.view.name}`",
                )
            raise UpstreamNotLiveError(
                f"view {self.view.name!r} waits for {kind} {upstream.name!r}, which was never created",
                hint=f"`backfill refresh {upstream.name}` creates it; nothing was read",
                waits_for=upstream.name,
            )
        record = check_look(table.parts, look).record
        assert record is not None
        if not record.live and isinstance(upstream, MaterializedView):
            raise UpstreamNotLiveError(
                f"view {self.view.name!r} waits for view {upstream.name!r}, which is not live yet",
                hint=f"refresh {upstream.name} until it has caught up; nothing was read",
                waits_for=upstream.name,
            )
        return record.incarnation
