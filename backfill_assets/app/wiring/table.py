"""A declared table with the parts that its epochs need, and what readers of a table use."""

from dataclasses import dataclass
from typing import Any, Protocol

from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.declare.model import Declared, MaterializedView
from backfill_assets.query.query import Query

__all__ = ["Catalog", "Table"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """One declared table with its parts; `ports.TableCreator` for its creation."""

    declared: Declared
    parts: Parts[Any]
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
        """Create the empty Delta table."""
        create_table(self.output.location, self.output.schema())


class Catalog(Protocol):
    """The tables of a project, for code that reads them."""

    def upstream(self, declared: Declared) -> Table:
        """A table that others read, kept for the run: when it is read again, only newer commits are loaded."""
        ...

    def location(self, declared: Declared) -> TableLocation:
        """Where a table is: one object for a run, so that its log is loaded once."""
        ...

    def is_read(self, view: MaterializedView) -> bool:
        """Whether other views read a view."""
        ...

    def bound(self, view: MaterializedView) -> Query:
        """A view's query, with the columns of its upstreams."""
        ...
