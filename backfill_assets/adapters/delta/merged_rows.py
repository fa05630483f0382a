"""Merges keyed changes in this process: finds the rows that they replace or delete, and writes the files with these again.

It opens the files that may have a changed row by the bounds of their keys, reads just the keys of these, and all rows only of
files in which a row was found. It commits nothing: `merged_files` does, on exactly the version that was read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from backfill_assets.adapters.delta.arrow_files import FileWriter
from backfill_assets.adapters.delta.arrow_reader import ArrowReader
from backfill_assets.adapters.delta.arrow_types import widest
from backfill_assets.adapters.delta.merged_files import Merged, merged_folder
from backfill_assets.adapters.delta.plain_values import plain_values
from backfill_assets.adapters.delta.staging import changed_rows
from backfill_assets.adapters.delta.touched_files import LoggedFile, changes_of_rows, lowest_values, touched_files
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.merge_groups import Group, TouchedFile, group_for, groups_of
from backfill_assets.core.epoch.records import Staged, StagedFile
from backfill_assets.errors import ReadMismatchError, StagingError
from backfill_assets.query.working_columns import OPERATION

__all__ = ["are_findable", "merge_rows"]

_CHANGE_TYPE = "_change_type"
_BATCH_ROWS: Final = 2**17


def are_findable(table: DeltaTable, key: Iterable[str]) -> bool:
    """Whether rows of a table can be found by these columns: Arrow compares no nested values."""
    schema = pa.schema(table.schema().to_arrow())
    return not any(pa.types.is_nested(schema.field(name).type) for name in key)


def merge_rows(location: TableLocation, table: DeltaTable, staged: Staged) -> Merged:
    """What staged changes make of a loaded version: its new files, and that of the change feed, in the attempt's folder.

    Args:
        location: The table.
        table: The loaded version.
        staged: Keyed changes. Rows of the same key are those that Spark groups together.

    Returns:
        What is to be committed. That rows add up is for the caller to see.

    Raises:
        ReadMismatchError: A file of the table is missing or damaged.
        StagingError: Two changes have the same key.
    """
    return _Merge(location, table, staged).merged()


@dataclass(frozen=True)
class _Found:
    """A file in which rows were found: which of them, and the number of the change for each."""

    file: LoggedFile
    rows: np.ndarray
    changes: pa.Array


class _Merge:
    """One merge."""

    def __init__(self, location: TableLocation, table: DeltaTable, staged: Staged) -> None:
        self._location, self._table, self._key = location, table, staged.key
        self._schema = widest(pa.schema(table.schema().to_arrow()))
        rows = changed_rows(location, staged)
        self._operations = rows.column(OPERATION).combine_chunks()
        self._changes = rows.select(self._schema.names).cast(self._schema).combine_chunks()
        self._folder = merged_folder(staged, table)
        self._keys = _Keys(self._changes.select(self._key))
        self._reader = ArrowReader(location)

    def merged(self) -> Merged:
        found = self._found()
        self._check_found(found)
        feed = FileWriter(self._location, f"{self._folder}/feed.parquet", self._schema.append(_change_type()))
        groups = groups_of(self._touched(found))
        new = self._changes.filter(pc.equal(self._operations, "insert"))
        first = plain_values(new.column(self._key[0])) or [None] * len(new)
        into = np.array(group_for(first, groups), dtype=np.int64)
        files = [
            self._written([found[at] for at in group.files], new.filter(pa.array(into == number)), number, feed)
            for number, group in enumerate([*groups, Group()])
            if group.files or (into == number).any()
        ]
        _feed(feed, new, "insert")
        removed = frozenset(each.file.path for each in found)
        return Merged(removed=removed, files=tuple(each for each in files if each.rows), feed=(feed.close(),))

    def _touched(self, found: Sequence[_Found]) -> list[TouchedFile]:
        lowest = lowest_values(self._table, self._key[0])
        deletes = pc.equal(self._operations, "delete")
        return [
            TouchedFile(
                size=each.file.size,
                rows=each.file.rows or 0,
                deleted=pc.sum(deletes.take(each.changes)).as_py() or 0,
                lowest=lowest.get(each.file.path),
            )
            for each in found
        ]

    def _found(self) -> list[_Found]:
        """The files with rows that are replaced or deleted."""
        rows: dict[LoggedFile, list[np.ndarray]] = {}
        changes: dict[LoggedFile, list[pa.Array]] = {}
        for parts in self._parts():
            numbers, changed = self._keys.found_in(pa.concat_tables(part for _, _, part in parts))
            ends = np.cumsum([len(part) for _, _, part in parts])
            for (file, begins, part), end in zip(parts, ends, strict=True):
                inside = slice(*np.searchsorted(numbers, (end - len(part), end)))
                if inside.start < inside.stop:
                    rows.setdefault(file, []).append(numbers[inside] - (end - len(part)) + begins)
                    changes.setdefault(file, []).append(changed[inside])
            self._reader.forget({file.path for file, _, _ in parts[:-1]} - {file.path for file in rows})
        return [_Found(file, np.concatenate(rows[file]), pa.concat_arrays(changes[file])) for file in rows]

    def _parts(self) -> Iterator[list[tuple[LoggedFile, int, pa.Table]]]:
        """The keys of the files that may have a changed row: parts with their file and where they begin in it. Those of many
        small files come together, as each search takes all changes up first."""
        parts: list[tuple[LoggedFile, int, pa.Table]] = []
        size, enough = 0, max(_BATCH_ROWS, len(self._changes))
        for file in touched_files(self._table, changes_of_rows(self._table, self._key, self._changes)):
            begins = 0
            for part in self._read(file, self._key):
                parts.append((file, begins, part))
                begins, size = begins + len(part), size + len(part)
                if size >= enough:
                    yield parts
                    parts, size = [], 0
        if parts:
            yield parts

    def _check_found(self, found: Sequence[_Found]) -> None:
        """See that each row is there once that is to be replaced or deleted, and none that is to be new. Errors:
        `ReadMismatchError`."""
        every = np.concatenate([each.changes.to_numpy() for each in found]) if found else np.zeros(0, dtype=np.int64)
        times = np.bincount(every, minlength=len(self._changes))
        new = pc.equal(self._operations, "insert").to_numpy(zero_copy_only=False)
        missing, several, there = (times[~new] == 0).sum(), (times[~new] > 1).sum(), (times[new] > 0).sum()
        if missing or several or there:
            raise ReadMismatchError(
                f"{self._location.uri}: of {(~new).sum()} rows that are to be replaced or deleted {missing} are not there, "
                f"{several} are there several times, and of {new.sum()} new ones {there} are there already: expected none",
                hint="nothing was committed. Files of the table are not those that its log describes: restore them, or "
                "`backfill reset` builds the table anew",
                table=self._location.uri,
                expected=(int((~new).sum()), int((~new).sum())),
                found=int((times[~new] == 1).sum()),
            )

    def _written(self, group: Sequence[_Found], new: pa.Table, number: int, feed: FileWriter) -> StagedFile:
        """The rows of some files as they are after the merge, and new rows, in a file."""
        writer = FileWriter(self._location, f"{self._folder}/rows-{number}.parquet", self._schema)
        for each in group:
            self._rewrite(each, writer, feed)
        writer.write(new)
        return writer.close()

    def _rewrite(self, found: _Found, writer: FileWriter, feed: FileWriter) -> None:
        begins = 0
        for old in self._read(found.file, self._schema.names):
            inside = slice(*np.searchsorted(found.rows, (begins, begins + len(old))))
            self._replace(old, found.rows[inside] - begins, found.changes[inside], (writer, feed))
            begins += len(old)

    def _replace(self, old: pa.Table, rows: np.ndarray, changes: pa.Array, into: tuple[FileWriter, FileWriter]) -> None:
        """Write what becomes of old rows, of which these are changed, and tell the feed."""
        writer, feed = into
        stays = np.ones(len(old), dtype=bool)
        stays[rows] = False
        before, after = old.take(pa.array(rows)), self._changes.take(changes)
        deleted = pc.equal(self._operations.take(changes), "delete")
        kept = pc.invert(deleted)
        writer.write(old.filter(pa.array(stays)))
        writer.write(after.filter(kept))
        _feed(feed, before.filter(deleted), "delete")
        _feed(feed, before.filter(kept), "update_preimage")
        _feed(feed, after.filter(kept), "update_postimage")

    def _read(self, file: LoggedFile, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all rows of a file, one part after the other."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        with self._reader.opened(file) as opened:
            for batch in opened.iter_batches(_BATCH_ROWS, columns=schema.names):
                yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


class _Keys:
    """Finds rows by the keys of changes: column by column, with numbers that stand for the changes' values."""

    def __init__(self, keys: pa.Table) -> None:
        self._sets: list[tuple[pa.Array, pa.Array]] = []
        codes = _zeros(len(keys))
        for column in map(_one_form, keys.columns):
            values = pc.unique(column)
            both = pc.add(pc.multiply(codes, len(values)), pc.index_in(column, value_set=values).cast(pa.int64()))
            seen = pc.unique(both)
            self._sets.append((values, seen))
            codes = pc.index_in(both, value_set=seen).cast(pa.int64())
        if len(pc.unique(codes)) < len(keys):
            raise StagingError(
                f"{len(keys)} changes of a merge have {len(pc.unique(codes))} keys, expected a key for each",
                hint="nothing was committed; run it again",
            )

    def found_in(self, rows: pa.Table) -> tuple[np.ndarray, pa.Array]:
        """The numbers of the rows that have a change's key, sorted, and those of their changes."""
        at, codes = pa.array(np.arange(len(rows))), _zeros(len(rows))
        for column, (values, seen) in zip(rows.columns, self._sets, strict=True):
            value = pc.index_in(_one_form(column).take(at), value_set=values).cast(pa.int64())
            at, codes, value = (each.filter(pc.is_valid(value)) for each in (at, codes, value))
            code = pc.index_in(pc.add(pc.multiply(codes, len(values)), value), value_set=seen).cast(pa.int64())
            at, codes = at.filter(pc.is_valid(code)), code.filter(pc.is_valid(code))
        return at.to_numpy(), codes


def _zeros(count: int) -> pa.Array:
    return pa.array(np.zeros(count, dtype=np.int64))


def _one_form(column: pa.ChunkedArray) -> pa.Array:
    """Values in the one form for all that are equal as keys: Arrow compares the bits of NaN, and of zero."""
    values = column.combine_chunks()
    if not pa.types.is_floating(values.type):
        return values
    nan, zero = (pa.scalar(number, values.type) for number in (float("nan"), 0.0))
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))


def _change_type() -> pa.Field:
    return pa.field(_CHANGE_TYPE, pa.string())


def _feed(feed: FileWriter, rows: pa.Table, kind: str) -> None:
    if len(rows):
        feed.write(rows.append_column(_change_type(), pa.array([kind] * len(rows), pa.string())))
