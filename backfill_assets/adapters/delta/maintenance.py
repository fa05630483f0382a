"""Commits that change no rows of an output: its properties, and the statistics of its files in the log.

They are written directly, by put-if-absent. delta-rs's own way to set a property adds the feature `variantType` to the
protocol (1.6.6), and readers that do not know it refuse the table from then on.
"""

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from backfill_assets.adapters.delta.commits import ENGINE, log_text
from backfill_assets.adapters.storage.warehouse import TableLocation

__all__ = ["may_write", "put_commit", "put_properties", "set_properties"]

TRIES = 10
_ONCE = CommitProperties(max_commit_retries=0)
"""delta-rs makes a commit on the version that was loaded, or not at all."""

_LEGACY_WRITERS = 6
_HARMLESS = frozenset({
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "domainMetadata", "invariants",
    "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType",
})  # fmt: skip
"""Features without requirements for a commit that changes no rows and no columns."""


def set_properties(location: TableLocation, properties: Mapping[str, str]) -> bool:
    """Set these properties of a table as it was loaded last; returns whether anything changed.

    Errors: `CommitFailedError` if other writers always commit first.
    """
    for attempt in range(TRIES):
        table = location.followed.newest() if attempt else location.last()
        if table is None or properties.items() <= table.metadata().configuration.items():
            return False
        if put_properties(location, table, properties):
            return True
    raise CommitFailedError(f"{location.uri}: other writers committed first, {TRIES} times")


def put_properties(location: TableLocation, table: DeltaTable, properties: Mapping[str, str]) -> bool:
    """Set properties in a commit on a loaded version; returns whether that was still the newest version."""
    if may_write(table):
        metadata = {"metaData": _metadata(table, properties)}
        return put_commit(location, table.version() + 1, "SET TBLPROPERTIES", [metadata])
    try:
        loaded = location.to_write(table)
        loaded.alter.set_table_properties(dict(properties), raise_if_not_exists=False, commit_properties=_ONCE)
    except CommitFailedError:  # another version came first, or this one was made though its outcome was not told
        return False
    return True


def may_write(table: DeltaTable) -> bool:
    """Whether a commit can be written directly, because the protocol has no further requirements."""
    protocol = table.protocol()
    return protocol.min_writer_version <= _LEGACY_WRITERS or set(protocol.writer_features or ()) <= _HARMLESS


def put_commit(
    location: TableLocation,
    version: int,
    operation: str,
    actions: Iterable[Mapping[str, Any]],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> bool:
    """Write a commit unless that version already exists; returns whether it was written. `more` is added to the commit's own
    information."""
    described = {
        "timestamp": int(time.time() * 1000),
        "operation": operation,
        "operationParameters": {},
        "engineInfo": ENGINE,
        **more,
    }
    lines = [log_text(each) for each in ({"commitInfo": described}, *actions)]
    return location.put_entry(version, "\n".join(lines).encode())


def _metadata(table: DeltaTable, properties: Mapping[str, str]) -> dict[str, Any]:
    known = table.metadata()
    made = {
        "id": str(known.id),
        "name": known.name,
        "description": known.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": known.partition_columns,
        "configuration": {**known.configuration, **properties},
        "createdTime": known.created_time,
    }
    return {name: value for name, value in made.items() if value is not None}
