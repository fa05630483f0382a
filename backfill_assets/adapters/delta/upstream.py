"""Delta tables as upstreams: their contents, the changes of each version, and whether these can still be read.

This module reads only logs, never data, and never with Spark. The strategies decide what to do with it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_assets.adapters.delta.column_metadata import collated, declared_types, keeps_names, stored_names
from backfill_assets.adapters.delta.commits import commit_timestamp, committed_at, read_commit
from backfill_assets.adapters.delta.footers import footer_rows
from backfill_assets.adapters.delta.known_log import KnownLog
from backfill_assets.adapters.delta.log_replay import (
    DataFile,
    LogGapError,
    LogReplay,
    Version,
    is_elsewhere,
    is_plain,
    is_plain_path,
)
from backfill_assets.adapters.delta.logged_changes import (
    BYTES_OF_ROW,
    Changed,
    changed,
    changed_bytes,
    changed_rows,
    is_data_change,
)
from backfill_assets.adapters.storage.store_errors import masked
from backfill_assets.adapters.storage.warehouse import LoadedTable, TableLocation
from backfill_assets.core.epoch.ports import Commit, TableSize, UpstreamState
from backfill_assets.core.progress.reads import (
    CaptureRead,
    ChangesRead,
    FullRead,
    HashRead,
    KeyRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
    TableRead,
)
from backfill_assets.core.progress.retention import retention_of
from backfill_assets.core.strategies.snapshot import files_of
from backfill_assets.errors import UpstreamChangedError, UpstreamRefusedError, VersionsLostError
from backfill_assets.query.ddl import Column, columns_of_delta
from backfill_assets.query.rowwise import CHANGE
from backfill_assets.query.struct_fields import keeps_fields

__all__ = ["APPEND_ONLY", "FEED", "ChangeFiles", "DeltaUpstream"]

FEED = "delta.enableChangeDataFeed"
APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True, kw_only=True)
class ChangeFiles:
    """The Parquet files with the changes of versions, relative to the table with this `schema` (JSON): `feed`, each with its
    size, with the table's columns and `_change_type`; `added` with inserted rows only, `removed` with deleted ones."""

    schema: str
    feed: Mapping[str, int]
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]


@dataclass
class DeltaUpstream:
    """One Delta table that a view reads. `key` returns the columns that identify a row, if they are known; `needed` those
    that must stay as they are, None if all; `kept` knows versions that the table's own log may no longer have; `follows`
    says whether changes have to be readable."""

    name: str
    location: TableLocation
    key: Callable[[], tuple[str, ...]] = tuple
    needed: Callable[[], Collection[str] | None] = lambda: None
    kept: Callable[[int], Version | None] = lambda _number: None
    follows: bool = True
    _log: LoadedTable = field(init=False)
    _replay: LogReplay = field(init=False)
    _kept: KnownLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = self.location.followed
        self._replay = LogReplay(self.location)
        self._kept = KnownLog(loads=self._log.loads)

    @property
    def _known(self) -> KnownLog:
        """What is known of the log that is followed now."""
        if self._kept.loads != self._log.loads:
            self._kept = KnownLog(loads=self._log.loads)
        return self._kept

    def now(self, *, again: bool = True) -> UpstreamState:
        """The version that `loaded` gives. Errors: `UpstreamRefusedError` if there is none, or if it cannot be followed."""
        table = self.loaded(again=again)
        self._check_followable(table.metadata().configuration, table.version())
        return UpstreamState(
            table_id=str(table.metadata().id),
            version=table.version(),
            commit_ms=committed_at(self.location, table.version(), self._actions(table.version())),
        )

    def retention(self) -> tuple[float, float]:
        """How long, in seconds, removed files and log entries are kept at least, according to the table's properties."""
        return retention_of(self.loaded(again=False).metadata().configuration)

    def columns(self) -> tuple[Column, ...]:
        """The columns of the table, as it was loaded last."""
        return columns_of_delta(self.loaded(again=False).schema().to_json())

    def collated(self) -> list[str]:
        """Those of its columns in which texts may be equal though their bytes differ."""
        return collated(self.loaded(again=False).schema().to_json())

    def has_feed(self, number: int) -> bool:
        """Whether a version wrote a change data feed; otherwise its added files are its changes."""
        return self._commit(number).feed

    def version(self, number: int) -> Version:
        """One version, with its files. Errors: `VersionsLostError`."""
        return self._known.versions.use(number, lambda: self._replayed(number))

    def _replayed(self, number: int) -> Version:
        try:
            return self._replay.version(number)
        except LogGapError as error:
            kept = self.kept(number)
            if kept is None:
                raise self._lost(number, str(error)) from None
            return kept

    def rows(self, number: int) -> Sequence[int]:
        """Rows of each file of a version, in the order of paths; from the file itself if the log does not have them."""
        return self._known.rows.use(number, lambda: tuple(self._rows_of(each) for each in self.version(number).files))

    def chosen(self, read: SnapshotRead | FullRead | LookupRead | HashRead) -> list[DataFile]:
        """The files that a read names."""
        files = self.version(read.version).files
        if isinstance(read, FullRead | LookupRead | HashRead):
            return list(files)
        return [
            files[index]
            for bucket, places in sorted(read.ranges.items())
            for index in files_of(len(files), bucket, read.buckets)[places.start : places.end]
        ]

    def added(self, read: ChangesRead) -> list[DataFile]:
        """The files that versions of an append-only table added."""
        return [each for number in range(read.first, read.last + 1) for each in self._changes(number).added]

    def changes(self, read: ChangesRead) -> list[Changed]:
        """What the log says of each version that a read names."""
        return [self._changes(number) for number in range(read.first, read.last + 1)]

    def change_files(self, read: ChangesRead) -> ChangeFiles | None:
        """The files with the changes of versions of a table with a feed, or, if this is incomplete, also with other rows.
        None if only Delta's own reader finds them: hidden rows, files removed as a whole, partitions, mapped columns.

        Source: the Delta protocol, "Reader Requirements for CDC": if a version has change files, they are all changes.
        """
        versions = self.changes(read)
        feed = {path: size for each in versions for path, size in each.feed.items()}
        added = tuple(file for each in versions if not each.feed for file in each.added)
        removed = tuple(file for each in versions if not each.feed for file in each.removed)
        paths = (*feed, *(file.path for file in (*added, *removed)))
        if not all(map(is_plain_path, paths)) or not all(each.is_plain for each in versions):
            return None
        try:
            table = self.location.load(version=read.last)
        except DeltaError:  # a table that delta-rs cannot load is not plain, but Spark may be able to read it
            return None
        if table is None or not (feed or added):
            return None
        protocol = table.protocol()
        if not is_plain(protocol.min_reader_version, protocol.reader_features, table.metadata().partition_columns):
            return None
        return ChangeFiles(schema=table.schema().to_json(), feed=feed, added=added, removed=removed)

    def commits(self, after: int, until: int) -> list[Commit]:
        """The changes of each version after one and up to another. Errors: `VersionsLostError`, `UpstreamChangedError`."""
        return [self._commit(number) for number in range(after + 1, until + 1)]

    def size(self) -> TableSize:
        """The size of the version that was loaded last; rows are estimated if its log does not have them."""
        files = pa.table(self.loaded(again=False).get_add_actions()).select(["num_records", "size_bytes"]).to_pylist()
        stated = [(each["num_records"], each["size_bytes"]) for each in files]
        rows = sum(size // BYTES_OF_ROW if rows is None else rows for rows, size in stated)
        return TableSize(rows=rows, bytes=sum(size for _, size in stated))

    def commit_timestamp(self, number: int) -> int | None:
        """The commit time recorded in a version; None if the log no longer has the version, or it records none."""

        def read() -> int | None:
            actions = read_commit(self.location, number)
            return None if actions is None else commit_timestamp(actions)

        return self._known.commit_timestamps.use(number, read)

    def check_readable(self, read: TableRead) -> None:
        """Check that every file that a read needs exists. Errors: `VersionsLostError`, naming the first missing file."""
        match read:
            case SnapshotRead():
                self._check_there({path: read.version for each in self.chosen(read) for path in each.needed})
            case KeyRead() | LookupRead() | HashRead():
                self.check_whole(read.version)
            case FullRead():
                self.check_whole(read.last)
            case SpoolRead():
                pass  # this read does not need the table
            case SkipRead():
                for version in read.versions:
                    self.check_whole(version)
            case ChangesRead() | CaptureRead():
                versions = range(read.first, read.last + 1)
                self._check_there({path: number for number in versions for path in self._changes(number).needed})

    def check_whole(self, number: int) -> None:
        """Check that every file of a version exists. Errors: `VersionsLostError`."""
        self._check_there({path: number for each in self.version(number).files for path in each.needed})

    def _check_there(self, paths: Mapping[str, int]) -> None:
        inside = {unquote(path): number for path, number in paths.items() if not is_elsewhere(path)}
        there = self.location.sizes(sorted(inside))
        for path in sorted(inside.keys() - there.keys()):
            raise self._lost(inside[path], f"its file {path} is missing")

    def _commit(self, number: int) -> Commit:
        """The changes of a version. Its log entry is read once; what is needed to read the changes is kept in memory."""
        return self._known.commits.use(number, lambda: self._read(number))[0]

    def _changes(self, number: int) -> Changed:
        return self._known.commits.use(number, lambda: self._read(number))[1]

    def _read(self, number: int) -> tuple[Commit, Changed]:
        actions = self._actions(number)
        described = next((each["metaData"] for each in actions if "metaData" in each), None)
        reshapes = described is not None and self._reshapes(described, number, actions)
        commit = Commit(
            version=number,
            commit_ms=committed_at(self.location, number, actions),
            rows=changed_rows(actions),
            feed=self._writes_feed(number, described),
            reshapes=reshapes,
            deletes=any(is_data_change(action, "remove") for action in actions),
            bytes=changed_bytes(actions),
        )
        return commit, changed(actions)

    def _actions(self, number: int) -> list[dict[str, Any]]:
        actions = read_commit(self.location, number)
        if actions is None:
            raise self._lost(number, "it is no longer in the table's log")
        return actions

    def _writes_feed(self, number: int, described: Mapping[str, Any] | None) -> bool:
        """Whether the change data feed is on at a version, by its metadata `described` or as before; `VersionsLostError`."""
        if described is not None:
            return (described.get("configuration") or {}).get(FEED) == "true"
        if (before := self._known.commits.get(number - 1)) is not None:
            return before[0].feed
        return self._at(number).metadata().configuration.get(FEED) == "true"

    def _at(self, number: int) -> DeltaTable:
        """A version as delta-rs loads it. Errors: `VersionsLostError`."""
        try:
            table = self.location.at(number)
        except DeltaError as error:
            raise self._lost(number, masked(str(error), self.location.storage_options)) from None
        if table is None:
            raise self._lost(number, "it is no longer in the table's log")
        return table

    def _reshapes(self, metadata: Mapping[str, Any], number: int, actions: list[dict[str, Any]]) -> bool:
        """Whether columns of the version before are no longer there as they were. A needed one among them that has not only
        got more fields, or the end of the change feed, is refused."""
        self._check_followable(metadata.get("configuration") or {}, number)
        if not number:
            return False
        before = self._at(number - 1)
        now = declared_types(metadata["schemaString"])
        was = declared_types(before.schema().to_json())
        gone = [name for name, kind in was.items() if now.get(name) != kind]
        for name in self._needed([each for each in gone if not keeps_fields(now.get(each, ""), was[each])]):
            raise UpstreamChangedError(
                f"version {number} of table {self.name!r} changed column {name!r}: expected type "
                f"{was[name]}, found {now.get(name, 'no such column')}",
                hint="what changed since then cannot be read, even if the column is restored: `backfill reset` the views "
                "over the table, once their queries fit its columns",
                version=number,
                column=name,
            )
        self._check_same_columns(before, metadata, number, actions)
        return bool(gone)

    def _check_same_columns(
        self, before: DeltaTable, metadata: Mapping[str, Any], number: int, actions: list[dict[str, Any]]
    ) -> None:
        """Refuse a column that takes the name of another one: rows that no version changed would get other values."""
        was = stored_names(before.schema().to_json(), before.metadata().configuration)
        now = stored_names(metadata["schemaString"], metadata.get("configuration") or {})
        others = self._needed([name for name in was if name in now and not keeps_names(now[name], was[name])])
        if others and self._keeps_files(number, actions):
            raise UpstreamChangedError(
                f"version {number} of table {self.name!r} has another column under the name {others[0]!r} than before",
                hint="a column was dropped and added again, took another column's name, or was restored after that. "
                "Restore the columns, or reset the views over the table",
                version=number,
                column=others[0],
            )

    def _needed(self, columns: list[str]) -> list[str]:
        """Those of some columns that must stay as they are."""
        needed = self.needed() if columns else None
        return columns if needed is None else [each for each in columns if each in needed]

    def _keeps_files(self, number: int, actions: list[dict[str, Any]]) -> bool:
        """Whether a commit keeps any file of the version before it."""
        gone, again = ({each[kind]["path"] for each in actions if kind in each} for kind in ("remove", "add"))
        return any(each.path not in gone - again for each in self.version(number - 1).files)

    def _check_followable(self, configuration: Mapping[str, str | None], number: int) -> None:
        if self.follows and configuration.get(FEED) != "true" and configuration.get(APPEND_ONLY) != "true":
            raise UpstreamRefusedError(
                f"table {self.name!r} has no change data feed at version {number} and is not append-only, so its changes "
                "cannot be followed",
                hint=f"ALTER TABLE … SET TBLPROPERTIES ('{FEED}' = 'true'), or ('{APPEND_ONLY}' = 'true') if rows are "
                "only ever added; then reset the views that read it",
                reason="NO_CHANGE_FEED",
                version=number,
            )

    def loaded(self, *, again: bool = True) -> DeltaTable:
        """The newest version, as delta-rs loads it; unless `again`, the one that was loaded last, if one was. Errors:
        `UpstreamRefusedError` if there is none, or if it cannot."""
        try:
            table = self._log.newest() if again else self.location.last()
        except DeltaError as error:
            raise UpstreamRefusedError(
                f"delta-rs cannot read the log of table {self.name!r} at {self.location.uri}: "
                f"{masked(str(error), self.location.storage_options)}",
                hint="if this names a feature: ALTER TABLE … DROP FEATURE, or let the view read a copy of the table without "
                "it. Otherwise the log is damaged: restore it from a backup",
                reason="NOT_READABLE",
            ) from None
        taken = (
            [] if table is None else [each.name for each in table.schema().fields if each.name.lower() == CHANGE.name]
        )
        if taken:
            raise UpstreamRefusedError(
                f"table {self.name!r} has a column {taken[0]!r}: the change data feed has one of this name, so its changes "
                "could not be told",
                hint="let the view read a table or view that gives the column another name",
                reason="RESERVED_COLUMN",
                column=taken[0],
            )
        if table is None:
            raise UpstreamRefusedError(
                f"there is no Delta table at {self.location.uri} (declared as {self.name!r})",
                hint="check the path of delta_table(...); a relative path starts at the project's root",
                reason="NO_TABLE",
            )
        return table

    def _rows_of(self, file: DataFile) -> int:
        if file.stated_rows is not None:
            return file.stated_rows
        return footer_rows(self.location, {file.path: file.size}) - file.deleted

    def _lost(self, number: int, what: str) -> VersionsLostError:
        return VersionsLostError(
            f"table {self.name!r}: version {number} can no longer be read: {what}",
            hint="nothing was skipped. Reset the views that read it. To prevent this, raise "
            "delta.deletedFileRetentionDuration and delta.logRetentionDuration of the table, or VACUUM it less",
            version=number,
        )
