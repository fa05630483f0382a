"""Replaces the definition of a view while it is read: the new one is built beside it, and takes its place in one commit.

    views/<name>          what everybody reads
    replacements/<name>   the new definition, built by ordinary refreshes
    replaced/<name>       what was read before, kept for the way back

The commit names copies of the new table's files (on a local disk, links to them) and its position, and begins a new life. So
a reader sees either all of the old rows or all of the new ones. A crash leaves one of the two, and what it left undone is
done by the next call. Views over it find a new life, as after a reset, and are replaced in their turn.
"""

import logging
from dataclasses import dataclass

import pyarrow as pa

from backfill_assets.adapters.delta.copied_files import copy_files
from backfill_assets.adapters.delta.created_table import create_table
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.delta.staging import delete_data, sweep
from backfill_assets.adapters.storage.warehouse import TableLocation, Warehouse
from backfill_assets.app.refresh import refresh
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.lives import end_life, take_over
from backfill_assets.core.epoch.records import CommitRecord, Staged, TableState, changed_parts
from backfill_assets.core.epoch.run import RunReport
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.declare.model import MaterializedView, Place
from backfill_assets.errors import (
    BackfillError,
    DeclarationError,
    DroppedError,
    ExternalWriteError,
    FencedError,
    StagingError,
)

__all__ = ["Replacement", "discard_beside", "forget_replaced", "replace_view", "undo_replacement"]

_log = logging.getLogger(__name__)

TRIES = 5
"""So often the files are copied while runs of the old definition go on with the table."""


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """What a call did: the run that built the new table; whether it has taken the old one's place (if it has not caught up,
    the next call continues); and whether the old rows are kept for the way back."""

    report: RunReport
    switched: bool
    kept: bool


def replace_view(workspace: Workspace, name: str, limits: Limits, *, run_id: str) -> Replacement:
    """Build a view by its present declaration, beside the table that is read, and put it in its place once it has caught up.

    Errors: those of a refresh; `DroppedError` if there is no such table yet; `DeclarationError` for a source.
    """
    view = _view(workspace, name)
    workspace.prepare_to_write()
    serving = workspace.table(view)
    if not serving.output.look_for_reset().exists:
        raise DroppedError(
            f"{view.target} does not exist, so there is nothing to replace",
            hint=f"`backfill refresh {name}` creates it",
        )
    beside = workspace.beside(view, "replacements")
    building = beside.table(beside.registry.find(name))
    begun = building.output.look_for_reset()
    if begun.record is None or changed_parts(begun.record.fingerprint, building.parts.decider.fingerprint):
        _discard(beside, building)  # built by a declaration that has changed since
    report = _built(beside, name, limits, run_id=run_id)
    workspace.on_step("built")
    if report.stopped is not Stop.CAUGHT_UP or not report.record.live:
        return Replacement(report=report, switched=False, kept=False)
    kept = _keep(workspace, serving, report.record)
    workspace.on_step("kept")
    _switch(workspace, building, serving, life=report.record.incarnation)
    _discard(beside, building)
    return Replacement(report=report, switched=True, kept=kept)


def undo_replacement(workspace: Workspace, name: str) -> CommitRecord:
    """Put what a view was before its last replacement back in its place. Errors: `DroppedError` if it was not kept."""
    view = _view(workspace, name)
    workspace.prepare_to_write()
    beside = workspace.beside(view, "replaced")
    kept = beside.table(beside.registry.find(name))
    found = kept.output.look()
    if found.record is None or not found.exists:
        _discard(beside, kept)  # what a call that ended early has left of it
        raise DroppedError(
            f"{view.target}: what it was before is not kept",
            hint="only what `backfill replace` has replaced can be put back, once, and until it is forgotten",
        )
    record = _switch(workspace, kept, workspace.table(view), life=found.record.incarnation)
    _discard(beside, kept)
    return record


def forget_replaced(workspace: Workspace, name: str) -> None:
    """Delete what lies beside a view: what it was before its last replacement, and a replacement that is not finished."""
    view = _view(workspace, name)
    workspace.prepare_to_write()
    discard_beside(workspace, view)


def discard_beside(workspace: Workspace, view: MaterializedView) -> None:
    """Delete everything that lies beside a view's table."""
    places: tuple[Place, ...] = ("replacements", "replaced")
    for place in places:
        beside = workspace.beside(view, place)
        _discard(beside, beside.table(beside.registry.find(view.name)))


def _view(workspace: Workspace, name: str) -> MaterializedView:
    found = workspace.registry.find(name)
    if isinstance(found, MaterializedView):
        return found
    raise DeclarationError(
        f"{name!r} is a source; expected a view", hint=f"`backfill reset {name}` reads its topic again", argument="name"
    )


def _built(beside: Workspace, name: str, limits: Limits, *, run_id: str) -> RunReport:
    """Refresh the new table. Its errors are about it, and not about the one that is read."""
    try:
        return refresh(beside, name, limits, run_id=run_id).report
    except BackfillError as error:
        error.hint = (
            f"this is about the replacement of {name!r} that is being built; the view itself is read as before, and need "
            f"not be reset: `backfill replace {name} --forget` gives the replacement up, and the next one begins anew. "
            f"Otherwise: {error.hint}"
        )
        raise


def _keep(workspace: Workspace, serving: Table, new: CommitRecord) -> bool:
    """Keep what is read now, unless it is built by the same definition, is not live, or is not what epochs have written."""
    look = serving.output.look_for_reset()
    if look.record is not None and not changed_parts(look.record.fingerprint, new.fingerprint):
        return False  # what may be kept from before leads to another definition
    assert isinstance(serving.declared, MaterializedView)
    beside = workspace.beside(serving.declared, "replaced")
    kept = beside.table(beside.registry.find(serving.declared.name))
    if look.record is None or look.external is not None or not look.record.live:
        _discard(beside, kept)
        return False
    if kept.output.look().version < 0:
        create_table(kept.output.location, _schema(serving, look))
    try:
        _install(workspace, serving, kept, life=look.record.incarnation)
    except StagingError as error:
        _log.warning("%s: what it was is not kept, as it is not whole: %s", serving.target, error.message)
        _discard(beside, kept)
        return False
    kept.output.vacuum(0)  # of what was kept before
    return True


def _switch(workspace: Workspace, origin: Table, serving: Table, *, life: str) -> CommitRecord:
    """Put a table in the place of the one that is read."""
    record = _install(workspace, origin, serving, life=life)
    workspace.on_step("switched")
    serving.output.set_status("live")
    sweep(serving.output.location, serving.output.look)
    return record


def _install(workspace: Workspace, origin: Table, destination: Table, *, life: str) -> CommitRecord:
    """Give a table a new life with copies of the files of another table, in its `life`. Where runs of the old definition have
    gone on meanwhile, they may have deleted what is copied, or the copies; so these are made again."""
    before = destination.output.look_for_reset()
    for left in reversed(range(TRIES)):
        look, made = destination.output.look_for_reset(), _sound(origin, life)
        assert made.record is not None
        try:
            staged = _copied(
                workspace.store.place, origin, made, destination.output.location, _folder(destination, look)
            )
            workspace.on_step("copied")
            return take_over(destination.parts, look, made.record, staged, incarnation=destination.parts.new_id())
        except (FencedError, StagingError):
            if not left or destination.output.look_for_reset().life != before.life:
                raise
    raise AssertionError("the last try returns or raises")


def _sound(origin: Table, life: str) -> TableState:
    """A table whose rows are to be taken, as the epochs of this life have written it. Errors: `FencedError`,
    `ExternalWriteError`."""
    found, name, place = origin.output.look(), origin.declared.name, origin.output.location.uri
    if found.life != (life, True) or found.record is None or not found.record.live:
        raise FencedError(
            f"{origin.target}: fenced: the table at {place} is gone, or was begun anew: another call has used or deleted it",
            hint=f"nothing was switched; look at the view, and run `backfill replace {name}` again if that is needed",
        )
    if found.external is not None:
        raise ExternalWriteError(
            f"{origin.target}: version {found.external} of the table at {place} is not by an epoch",
            hint=f"`backfill replace {name} --forget` deletes that table; the view stays as it is",
            version=found.external,
        )
    return found


def _folder(destination: Table, look: TableState) -> str:
    """A staged folder that no run deletes as long as the table stays as it was looked at."""
    life, epoch = (look.record.incarnation, look.record.epoch) if look.record else (destination.parts.new_id(), 0)
    return StagedFolder(incarnation=life, epoch=epoch + 1, attempt=destination.parts.new_id()).name


def _copied(place: Warehouse, origin: Table, made: TableState, destination: TableLocation, folder: str) -> Staged:
    table = origin.output.location.load(version=made.version)
    assert table is not None
    assert made.record is not None
    paths = [str(path) for path in table.get_add_actions().column("path").to_pylist()]
    try:
        copy_files(place, paths, origin.output.location, destination, folder)
        files = collect(destination, folder)
    except (OSError, pa.ArrowException) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise StagingError(
            f"{origin.target}: a file of the table at {origin.output.location.uri} cannot be copied: {why}",
            hint="the view stays as it is. Run it again; if the file is lost or damaged, "
            f"`backfill replace {origin.declared.name} --forget` deletes what lies beside the view",
        ) from error
    return Staged(
        files=files,
        rows_written=made.record.rows_total,
        replaces=True,
        delta_schema=table.schema().to_json(),
    )


def _schema(table: Table, look: TableState) -> str:
    loaded = table.output.location.load(version=look.version)
    assert loaded is not None
    return loaded.schema().to_json()


def _discard(workspace: Workspace, table: Table) -> None:
    """End the life of a table beside the one that is read, and delete its files and plans."""
    look = table.output.look_for_reset()
    if look.exists:
        end_life(table.parts, look)
        workspace.on_step("ended")
    if look.record is not None:
        table.output.set_status("dropped")
        if delete_data(table.output.location, table.output.look):
            workspace.state.ledger().remove(table.target, look.record.incarnation)
