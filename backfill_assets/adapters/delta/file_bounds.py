"""Keeps the log of an output to bounds that are exact: which columns its property names, and what its files state.

What may be stated is decided in `backfill.bounds`. What is committed here is maintenance: it changes no rows.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from deltalake import ColumnProperties, DeltaTable, WriterProperties
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.delta.log_replay import DataFile, replay
from backfill_assets.adapters.delta.maintenance import may_write, put_commit, put_properties, set_properties
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import (
    BOUNDED_COLUMNS,
    MAX_TEXT,
    boundable,
    named,
    naming,
    restated,
    unbounded,
)
from backfill_assets.core.epoch.records import StagedFile

__all__ = ["are_exact", "mend", "parquet_statistics", "suit"]

_ENTRY = frozenset({
    "path", "partitionValues", "size", "modificationTime", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
    "clusteringProvider",
})  # fmt: skip
"""What the protocol has of a file's entry, beside what is stated here; checkpoints may hold more."""


def are_exact(table: DeltaTable) -> bool:
    """Whether a table's property keeps its writers to bounds that are exact."""
    text = table.metadata().configuration.get(BOUNDED_COLUMNS)
    if text is None:
        return False
    names = named(text)
    return naming(names) == text and set(names) <= boundable(table.schema().to_json()).keys()


def suit(location: TableLocation, table: DeltaTable, staged: Iterable[StagedFile]) -> bool:
    """Whether files have bounds of all columns that the table's property names; if not, it names fewer from now on."""
    columns = boundable(table.schema().to_json())
    names = named(table.metadata().configuration[BOUNDED_COLUMNS] or "")
    bounded = _bounded([json.loads(file.stats) for file in staged], {name: columns[name] for name in names})
    if len(bounded) < len(names):
        put_properties(location, table, {BOUNDED_COLUMNS: naming(bounded)})
    return len(bounded) == len(names)


def mend(location: TableLocation) -> bool:
    """Have a table's property name the columns that all its files have exact bounds of, and the files state no others.

    Tells whether there was anything to do. Gives way to other writers.
    """
    table = location.load()
    if table is None:
        return False
    version = replay(location.files(), table.version())
    bounded = _bounded([file.stats for file in version.files], boundable(str(version.metadata["schemaString"])))
    properties = {BOUNDED_COLUMNS: naming(bounded)}
    if not may_write(table):
        return set_properties(location, properties)
    actions = [{"add": _restated(file, bounded)} for file in version.files if _misleads(file.stats, bounded)]
    configuration = dict(version.metadata.get("configuration") or {})
    if not properties.items() <= configuration.items():
        actions.append({"metaData": {**_present(version.metadata), "configuration": {**configuration, **properties}}})
    if actions:
        put_commit(location, table.version() + 1, "COMPUTE STATS", actions)
    return bool(actions)


def parquet_statistics(table: DeltaTable) -> WriterProperties:
    """Statistics inside of the files that delta-rs writes: of plain columns but floats, whose bounds leave NaN out."""
    exact = [
        each.name
        for each in table.schema().fields
        if isinstance(each.type, PrimitiveType) and each.type.type not in {"float", "double"}
    ]
    return WriterProperties(
        statistics_truncate_length=MAX_TEXT,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={name: ColumnProperties(statistics_enabled="CHUNK") for name in exact},
    )


def _bounded(stats: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> dict[str, str]:
    """Those of the columns that all files have bounds of."""
    without = set[str]().union(*(unbounded(each, columns) for each in stats))
    return {name: kind for name, kind in columns.items() if name not in without}


def _misleads(stats: Mapping[str, Any], bounded: Mapping[str, str]) -> bool:
    """Whether other bounds are stated than may be."""
    kept = restated(stats, bounded)
    return any((stats.get(kind) or {}) != kept.get(kind, {}) for kind in ("minValues", "maxValues"))


def _restated(file: DataFile, bounded: Mapping[str, str]) -> dict[str, Any]:
    """The entry of a file, as it is but for what it states."""
    entry = {name: value for name, value in _present(file.action).items() if name in _ENTRY}
    return {**entry, "dataChange": False, "stats": json.dumps(restated(file.stats, bounded))}


def _present(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _present(v) if isinstance(v, dict) else v for name, v in action.items() if v is not None}
