"""A small Delta table that keeps the newest row for each key, written by appends only, so that writers never clash.

Readers of any kind see a plain table with a `written_at` column. Old rows are dropped when the files get many; that
rewrite gives way to any writer that comes between.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from backfill_assets.resources.warehouse import TableLocation, delete_rows

__all__ = ["KeyedLog"]

COMPACT_FILES = 40
KEPT_HOURS = 1
PROPERTIES = {"delta.logRetentionDuration": "interval 2 hours", "delta.checkpointInterval": "10"}
"""Leases are renewed all the time: the log of such a table would soon be longer than all others, and is read by all."""
_WRITTEN = pa.field("written_at", pa.timestamp("us", tz="UTC"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class KeyedLog:
    """Rows of `columns`, of which `keys` name a thing and the newest one counts."""

    location: TableLocation
    columns: pa.Schema
    keys: tuple[str, ...]

    def put(self, row: dict[str, object], *, at: datetime) -> None:
        """Append a row that replaces earlier ones of its key, also where their writer's clock was ahead."""
        key = [row[name] for name in self.keys]
        before = [each["written_at"] for each in self.newest() if [each[name] for name in self.keys] == key]
        stamp = max([at, *(each + timedelta(microseconds=1) for each in before if isinstance(each, datetime))])
        self._append([{**row, "written_at": stamp}])

    def newest(self) -> list[dict[str, object]]:
        """The newest row of each key, in no order."""
        table = self.location.load()
        return [] if table is None else _newest(self.location, table, self.keys)

    def remove(self, key: str, value: str) -> None:
        """Delete all rows that hold `value` in column `key`."""
        delete_rows(self.location, **{key: value})

    def _append(self, rows: list[dict[str, object]]) -> None:
        schema = self.columns.append(_WRITTEN)
        data = pa.Table.from_pylist(rows, schema=schema)
        table = self.location.load()
        if table is None:
            options = dict(self.location.storage_options) or None
            table = DeltaTable.create(
                self.location.uri, schema, mode="ignore", configuration=PROPERTIES, storage_options=options
            )
        write_deltalake(table, data, mode="append")
        if len(table.file_uris()) > COMPACT_FILES:
            self._compact(schema)

    def _compact(self, schema: pa.Schema) -> None:
        table = self.location.load()
        if table is None:
            return
        data = pa.Table.from_pylist(_newest(self.location, table, self.keys), schema=schema)
        try:
            write_deltalake(table, data, mode="overwrite", commit_properties=CommitProperties(max_commit_retries=0))
            # Readers open a version at once; an hour is ample for one that has just loaded an older one.
            table.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
        except (CommitFailedError, DeltaError) as error:
            _log.debug("%s: compaction gave way: %s", self.location.uri, error)


def _newest(location: TableLocation, table: DeltaTable, keys: tuple[str, ...]) -> list[dict[str, object]]:
    filesystem = location.files()
    found: dict[tuple[object, ...], tuple[datetime, dict[str, object]]] = {}
    for path in table.get_add_actions().column("path").to_pylist():
        with filesystem.open_input_file(path) as stream:
            rows = pq.ParquetFile(stream).read()
        for row, written_at in zip(rows.drop_columns([_WRITTEN.name]).to_pylist(), _stamps(rows), strict=True):
            key = tuple(row[name] for name in keys)
            if key not in found or written_at >= found[key][0]:
                found[key] = written_at, row
    return [{**row, _WRITTEN.name: written_at} for written_at, row in found.values()]


def _stamps(rows: pa.Table) -> list[datetime]:
    """When rows were written. From the numbers that they are: Arrow's own datasets and times bring pandas, which takes
    each command a sixth of a second."""
    chunks = rows.column(_WRITTEN.name).chunks
    return [_EPOCH + timedelta(microseconds=each) for chunk in chunks for each in chunk.view(pa.int64()).to_pylist()]
