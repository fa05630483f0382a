"""Keeps the log of an output to exact bounds: the columns that its property lists, and the bounds that its log has.

`core.epoch.bounds` decides which bounds are allowed. The commits made here are maintenance: they change no rows.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from deltalake import ColumnProperties, DeltaTable, WriterProperties
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.delta.commits import log_text
from backfill_assets.adapters.delta.log_replay import DataFile, replay_loaded
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

__all__ = ["are_exact", "parquet_statistics", "remove_inexact", "suit"]

_PAIR = re.compile(r"\\ud[89ab]", re.IGNORECASE)
"""The first half of an escaped letter beyond the first plane; see `log_text`."""

_ENTRY = frozenset({
    "path", "partitionValues", "size", "modificationTime", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
    "clusteringProvider",
})  # fmt: skip
"""The keys of a file's entry according to the protocol, besides those that are set here; checkpoints may have more."""


def are_exact(table: DeltaTable) -> bool:
    """Whether a table's property limits its writers to exact bounds."""
    text = table.metadata().configuration.get(BOUNDED_COLUMNS)
    if text is None:
        return False
    names = named(text)
    return naming(names) == text and set(names) <= boundable(table.schema().to_json()).keys()


def suit(location: TableLocation, table: DeltaTable, staged: Iterable[StagedFile]) -> bool:
    """Whether the files have bounds for all columns that the table's property lists; if not, the property is shortened."""
    columns = boundable(table.schema().to_json())
    names = named(table.metadata().configuration[BOUNDED_COLUMNS] or "")
    bounded = _bounded([json.loads(file.stats) for file in staged], {name: columns[name] for name in names})
    if len(bounded) < len(names):
        put_properties(location, table, {BOUNDED_COLUMNS: naming(bounded)})
    return len(bounded) == len(names)


def remove_inexact(location: TableLocation) -> bool:
    """Make a table's property list the columns for which all files have exact bounds, and remove all other bounds from
    the log.

    Returns whether anything was changed. Yields to other writers.
    """
    table = location.followed.newest()
    if table is None:
        return False
    version = replay_loaded(location, table.version())
    bounded = _bounded([file.stats for file in version.files], boundable(str(version.metadata["schemaString"])))
    properties = {BOUNDED_COLUMNS: naming(bounded)}
    if not may_write(table):
        return set_properties(location, properties)
    actions = [{"add": _restated(file, bounded)} for file in version.files if _misleads(file, bounded)]
    configuration = dict(version.metadata.get("configuration") or {})
    if not properties.items() <= configuration.items():
        actions.append({"metaData": {**_present(version.metadata), "configuration": {**configuration, **properties}}})
    if actions:
        put_commit(location, table.version() + 1, "COMPUTE STATS", actions)
    return bool(actions)


def parquet_statistics(table: DeltaTable) -> WriterProperties:
    """Statistics in the Parquet files that delta-rs writes: for plain columns except floats, whose bounds ignore NaN."""
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
    """The columns for which all files have bounds."""
    without = set[str]().union(*(unbounded(each, columns) for each in stats))
    return {name: kind for name, kind in columns.items() if name not in without}


def _misleads(file: DataFile, bounded: Mapping[str, str]) -> bool:
    """Whether the log has bounds that are not allowed, or letters in a form that delta-rs decodes to others."""
    stats, kept = file.stats, restated(file.stats, bounded)
    odd = any((stats.get(kind) or {}) != kept.get(kind, {}) for kind in ("minValues", "maxValues"))
    return odd or bool(_PAIR.search(file.action.get("stats") or ""))


def _restated(file: DataFile, bounded: Mapping[str, str]) -> dict[str, Any]:
    """The entry of a file with other statistics."""
    entry = {name: value for name, value in _present(file.action).items() if name in _ENTRY}
    return {**entry, "dataChange": False, "stats": log_text(restated(file.stats, bounded))}


def _present(action: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _present(v) if isinstance(v, dict) else v for name, v in action.items() if v is not None}
