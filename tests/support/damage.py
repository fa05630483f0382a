"""Damages the tables of a project on purpose, in ways that checks must find. Nothing here uses the product's protocol."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.core.epoch.records import CommitKind, Plan, Position, Staged
from tests.support.bounds import stated
from tests.support.project import Project

Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def folder(project: Project, name: str) -> Path:
    """The folder of a declared table."""
    return project.root / "warehouse" / project.declared[name].target


def file_of(project: Project, name: str, epoch: int) -> Path:
    """The only data file that an epoch wrote."""
    paths = DeltaTable(str(folder(project, name))).get_add_actions().column("path").to_pylist()
    (found,) = [str(path) for path in paths if path.split("/")[0].split("-")[1] == str(epoch)]
    return folder(project, name) / found


def rewrite(project: Project, name: str, change: Change, *, epoch: int = 1) -> None:
    """Change the rows of a data file in place: path and size stay the same, so the log still refers to it."""
    rewrite_file(file_of(project, name, epoch), change)


def rewrite_file(path: Path, change: Change) -> None:
    """Change the rows of a data file in place, as `rewrite` does."""
    before = pq.read_table(path)
    after = pa.Table.from_pylist(change(before.to_pylist()), schema=before.schema)
    path.write_bytes(_padded(after, path.stat().st_size))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's own checksum, on local disks only


def take_out(path: Path, rows: pc.Expression) -> bytes:
    """Rewrite a data file without some rows, in the same size; returns what it was."""
    before = path.read_bytes()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.write_bytes(_padded(pq.read_table(path).filter(~rows), len(before)))
    return before


def recompact(project: Project, name: str, change: Change) -> None:
    """Compact a table by hand and change rows: like maintenance, the commit says that it changes no data."""
    table, place = DeltaTable(str(folder(project, name))), folder(project, name)
    before = table.to_pyarrow_table()
    after = pa.Table.from_pylist(change(before.to_pylist()), schema=before.schema)
    version = table.version() + 1
    path = place / f"part-compacted-{version}.parquet"
    pq.write_table(after, path)
    removed = [
        {"remove": {"path": old, "deletionTimestamp": 1, "dataChange": False}}
        for old in table.get_add_actions().column("path").to_pylist()
    ]
    added = {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": 1,
        "dataChange": False,
        "stats": json.dumps({"numRecords": after.num_rows}),
    }
    lines = [{"commitInfo": {"operation": "OPTIMIZE"}}, *removed, {"add": added}]
    (place / "_delta_log" / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


def misstate(project: Project, name: str, change: Callable[[dict[str, Any]], None], *, epoch: int | None = None) -> str:
    """Change the statistics of a data file in the log (the last file, or the one that an epoch wrote), as maintenance
    might do."""
    place = folder(project, name)
    stats = stated(str(place))
    paths = sorted(path for path in stats if epoch is None or path.split("/")[0].split("-")[1:2] == [str(epoch)])
    path = paths[-1]
    change(stats[path])
    added = {
        "path": path,
        "partitionValues": {},
        "size": (place / path).stat().st_size,
        "modificationTime": 1,
        "dataChange": False,
        "stats": json.dumps(stats[path]),
    }
    version = DeltaTable(str(place)).version() + 1
    lines = [{"commitInfo": {"operation": "COMPUTE STATS"}}, {"add": added}]
    (place / "_delta_log" / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    return path


def first(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """Change the first row."""
    return lambda rows: [{**rows[0], **change(rows[0])}, *rows[1:]]


def missing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the first row."""
    return rows[1:]


def doubled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Duplicate the first row."""
    return [rows[0], *rows]


def replaced_by_a_double(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace the second row by the first: the number of rows stays the same."""
    return [rows[0], *rows[:1], *rows[2:]]


def forge_commit(project: Project, name: str, staged: Staged = Staged(), **changes: Any) -> None:  # noqa: B008
    """A commit with a false record: the newest record with some fields changed; without data, unless some is given."""
    output = project.workspace().table(project.declared[name]).output
    record = output.look().record
    assert record is not None
    forged = {"kind": CommitKind.EPOCH, "attempt": "f" * 12, "rows_read": 0, "rows_written": 0, **changes}
    output.commit(record.model_copy(update=forged), staged)


def forge_epoch(project: Project, name: str, position: Position) -> None:
    """An epoch that reads nothing but moves the position, in both ledger and table, like a bug of the planner."""
    workspace = project.workspace()
    record, ledger = project.record(name), workspace.state.ledger()
    plan = Plan(
        target=record.target,
        incarnation=record.incarnation,
        epoch=record.epoch + 1,
        fingerprint=record.fingerprint,
        reads=(),
        before=record.position,
        after=position,
        live=record.live,
    )
    ledger.newest(plan.target, plan.incarnation)
    assert ledger.append(plan)
    nothing: dict[str, Any] = {"rows_updated": 0, "rows_deleted": 0}
    forge_commit(project, name, epoch=plan.epoch, plan_hash=plan.hash, position=position, **nothing)


def insert_again(project: Project, name: str, path: Path) -> int:
    """An epoch that inserts the rows of a data file again, and moves no position; returns their number."""
    record, place = project.record(name), project.workspace().table(project.declared[name]).output.location
    staged = f"{record.incarnation}-{record.epoch + 1}-{'f' * 12}"
    (folder(project, name) / staged).mkdir()
    shutil.copy(path, folder(project, name) / staged / "part-again.parquet")
    files = collect(place, staged)
    rows = sum(file.rows for file in files)
    counts: dict[str, Any] = {"rows_read": rows, "rows_written": rows, "rows_updated": 0, "rows_deleted": 0}
    counts["rows_total"] = record.rows_total + rows
    forge_commit(project, name, Staged(files=files, rows_written=rows), epoch=record.epoch + 1, **counts)
    return rows


def files_added(project: Project, name: str, version: int) -> list[Path]:
    """The data files that a version added."""
    entry = folder(project, name) / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    return [folder(project, name) / each["add"]["path"] for each in actions if "add" in each]


def append_by_hand(project: Project, name: str) -> int:
    """Append a copy of all rows, like some other job; returns the version of that commit."""
    table = DeltaTable(str(folder(project, name)))
    write_deltalake(table, table.to_pyarrow_table(), mode="append")
    return DeltaTable(str(folder(project, name))).version()


def plan_files(project: Project, target: str, epoch: int) -> list[Path]:
    """The ledger's entries for an epoch of a table, in all its incarnations."""
    plans = project.root / "warehouse" / "_state" / "plans" / target
    return sorted(plans.glob(f"*/{epoch:012d}-*.json"))


def alter_entry(project: Project, target: str, epoch: int, **changes: Any) -> None:
    """Replace the ledger's only entry for an epoch."""
    (place,) = plan_files(project, target, epoch)
    place.write_text(json.dumps({**json.loads(place.read_text()), **changes}))


def _padded(table: pa.Table, size: int) -> bytes:
    """The table as a Parquet file of exactly this size: with zeros between its data and its footer."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, store_schema=False)
    written = sink.getvalue()
    footer = int.from_bytes(written[-8:-4], "little") + 8
    assert len(written) <= size, (len(written), size)
    return written[:-footer] + bytes(size - len(written)) + written[-footer:]
