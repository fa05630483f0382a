"""The commit of a merge: files go, files come, and the change feed says what became of rows. And that of an append, where
only files come.

delta-rs commits no removes that were computed elsewhere, and Spark's own commits take the newest version that they find, and
on S3 overwrite those of others. So the entry of the log is written here, as one object that is put only if it is absent.
delta-rs could commit an append, but loads the table twice for it, which takes an object store many requests. What a table
may ask of its writers beyond this is refused by name for a merge; for an append it is left to delta-rs.
"""

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from backfill_assets.adapters.delta.column_metadata import is_mapped
from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.conservation import MergedRows, check_merged, total_rows
from backfill_assets.core.epoch.records import Staged, StagedFile
from backfill_assets.errors import TableFeatureError

__all__ = [
    "MergeLarge",
    "Merged",
    "asks_more",
    "check_features",
    "check_rows",
    "check_unmapped",
    "commit_merged",
    "merged_folder",
    "reorders",
    "written",
]

_LISTS_FEATURES = 7
_UNTIL_SET = {
    "appendOnly": "delta.appendOnly",
    "checkConstraints": "delta.constraints.",
    "columnMapping": "delta.columnMapping.mode",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "rowTracking": "delta.enableRowTracking",
}
"""Features that ask nothing of a merge before a property (or one that begins so) is set."""
_HARMLESS = {"changeDataFeed", "invariants", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "domainMetadata"}
_OFF = {"false", "none"}
_CHECKPOINT = "delta.checkpointInterval"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a commit makes of a version: the paths that are not part of it any more, new files, and those of the feed; and
    what the table's history calls it. Where it `changes_data` not, the files hold the rows that were there. `schema`: the
    Delta schema that the table gets with them, if it is another one."""

    removed: frozenset[str]
    files: tuple[StagedFile, ...]
    feed: tuple[StagedFile, ...]
    operation: str = "MERGE"
    changes_data: bool = True
    schema: str = ""


MergeLarge = Callable[[TableLocation, DeltaTable, Staged], Merged]
"""Computes what staged keyed changes make of a loaded version that does not fit in memory, and commits nothing."""


def merged_folder(staged: Staged, table: DeltaTable) -> str:
    """A folder for what one try to merge writes, in that of the attempt. No two tries share one: a commit of unknown outcome
    may still be made, and needs its files."""
    attempt = staged.files[0].path.partition("/")[0]
    return f"{attempt}/merged-{table.version()}-{uuid.uuid4().hex[:8]}"


def written(table: DeltaTable, staged: Staged, schema: Schema | None) -> Merged:
    """What adds the staged rows to a table, or makes them all that it has, and gives it another schema if there is one."""
    removed = frozenset(_sizes(table)) if staged.replaces else frozenset[str]()
    named = schema.to_json() if schema is not None else ""
    return Merged(removed=removed, files=staged.files, feed=(), operation="WRITE", schema=named)


def reorders(before: Schema, after: Schema) -> bool:
    """Whether schemas have the same columns in another order: delta-rs takes them for the same, and leaves the table's as it
    was."""
    names = [[each.name for each in schema.fields] for schema in (before, after)]
    return names[0] != names[1] and sorted(names[0]) == sorted(names[1])


def asks_more(table: DeltaTable) -> list[str]:
    """What a table asks of its writers beyond what is written here."""
    protocol, properties = table.protocol(), table.metadata().configuration
    features = sorted(protocol.writer_features or ())
    refused = [name for name in features if name not in _HARMLESS and not _is_unset(name, properties)]
    refused += [
        f"invariants of column {each.name}" for each in table.schema().fields if "delta.invariants" in each.metadata
    ]
    if protocol.min_writer_version < _LISTS_FEATURES:
        refused.append(f"writer version {protocol.min_writer_version}")
    return refused


def check_features(target: str, table: DeltaTable) -> None:
    """Check that a merge may be committed here. Errors: `TableFeatureError` with the features that forbid it."""
    refused = asks_more(table)
    if refused:
        raise TableFeatureError(
            f"{target}: the table has {', '.join(refused)}, with which large changes cannot be merged: expected none of it",
            hint="nothing was committed. Whoever set it can take it back (ALTER TABLE … DROP FEATURE, UNSET TBLPROPERTIES); "
            f"or `backfill drop {target.partition('/')[2]}`, delete the rest of the folder, and refresh",
            features=refused,
        )


def check_unmapped(target: str, table: DeltaTable) -> None:
    """Check that a table may get another schema: a column has no other name in files. Errors: `TableFeatureError`."""
    if is_mapped(table.metadata().configuration):
        raise TableFeatureError(
            f"{target}: the table has columnMapping, with which it cannot get other columns: expected none of it",
            hint="nothing was committed. Whoever set it can take it back (ALTER TABLE … DROP FEATURE columnMapping); or "
            f"`backfill drop {target.partition('/')[2]}`, delete the rest of the folder, and refresh",
            features=["columnMapping"],
        )


def check_rows(target: str, table: DeltaTable, staged: Staged, merged: Merged) -> None:
    """Check that the rows of a merge add up, if the log says how many rows the files have that go. Errors: those of
    `check_merged`."""
    files = pa.table(table.get_add_actions()).select(["path", "num_records"]).to_pydict()
    stated = dict(zip(files["path"], files["num_records"], strict=True))
    removed = total_rows(stated[path] for path in merged.removed)
    if removed is not None:
        added, fed = (sum(each.rows for each in part) for part in (merged.files, merged.feed))
        check_merged(target, staged, MergedRows(removed=removed, added=added, fed=fed))


def commit_merged(
    location: TableLocation,
    table: DeltaTable,
    merged: Merged,
    *,
    numbers: Mapping[str, int],
    metadata: Mapping[str, str],
) -> bool:
    """Commit on exactly the loaded version; returns whether this call wrote the commit, which is not certain if it did not.

    Args:
        location: Where the table is.
        table: The version that the merge was computed on.
        merged: What the merge makes of it.
        numbers: Transaction numbers by application id.
        metadata: Further keys of the commit's own information.
    """
    version, now = table.version() + 1, int(time.time() * 1000)
    sizes = _sizes(table) if merged.removed else {}
    actions = [
        *({"txn": {"appId": app, "version": number, "lastUpdated": now}} for app, number in numbers.items()),
        *([_described(table, merged.schema)] if merged.schema else []),
        *(_removed(path, sizes[path], now, merged.changes_data) for path in sorted(merged.removed)),
        *(_added(each, merged.changes_data) for each in merged.files),
        *map(_changed, merged.feed),
    ]
    written = put_commit(location, version, merged.operation, actions, {**metadata, "readVersion": version - 1})
    if written:
        _checkpoint(location, table, version)
    return written


def _sizes(table: DeltaTable) -> dict[str, int]:
    files = pa.table(table.get_add_actions()).select(["path", "size_bytes"]).to_pydict()
    return dict(zip(files["path"], files["size_bytes"], strict=True))


def _is_unset(feature: str, properties: Mapping[str, str | None]) -> bool:
    begins = _UNTIL_SET.get(feature)
    found = [] if begins is None else [value for name, value in properties.items() if name.startswith(begins)]
    return begins is not None and all((value or "false").lower() in _OFF for value in found)


def _described(table: DeltaTable, schema: str) -> dict[str, Any]:
    """What a table is, as it was, but with another schema."""
    known = table.metadata()
    described = {
        "id": str(known.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(known.partition_columns),
        "configuration": dict(known.configuration),
        "createdTime": known.created_time,
        **{name: text for name in ("name", "description") if (text := getattr(known, name))},
    }
    return {"metaData": described}


def _removed(path: str, size: int, now: int, changes: bool) -> dict[str, Any]:
    described = {"deletionTimestamp": now, "extendedFileMetadata": True, "partitionValues": {}, "size": size}
    return {"remove": {"path": path, "dataChange": changes, **described}}


def _added(file: StagedFile, changes: bool) -> dict[str, Any]:
    described = {"partitionValues": {}, "size": file.size, "modificationTime": file.modified_ms, "stats": file.stats}
    return {"add": {"path": file.path, "dataChange": changes, **described}}


def _changed(file: StagedFile) -> dict[str, Any]:
    return {"cdc": {"path": file.path, "partitionValues": {}, "size": file.size, "dataChange": False}}


def _checkpoint(location: TableLocation, table: DeltaTable, version: int) -> None:
    """Write the checkpoint that is due at a version, as delta-rs does after commits of its own."""
    interval = table.metadata().configuration.get(_CHECKPOINT) or ""
    if not interval.isdecimal() or not int(interval) or version % int(interval):
        return
    try:
        location.make_checkpoint(version)
    except Exception as error:  # of as many kinds as there are stores; the next commit of delta-rs makes another
        why = said(error, location.storage_options)
        _log.info("%s: no checkpoint at version %d: %s", location.uri, version, why)
