"""Finds the rows of a table that have one of few values in a column, in this process.

Of each file the column is read alone, and the other columns only of those groups of rows in which a value was found. Spark
would read all files, plan a scan, and take every value into the count by which its reading is checked. Here a file is read
with checksums of its pages, and has to have the size and the rows that the log says.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.arrow_reader import ArrowReader
from backfill_assets.adapters.delta.arrow_types import widest
from backfill_assets.adapters.delta.plain_values import plain_values
from backfill_assets.adapters.delta.touched_files import LoggedFile
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.touched_spans import MOST_VALUES, Span, apart, blocks, fewer
from backfill_assets.errors import ReadMismatchError

__all__ = ["HASH", "FoundRows", "Sought", "UnfitError", "kind_of_arrow", "one_form"]

HASH: Final = "HASH"
"""The kind of values that are hashes by Spark."""

_MOST_ROWS, _MOST_BYTES = 1_000_000, 256 * 2**20
"""More rows, or rows of more bytes, are not held here: Spark reads them."""

_BATCH_ROWS, _BATCH_BYTES = 2**16, 16 * 2**20
"""Rows are decoded in parts of about so many rows and bytes, as few bytes of a file may be many once they are decoded."""

_LEGACY: Final = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
"""Keys in the footer of a file with days or times of the Julian calendar, which only Spark converts."""


class UnfitError(Exception):
    """Rows cannot be read here just as Spark reads them, or are too many."""


@dataclass(frozen=True, eq=False)
class Sought:
    """Values of a column that are looked for: each once, in the form in which equal ones are alike, maybe with null.

    `kind` is the family of types that they are of (`query.kinds`), or `HASH`.
    """

    kind: str
    values: pa.Array

    @classmethod
    def of(cls, kind: str, columns: Iterable[pa.ChunkedArray]) -> "Sought":
        """The values of some columns. Errors: `UnfitError` where they have no such form."""
        forms = [one_form(each.combine_chunks(), kind) for each in columns]
        return cls(kind, pc.unique(pa.concat_arrays(forms)))

    @cached_property
    def spans(self) -> list[Span] | None:
        """Between which values a file's bounds must reach, days in ISO format; None where any file may have one."""
        if self.values.null_count:
            return None
        plain = plain_values(self.values)
        if plain is None:
            return None
        values = sorted(plain)
        if self.kind in {"INTEGER", HASH}:
            return blocks(values)
        if self.kind == "DATE":
            return [(low.isoformat(), high.isoformat()) for low, high in blocks(values)]
        if self.kind != "STRING":
            return None
        # With blanks behind it, which do not count, a text is still less than with a "!", the letter after the blank.
        # Of a block, it need not be the last text that reaches furthest: ("a", "a\tx") holds "a  ".
        return fewer(apart((each, f"{each}!") for each in values), MOST_VALUES)

    def among(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each value of a column whether it is looked for. Errors: `UnfitError` where that cannot be told."""
        return pa.chunked_array([self._among(each) for each in column.chunks], pa.bool_())

    def _among(self, part: pa.Array) -> pa.Array:
        if not pa.types.is_dictionary(part.type):
            return self._is_in(one_form(part, self.kind))
        found = self._is_in(one_form(part.dictionary, self.kind)).take(part.indices)
        return found.fill_null(bool(self.values.null_count))

    def _is_in(self, values: pa.Array) -> pa.Array:
        try:
            return pc.is_in(values, value_set=self.values.cast(values.type), skip_nulls=False)
        except pa.ArrowException as error:
            raise UnfitError(str(error)) from None


class FoundRows:
    """Finds rows in files of one table, no more than `most_rows` at once. A file that several versions have is read once for
    the same values."""

    def __init__(self, location: TableLocation, *, most_rows: int | None = None) -> None:
        self.location, self._most_rows = location, most_rows or _MOST_ROWS
        self._reader = ArrowReader(location, sized=True)
        self._found: dict[tuple[object, ...], pa.Table] = {}

    def among(self, files: Sequence[LoggedFile], schema: pa.Schema, column: str, sought: Sought) -> pa.Table:
        """The rows of some files with a value that is looked for.

        Args:
            files: The files, of which no row is hidden by a deletion vector.
            schema: The columns that are wanted, and their types in the table.
            column: The column with the values; one of these.
            sought: The values.

        Returns:
            The rows, with just these columns.

        Raises:
            ReadMismatchError: A file is missing or damaged, or has not the rows that the log says.
            UnfitError: Arrow does not read these files as Spark does, or finds too many rows.
        """
        return self._all(files, schema, lambda file: self._remembered(file, schema, column, sought))

    def has_none(self, files: Sequence[LoggedFile], column: pa.Field, sought: Sought) -> bool:
        """Whether no row of some files has a value that is looked for. The first two that do end the search, by `UnfitError`;
        arguments and errors are those of `among`."""
        found = FoundRows(self.location, most_rows=1).among(files, pa.schema([column]), column.name, sought)
        return not len(found)

    def every(self, files: Sequence[LoggedFile], schema: pa.Schema) -> pa.Table:
        """All rows of some files; arguments and errors are those of `among`."""
        if sum(each.size for each in files) > _MOST_BYTES:
            raise UnfitError(f"{len(files)} files of more than {_MOST_BYTES} bytes")
        return self.columns(files, schema)

    def columns(self, files: Sequence[LoggedFile], schema: pa.Schema) -> pa.Table:
        """Some columns of all rows of files that may be much larger; arguments and errors are those of `among`."""
        return self._all(files, schema, lambda file: self._of_file(file, schema))

    def _all(self, files: Sequence[LoggedFile], schema: pa.Schema, read: Callable[[LoggedFile], pa.Table]) -> pa.Table:
        check_fit(schema)
        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            try:
                return pa.concat_tables([schema.empty_table(), *_few(pool.map(read, files), self._most_rows)])
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _remembered(self, file: LoggedFile, schema: pa.Schema, column: str, sought: Sought) -> pa.Table:
        known = (file.path, column, sought, tuple(schema.names))
        if known not in self._found:
            self._found[known] = self._of_file(file, schema, (column, sought))
        return self._found[known]

    def _of_file(self, file: LoggedFile, schema: pa.Schema, wanted: tuple[str, Sought] | None = None) -> pa.Table:
        texts = [wanted[0]] if wanted is not None and _is_text(schema.field(wanted[0]).type) else []
        with self._reader.opened(file, dictionaries=texts) as opened:
            self._check(opened, file, schema)
            groups = range(opened.num_row_groups)
            if wanted is None:
                parts = (_selected(opened, number, schema.names) for number in groups)
            else:
                parts = (_matching(opened, number, schema.names, wanted) for number in groups)
            batches = (batch for part in parts for batch in part)
            typed = [_typed(batch, schema) for batch in _few(batches, self._most_rows)]
        return pa.concat_tables([schema.empty_table(), *typed])

    def _check(self, opened: pq.ParquetFile, file: LoggedFile, schema: pa.Schema) -> None:
        found = opened.metadata.num_rows
        if file.rows is not None and found != file.rows:
            raise ReadMismatchError(
                f"{self.location.uri}: its file {file.stored} has {found} rows, expected {file.rows} as the log says",
                hint="nothing was committed; restore the file and refresh again",
                table=self.location.uri,
                expected=(file.rows, file.rows),
                found=found,
            )
        about = {key.decode(): value for key, value in (opened.metadata.metadata or {}).items()}
        is_old = any(key in about for key in _LEGACY) or about.get("org.apache.spark.version", b"").startswith(b"2.")
        if is_old or not _is_like(opened.schema_arrow, schema):
            raise UnfitError(f"the file {file.stored} has other names or types, or days of another calendar")


def check_fit(schema: pa.Schema) -> None:
    """Refuse columns that Arrow may read in another way than Spark. Errors: `UnfitError`."""
    # By a name with a dot, Arrow would also choose the field of a struct.
    odd = [each.name for each in schema if "." in each.name or not _fits(each.type)]
    if odd:
        raise UnfitError(f"columns {', '.join(odd)}")


def _fits(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us")
    if pa.types.is_struct(kind):
        return all(_fits(part.type) for part in kind)
    if pa.types.is_list(kind):
        return _fits(kind.value_type)
    simple = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_date32,
        pa.types.is_decimal128,
        pa.types.is_large_string,
        pa.types.is_large_binary,
    )
    return any(is_kind(kind) for is_kind in simple)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _is_like(there: pa.Schema | pa.StructType, wanted: pa.Schema | pa.StructType) -> bool:
    """Whether Arrow finds in fields what Spark finds: names have the same case, and Spark reads files with these types."""
    names = {each.name: each.type for each in there}
    lower = {name.lower() for name in names}
    return all(
        _is_like_type(names[each.name], each.type) if each.name in names else each.name.lower() not in lower
        for each in wanted
    )


def _is_like_type(there: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(there) or (pa.types.is_timestamp(there) and there.unit == "ns"):
        return False
    if pa.types.is_struct(there) and pa.types.is_struct(wanted):
        return _is_like(there, wanted)
    if pa.types.is_list(wanted) and hasattr(there, "value_type"):
        return _is_like_type(there.value_type, wanted.value_type)
    return True


def _matching(
    opened: pq.ParquetFile, number: int, names: Sequence[str], wanted: tuple[str, Sought]
) -> Iterator[pa.Table]:
    """These columns of the rows of a group with a value that is looked for in one of them, in parts."""
    column, sought = wanted
    if column not in opened.schema_arrow.names:
        return _selected(opened, number, names) if sought.values.null_count else iter(())
    values = opened.iter_batches(_BATCH_ROWS, row_groups=[number], columns=[column])
    among = [sought.among(pa.chunked_array([batch.column(0)])).to_numpy() for batch in values]
    chosen = np.concatenate(among) if among else np.zeros(0, dtype=bool)
    return _selected(opened, number, names, chosen) if chosen.any() else iter(())


def _selected(
    opened: pq.ParquetFile, number: int, names: Sequence[str], chosen: "np.ndarray | None" = None
) -> Iterator[pa.Table]:
    """These columns of the rows of a group, all of them or those that are chosen, in parts; names that the file does not have
    aside."""
    there = [name for name in names if name in opened.schema_arrow.names]
    rows = opened.metadata.row_group(number).num_rows
    if not there:
        count = rows if chosen is None else int(chosen.sum())
        yield pa.table(dict.fromkeys(names[:1], pa.nulls(count)))
        return
    begins = 0
    for batch in opened.iter_batches(_rows_at_once(opened, number, there), row_groups=[number], columns=there):
        inside = None if chosen is None else chosen[begins : begins + len(batch)]
        begins += len(batch)
        if inside is None or inside.any():
            rows = _selectable(pa.Table.from_batches([batch]))
            yield rows if inside is None else rows.filter(pa.array(inside))


def _selectable(rows: pa.Table) -> pa.Table:
    """Rows whose texts are not views, in which some writers hold them: of these Arrow selects none."""
    views = [name for name in rows.column_names if "_view" in str(rows.schema.field(name).type)]
    wide = widest(rows.schema)
    for name in views:
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(name).cast(wide.field(name).type))
    return rows


def _rows_at_once(opened: pq.ParquetFile, number: int, names: Sequence[str]) -> int:
    """So many rows are decoded together, judged by the first ones of a group."""
    first = next(opened.iter_batches(256, row_groups=[number], columns=list(names)), None)
    width = 1 if first is None else 1 + first.nbytes // max(1, len(first))
    return max(16, min(_BATCH_ROWS, _BATCH_BYTES // width))


def _few(parts: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """The same parts. Errors: `UnfitError` where they are many rows or bytes together."""
    rows = size = 0
    for part in parts:
        rows, size = rows + len(part), size + part.nbytes
        if rows > most or size > _MOST_BYTES:
            raise UnfitError(f"more than {most} rows or {_MOST_BYTES} bytes")
        yield part


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of a schema; those that a file does not have are null."""
    there = set(rows.column_names)
    try:
        columns = [
            rows.column(each.name).cast(each.type) if each.name in there else pa.nulls(len(rows), each.type)
            for each in schema
        ]
    except pa.ArrowException as error:
        raise UnfitError(str(error)) from None
    return pa.table(columns, schema=schema)


def kind_of_arrow(kind: pa.DataType) -> str:
    """The family of types (`query.kinds`) of a column that has bounds. Errors: `UnfitError` if it is of another one."""
    if pa.types.is_integer(kind):
        return "INTEGER"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "STRING"
    raise UnfitError(f"a column of {kind}")


def one_form(values: pa.Array, kind: str) -> pa.Array:
    """Values in the form in which those are alike that are equal: integers of any width, texts without blanks at the end."""
    try:
        if kind in {"INTEGER", HASH}:
            return values.cast(pa.int64())
        if kind == "STRING":
            return pc.utf8_rtrim(values.cast(pa.large_string()), characters=" ")
    except pa.ArrowException as error:
        raise UnfitError(str(error)) from None
    return values
