"""The query of a view over Delta tables, with the columns of the tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.app.wiring.table import Catalog
from backfill_assets.core.epoch.records import CommitKind, Position, UpstreamColumns
from backfill_assets.core.progress.driving import Driving
from backfill_assets.core.progress.positions import SnapshotPosition
from backfill_assets.declare.model import KafkaSource, MaterializedView, Upstream
from backfill_assets.errors import QueryError, UpstreamRefusedError
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.clock import ANY_TIME, at_time
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query, analyze, named_in, reader_key
from backfill_assets.query.record_columns import RECORD_KEY
from backfill_assets.query.relational import ERROR, RelationalQuery, analyze_relational

__all__ = ["ViewQuery"]


@dataclass
class ViewQuery:
    """The meaning of a view's query in its present life, in any of its lives, and in one that begins now."""

    view: MaterializedView
    tables: Mapping[str, DeltaUpstream]
    catalog: Catalog
    _queries: dict[tuple[str, int, bool], Query] = field(default_factory=dict, init=False)

    @cached_property
    def columns_now(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each table for a life that begins in this run."""
        return {name: table.columns() for name, table in self.tables.items()}

    @property
    def present(self) -> Query:
        """The view's query over the columns that its tables had when its present life began. Errors: `QueryError`.

        Columns that were added to a table since do not matter to the view: the names in the query keep their meaning. If it
        reads the clock, it is not to be computed: that takes a time.
        """
        return self._present(ANY_TIME)

    def at(self, incarnation: str, position: Position, *, anew: bool = False) -> Query:
        """The view's query in one of its lives, which is looked up once, at a position: for the time that is recorded in it,
        if the query reads the clock; with `anew`, over the columns that its tables have now."""
        instant = position.instant if isinstance(position, SnapshotPosition) else None
        time = ANY_TIME if instant is None else instant
        key = (incarnation, time, anew)
        if key not in self._queries:
            self._queries.clear()
            self._queries[key] = self._over(self.columns_now, time) if anew else self._present(time)
        return self._queries[key]

    def _present(self, instant: int) -> Query:
        return self._over(_as_columns(self._begun) or self.columns_now, instant)

    @property
    def _begun(self) -> UpstreamColumns:
        """The columns over which the present life began; none if there is no life."""
        record = self.catalog.upstream(self.view).output.look().record
        return record.columns if record is not None and record.kind is not CommitKind.DROP else {}

    def begun_with(self, name: str) -> frozenset[str] | None:
        """The columns of a table over which the present life began; None if there is no life."""
        begun = self._begun.get(name)
        return None if begun is None else frozenset(column for column, _ in begun)

    @property
    def now(self) -> Query:
        """The query of a life that begins in this run. Errors: `QueryError`."""
        return self._over(self.columns_now, ANY_TIME)

    def driving(self, rows: Mapping[str, int]) -> Driving | None:
        """How the history of a life that begins in this run can be read in chunks, if its tables have so many rows.

        None if it has to be read at once: neither a table can drive the query nor a key, or all rows are of one time of the
        clock.
        """
        query = self.now
        if not isinstance(query, RelationalQuery) or self.view.reads_clock:
            return None
        places = query.driving(rows)
        key = None if places else query.partitioning_key(rows)
        if not places and key is None:
            return None
        hashes = {} if key is None else {at: key.of_occurrence(at) for at in sorted(key.columns)}
        places = places or {at: query.occurrences[at] for at in hashes}
        beside = {name for at, name in enumerate(query.occurrences) if at not in places}
        return Driving(places=places, beside=tuple(sorted(beside)), hashes=hashes)

    def _over(self, columns: Mapping[str, tuple[Column, ...]], instant: int) -> Query:
        read = partial(self._read, columns, {each.name: self.key_of(each) for each in self.view.tables}, instant)
        try:
            analyzed = read(self.view.text)
        except QueryError as error:
            found = self._as_written(error, read)
            raise QueryError(
                f"materialized_view {self.view.name!r}: {found.message}",
                reason=found.reason,
                hint=found.hint,
                argument="query",
            ) from None
        self._check_rules(analyzed)
        self._check_texts(columns)
        if not self.view.own_key:
            return analyzed
        unknown = sorted(set(self.view.own_key) - set(analyzed.output_columns))
        if unknown and analyzed.output_columns:
            raise QueryError(
                f"materialized_view {self.view.name!r}: the query does not return {', '.join(unknown)}",
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

    def _read(
        self, columns: Mapping[str, tuple[Column, ...]], keys: Mapping[str, tuple[str, ...]], instant: int, text: str
    ) -> Query:
        records = [each.name for each in self.view.tables if isinstance(each, KafkaSource)]
        of_time = at_time(text, instant, columns) if self.view.reads_clock else text
        of_rows = None if self.view.whole else tuple(keys.items())
        seen = {name: self._seen(name, each) for name, each in columns.items()} if self.view.whole else columns
        return _analyzed(of_time, tuple(seen.items()), of_rows, self.view.own_key, tuple(records))

    def _seen(self, name: str, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns of a table without those that a view hides."""
        is_view = any(each.name == name for each in self.view.tables if isinstance(each, MaterializedView))
        return tuple(each for each in columns if not (is_view and each.name.startswith("__")))

    def _as_written(self, error: QueryError, read: Callable[[str], Query]) -> QueryError:
        """The same error, with places in the text as its author wrote it."""
        try:
            read(self.view.written)
        except QueryError as found:
            return found if found.reason == error.reason else error
        return error

    def _check_rules(self, query: Query) -> None:
        """Refuse a query with changes that have no rule, if the view may only follow changes."""
        if self.view.refresh_mode != "incremental_strict" or not isinstance(query, RelationalQuery):
            return
        if not query.steps(query.upstreams).are_certain:
            steps = {name: query.steps([name]) for name in query.upstreams}
            without = [name for name, each in steps.items() if each.rule == "full"]
            names = without or [name for name, each in steps.items() if each.conditions] or query.upstreams
            only = sorted({words for name in names for words in steps[name].conditions})
            has = (
                f"a rule only while {', and while '.join(only)}"
                if only
                else "no rule by which the view could follow them"
            )
            raise QueryError(
                f"materialized_view {self.view.name!r}: changes of {', '.join(map(repr, names))} have {has}",
                reason="NO_RULE",
                hint="docs/queries.md says which queries have one; refresh_mode='incremental' computes the others in full",
                argument="refresh_mode",
            )

    def _check_texts(self, columns: Mapping[str, tuple[Column, ...]]) -> None:
        """Refuse texts with a collation: this package compares texts by their bytes."""
        for each in self.view.tables:
            odd = set(self.tables[each.name].collated())
            named = named_in(self.view.written, columns.get(each.name, ()), self._always_read(each)) if odd else ()
            for column in named:
                if column.name in odd:
                    raise UpstreamRefusedError(
                        f"column {column.name!r} of table {each.name!r} has texts with a collation, which would be compared "
                        "by their bytes",
                        hint="let the view read a copy of the table in which the column is a plain STRING",
                        reason="COLLATED_COLUMN",
                        column=column.name,
                    )

    def key_of(self, upstream: Upstream) -> tuple[str, ...]:
        """The columns that identify a row of a table, including hidden ones of a view; none if it declares none."""
        if isinstance(upstream, KafkaSource):
            return RECORD_KEY
        if isinstance(upstream, MaterializedView):
            return reader_key(self.catalog.bound(upstream))
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

    def _always_read(self, upstream: Upstream) -> tuple[str, ...]:
        """The columns that are read whether the query names them or not."""
        return (*self.key_of(upstream), ERROR.name) if isinstance(upstream, KafkaSource) else self.key_of(upstream)

    def columns(self) -> UpstreamColumns:
        """The columns on which a life that begins now depends: those that its author names. Rows that agree in all of them
        may come in any order, so what completes the orders of windows, `struct(*)`, is to take no others."""
        return {
            each.name: tuple(
                (column.name, column.type)
                for column in named_in(self.view.written, self.columns_now[each.name], self._always_read(each))
            )
            for each in self.view.tables
        }


@lru_cache(maxsize=256)  # several times in each run, and in each tick of a sensor
def _analyzed(
    text: str,
    columns: tuple[tuple[str, tuple[Column, ...]], ...],
    keys: tuple[tuple[str, tuple[str, ...]], ...] | None,
    own_key: tuple[str, ...],
    records: tuple[str, ...],
) -> Query:
    """A query by the rules for its kind, given the keys of its tables, or by those for several tables."""
    if keys is None:
        return analyze_relational(text, dict(columns), own_key, records)
    return analyze(text, dict(columns), dict(keys), own_key)


def _as_columns(recorded: UpstreamColumns) -> dict[str, tuple[Column, ...]]:
    return {table: tuple(Column(*column) for column in columns) for table, columns in recorded.items()}
