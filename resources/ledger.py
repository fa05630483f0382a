"""The ledger: every plan of every table, appended by compare-and-swap to one Delta table.

The swap is a transaction number per life, numbered by epoch, checked on the version that `newest` loaded: only a rival
for the same epoch loses, writers for other tables never do.

delta-rs lists the whole log twice with each plan, so all but the newest commits are cut off, oldest first. Whoever wrote
on a version that is cut off meanwhile cannot trust that his commit counts, and looks whether his entry is there.
"""

import contextlib
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from backfill_assets.backfill.epoch import CommitRecord, Plan, app_id
from backfill_assets.resources.warehouse import LoadedTable, TableLocation, delete_rows

__all__ = ["DeltaLedger"]

SCHEMA = pa.schema([
    pa.field("target", pa.string()),
    pa.field("incarnation", pa.string()),
    pa.field("epoch", pa.int64()),
    pa.field("entry", pa.string()),
    pa.field("plan_hash", pa.string()),
    pa.field("position", pa.string()),
    pa.field("plan", pa.string()),
    pa.field("planned_at", pa.timestamp("us", tz="UTC")),
])
COMPACT_FILES = 25
KEPT_HOURS = 24
"""So long stay the files of rows that were compacted: more than enough for one who reads them."""
KEPT_COMMITS = 100
"""So many are left in the log: more than others commit while one who loaded the ledger reads or writes it."""
PROPERTIES = {
    "delta.checkpointInterval": "10",
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
}
# Looking for old log entries lists the whole log: compaction does it, not every plan.
_NO_CLEANUP = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
_LOG = "_delta_log"
_NUMBERED = re.compile(r"(\d{20})\.(json|checkpoint\.parquet)")


@dataclass
class DeltaLedger:
    """`ports.Ledger` on Delta. One object serves one run."""

    location: TableLocation
    _log: LoadedTable = field(init=False)
    _table: DeltaTable | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = LoadedTable(self.location)

    def newest(self, target: str, incarnation: str) -> int | None:
        """Load the ledger; the next `append` swaps on exactly this version."""
        self._table = table = self._log.newest()
        return None if table is None else table.transaction_version(app_id(target, incarnation))

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        rows = self.entries(target, incarnation, since=epoch, until=epoch)
        return Plan.model_validate_json(str(rows[-1]["plan"])) if rows and rows[-1]["plan"] else None

    def entries(self, target: str, incarnation: str, *, since: int, until: int) -> list[dict[str, object]]:
        """The rows of these epochs, oldest first; a superseded plan comes before the one in force."""
        import pyarrow.compute as pc  # only where there is work, as in `resources.compute`

        table = self._table or self.location.load()
        if table is None:
            return []
        condition = (
            (pc.field("target") == target)
            & (pc.field("incarnation") == incarnation)
            & (pc.field("epoch") >= since)
            & (pc.field("epoch") <= until)
        )
        rows = table.to_pyarrow_dataset().to_table(filter=condition).to_pylist()
        return sorted(rows, key=lambda row: (row["epoch"], row["planned_at"]))

    def append(self, plan: Plan) -> bool:
        """Append a plan; False where a rival planned the epoch first. An unclear outcome is settled by looking."""
        entry = uuid.uuid4().hex
        row = {
            "target": plan.target,
            "incarnation": plan.incarnation,
            "epoch": plan.epoch,
            "entry": entry,
            "plan_hash": plan.hash,
            "position": plan.after.model_dump_json(),
            "plan": plan.model_dump_json(),
            "planned_at": datetime.now(UTC),
        }
        version = None if self._table is None else self._table.version()
        failure: Exception | None = None
        try:
            self._write(row)
        except Exception as error:
            failure = error
        cut_off = self._cut_off(version)
        if failure is None and not cut_off:
            return True
        self._table = None
        self._log.forget()
        rows = self.entries(plan.target, plan.incarnation, since=plan.epoch, until=plan.epoch)
        if any(row["entry"] == entry for row in rows):
            return True
        if failure is None or cut_off or isinstance(failure, CommitFailedError):  # others' commits came in between
            return False
        raise failure  # anything else is a fault

    def rebuild(self, record: CommitRecord) -> None:
        """Enter a table's newest commit, so that a ledger that was lost, or put back, can go on from there."""
        newest = self.newest(record.target, record.incarnation)
        if newest is not None and newest >= record.epoch:
            return
        self._write({
            "target": record.target,
            "incarnation": record.incarnation,
            "epoch": record.epoch,
            "entry": uuid.uuid4().hex,
            "plan_hash": record.plan_hash,
            "position": record.position.model_dump_json(),
            "plan": None,
            "planned_at": datetime.now(UTC),
        })

    def lives(self, target: str) -> set[str]:
        """The incarnations of a table of which there are plans."""
        import pyarrow.compute as pc

        table = self.location.load()
        if table is None:
            return set()
        found = table.to_pyarrow_dataset().to_table(columns=["incarnation"], filter=pc.field("target") == target)
        return set(found.column("incarnation").to_pylist())

    def remove(self, target: str, incarnation: str) -> None:
        """Delete all plans of one life of a table."""
        delete_rows(self.location, target=target, incarnation=incarnation)

    def _write(self, row: dict[str, object]) -> None:
        table = self._table
        if table is None:
            options = dict(self.location.storage_options) or None
            table = DeltaTable.create(
                self.location.uri, SCHEMA, mode="ignore", configuration=PROPERTIES, storage_options=options
            )
        number = Transaction(app_id(str(row["target"]), str(row["incarnation"])), _number(row["epoch"]))
        data = pa.Table.from_pylist([row], schema=SCHEMA)
        write_deltalake(
            table,
            data,
            mode="append",
            commit_properties=CommitProperties(app_transactions=[number]),
            post_commithook_properties=_NO_CLEANUP,
        )
        if len(table.file_uris()) >= COMPACT_FILES:
            self._compact()

    def _compact(self) -> None:
        """Small files into one, and away with old files and commits; changes no data, so no swap fails by it."""
        table = self.location.load()
        if table is not None:
            table.optimize.compact()
            table.vacuum(KEPT_HOURS, dry_run=False)
            self._shorten()

    def _shorten(self) -> None:
        """Delete what the log holds below a checkpoint that `KEPT_COMMITS` come after, oldest first."""
        files = self.location.files()
        listed = files.get_file_info(pafs.FileSelector(_LOG))
        found = sorted(
            (int(match[1]), match[2], each.path) for each in listed if (match := _NUMBERED.fullmatch(each.base_name))
        )
        newest = found[-1][0]
        checkpoints = [version for version, kind, _ in found if kind != "json" and version <= newest - KEPT_COMMITS]
        for version, _, path in found:
            if version < max(checkpoints, default=0):
                with contextlib.suppress(FileNotFoundError):  # another run does the same
                    files.delete_file(path)

    def _cut_off(self, version: int | None) -> bool:
        """Whether the log no longer has the commit of a version. A commit after it may then have taken the free name of one
        that was cut off, where no reader looks: as the oldest go first, no name is free while the one before it is there."""
        if version is None:
            return False
        (commit,) = self.location.files().get_file_info([f"{_LOG}/{version:020d}.json"])
        return not commit.is_file


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
