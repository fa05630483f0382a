"""The declared tables of a project, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from backfill_assets.declare.model import Declared, DeltaTable, KafkaSource, MaterializedView
from backfill_assets.declare.stores import LOCAL, provider_of
from backfill_assets.errors import DeclarationError

__all__ = ["Registry"]


@dataclass(frozen=True)
class Registry:
    """Finds what is declared; opens nothing."""

    declared: Mapping[str, Declared]

    def find(self, name: str) -> Declared:
        """A declared source or view by its name. Errors: `DeclarationError`, which lists the declared names."""
        if name not in self.declared:
            raise DeclarationError(
                f"there is no source or view {name!r}; expected one of {', '.join(sorted(self.declared)) or 'none'}",
                hint="check the name, or declare it in build_definitions(...)",
                argument="name",
            )
        return self.declared[name]

    def source(self, name: str) -> KafkaSource:
        """A declared source by its name; `DeclarationError` if there is none."""
        found = self.find(name)
        if not isinstance(found, KafkaSource):
            raise DeclarationError(
                f"expected a source, found view {name!r}",
                hint="name a source of build_definitions(...)",
                argument="name",
            )
        return found

    @property
    def stores(self) -> frozenset[str]:
        """The providers of the stores in which views read Delta tables."""
        views = (each for each in self.declared.values() if isinstance(each, MaterializedView))
        tables = (table for view in views for table in view.tables if isinstance(table, DeltaTable))
        return frozenset(provider_of(table.path) for table in tables) - {LOCAL}

    def readers(self, name: str) -> list[MaterializedView]:
        """The views that read a table."""
        return [
            each
            for each in self.declared.values()
            if isinstance(each, MaterializedView) and name in {table.name for table in each.tables}
        ]
