"""One Delta table that only epochs change: looking at its log, and committing to it, through delta-rs.

The commit's metadata lies in `userMetadata`, where Spark's DESCRIBE HISTORY shows it. Knows nothing of what is
computed; `staging` makes the files that are committed here.
"""

import json
import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from backfill_assets.adapters.delta.commits import (
    Actions,
    changes_data,
    commits_of,
    committed_at,
    metadata_of,
    read_commit,
    readable_records,
    record_of,
    staged_folder_of,
)
from backfill_assets.adapters.delta.file_bounds import are_exact, mend, parquet_statistics, suit
from backfill_assets.adapters.delta.maintenance import set_properties
from backfill_assets.adapters.delta.same_key import column, same_key
from backfill_assets.adapters.delta.staging import check_columns
from backfill_assets.adapters.delta.upstream import retention_of
from backfill_assets.adapters.storage.warehouse import LoadedTable, TableLocation
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS, boundable, naming
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged, StagedFile, TableState, app_id
from backfill_assets.errors import PositionsLostError, StagingError, StoredFormatError

__all__ = ["STATUS_PROPERTY", "DeltaOutput", "create_table"]

STATUS_PROPERTY = "backfill.status"

_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    # Positions are in commit metadata, and views read the log: nobody else's commit may expire it, only `expire_log`.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.checkpointInterval": "10",
    STATUS_PROPERTY: "creating",
}
_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    # A later life may have a column of this type, and a protocol cannot change in the commit that brings it.
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["appendOnly", "changeDataFeed", "invariants", "timestampNtz"],
}

_log = logging.getLogger(__name__)
_NO_CLEANUP = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


MERGE_MEMORY = 6 * 2**30
"""Bytes of memory that a merge in this process may take; what needs more is merged by Spark."""

MEMORY_OF_BYTE = 4
"""Memory that delta-rs takes for a byte of data files when it merges (measured: 3.7 GB for 1 GB)."""

NO_MORE_EPOCHS = 2**62

MergeLarge = Callable[[TableLocation, CommitRecord, Staged], None]
"""Merges keyed changes that do not fit in memory, in one commit with the record's number and metadata."""


def _no_merge(location: TableLocation, _record: CommitRecord, _staged: Staged) -> None:
    raise AssertionError(f"{location.uri} takes no keyed changes")


def create_table(location: TableLocation, schema: str) -> None:
    """Make an empty output table, unless there is a table already.

    Its first log entry is written as it stands, for delta-rs creates no table with a feature or property of another's,
    and Spark takes a second and the defaults of whoever configured it.

    Args:
        location: Where.
        schema: The Delta schema, as JSON; all columns nullable.
    """
    now = int(time.time() * 1000)
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {**_PROPERTIES, BOUNDED_COLUMNS: naming(boundable(schema))},
        "createdTime": now,
    }
    created = {
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "engineInfo": "backfill-assets",
    }
    actions = [{"commitInfo": created}, {"protocol": _PROTOCOL}, {"metaData": metadata}]
    location.objects().put_if_absent(f"_delta_log/{0:020d}.json", "\n".join(map(json.dumps, actions)).encode())


@dataclass
class DeltaOutput:
    """`ports.Output` on Delta. `schema` gives the Delta schema (as JSON) of the table's next life."""

    location: TableLocation
    target: str
    schema: Callable[[], str]
    merge_large: "MergeLarge" = field(default=_no_merge)
    merge_memory: int = MERGE_MEMORY
    _life: str = field(default="", init=False)
    _log: LoadedTable = field(init=False)
    _table: DeltaTable | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = LoadedTable(self.location)

    def look(self) -> TableState:
        """Load the newest version and read its log back to the newest commit of ours.

        `PositionsLostError` where the log was cleaned up and holds no commit of ours any more, `StoredFormatError` where
        the newest one is of another format: such a table is neither new nor to be resumed.
        """
        found = self._looked()
        if found.record is None and found.version >= 0 and read_commit(self.location.files(), 0) is None:
            raise PositionsLostError(
                f"{self.target}: the table is at version {found.version}, but its log was cleaned up and holds none of its "
                "epochs any more: how far it is cannot be known",
                hint=f"`backfill reset {self.target.partition('/')[2]}` rebuilds it; to keep it, restore its _delta_log "
                "from a backup. Leave delta.enableExpiredLogCleanup off, so that it does not happen again",
                version=found.version,
            )
        return found

    def look_for_reset(self) -> TableState:
        """As `look`, for one who starts over in any case: positions that are lost, or cannot be read, count as none."""
        try:
            return self._looked()
        except StoredFormatError:
            assert self._table is not None
            return TableState(version=self._table.version())

    def _looked(self) -> TableState:
        self._table = table = self._log.newest()
        if table is None:
            return TableState(version=-1)
        version = table.version()
        external = None
        described: list[tuple[int, str]] = []
        log = commits_of(self.location, version)
        for at, actions in log:
            ours = staged_folder_of(actions, self.target)
            self._life = self._life if ours is None else ours.incarnation
            record = record_of(actions, self.target, at)
            if record is not None:
                found = (external, self._reshaped(at, described), self._interleaved_write(record, at, log))
                external = min((each for each in found if each is not None), default=None)
                number = table.transaction_version(app_id(self.target, record.incarnation))
                return TableState(version=version, record=record, at=at, transaction=number, external=external)
            if changes_data(actions):
                external = at
            described += _described(at, actions)
        return TableState(version=version, external=external)

    def _interleaved_write(self, record: CommitRecord, at: int, before: Iterable[tuple[int, Actions]]) -> int | None:
        """The first version that changed rows or columns between a commit and the version that it was to be made on.

        Spark takes the newest version for its merge, whichever was looked at.
        """
        read_version = record.base
        if read_version is None or read_version >= at - 1:
            return None
        between = list(takewhile(lambda commit: commit[0] > read_version, before))
        changed = [number for number, actions in between if changes_data(actions)]
        reshaped = self._reshaped(read_version, [each for commit in between for each in _described(*commit)])
        return min(changed if reshaped is None else [*changed, reshaped], default=None)

    def _reshaped(self, since: int, described: list[tuple[int, str]]) -> int | None:
        """The first version after our commit `since` that changed the columns; properties are free to change."""
        before = self.location.load(version=since) if described else None
        changed = [at for at, schema in described if before is not None and Schema.from_json(schema) != before.schema()]
        return min(changed, default=None)

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        """One commit on the version loaded by the last `look`, without retries.

        None is made on a table that does not name the columns whose bounds are exact and in all files: it does from then
        on, and is to be looked at again.
        """
        table = self._table
        assert table is not None
        record = record.model_copy(update={"base": table.version()})
        try:
            if staged.files and not self._bounds_suit(table, staged):
                self._log.forget()
            elif staged.appends:
                self._append(table, record, staged)
            elif record.engine == "delta-rs":
                self._merge(table, record, staged)
            elif not self._log.has_newer():  # else Spark would merge into what nobody looked at: look again first
                self.merge_large(self.location, record, staged)
                self._log.forget()
        except Exception:
            self._log.forget()  # only a fresh load shows what has become of the commit
            raise

    def _bounds_suit(self, table: DeltaTable, staged: Staged) -> bool:
        if are_exact(table):
            return suit(self.location, table, staged.files)
        mend(self.location)
        return False

    def engine(self, staged: Staged) -> str:
        """What would commit this: files are committed as they are where no single row is replaced; else a merge, in memory
        if it fits."""
        if staged.replaces:
            return "overwrite"
        if staged.appends:
            return "append"
        table = self._table
        held = 0 if table is None else sum(table.get_add_actions().column("size_bytes").to_pylist())
        needed = MEMORY_OF_BYTE * (held + sum(each.size for each in staged.files))
        return "delta-rs" if needed <= self.merge_memory else "spark"

    def _append(self, table: DeltaTable, record: CommitRecord, staged: Staged) -> None:
        new_life = record.kind is CommitKind.CREATE
        table.create_write_transaction(
            [_add(each) for each in staged.files],
            "overwrite" if staged.replaces else "append",
            Schema.from_json(self.schema()) if new_life else table.schema(),
            commit_properties=self._properties(record),
            post_commithook_properties=_NO_CLEANUP,
        )

    def _merge(self, table: DeltaTable, record: CommitRecord, staged: Staged) -> None:
        names = [each.name for each in table.schema().fields]
        values = {column("t", name): column("s", name) for name in names}
        table.merge(
            changed_rows(self.location, staged),
            same_key(table.schema(), staged.key),
            source_alias="s",
            target_alias="t",
            writer_properties=parquet_statistics(table),
            commit_properties=self._properties(record),
            post_commithook_properties=_NO_CLEANUP,
        ).when_matched_delete("s.__op = 'delete'").when_matched_update(
            values, "s.__op <> 'delete'"
        ).when_not_matched_insert(values, "s.__op <> 'delete'").execute()

    def _properties(self, record: CommitRecord) -> CommitProperties:
        """Number and metadata of a commit. One that ends a life uses up its numbers: no later merge can join it."""
        numbers = {app_id(record.target, record.incarnation): record.epoch}
        if record.kind in {CommitKind.CREATE, CommitKind.DROP} and self._life:
            numbers[app_id(record.target, self._life)] = NO_MORE_EPOCHS
        return CommitProperties(
            app_transactions=[Transaction(app, number) for app, number in numbers.items()],
            max_commit_retries=0,
            custom_metadata=metadata_of(record),
        )

    def verify(self, staged: Staged) -> None:
        """Check that every staged file is there with its size, that rows add up to what Spark reported, and that files have
        just the columns of the table as it was looked at."""
        rows = sum(each.rows for each in staged.files)
        if rows != staged.rows:
            raise StagingError(
                f"{self.target}: Spark reported {staged.rows} rows, but the staged files hold {rows}",
                hint="nothing was committed; run it again",
                expected=staged.rows,
                found=rows,
            )
        sizes = {each.path: each.size for each in staged.files}
        found = {info.path: info.size for info in self.location.files().get_file_info(list(sizes))}
        missing = sorted(path for path, size in sizes.items() if found.get(path) != size)
        if missing:
            raise StagingError(
                f"{self.target}: {len(missing)} of {len(sizes)} staged files are missing or cut short, first {missing[0]}",
                hint="nothing was committed; run it again. If something vacuums the warehouse with no retention, stop it",
                missing=missing,
            )
        if staged.files and self._table is not None:
            check_columns(self.target, self._table, staged.files)

    def set_status(self, status: str) -> bool:
        """Make the table say `creating`, `live` or `dropped` in its properties; returns whether it did not do so yet."""
        return set_properties(self.location, {STATUS_PROPERTY: status})

    def keep_bounds(self, *, thoroughly: bool) -> bool:
        """Make the log state bounds of just those columns whose bounds are exact and in all files; returns whether it did not
        do so yet. Unless `thoroughly`, a table that says of itself that it does is believed."""
        assert self._table is not None
        return (thoroughly or not are_exact(self._table)) and mend(self.location)

    def is_ours(self) -> bool:
        """Whether the table says of itself that it was made here; its log may have lost all epochs since."""
        table = self.location.load()
        return table is not None and STATUS_PROPERTY in table.metadata().configuration

    def compact(self, files: int) -> None:
        """Merge small files once there are at least `files` of them; changes no data. Gives way to any other writer."""
        table = self.location.load()
        if table is None or len(table.file_uris()) < files or not are_exact(table):
            return
        try:
            table.optimize.compact(writer_properties=parquet_statistics(table))
        except (CommitFailedError, DeltaError) as error:
            _log.info("%s: compaction gave way: %s", self.target, error)

    def vacuum(self, retention_hours: int) -> None:
        """Delete files that the table has not referred to for so long. Staged files are never touched by it."""
        table = self.location.load()
        if table is not None:
            table.vacuum(retention_hours, dry_run=False, enforce_retention_duration=False, full=False)

    def log_retention(self) -> float:
        """How long, in seconds, entries of the log are kept at least, as the version loaded by the last `look` has it; for
        ever, if what it says is no length of time."""
        assert self._table is not None
        try:
            return retention_of(self._table.metadata().configuration)[1]
        except ValueError:
            return math.inf

    def expire_log(self) -> None:
        """Delete entries of the log that are older than its retention, as far as no younger version is made of them; at the
        most up to the version loaded by the last `look`."""
        assert self._table is not None
        try:
            self._table.cleanup_metadata()
        except (DeltaError, OSError) as error:  # others may be deleting the same entries
            _log.info("%s: its log was not shortened: %s", self.target, error)

    def records(self, count: int) -> list[CommitRecord]:
        """The newest `count` commits of ours, newest first; for reports."""
        return [record for record, _ in self.timed_records(count)]

    def timed_records(self, count: int) -> list[tuple[CommitRecord, float]]:
        """The newest `count` commits of ours, newest first, each with when it was made (seconds since 1970)."""
        table = self.location.load()
        found: list[tuple[CommitRecord, float]] = []
        if table is None or count <= 0:
            return found
        for version, actions, record in readable_records(self.location, table.version(), self.target):
            found.append((record, committed_at(self.location, version, actions) / 1000))
            if len(found) == count:
                break
        return found

    def life(self, *, since: int) -> list[CommitRecord]:
        """The commits of the current life from epoch `since` on, oldest first: of each epoch its newest one."""
        table = self.location.load()
        found: dict[int, CommitRecord] = {}
        if table is None:
            return []
        incarnation = ""
        for _, _, record in readable_records(self.location, table.version(), self.target):
            incarnation = incarnation or record.incarnation
            if record.incarnation != incarnation or record.epoch < since:
                break
            found.setdefault(record.epoch, record)  # one that restates the positions comes before what it restates
        return [found[epoch] for epoch in sorted(found)]


def _described(at: int, actions: Actions) -> list[tuple[int, str]]:
    """The version of a commit with each schema that it gives the table."""
    return [(at, action["metaData"]["schemaString"]) for action in actions if "metaData" in action]


def changed_rows(location: TableLocation, staged: Staged) -> pa.Table:
    """The staged keyed changes, with what is to be done in `__op`: the name of the folder that each file lies in."""
    filesystem = location.files()
    parts = []
    for file in staged.files:
        with filesystem.open_input_file(file.path) as stream:
            rows = pq.ParquetFile(stream).read()
        operation = file.path.rpartition("/")[0].rpartition("__op=")[2]
        parts.append(rows.append_column("__op", pa.array([operation] * len(rows), pa.string())))
    return pa.concat_tables(parts)


def _add(file: StagedFile) -> AddAction:
    return AddAction(file.path, file.size, {}, file.modified_ms, True, file.stats)
