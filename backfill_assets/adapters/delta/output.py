"""One Delta table that only epochs change: reads its log and commits to it, through delta-rs.

The metadata of a commit is in `userMetadata`, where Spark's DESCRIBE HISTORY shows it. This module does not know what is
computed; `staging` describes the files that are committed here.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from backfill_assets.adapters.delta.column_metadata import with_metadata
from backfill_assets.adapters.delta.commits import (
    committed_at,
    metadata_of,
    read_commit,
    readable_records,
)
from backfill_assets.adapters.delta.created_table import STATUS_PROPERTY
from backfill_assets.adapters.delta.epochs_in_log import EpochsInLog
from backfill_assets.adapters.delta.file_bounds import are_exact, parquet_statistics, remove_inexact, suit
from backfill_assets.adapters.delta.layout import compact
from backfill_assets.adapters.delta.maintenance import set_properties
from backfill_assets.adapters.delta.merged_files import (
    Merged,
    MergeLarge,
    asks_more,
    check_features,
    check_rows,
    check_unmapped,
    commit_merged,
    reorders,
    written,
)
from backfill_assets.adapters.delta.merged_rows import are_findable, merge_rows
from backfill_assets.adapters.delta.same_key import column, lies_in, same_key
from backfill_assets.adapters.delta.staging import changed_rows, check_columns
from backfill_assets.adapters.delta.touched_files import (
    changes_of_files,
    changes_of_rows,
    touched_files,
    touched_values,
)
from backfill_assets.adapters.storage.store_errors import mask, said
from backfill_assets.adapters.storage.warehouse import LoadedTable, Mark, TableLocation
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged, StagedFile, TableState, app_id
from backfill_assets.core.progress.retention import retention_of
from backfill_assets.errors import PositionsLostError, StagingError, StoredFormatError, TableFeatureError
from backfill_assets.query.working_columns import OPERATION

__all__ = ["DeltaOutput"]

_log = logging.getLogger(__name__)
_NO_CLEANUP = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)

MERGE_MEMORY = 6 * 2**30
"""Bytes of memory that a merge in this process may take; what needs more is merged by Spark."""
MEMORY_OF_BYTE = 4
"""Memory that delta-rs needs per byte of data files in a merge (measured: 3.7 GB for 1 GB)."""

NO_MORE_EPOCHS = 2**62


def _no_merge(location: TableLocation, _table: DeltaTable, _staged: Staged) -> Merged:
    raise AssertionError(f"{location.uri} accepts no keyed changes")


@dataclass
class DeltaOutput:
    """`ports.Output` on Delta. `schema` returns the Delta schema (as JSON) of the table's next life. Small files are
    compacted to ones of about `rows_of_file`, if its rows are laid out by a key."""

    location: TableLocation
    target: str
    schema: Callable[[], str]
    merge_large: "MergeLarge" = field(default=_no_merge)
    merge_memory: int = MERGE_MEMORY
    rows_of_file: int | None = None
    _epochs: EpochsInLog = field(init=False)
    _log: LoadedTable = field(init=False)
    _table: DeltaTable | None = field(default=None, init=False)
    _at: int = field(default=-1, init=False)
    _seen: tuple[Mark | None, TableState] = field(default=(None, TableState(version=-1)), init=False)

    def __post_init__(self) -> None:
        self._log = self.location.followed
        self._epochs = EpochsInLog(location=self.location, target=self.target)

    def look(self) -> TableState:
        """Load the newest version, and read its log back to the newest commit of this project.

        `PositionsLostError` if the log was cleaned up and no longer has such a commit: such a table is not new, but
        cannot be continued either. `StoredFormatError` if the newest commit has another format.
        """
        found = self._looked()
        if found.record is None and found.version >= 0 and read_commit(self.location, 0) is None:
            raise PositionsLostError(
                f"{self.target}: the table is at version {found.version}, but its log was cleaned up and has none of its "
                "epochs any more, so its position is unknown",
                hint=f"`backfill reset {self.target.partition('/')[2]}` rebuilds it; to keep it, restore its _delta_log "
                "from a backup. Leave delta.enableExpiredLogCleanup off, so that it does not happen again",
                version=found.version,
            )
        return found

    def look_for_reset(self) -> TableState:
        """Like `look`, for a caller that starts from scratch anyway: lost or unreadable positions count as none."""
        try:
            return self._looked()
        except StoredFormatError:
            assert self._table is not None
            return TableState(version=self._table.version())

    def _looked(self) -> TableState:
        self._table = table = self._newest()
        self._at = -1 if table is None else table.version()
        if table is None:
            return TableState(version=-1)
        mark = self._log.mark
        if mark is None or mark != self._seen[0]:
            self._seen = (mark, self._epochs.state(table.version()))
        return self._seen[1]

    def _newest(self) -> DeltaTable | None:
        try:
            return self._log.newest()
        except DeltaError as error:
            raise TableFeatureError(
                f"delta-rs cannot read the log of {self.target} at {self.location.uri}: "
                f"{said(error, self.location.storage_options)}",
                hint="nothing was written. If this names a feature, whoever enabled it can take it back (ALTER TABLE … DROP "
                "FEATURE). Otherwise the log is damaged: restore it from a backup. Or delete the table's folder, and refresh",
            ) from None

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        """Make one commit on the version loaded by the last `look`, without retries.

        If the table's property lists columns for which the staged files have no bounds, the property is shortened
        instead, no commit is made, and the caller has to `look` again.
        """
        table = self._table
        assert table is not None
        if table.version() != self._at:
            raise CommitFailedError(f"{self.location.uri}: version {table.version()} was read since version {self._at}")
        try:
            if staged.files and not self._bounds_suit(table, staged.files):
                self._log.forget()
            elif staged.appends:
                self._append(table, record, staged)
            elif record.engine == "delta-rs" or (record.engine == "arrow" and asks_more(table)):
                # Somebody may have asked more of writers since the engine was chosen.
                self._merge(table, record.model_copy(update={"engine": "delta-rs"}), staged)
            elif not self._log.has_newer():  # otherwise it would be computed for nothing
                merge = merge_rows if record.engine == "arrow" else self.merge_large
                self._merge_and_put(table, record, staged, merge)
        except Exception as error:
            mask(error, self.location.storage_options)  # it is told what the store has said
            self._log.forget()  # only a new load shows the outcome of the commit
            raise
        finally:
            self.location.forget_files()

    def _bounds_suit(self, table: DeltaTable, files: Sequence[StagedFile]) -> bool:
        if are_exact(table):
            return suit(self.location, table, files)
        remove_inexact(self.location)
        return False

    def engine(self, staged: Staged) -> str:
        """How to commit: files are committed unchanged if no single row is replaced; otherwise they are merged, in
        memory if they fit."""
        if staged.replaces:
            return "overwrite"
        if staged.appends:
            return "append"
        table = self._table
        if table is None:
            return "arrow"
        touched = touched_files(table, changes_of_files(table, staged.key, staged.files))
        needed = MEMORY_OF_BYTE * (sum(each.size for each in touched) + sum(each.size for each in staged.files))
        if needed > self.merge_memory:
            return "spark"
        return "delta-rs" if asks_more(table) or not are_findable(table, staged.key) else "arrow"

    def _append(self, table: DeltaTable, record: CommitRecord, staged: Staged) -> None:
        named = staged.delta_schema or (self.schema() if record.kind is CommitKind.CREATE else "")
        if named:
            check_unmapped(self.target, table)
        if named and record.kind is CommitKind.EPOCH:
            named = with_metadata(named, table.schema().to_json())
        schema = Schema.from_json(named) if named else table.schema()
        anew = bool(named) and reorders(table.schema(), schema)
        if (anew or not (named or staged.replaces)) and not asks_more(table):
            made, numbers = written(table, staged, schema if anew else None), self._numbers(record)
            if not commit_merged(self.location, table, made, numbers=numbers, metadata=metadata_of(record)):
                raise CommitFailedError(f"{self.location.uri}: there is a version {table.version() + 1} already")
            return
        self.location.to_write(table).create_write_transaction(
            [_add(each) for each in staged.files],
            "overwrite" if staged.replaces else "append",
            schema,
            commit_properties=self._properties(record),
            post_commithook_properties=_NO_CLEANUP,
        )

    def _merge(self, table: DeltaTable, record: CommitRecord, staged: Staged) -> None:
        names = [each.name for each in table.schema().fields]
        values = {column("t", name): column("s", name) for name in names}
        rows = changed_rows(self.location, staged)
        spans = touched_values(table, changes_of_rows(table, staged.key, rows))
        self.location.to_write(table).merge(
            rows,
            " AND ".join([same_key(table.schema(), staged.key), *lies_in("t", spans)]),
            source_alias="s",
            target_alias="t",
            writer_properties=parquet_statistics(table),
            commit_properties=self._properties(record),
            post_commithook_properties=_NO_CLEANUP,
        ).when_matched_delete(f"s.{OPERATION} = 'delete'").when_matched_update(
            values, f"s.{OPERATION} <> 'delete'"
        ).when_not_matched_insert(values, f"s.{OPERATION} <> 'delete'").execute()

    def _merge_and_put(self, table: DeltaTable, record: CommitRecord, staged: Staged, merge: MergeLarge) -> None:
        check_features(self.target, table)
        merged = merge(self.location, table, staged)
        check_rows(self.target, table, staged, merged)
        check_columns(self.target, table.schema().to_json(), merged.files)
        if not self._bounds_suit(table, [*merged.files]):
            self._log.forget()
            return
        numbers, metadata = self._numbers(record), metadata_of(record)
        if not commit_merged(self.location, table, merged, numbers=numbers, metadata=metadata):
            self._log.forget()

    def _properties(self, record: CommitRecord) -> CommitProperties:
        """Numbers and metadata of a commit."""
        return CommitProperties(
            app_transactions=[Transaction(app, number) for app, number in self._numbers(record).items()],
            max_commit_retries=0,
            custom_metadata=metadata_of(record),
        )

    def _numbers(self, record: CommitRecord) -> dict[str, int]:
        """The numbers of a commit by life. One that ends a life uses up its numbers, so that no writer can follow."""
        numbers = {app_id(record.target, record.incarnation): record.epoch}
        if record.kind in {CommitKind.CREATE, CommitKind.DROP} and self._epochs.life:
            numbers[app_id(record.target, self._epochs.life)] = NO_MORE_EPOCHS
        return numbers

    def verify(self, staged: Staged) -> None:
        """Check that every staged file exists with its size, that the rows add up to what Spark reported, and that the
        files have exactly the columns of the table. `TableFeatureError` if the table does not support the merge."""
        rows = sum(each.rows for each in staged.files)
        if rows != staged.rows:
            raise StagingError(
                f"{self.target}: Spark reported {staged.rows} rows, but the staged files have {rows}",
                hint="nothing was committed; run it again",
                expected=staged.rows,
                found=rows,
            )
        sizes = {each.path: each.size for each in staged.files}
        found = self.location.sizes(list(sizes))
        missing = sorted(path for path, size in sizes.items() if found.get(path) != size)
        if missing:
            raise StagingError(
                f"{self.target}: {len(missing)} of {len(sizes)} staged files are missing or truncated, first {missing[0]}",
                hint="nothing was committed; run it again. If something vacuums the warehouse without retention, stop it",
                missing=missing,
            )
        if staged.files and self._table is not None:
            schema = staged.delta_schema or self._table.schema().to_json()
            check_columns(self.target, schema, staged.files)
            if self.engine(staged) == "spark":
                check_features(self.target, self._table)

    def set_status(self, status: str) -> bool:
        """Set `creating`, `live` or `dropped` in the table's properties; returns whether anything changed.

        A table that had the status at the last `look` is not asked again.
        """
        return not self.has_status(status) and set_properties(self.location, {STATUS_PROPERTY: status})

    def has_status(self, status: str) -> bool:
        """Whether the table had this status at the last `look`."""
        return self._table is not None and self._table.metadata().configuration.get(STATUS_PROPERTY) == status

    def keep_bounds(self, *, thoroughly: bool) -> bool:
        """Keep in the log only the bounds of columns whose bounds are exact and in all files; returns whether anything
        changed. Without `thoroughly`, a table whose property says so is trusted."""
        assert self._table is not None
        return (thoroughly or not are_exact(self._table)) and remove_inexact(self.location)

    def is_ours(self) -> bool:
        """Whether the table's properties say that it was created here; its log may have lost all epochs."""
        table = self.location.load()
        return table is not None and STATUS_PROPERTY in table.metadata().configuration

    def compact(self, files: int) -> None:
        """Compact small files if the last `look` (one is made if there was none) found at least `files` of them. Changes no
        data, and yields to any other writer."""
        looked = self._table or self._newest()
        if looked is None or len(looked.file_uris()) < files or not are_exact(looked):
            return
        compact(self.location, self.rows_of_file)

    def vacuum(self, retention_hours: int) -> None:
        """Delete files that the table has not referred to for some time; never staged files."""
        table = self.location.load()
        if table is not None:
            table.vacuum(retention_hours, dry_run=False, enforce_retention_duration=False, full=False)

    def log_retention(self) -> float:
        """How long log entries are kept at least, in seconds, according to the version loaded by the last `look`;
        infinite if the property is not an interval."""
        assert self._table is not None
        try:
            return retention_of(self._table.metadata().configuration)[1]
        except ValueError:
            return math.inf

    def expire_log(self) -> None:
        """Delete log entries older than the retention, except those that a newer version is built from, and those
        beyond the version loaded by the last `look`."""
        assert self._table is not None
        try:
            self.location.to_write(self._table).cleanup_metadata()
        except (DeltaError, OSError) as error:  # others may be deleting the same entries
            why = said(error, self.location.storage_options)
            _log.info("%s: old log entries were not deleted: %s", self.target, why)

    def records(self, count: int) -> list[CommitRecord]:
        """The newest `count` commits of this project, newest first; for reports."""
        return [record for record, _ in self.timed_records(count)]

    def timed_records(self, count: int) -> list[tuple[CommitRecord, float]]:
        """The newest `count` commits of this project, newest first, each with its time in seconds since 1970; as of the last
        `look`, if there was one."""
        table = self._table or self.location.load()
        found: list[tuple[CommitRecord, float]] = []
        if table is None or count <= 0:
            return found
        for version, actions, record in readable_records(self.location, table.version(), self.target):
            found.append((record, committed_at(self.location, version, actions) / 1000))
            if len(found) == count:
                break
        return found

    def life(self, *, since: int, version: int | None = None) -> list[CommitRecord]:
        """The commits of the current life from epoch `since` on, oldest first, up to a `version` (None: the newest); if an
        epoch was restated, its newest commit."""
        if version is None:
            table = self._log.newest()
            version = -1 if table is None else table.version()
        found: dict[int, CommitRecord] = {}
        incarnation = ""
        for _, _, record in readable_records(self.location, version, self.target):
            incarnation = incarnation or record.incarnation
            if record.incarnation != incarnation or record.epoch < since:
                break
            found.setdefault(record.epoch, record)  # newest first, so a restated epoch comes before its original
        return [found[epoch] for epoch in sorted(found)]


def _add(file: StagedFile) -> AddAction:
    return AddAction(file.path, file.size, {}, file.modified_ms, True, file.stats)
