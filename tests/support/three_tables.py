"""Three tables with columns of many types, and queries over them as they are analyzed."""

import re

from backfill_assets.query.ddl import Column
from backfill_assets.query.relational import RelationalQuery, analyze_relational

__all__ = ["analyzed", "columns_of"]

TABLES = {
    "a": "id BIGINT, k INT, s STRING, f DOUBLE, d DECIMAL(9;2), at TIMESTAMP",
    "b": "id BIGINT, k INT, s VARCHAR(9), f DOUBLE, d DECIMAL(9;3), at TIMESTAMP_NTZ",
    "c": "id BIGINT, k INT",
}


def columns_of(table: str) -> tuple[Column, ...]:
    return tuple(Column(*each.replace(";", ",").split()) for each in TABLES[table].split(", "))


def analyzed(query: str) -> RelationalQuery:
    named = {name: columns_of(name) for name in TABLES if re.search(rf"(FROM|JOIN|,) \(*{name}\b", query)}
    return analyze_relational(query, named)
