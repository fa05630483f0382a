"""Rows that a view leaves out because an operator decided so: checked, recorded, and listed with their status.

A decision takes effect with the next planned epoch; see `core/epoch/skips.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backfill_assets.adapters.sql.keys import NAMEABLE, one_spelling
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.records import Position, TableState
from backfill_assets.core.epoch.skips import MAX_SKIPS, KeySkip, LeftOut, OffsetSkip, Skip, is_consumed, rows_left_out
from backfill_assets.core.progress.positions import NamedKey, ViewPosition
from backfill_assets.declare.model import KafkaSource, MaterializedView
from backfill_assets.errors import DeclarationError

__all__ = ["Named", "left_out", "set_skips"]

BY_KEY = "for example `backfill skip revenue --source customers --key id=7`; a column alone, --key id, is null"
EXAMPLE = "for example `backfill skip revenue --source orders --partition 0 --offset 17`"


@dataclass(frozen=True, kw_only=True)
class Named:
    """Rows as named on the command line."""

    source: str | None = None
    partition: int | None = None
    offsets: tuple[int, ...] = ()
    key: tuple[str, ...] = ()
    """The columns of a key, each as `name=value`, or as `name` alone where it is null."""

    @property
    def any(self) -> bool:
        """Whether it names any row, correctly or not."""
        return self != Named()


def left_out(workspace: Workspace, name: str) -> list[LeftOut]:
    """The rows that a view leaves out or will leave out."""
    view = _view(workspace, name)
    workspace.prepare_to_read()
    look = workspace.table(view).output.look()
    return rows_left_out(_position(look), workspace.state.skips(view.target))


def set_skips(workspace: Workspace, name: str, named: Named, *, undo: bool, by: str) -> list[LeftOut]:
    """Make a view leave rows out, or (`undo`) take them back; returns the rows that it then leaves out or will leave out.

    Errors: `DeclarationError` for rows that are named wrongly, have already been read, or are too many; with `undo`, for rows
    that are not on the list. Nothing is recorded then.
    """
    view = _view(workspace, name)
    workspace.prepare_to_read()
    wanted = set(workspace.state.skips(view.target))
    skips = _rows(workspace, view, named)
    if undo:
        _check_wanted(name, skips, wanted)
        for skip in skips:
            workspace.state.remove_skip(view.target, skip)
        return left_out(workspace, name)
    _check_few(name, wanted.union(skips))
    _check_unread(workspace, view, skips)
    for skip in skips:
        workspace.state.add_skip(view.target, skip, by=by)
    return left_out(workspace, name)


def _view(workspace: Workspace, name: str) -> MaterializedView:
    declared = workspace.registry.find(name)
    if isinstance(declared, KafkaSource):
        raise _wrong(
            "name",
            f"{name!r} is a source, which ingests every record and leaves none out",
            "name the view that cannot be computed",
        )
    return declared


def _position(look: TableState) -> Position | None:
    return look.record.position if look.record is not None and look.exists else None


def _rows(workspace: Workspace, view: MaterializedView, named: Named) -> list[Skip]:
    """The rows that are named, of an upstream that the view has."""
    upstream = _upstream(view, named)
    by_offset = named.partition is not None or bool(named.offsets)
    if view.tables:
        if by_offset or not named.key:
            raise _wrong("key", f"a row of table {upstream!r} is named by its key", BY_KEY)
        return [KeySkip(source=upstream, key=_key(workspace, view, upstream, named))]
    if named.partition is None or not named.offsets or named.key:
        raise _wrong("offset", f"a record of source {upstream!r} is named by --partition and --offset", EXAMPLE)
    return [OffsetSkip(source=upstream, partition=named.partition, offset=offset) for offset in named.offsets]


def _key(workspace: Workspace, view: MaterializedView, name: str, named: Named) -> NamedKey:
    """The key that is named, in the order and the spelling that it has in positions."""
    table = workspace.inputs(view).tables[name]
    types = {column.name: column.type for column in table.columns()}
    columns = table.key()
    if not columns or not all(NAMEABLE.fullmatch(types[column]) for column in columns):
        found = ", ".join(f"{column} {types[column]}" for column in columns) or "none"
        raise _wrong(
            "key",
            f"rows of table {name!r} cannot be named: its primary key is {found}; expected whole or decimal numbers, "
            "strings, booleans, dates or times",
            f"let the query accept such rows (try_cast, try_divide, WHERE), and `backfill reset {view.name}`",
        )
    given = {column: value if found else None for column, found, value in (each.partition("=") for each in named.key)}
    if given.keys() != set(columns) or len(named.key) != len(columns):
        raise _wrong(
            "key", f"the key of table {name!r} is ({', '.join(columns)}), found {', '.join(named.key)}", BY_KEY
        )
    return tuple((column, _value(name, column, types[column], given[column])) for column in columns)


def _value(name: str, column: str, kind: str, text: str | None) -> str | None:
    try:
        return None if text is None else one_spelling(kind, text)
    except ValueError as error:
        raise _wrong(
            "key", f"column {column!r} of table {name!r} is a {kind}, found {text!r}: {error}", BY_KEY
        ) from None


def _upstream(view: MaterializedView, named: Named) -> str:
    names = [each.name for each in view.upstreams]
    if named.source is None and len(names) == 1:
        return names[0]
    if named.source not in names:
        found = "none was named" if named.source is None else f"found {named.source!r}"
        raise _wrong(
            "source", f"{view.name!r} reads {', '.join(names)}; {found}", f"name one of these by --source. {EXAMPLE}"
        )
    return named.source


def _check_wanted(name: str, skips: Sequence[Skip], wanted: Collection[Skip]) -> None:
    for skip in skips:
        if skip not in wanted:
            raise _wrong(
                "undo",
                f"{name!r} does not leave out {skip.words}",
                f"`backfill skip {name}` lists the rows that it leaves out",
            )


def _check_few(name: str, wanted: Collection[Skip]) -> None:
    if len(wanted) > MAX_SKIPS:
        raise _wrong(
            "offset",
            f"{name!r} would leave out {len(wanted)} rows, expected {MAX_SKIPS} at the most",
            "change the query instead (try_cast, try_divide or WHERE), and reset the view",
        )


def _check_unread(workspace: Workspace, view: MaterializedView, skips: Sequence[Skip]) -> None:
    position = _position(workspace.table(view).output.look())
    if not isinstance(position, ViewPosition):
        return
    out = {row.words for row in rows_left_out(position, ()) if row.is_out}
    for skip in (each for each in skips if isinstance(each, OffsetSkip)):
        if is_consumed(position, skip) and skip.words not in out:
            raise _wrong(
                "offset",
                f"{view.name!r} has read {skip.words} already",
                "it could be computed, and is in the view if the query returns it; exclude it in the query, and reset",
            )
        known = workspace.sources.bronze(skip.source).position.next
        if skip.partition not in known:
            found = ", ".join(map(str, sorted(known)))
            raise _wrong(
                "partition", f"source {skip.source!r} has no partition {skip.partition}; it has {found}", EXAMPLE
            )


def _wrong(argument: str, what: str, hint: str) -> DeclarationError:
    return DeclarationError(f"skip: {what}", hint=hint, argument=argument)
