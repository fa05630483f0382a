"""What a declaration returns: sources, Delta tables and views, as frozen values.

The functions in `declarations` check the arguments and create these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.progress.order import Order
from backfill_assets.declare.arguments import Start
from backfill_assets.query.aggregate import is_aggregate
from backfill_assets.query.clock import calls_clock
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query, key_of_text, reader_key
from backfill_assets.query.record_columns import ERROR, OFFSET, PARTITION, VALUE
from backfill_assets.query.rules_end import is_relational

if TYPE_CHECKING:
    from dagster import AssetKey, AutomationCondition, FreshnessPolicy

__all__ = [
    "ERROR_COLUMNS",
    "METADATA_COLUMNS",
    "PARSER",
    "Bronze",
    "Declared",
    "DeclaredStrategy",
    "DeltaTable",
    "Isolation",
    "KafkaSource",
    "LabelArguments",
    "Labels",
    "MaterializedView",
    "Place",
    "RecordFormat",
    "RefreshMode",
    "Upstream",
    "has_key",
    "sources_of",
]

RecordFormat = Literal["json", "raw"]
"""What a record's value is: one JSON object with the schema's columns, or one column that takes the value as it is."""

Bronze = Literal["all", "new"]
"""Which records the source's own table keeps: all from `start` on, or those that arrive after its creation."""

Isolation = Literal["read_committed", "read_uncommitted"]
"""Whether records of aborted Kafka transactions are left out (`read_committed`) or read."""

DeclaredStrategy = Literal["auto"] | Strategy
"""How a view reads the history of its upstreams; the README compares the strategies."""

Place = Literal["views", "replacements", "replaced"]
"""Where a view's table lies in the warehouse: where everybody reads it; beside that, while a changed definition is built; or
what it was before, kept for the way back."""

RefreshMode = Literal["auto", "incremental", "incremental_strict", "full"]
"""Whether a view may be recomputed from its full tables when that is cheaper (`auto`), follows the changes wherever there is
a rule (`incremental`), is refused without one (`incremental_strict`), or is always recomputed (`full`)."""

PARSER = 1
"""The version of the rules by which records become rows; tables that were built with another one are refused."""

LAYOUT = 7
"""The version of the rules by which a view over whole tables gets hidden columns; views that were built with another one are
refused."""

METADATA_COLUMNS = (
    Column(PARTITION, "INT"),
    Column(OFFSET, "LONG"),
    Column("_timestamp", "TIMESTAMP"),
    Column("_key", "BINARY"),
    Column("_headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
)
ERROR_COLUMNS = (Column(ERROR, "STRING"), Column(VALUE, "BINARY"))


class LabelArguments(TypedDict, total=False):
    """The arguments that every declaration takes under Dagster's names; all are optional.

    Attributes:
        key: The asset key, instead of the default one.
        description: Text about the asset.
        owners: E-mail addresses and teams, as `team:data`.
        tags: Tags of the asset.
        metadata: Metadata of the asset.
        group_name: The asset's group.
        automation_condition: When Dagster materializes the asset by itself.
        freshness_policy: When Dagster considers the asset stale.

    Examples:
        >>> arguments: LabelArguments = {"group_name": "sales", "owners": ["team:data"]}
        >>> Labels(**arguments).group_name
        'sales'
    """

    key: "AssetKey | Sequence[str] | str | None"
    description: str | None
    owners: Sequence[str]
    tags: Mapping[str, str]
    metadata: Mapping[str, Any]
    group_name: str | None
    automation_condition: "AutomationCondition[Any] | None"
    freshness_policy: "FreshnessPolicy | None"


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What Dagster shows beside an asset, under Dagster's names.

    Attributes:
        key: The asset key, instead of the default one.
        description: Text about the asset.
        owners: E-mail addresses and teams, as `team:data`.
        tags: Tags of the asset.
        metadata: Metadata of the asset.
        group_name: The asset's group.
        automation_condition: When Dagster materializes the asset by itself.
        freshness_policy: When Dagster considers the asset stale.

    Examples:
        >>> Labels(owners=["team:data"]).owners
        ['team:data']
    """

    key: "AssetKey | Sequence[str] | str | None" = None
    description: str | None = None
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    group_name: str | None = None
    automation_condition: "AutomationCondition[Any] | None" = None
    freshness_policy: "FreshnessPolicy | None" = None


@dataclass(frozen=True, kw_only=True)
class KafkaSource:
    """A Kafka topic that is ingested once into an append-only Delta table (bronze). Create it with `kafka_source`.

    Attributes:
        name: The source's name in queries.
        topic: The topic that is read.
        columns: The columns of the schema, in order.
        format: What a record's value is.
        start: Where history begins.
        bronze: Which records the table keeps.
        isolation: Whether records of aborted transactions are left out.
        client_config: Kafka client settings of this source; never shown by `repr`.
        labels: What Dagster shows beside the asset.

    Examples:
        >>> clicks = kafka_source("clicks", topic="web.clicks", schema="page STRING")
        >>> clicks.target, clicks.key.to_user_string()
        ('sources/clicks', 'sources/clicks')
    """

    name: str
    topic: str
    columns: tuple[Column, ...]
    format: RecordFormat
    start: Start
    bronze: Bronze
    isolation: Isolation
    client_config: Mapping[str, str] = field(repr=False)
    labels: Labels

    @property
    def target(self) -> str:
        """The source's name in the state store and in commits: `sources/<name>`."""
        return f"sources/{self.name}"

    @property
    def folder(self) -> str:
        """The source's folder in the warehouse: `sources/<name>`."""
        return self.target

    @property
    def key(self) -> "AssetKey":
        """The asset key, for use in `deps` of other assets."""
        return _asset_key(self.labels.key, ["sources", self.name])

    @property
    def bronze_columns(self) -> tuple[Column, ...]:
        """All columns of the bronze table, in order."""
        return (*METADATA_COLUMNS, *self.columns, *ERROR_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class DeltaTable:
    """A Delta table that somebody else writes, as an upstream of views. Create it with `delta_table`.

    Attributes:
        name: The table's name in queries.
        path: The table's folder or URI.
        primary_key: The columns that identify a row; empty if none were given.
        labels: What Dagster shows beside the asset.
        storage: How its store is reached, as it was declared; None: as the warehouse is. Never shown by `repr`.

    Examples:
        >>> delta_table("customers", path="lake/customers").key.to_user_string()
        'delta/customers'
    """

    name: str
    path: str
    primary_key: tuple[str, ...]
    labels: Labels
    storage: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def key(self) -> "AssetKey":
        """The key of the asset that writes it, if it was given, else `["delta", name]`."""
        return _asset_key(self.labels.key, ["delta", self.name])


@dataclass(frozen=True, kw_only=True)
class MaterializedView:
    """A Delta table that is kept equal to a query over its upstreams. Create it with `materialized_view`.

    Attributes:
        name: The view's name in queries of other views.
        text: The query in a normalized spelling.
        written: The query as its author wrote it, in standard words; errors say where they are in it.
        query: The analyzed query. None over Delta tables and views, whose columns are known only when the tables are read.
        upstreams: What the query reads.
        own_key: The primary key that was given; empty if none was.
        strategy: How history is read.
        refresh_mode: Whether the view may be recomputed from its full tables.
        backfill_order: For each upstream, those whose history is read before its own.
        labels: What Dagster shows beside the asset.
        place: Where its table lies in the warehouse.

    Examples:
        >>> clicks = kafka_source("clicks", topic="web.clicks", schema="page STRING")
        >>> pages = materialized_view("pages", query="SELECT page FROM clicks", upstreams=[clicks])
        >>> pages.text, [source.name for source in pages.sources]
        ('select page from clicks', ['clicks'])
    """

    name: str
    text: str
    written: str = field(repr=False, compare=False)
    query: Query | None
    upstreams: "tuple[Upstream, ...]"
    own_key: tuple[str, ...] = ()
    strategy: DeclaredStrategy
    refresh_mode: RefreshMode
    backfill_order: Order = field(default_factory=dict)
    labels: Labels
    place: Place = "views"

    @property
    def target(self) -> str:
        """The view's name in the state store and in commits: `views/<name>`."""
        return f"views/{self.name}"

    @property
    def folder(self) -> str:
        """The view's folder in the warehouse: `views/<name>`, unless its table lies beside that."""
        return f"{self.place}/{self.name}"

    @property
    def key(self) -> "AssetKey":
        """The asset key, for use in `deps` of other assets."""
        return _asset_key(self.labels.key, ["views", self.name])

    @cached_property
    def whole(self) -> bool:
        """Whether its query is computed over whole tables, or reads sources and tables together."""
        return is_whole(self.text, self.upstreams, self.refresh_mode, self.own_key)

    @cached_property
    def row_key(self) -> tuple[str, ...]:
        """The columns by which its rows are known, as far as declarations tell; the name of its table alone where they do
        not, and where its rows are known by what they hold."""
        if self.query is not None:
            return reader_key(self.query)
        keys = tuple((each.name, _key_of_rows(each)) for each in self.tables)
        found = self.own_key or (None if self.whole else key_of_text(self.text, keys))
        return (f"{self.target}/*",) if found is None else found

    @property
    def reads_clock(self) -> bool:
        """Whether each epoch computes the query for a time of its own, because it calls functions of the clock."""
        return self.refresh_mode == "full" and calls_clock(self.text)

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The Kafka sources whose records it reads one by one; not those whose tables it reads."""
        return () if self.whole else tuple(each for each in self.upstreams if isinstance(each, KafkaSource))

    @property
    def tables(self) -> "tuple[Upstream, ...]":
        """The Delta tables and views that it reads; with a query over whole tables, its sources too."""
        return tuple(each for each in self.upstreams if self.whole or not isinstance(each, KafkaSource))


Upstream = KafkaSource | DeltaTable | MaterializedView
"""What a view can read."""


def is_whole(
    query: str, upstreams: "Sequence[Upstream]", refresh_mode: RefreshMode, own_key: Sequence[str] = ()
) -> bool:
    """Whether a query is computed over whole tables: for its shape or the mix of its upstreams, or because it is wanted.

    Parts of UNION ALL over tables with different keys have no key in common, unless the view has one (`own_key`).
    """
    mixed = len({isinstance(each, KafkaSource) for each in upstreams}) > 1
    in_full = refresh_mode == "full" or mixed or is_relational(query)
    return in_full or (len(upstreams) > 1 and not own_key and len(set(map(_key_of_rows, upstreams))) > 1)


def _key_of_rows(table: "Upstream") -> tuple[str, ...]:
    if isinstance(table, KafkaSource):
        return (PARTITION, OFFSET)
    return table.primary_key if isinstance(table, DeltaTable) else table.row_key


Declared = KafkaSource | MaterializedView
"""What this project builds and keeps: sources and views."""


def has_key(table: Upstream) -> bool:
    """Whether something identifies a row of a table, so that views over it can follow updates and deletes.

    Args:
        table: A source, a Delta table or a view.

    Returns:
        True if the table has a declared key, groups, the key of a Kafka source, or upstreams that all have a key.

    Examples:
        >>> has_key(delta_table("customers", path="lake/customers"))
        False
    """
    if isinstance(table, KafkaSource):
        return True
    if isinstance(table, DeltaTable):
        return bool(table.primary_key)
    own = bool(table.sources) or bool(table.own_key) or is_aggregate(table.text) or table.whole
    return own or all(has_key(each) for each in table.tables)


def sources_of(declared: Declared) -> tuple[KafkaSource, ...]:
    """The Kafka sources of a table.

    Args:
        declared: A source or a view.

    Returns:
        The source itself, or the sources that the view reads.

    Examples:
        >>> [source.name for source in sources_of(kafka_source("clicks", topic="clicks", schema="page STRING"))]
        ['clicks']
    """
    return (declared,) if isinstance(declared, KafkaSource) else declared.sources


def _asset_key(key: "AssetKey | Sequence[str] | str | None", default: list[str]) -> "AssetKey":
    from dagster import AssetKey

    return AssetKey(default) if key is None else AssetKey.from_coercible(key)
