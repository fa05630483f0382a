"""Reset, drop and maintenance of tables, and restoring the ledger from them."""

import logging

from backfill_assets.adapters.compute.laid_out import laid_out_again
from backfill_assets.adapters.delta.layout import clustering_columns, commit_layout, is_laid_out
from backfill_assets.adapters.delta.staging import delete_data, delete_folder, sweep, sweep_leftovers, sweep_merged
from backfill_assets.app.dependents import check_unneeded, expire_log
from backfill_assets.app.replacing import discard_beside
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.lives import begin_life, end_life, restate
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.declare.model import MaterializedView
from backfill_assets.errors import BackfillError, DroppedError, FencedError, StoredFormatError

__all__ = ["drop", "maintain", "rebuild", "reset"]

_log = logging.getLogger(__name__)


def reset(workspace: Workspace, name: str) -> CommitRecord:
    """Begin a new life: one commit removes all data, and the next refresh reads history from scratch.

    Whatever is stored about the table and cannot be read is deleted, including settings and rows to leave out.
    """
    table = workspace.table(workspace.registry.find(name))
    workspace.prepare_to_write()
    look = table.output.look_for_reset()
    if not look.exists and (look.record is not None or not table.output.is_ours()):
        raise DroppedError(
            f"{table.target} does not exist, so there is nothing to reset", hint=f"`backfill refresh {name}` creates it"
        )
    unreadable = workspace.state.forget_unreadable(table.target)
    if unreadable:
        _log.warning("%s: forgotten, as this release cannot read it: %s", table.target, ", ".join(unreadable))
    table.schema()
    record = begin_life(table.parts, look, table.parts.decider.begin(), incarnation=table.parts.new_id())
    table.output.set_status("creating")  # the next refresh sets it to live, even if it does nothing else
    sweep(table.output.location, table.output.look)
    return record


def drop(workspace: Workspace, name: str) -> None:
    """End a table's life: data, staged files, plans and settings are deleted; a marker remains in the table's log."""
    table = workspace.table(workspace.registry.find(name))
    workspace.prepare_to_write()
    look, readable = _to_end(table)
    past = workspace.state.ledger().incarnations(table.target)  # before it ends: none that may begin afterwards
    if look.exists or not readable:
        end_life(table.parts, look)
    if look.record is not None or not readable:
        table.output.set_status("dropped")
        if not delete_data(table.output.location, table.output.look):
            return  # a new life has begun meanwhile: what exists now belongs to it
        workspace.state.forget(table.target, past)
    if isinstance(table.declared, MaterializedView):
        discard_beside(workspace, table.declared)


def _to_end(table: Table) -> tuple[TableState, bool]:
    """The table as it stands, and whether it can be read what its newest commit says."""
    try:
        return table.output.look(), True
    except StoredFormatError:
        return table.output.look_for_reset(), False


def maintain(workspace: Workspace, name: str, *, vacuum_hours: int | None = None) -> list[str]:
    """Maintain a table: delete staged files that no version has, restate its positions, expire its log, compact, and
    vacuum if requested. Bounds in the log that are not exact are removed, whoever wrote them, and on S3 what Spark's
    jobs have left behind. A view over several tables is laid out by its key again, where that has been lost.

    Staged files are deleted first, because the log says which of them were committed. Then the positions are restated, so
    that they outlive the log's older entries. Errors: `StillNeededError`, before anything is done, if vacuuming would delete
    what a view still has to read.
    """
    table = workspace.table(workspace.registry.find(name))
    workspace.prepare_to_write()
    if not table.output.look().exists:
        return []
    if vacuum_hours is not None:
        check_unneeded(workspace, name, hours=vacuum_hours)
    swept = [each(table.output.location, table.output.look) for each in (sweep, sweep_merged, sweep_leftovers)]
    table.output.keep_bounds(thoroughly=True)
    look = table.output.look()  # commits are made on the last look
    try:
        restate(table.parts, look)
    except FencedError:
        if table.output.look().life != look.life:
            raise
        _log.info("%s: an epoch came in between, which says the positions as well", table.target)
    expire_log(workspace, table)
    if look.record is not None:
        workspace.state.ledger().prune(look.record)
    table.output.compact(2)
    if isinstance(table.declared, MaterializedView) and table.declared.whole:
        _lay_out(workspace, table, table.declared)
    if vacuum_hours is not None:
        table.output.vacuum(vacuum_hours)
    return [name for names in swept for name in names]


def _lay_out(workspace: Workspace, table: Table, view: MaterializedView) -> None:
    """Lay a view's rows out by the columns of its key that have bounds, unless they are. Changes no rows, and yields to any
    other writer."""
    look = table.output.look()
    loaded = table.output.location.at(look.version) if look.record is not None and look.exists else None
    if loaded is None:
        return
    try:
        key = clustering_columns(loaded.schema().to_json(), workspace.bound(view).key_columns)
    except BackfillError as error:
        # Its tables are gone, or have other columns: the rest of maintenance needs none of them.
        _log.info("%s: it is not known how it is to be laid out: %s", table.target, error)
        return
    if not key or is_laid_out(loaded, key[0]):
        return
    assert look.record is not None
    # As the folder of an epoch that may be in progress, it is swept by nobody until that epoch is over.
    folder = StagedFolder(
        incarnation=look.record.incarnation, epoch=look.record.epoch + 1, attempt=table.parts.new_id()
    ).name
    files = laid_out_again(workspace.runner, table.output.location, loaded, key, folder)
    if not commit_layout(table.output.location, loaded, files):
        _log.info("%s: laying it out gave way to another writer", table.target)
        delete_folder(table.output.location, folder)


def rebuild(workspace: Workspace) -> list[str]:
    """Store the newest commit of every existing table in the ledger, unless the ledger knows it."""
    workspace.prepare_to_write()
    rebuilt = []
    for declared in workspace.declared.values():
        table = workspace.table(declared)
        look = table.output.look()
        if look.record is not None and look.exists:
            workspace.state.ledger().rebuild(look.record)
            rebuilt.append(table.target)
    return rebuilt
