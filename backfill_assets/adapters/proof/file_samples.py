"""Some rows of some data files of a table, read by pyarrow, a reader that shares nothing with Spark.

A seed selects the files and rows. Only files that contain all columns, and exactly the rows that a reader sees, are
selected: only Delta can read the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_assets.adapters.delta.log_replay import DataFile, Version, is_plain_path
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.sampling import ROWS_SAMPLED, sample_names, sample_range
from backfill_assets.query.ddl import Column

__all__ = ["FileSample", "TableFiles", "TableSample", "sample_of"]

_ROW_INDEX = "_metadata"
"""Spark's name for the index of a row in its file; a table with a column of that name cannot be sampled."""


@dataclass(frozen=True, kw_only=True)
class FileSample:
    """Rows of one file: their indexes, and the rows as pyarrow reads them; None if pyarrow cannot read the file, with
    its `error`."""

    path: str
    places: OffsetRange
    rows: pa.Table | None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class TableSample:
    """The selected files of a table, with these columns. `passed_over`: the number of files that only Delta can read."""

    name: str
    location: TableLocation
    schema: str
    columns: tuple[Column, ...]
    files: tuple[FileSample, ...]
    passed_over: int

    @property
    def read(self) -> list[tuple[FileSample, pa.Table]]:
        """The files that pyarrow could read, with their rows."""
        return [(file, file.rows) for file in self.files if file.rows is not None]


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """Files of one version of a table (all of them, or only `files`), and the columns to read. `name` is the table's
    name in messages."""

    name: str
    location: TableLocation
    version: Version
    columns: tuple[Column, ...]
    files: Sequence[DataFile] | None = None


def sample_of(table: TableFiles, seed: str) -> TableSample:
    """Read some rows of some of a table's files, both drawn by the seed."""
    every = table.version.files if table.files is None else table.files
    simple = table.version.is_plain and not any(column.name.lower() == _ROW_INDEX for column in table.columns)
    plain = [file.path for file in every if simple and not file.deleted and is_plain_path(file.path)]
    chosen = sample_names(plain, seed)
    samples = [_file_sample(table, path, seed) for path in chosen]
    found = tuple(each for each in samples if each is not None)
    return TableSample(
        name=table.name,
        location=table.location,
        schema=str(table.version.metadata["schemaString"]),
        columns=table.columns,
        files=found,
        passed_over=len(every) - len(plain) + len(chosen) - len(found),
    )


def _file_sample(table: TableFiles, path: str, seed: str) -> FileSample | None:
    """Some rows of one file; None for a file without rows, without these columns, or of a type that pyarrow does not
    know."""
    places = OffsetRange(start=0, end=0)
    try:
        with table.location.files().open_input_file(unquote(path)) as stream:
            file = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
            whole = OffsetRange(start=0, end=file.metadata.num_rows)
            places = sample_range(whole, seed, path, ROWS_SAMPLED)
            rows = _rows(file, places, table.columns)
    except pa.ArrowNotImplementedError:
        return None
    except (OSError, pa.ArrowException) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        return FileSample(path=path, places=places, rows=None, error=why)
    return FileSample(path=path, places=places, rows=rows) if rows.num_rows and rows.num_columns else None


def _rows(file: pq.ParquetFile, places: OffsetRange, columns: Sequence[Column]) -> pa.Table:
    """The rows at some indexes, with those of the columns that the file has, in the table's spelling."""
    spelled = {column.name.lower(): column.name for column in columns}
    fields = [field for field in file.schema_arrow if field.name.lower() in spelled]
    (groups, first), theirs = _groups_of(file, places), [field.name for field in fields]
    batches = file.iter_batches(ROWS_SAMPLED, row_groups=groups, columns=theirs, use_threads=False)
    found = _cut(batches, skip=places.start - first, take=len(places))
    names = [spelled[field.name.lower()] for field in fields]
    return pa.Table.from_batches([batch.rename_columns(names) for batch in found], _schema(fields, names))


def _schema(fields: Sequence[pa.Field], names: Sequence[str]) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)])


def _groups_of(file: pq.ParquetFile, places: OffsetRange) -> tuple[list[int], int]:
    """The row groups that contain these indexes, and the index of their first row."""
    groups: list[int] = []
    first = start = 0
    for number in range(file.num_row_groups):
        end = start + file.metadata.row_group(number).num_rows
        if start < places.end and places.start < end:
            first = first if groups else start
            groups.append(number)
        start = end
    return groups, first


def _cut(batches: Iterable[pa.RecordBatch], *, skip: int, take: int) -> Iterator[pa.RecordBatch]:
    """A number of rows after an offset, as copies: PySpark does not accept slices of nested values of which some are
    null."""
    for batch in batches:
        start = min(skip, batch.num_rows)
        end = min(start + take, batch.num_rows)
        skip -= start
        take -= end - start
        yield batch.take(pa.array(range(start, end), pa.int64()))
        if not take:
            return
