"""Files that Spark wrote into a table's folder and that no reader sees yet: checking, reading and deleting them.

A staged folder is named `<incarnation>-<epoch>-<attempt>`, also in the spool. One rule decides which may be deleted:
folders of epochs up to the last committed one whose attempt did not succeed, and folders of other incarnations than the
current one. Folders of an epoch that may be in progress are never deleted, nor are folders in the spool that the newest
commit names. A store may list a commit late. So the rule is applied to the version that was looked at, and only if no later
epoch or life is found by its name.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.commits import commits_of, read_commit, staged_folder_of
from backfill_assets.adapters.storage.markers import delete_found, delete_markers
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind, Staged, StagedFile, TableState
from backfill_assets.core.epoch.staged_columns import misfit
from backfill_assets.core.epoch.staged_folders import OPERATIONS, SPOOL, StagedFolder, changes_in, leftovers, sweepable
from backfill_assets.errors import StagingError
from backfill_assets.query.ddl import columns_of_delta
from backfill_assets.query.working_columns import OPERATION

__all__ = [
    "INPUTS",
    "changed_rows",
    "check_columns",
    "delete_data",
    "delete_folder",
    "spooled_folders",
    "sweep",
    "sweep_leftovers",
    "sweep_merged",
]

INPUTS = "_inputs"
"""Inside a staged folder: describes the inputs of the attempt; deleted as soon as the attempt has been computed."""


def check_columns(target: str, schema: str, files: Iterable[StagedFile]) -> None:
    """Check that staged files have exactly the columns of a Delta schema (as JSON). Errors: `StagingError`."""
    columns = columns_of_delta(schema)
    wrong = misfit(files, tuple((each.name, each.type) for each in columns))
    if wrong is not None:
        raise StagingError(
            f"{target}: column {wrong.column!r} of staged file {wrong.path}: expected "
            f"{wrong.expected or 'no such column'}, as the table has it, found {wrong.found or 'no such column'}",
            hint="nothing was committed; run it again. If it happens again, Spark ignores the requested schema: look for "
            "a plugin that changes how it writes Parquet",
            column=wrong.column,
            expected=wrong.expected,
            found=wrong.found,
        )


def changed_rows(location: TableLocation, staged: Staged) -> pa.Table:
    """The staged keyed changes, with the action in `__op`: the name of each file's folder."""
    parts = []
    for file in staged.files:
        with location.opened(file.path) as stream:
            rows = pq.ParquetFile(stream).read()
        operation = file.path.rpartition("/")[0].rpartition(OPERATIONS)[2]
        parts.append(rows.append_column(OPERATION, pa.array([operation] * len(rows), pa.string())))
    return pa.concat_tables(parts)


def sweep(location: TableLocation, look: Callable[[], TableState]) -> list[str]:
    """Delete the staged folders that the rule allows and that the log never mentioned; returns their names.

    The folders are listed before the table is read. So a life or an epoch that begins in between is known, and nothing
    that a newer run needs is taken for an old folder. Folders that were committed once are left to VACUUM, because time
    travel and the change feed may still need their files.
    """
    there = _inside(location, "")
    spooled = _folders(_inside(location, SPOOL)) if any(info.base_name == SPOOL for info in there) else []
    folders, looked = _folders(there), look()
    record = looked.record
    if record is None:
        return []
    may_go = partial(sweepable, incarnation=record.incarnation, epoch=record.epoch)
    needed = set(record.spooled.values())
    allowed = [each for each in folders if may_go(each)]
    swept = sorted({each.name for each in allowed} - _maybe_committed(location, looked, allowed))
    swept += sorted(f"{SPOOL}/{each.name}" for each in spooled if may_go(each, needed=needed))
    if swept and _is_overtaken(location, looked):
        return []
    for name in swept:
        delete_folder(location, name)
    if spooled and not needed:
        _delete_if_empty(location, SPOOL)
    return swept


def sweep_merged(location: TableLocation, look: Callable[[], TableState]) -> list[str]:
    """Delete the changes of past epochs that were merged: staged files that no entry of the log names; returns their paths.

    The log names staged files that an epoch added as they are, also after they were replaced, until VACUUM deletes them. As
    in `sweep`, what exists is listed before the table is read.
    """
    folder = location.objects()
    listed = folder.names("")
    looked = look()
    if looked.record is None:
        return []
    is_over = partial(sweepable, incarnation=looked.record.incarnation, epoch=looked.record.epoch)
    merged = sorted(_never_named(location, looked, set(changes_in(listed, is_over))))
    if merged and _is_overtaken(location, looked):
        return []
    folder.delete(merged)
    return merged


def _never_named(location: TableLocation, looked: TableState, paths: set[str]) -> set[str]:
    """Those of some staged files that neither the table nor its log names. The log is read back to the commits of their
    folders: none names them before."""
    table = location.at(looked.version) if paths else None
    if table is None or looked.record is None:
        return set()
    left = paths - set(map(unquote, table.get_add_actions().column("path").to_pylist()))
    folders = {path.partition("/")[0] for path in left}
    for _, actions in commits_of(location, looked.version):
        if not folders:
            break
        left -= {unquote(named["path"]) for action in actions for named in action.values() if "path" in named}
        won = staged_folder_of(actions, looked.record.target)
        folders -= {won.name} if won is not None else set()
    return left


def sweep_leftovers(location: TableLocation, look: Callable[[], TableState]) -> list[str]:
    """Delete what Spark's jobs have left behind in a store besides uncommitted folders; returns the names, those of markers
    with a slash.

    Connectors mark folders by empty objects, and a job that was killed leaves those of its `_temporary`. As in `sweep`, what
    exists is listed before the table is read.
    """
    if location.is_local:
        return []
    folder = location.objects()
    sizes = folder.sizes("")
    looked = look()
    record = looked.record
    if record is None:
        return []
    found = leftovers(sizes, partial(sweepable, incarnation=record.incarnation, epoch=record.epoch))
    if (found.files or found.markers) and _is_overtaken(location, looked):
        return []
    folder.delete(found.files)
    return sorted([*found.files, *delete_markers(folder, found.markers)])


def spooled_folders(location: TableLocation) -> set[str]:
    """The names of the staged folders in a table's spool."""
    return {each.name for each in _folders(_inside(location, SPOOL))}


def delete_data(location: TableLocation, look: Callable[[], TableState]) -> bool:
    """Delete everything in a dropped table's folder except its log; returns whether the table is still dropped.

    As in `sweep`, the folder is listed before the table is read. So files of a life that begins in between are not in
    the list, and if there is such a life, nothing is deleted at all. All lives share the spool's folder, so its
    contents are listed, too.
    """
    listed = _inside(location, "")
    spooled = spooled_folders(location)
    looked = look()
    record = looked.record
    if record is None or record.kind is not CommitKind.DROP or _is_overtaken(location, looked):
        return False
    for info in listed:
        if info.type is not pafs.FileType.Directory:
            location.files().delete_file(info.path)
        elif info.base_name not in {"_delta_log", SPOOL}:
            delete_folder(location, info.path)
    for name in spooled:
        delete_folder(location, f"{SPOOL}/{name}")
    _delete_if_empty(location, SPOOL)
    return True


def delete_folder(location: TableLocation, path: str) -> None:
    """Delete a folder that others may also delete, or that a dead run's Spark job may still write to."""
    if location.is_local:  # an object store has no folders; a disk keeps empty ones
        shutil.rmtree(location.child(path), ignore_errors=True)
        return
    folder = location.objects()
    delete_found(folder, folder.sizes(path), of=path)


def _delete_if_empty(location: TableLocation, path: str) -> None:
    if location.is_local:
        with contextlib.suppress(OSError):  # not empty: it belongs to an epoch that may be in progress
            Path(location.child(path)).rmdir()


def _inside(location: TableLocation, folder: str) -> list[pafs.FileInfo]:
    found: list[pafs.FileInfo] = location.files().get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return found


def _folders(there: Iterable[pafs.FileInfo]) -> list[StagedFolder]:
    return [
        folder
        for info in there
        if info.type is pafs.FileType.Directory and (folder := StagedFolder.parse(info.base_name))
    ]


def _is_overtaken(location: TableLocation, looked: TableState) -> bool:
    """Whether a later epoch or life was committed than the one that was looked at; others' commits do not matter here."""
    version, found = looked.version, looked.record
    while found is not None and (actions := read_commit(location, version + 1, again=True)) is not None:
        if staged_folder_of(actions, found.target) is not None:
            return True
        version += 1
    return False


def _maybe_committed(location: TableLocation, looked: TableState, folders: Sequence[StagedFolder]) -> set[str]:
    """The names of folders whose files were committed once, or may have been because the log is incomplete.

    The log is conclusive for an epoch if it goes back to the table's beginning, or to an earlier epoch of that life. It
    is read only until all folders are known, from the version that was looked at.
    """
    table = location.at(looked.version) if folders else None
    if table is None or looked.record is None:
        return {each.name for each in folders}
    target = looked.record.target
    names = {path.partition("/")[0] for path in table.get_add_actions().column("path").to_pylist()}
    earliest: dict[str, int] = {}
    oldest = table.version()
    for version, actions in commits_of(location, table.version()):
        if names.issuperset(each.name for each in folders):
            return names
        # Folders of copied files have names that no commit records.
        names |= {action["add"]["path"].partition("/")[0] for action in actions if "add" in action}
        oldest, won = version, staged_folder_of(actions, target)
        if won is not None:
            names.add(won.name)
            earliest[won.incarnation] = min(won.epoch, earliest.get(won.incarnation, won.epoch))
    if oldest > 0:
        names |= {each.name for each in folders if each.epoch <= earliest.get(each.incarnation, each.epoch)}
    return names
