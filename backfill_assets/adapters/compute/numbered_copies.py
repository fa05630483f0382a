"""The copies of rows that come to a view and go from it, told by Arrow; `copies` has Spark tell those of many or odd rows.

Rows with one hash are nearly always equal, and then their number is all that tells copies apart. Where they are not, or where
it is not certain that Spark would call them equal, nothing is told here.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backfill_assets.query.relational import COPY, ROW_HASH
from backfill_assets.query.working_columns import OPERATION

__all__ = ["numbered_copies"]


def numbered_copies(net: pa.Table, held: pa.Table, changes: str) -> pa.Table | None:
    """The rows to be inserted and deleted, with what becomes of each in `__op`, in the columns of the view.

    Args:
        net: Rows of which there are to be more or fewer, each once, with their hash.
        held: All rows of the view that have one of these hashes, and maybe others, with the number of each copy.
        changes: The column of `net` that says how many more; fewer are below zero.

    Returns:
        Of equal rows those with the last numbers go, and new ones get the numbers after them. None if different rows have one
        hash, if more are to go than there are, and for nested values.

    Example:
        >>> net = pa.table({"a": [7], ROW_HASH: [1], "net": [2]})
        >>> held = pa.table({"a": [7], ROW_HASH: [1], COPY: [5]})
        >>> numbered_copies(net, held, "net").select([COPY, OPERATION]).to_pylist()
        [{'__copy': 6, '__op': 'insert'}, {'__copy': 7, '__op': 'insert'}]
    """
    held = held.cast(pa.schema([each.with_nullable(True) for each in held.schema]))
    visible = [name for name in held.column_names if name not in {ROW_HASH, COPY}]
    rows = _as_in(net, held.schema, [*visible, ROW_HASH])
    if rows is None:
        return None
    hashes, more = rows.column(ROW_HASH).to_numpy(), net.column(changes).to_numpy()
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    met = held.filter(pc.is_in(held.column(ROW_HASH), value_set=rows.column(ROW_HASH)))
    place = order[np.searchsorted(ordered, met.column(ROW_HASH).to_numpy())]
    if not _are_equal(met, rows, place, visible):
        return None
    copies = met.column(COPY).to_numpy()
    if (np.bincount(place, minlength=len(more)) < -more).any():
        return None
    last = np.zeros(len(more), dtype=np.int64)
    np.maximum.at(last, place, copies)
    parts = (_come(rows, more, last), _gone(met, place, copies, more))
    names = held.column_names
    return pa.concat_tables([part.select([*names, OPERATION]) for part in parts])


def _as_in(net: pa.Table, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
    """The rows in types of the view; None for values that are nested, or that it does not hold like this."""
    if any(pa.types.is_nested(schema.field(name).type) for name in names):
        return None
    try:
        return pa.table({name: net.column(name).cast(schema.field(name).type) for name in names})
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _are_equal(met: pa.Table, rows: pa.Table, place: np.ndarray, names: Sequence[str]) -> bool:
    """Whether rows of the view are those with the same hash, value by value: what Arrow calls equal, Spark does, too."""
    chosen = rows.take(pa.array(place))
    return all(met.column(name).equals(chosen.column(name)) for name in names)


def _come(rows: pa.Table, more: np.ndarray, last: np.ndarray) -> pa.Table:
    """The new copies, with the numbers after the last ones."""
    many = np.maximum(more, 0)
    places = np.repeat(np.arange(len(many)), many)
    before = np.cumsum(many) - many
    numbers = last[places] + 1 + np.arange(len(places)) - before[places]
    return _with_operation(rows.take(pa.array(places)).append_column(COPY, pa.array(numbers)), "insert")


def _gone(met: pa.Table, place: np.ndarray, copies: np.ndarray, more: np.ndarray) -> pa.Table:
    """Of copies of which fewer are to be there, those with the last numbers."""
    order = np.lexsort((-copies, place))
    ordered = place[order]
    begins = np.searchsorted(ordered, ordered)
    goes = np.arange(len(ordered)) - begins < -more[ordered]
    return _with_operation(met.take(pa.array(order[goes])), "delete")


def _with_operation(rows: pa.Table, operation: str) -> pa.Table:
    return rows.append_column(OPERATION, pa.array([operation] * len(rows), pa.string()))
