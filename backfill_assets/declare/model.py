"""What a declaration gives: sources, tables and views as frozen values, and what follows from them alone.

Make them with the functions of `declarations`, which check what they are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from backfill_assets.core.epoch.costs import Strategy
from backfill_assets.core.progress.order import Order
from backfill_assets.declare.arguments import (
    Start,
)
from backfill_assets.query.aggregate import is_aggregate
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import Query
from backfill_assets.query.relational import is_relational

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
    "RecordFormat",
    "RefreshMode",
    "Upstream",
    "has_key",
    "sources_of",
]

RecordFormat = Literal["json", "raw"]
Bronze = Literal["all", "new"]
Isolation = Literal["read_committed", "read_uncommitted"]
DeclaredStrategy = Literal["auto"] | Strategy
RefreshMode = Literal["auto", "incremental"]

PARSER = 1
"""The rules by which records become rows (`query/records.py`); another number is another parser to built tables."""

METADATA_COLUMNS = (
    Column("_partition", "INT"),
    Column("_offset", "LONG"),
    Column("_timestamp", "TIMESTAMP"),
    Column("_key", "BINARY"),
    Column("_headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
)
ERROR_COLUMNS = (Column("_error", "STRING"), Column("_value", "BINARY"))


class LabelArguments(TypedDict, total=False):
    """The arguments that every declaration takes as Dagster names them; all may be left out."""

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
    """What Dagster shows beside an asset; each field is named as Dagster names it."""

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
    """A Kafka topic that is ingested once into an append-only Delta table (bronze); make it with `kafka_source`."""

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
        """The source's name in the state store and under the warehouse: `sources/<name>`."""
        return f"sources/{self.name}"

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
    """A Delta table that somebody else writes, as an upstream of views; make it with `delta_table`."""

    name: str
    path: str
    primary_key: tuple[str, ...]
    labels: Labels

    @property
    def key(self) -> "AssetKey":
        """The key of the asset that writes it, if it was given, else `["delta", name]`."""
        return _asset_key(self.labels.key, ["delta", self.name])


@dataclass(frozen=True, kw_only=True)
class MaterializedView:
    """A Delta table that is kept equal to a query over its upstreams; make it with `materialized_view`.

    `text` is the query in one spelling. `query` is what it means; None over Delta tables and views, whose columns are
    known only where the tables are. `own_key` is the primary key that was named.
    """

    name: str
    text: str
    query: Query | None
    upstreams: "tuple[Upstream, ...]"
    own_key: tuple[str, ...] = ()
    strategy: DeclaredStrategy
    refresh_mode: RefreshMode
    backfill_order: Order = field(default_factory=dict)
    labels: Labels

    @property
    def target(self) -> str:
        """The view's name in the state store and under the warehouse: `views/<name>`."""
        return f"views/{self.name}"

    @property
    def key(self) -> "AssetKey":
        """The asset key, for use in `deps` of other assets."""
        return _asset_key(self.labels.key, ["views", self.name])

    @property
    def whole(self) -> bool:
        """Whether its query is one over whole tables: of any shape, or over sources and tables together."""
        return is_relational(self.text) or len({isinstance(each, KafkaSource) for each in self.upstreams}) > 1

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The shared sources whose records it reads, from Kafka and as they come. Not those that it reads as tables."""
        return () if self.whole else tuple(each for each in self.upstreams if isinstance(each, KafkaSource))

    @property
    def tables(self) -> "tuple[Upstream, ...]":
        """The Delta tables and views that it reads; of a query over whole tables, the tables of its sources as well."""
        return tuple(each for each in self.upstreams if self.whole or not isinstance(each, KafkaSource))


Upstream = KafkaSource | DeltaTable | MaterializedView
"""What a view may read."""

Declared = KafkaSource | MaterializedView
"""What is built and kept: a table of the project."""


def has_key(table: Upstream) -> bool:
    """Whether something identifies a row of a table, so that views over it can follow updates and deletes."""
    if isinstance(table, KafkaSource):
        return True
    if isinstance(table, DeltaTable):
        return bool(table.primary_key)
    own = bool(table.sources) or bool(table.own_key) or is_aggregate(table.text) or table.whole
    return own or all(has_key(each) for each in table.tables)


def sources_of(declared: Declared) -> tuple[KafkaSource, ...]:
    """The sources whose records a table is made of."""
    return (declared,) if isinstance(declared, KafkaSource) else declared.sources


def _asset_key(key: "AssetKey | Sequence[str] | str | None", default: list[str]) -> "AssetKey":
    from dagster import AssetKey

    return AssetKey(default) if key is None else AssetKey.from_coercible(key)
