"""The YAML component: sources and views declared in a `defs.yaml`, with the same names and rules as in Python."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from backfill_assets.declare.arguments import Start
from backfill_assets.declare.declarations import delta_table, kafka_source, materialized_view
from backfill_assets.declare.model import (
    DeclaredStrategy,
    DeltaTable,
    KafkaSource,
    MaterializedView,
    RefreshMode,
    Upstream,
)
from backfill_assets.defs.definitions import definitions_at
from backfill_assets.errors import DeclarationError

__all__ = ["SourceModel", "TableModel", "ViewModel", "Views"]


class _Labelled(dg.Model, dg.Resolvable):
    """The arguments that every declaration takes under Dagster's names."""

    name: str
    key: str | list[str] | None = None
    description: str | None = None
    owners: list[str] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    group_name: str | None = None

    def arguments(self) -> dict[str, Any]:
        """What was given, as keyword arguments of the Python declaration."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}


class SourceModel(_Labelled):
    """A Kafka source in YAML; the fields are the arguments of `kafka_source`, Dagster's own (`key`, `tags`, …) included.

    Attributes:
        topic: The topic to read.
        schema: A Spark column list.
        format: `json` or `raw`.
        start: `earliest`, `latest`, an ISO time with a time zone, or a mapping from partition to offset.
        bronze: `all` or `new`.
        isolation: `read_committed` or `read_uncommitted`.
        client_config: Kafka client settings.

    Examples:
        >>> SourceModel(name="orders", topic="orders", schema="order_id LONG").declare().target
        'sources/orders'
    """

    topic: str
    schema_: str = Field(alias="schema")
    format: Literal["json", "raw"] = "json"
    start: str | dict[str, int] = Field(
        default="earliest", description="earliest, latest, an ISO time, or {partition: offset}"
    )
    bronze: Literal["all", "new"] = "all"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    client_config: dict[str, str] | None = None

    def declare(self) -> KafkaSource:
        """The declaration, after the same checks as in Python."""
        given = self.arguments()
        if "start" in given:
            given["start"] = _start(self.start)
        return kafka_source(given.pop("name"), schema=given.pop("schema_"), **given)


class TableModel(_Labelled):
    """A Delta table in YAML; the fields are the arguments of `delta_table`, Dagster's own (`key`, `tags`, …) included.

    Attributes:
        path: A folder or URI.
        primary_key: The columns that identify a row.
        storage: How to reach the table's store, if it is not the warehouse's or needs other keys.

    Examples:
        >>> TableModel(name="customers", path="lake/customers", primary_key="id").declare().primary_key
        ('id',)
    """

    path: str
    primary_key: str | list[str] | None = None
    storage: dict[str, str | bool] | None = Field(default=None, repr=False)

    def declare(self) -> DeltaTable:
        """The declaration, after the same checks as in Python."""
        given = self.arguments()
        return delta_table(given.pop("name"), **given)


class ViewModel(_Labelled):
    """A materialized view in YAML; the fields are the arguments of `materialized_view`, with upstreams by name.

    Dagster's own arguments (`key`, `tags`, …) are included.

    Attributes:
        query: Spark SQL that names the upstreams.
        upstreams: Names of sources, tables and views that are declared before this one.
        primary_key: Columns that identify a row.
        strategy: How history is read.
        refresh_mode: `auto`, `incremental`, `incremental_strict` or `full`.
        backfill_order: Whose history is read before whose.

    Examples:
        >>> orders = SourceModel(name="orders", topic="orders", schema="order_id LONG").declare()
        >>> ids = ViewModel(name="ids", query="SELECT order_id FROM orders", upstreams=["orders"])
        >>> ids.declare({"orders": orders}).target
        'views/ids'
    """

    query: str
    upstreams: list[str]
    primary_key: str | list[str] | None = None
    strategy: DeclaredStrategy = "auto"
    refresh_mode: RefreshMode = "auto"
    backfill_order: list[str] | dict[str, str | list[str]] | None = None

    def declare(self, known: Mapping[str, Upstream]) -> MaterializedView:
        """The declaration.

        Args:
            known: What the component declared before it, by name.

        Returns:
            The declared view.

        Raises:
            DeclarationError: An upstream is not declared before the view, or an argument is wrong.
            QueryError: The query cannot be maintained.
        """
        unknown = sorted(set(self.upstreams) - known.keys())
        if unknown:
            raise DeclarationError(
                f"view {self.name!r}: argument 'upstreams' names {', '.join(unknown)}, which are not declared before it",
                hint=f"declared before it are {', '.join(sorted(known)) or 'none'}",
                argument="upstreams",
            )
        given = self.arguments()
        given["upstreams"] = [known[name] for name in self.upstreams]
        return materialized_view(given.pop("name"), **given)


class Views(dg.Component, dg.Model, dg.Resolvable):
    """Dagster component: sources and views in YAML, with their assets, checks, jobs and sensors.

    Attributes:
        sources: Kafka sources.
        tables: Delta tables that already exist.
        views: Materialized views, each after the views that it reads.

    Examples:
        The attributes of a `defs.yaml`, below `type: backfill_assets.Views`:

        >>> import yaml
        >>> attributes = yaml.safe_load('''
        ... sources:
        ...   - {name: orders, topic: orders, schema: "order_id LONG, amount DOUBLE"}
        ... tables:
        ...   - {name: customers, path: lake/customers, primary_key: id}
        ... views:
        ...   - {name: large, upstreams: [orders], query: "SELECT order_id FROM orders WHERE amount > 100"}
        ... ''')
        >>> [view.name for view in Views(**attributes).views]
        ['large']
    """

    sources: Sequence[SourceModel] = ()
    tables: Sequence[TableModel] = ()
    views: Sequence[ViewModel] = ()

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """What `build_definitions` returns, for the project that the component belongs to.

        Args:
            context: What Dagster says about the project.

        Returns:
            The definitions.
        """
        known: dict[str, Upstream] = {source.name: source.declare() for source in self.sources}
        known.update({table.name: table.declare() for table in self.tables})
        for view in self.views:
            known[view.name] = view.declare(known)
        return definitions_at(context.project_root, tuple(known.values()))


def _start(start: str | Mapping[str, int]) -> Start:
    """A start as YAML has it: text, or offsets whose partitions are text."""
    if not isinstance(start, str):
        return {int(partition): offset for partition, offset in start.items()}
    if start == "earliest":
        return "earliest"
    if start == "latest":
        return "latest"
    try:
        return datetime.fromisoformat(start)
    except ValueError:
        raise DeclarationError(
            f"argument 'start' is {start!r}",
            hint="use earliest, latest, a time such as 2026-01-31T00:00:00+00:00, or offsets as {partition: offset}",
            argument="start",
        ) from None
