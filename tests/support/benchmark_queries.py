"""The queries of a benchmark over its tables: which tables each names, and the rules by which it follows them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.query import Query, analyze
from backfill_assets.query.relational import RelationalQuery

__all__ = ["BenchmarkQueries"]


@dataclass(frozen=True, kw_only=True)
class BenchmarkQueries:
    """The columns of the tables, the keys of those that have one, and a pattern of what names a table, for which `{0}`
    stands."""

    columns: Mapping[str, str]
    keys: Mapping[str, tuple[str, ...]]
    naming: str
    _analyzed: dict[str, Query] = field(default_factory=dict)

    def tables_of(self, query: str) -> tuple[str, ...]:
        """The tables that a query names."""
        return tuple(name for name in self.columns if re.search(self.naming.format(name), query))

    def analyzed(self, query: str) -> Query:
        """A query over the tables that it names."""
        if query not in self._analyzed:
            names = self.tables_of(query)
            tables = {name: parse_schema(self.columns[name]) for name in names}
            self._analyzed[query] = analyze(query, tables, {name: self.keys.get(name, ()) for name in names})
        return self._analyzed[query]

    def rule_of(self, query: str, changed: Collection[str]) -> str:
        """The rule by which a view follows changes of tables; none for rows and groups of one table, which have rules of
        their own."""
        found = self.analyzed(query)
        return found.steps(changed).rule if isinstance(found, RelationalQuery) else ""
