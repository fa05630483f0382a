"""Stages the rows of an epoch as Parquet files, in a folder of one attempt alone, and counts them.

Spark writes them, and counts what it writes by its own observation, so that nothing is read twice. Few rows for an object
store are computed and counted by Spark, and written by this process, with one request for each file.

Rows to be merged have their operation in `__op` (insert, update, delete): the name of the folder in which they are staged.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from backfill_assets.adapters.compute.changes import ROWS, kept
from backfill_assets.adapters.compute.parquet_files import parquet_files
from backfill_assets.adapters.compute.scans import Scans
from backfill_assets.adapters.delta.arrow_files import put_rows
from backfill_assets.adapters.delta.spark_files import write_files
from backfill_assets.adapters.delta.staged_files import described
from backfill_assets.adapters.spark.resource import do_nothing
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import StagedFile
from backfill_assets.query.spelling import backquoted
from backfill_assets.query.working_columns import OPERATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "FEW_BYTES",
    "StagingFolder",
    "Tasks",
    "bytes_of",
    "put_changes",
    "write_by_spark",
    "write_changes",
    "write_new",
    "write_rows",
]

FEW_BYTES = 32 * 2**20
"""The bytes of rows that this process may write itself, as they are in memory."""
_BYTES = "__bytes"
_TERMS = 16
"""The most terms of a sum that stand beside each other."""
_WIDE = 16
"""Bytes of a value of fixed length, at most; and what a text takes besides its own."""
_FIXED = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "decimal")


class Tasks(NamedTuple):
    """How many tasks write rows: each a file, or several with at most so many rows."""

    number: int
    most_rows: int = 0


@dataclass(frozen=True, kw_only=True)
class StagingFolder:
    """The folder of an attempt inside a table's, and which files are known to be in it. `reach` checks that Spark writes
    there; `note_reached` is told that it does."""

    table: TableLocation
    name: str
    reach: Callable[[], None]
    note_reached: Callable[[], None] = do_nothing
    _written: list[StagedFile] = field(default_factory=list)

    def inner(self, inside: str) -> "StagingFolder":
        """A folder inside it, with files of its own."""
        return replace(self, name=f"{self.name}/{inside}", _written=[])

    def files(self) -> tuple[StagedFile, ...]:
        """The files with rows that were written into it, each with rows, columns and statistics, sorted by path."""
        return tuple(sorted(self._written, key=lambda each: each.path))

    def read(self, spark: "SparkSession", inside: str, schema: "StructType | None" = None) -> "DataFrame":
        """The rows of the files in a folder inside, with the columns that folders further inside are named by. Without their
        schema, Spark looks for it in the files by a job of its own."""
        paths = [self.table.child(path) for path in self._paths(inside)]
        return parquet_files(spark, paths, schema, basePath=self.table.child(self._child(inside)))

    def columns(self, inside: str, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows of the files in a folder inside, of which there is one at least, in this process."""
        parts = []
        for path in self._paths(inside):
            with self.table.opened(path) as stream:
                parts.append(pq.ParquetFile(stream).read(columns=[*names]).select([*names]))
        return pa.concat_tables(parts)

    def put(self, parts: Mapping[str, pa.Table]) -> None:
        """Write the rows for each folder inside; none where there are none. Errors: `EnvironmentSetupError` if the store
        refuses them."""
        self._written.extend(self._put(inside, rows) for inside, rows in parts.items() if rows.num_rows)

    def _put(self, inside: str, rows: pa.Table) -> StagedFile:
        return put_rows(self.table, f"{self._child(inside)}/part-{uuid.uuid4()}.parquet", rows)

    def write(self, rows: "DataFrame", inside: str, *, by: str | None = None, most_rows: int = 0) -> None:
        """Have Spark write rows into a folder inside, as `write_files` does."""
        self.reach()
        written = write_files(rows, self.table, self._child(inside), by=by, most_rows=most_rows)
        self._written.extend(described(self.table, written))

    def _paths(self, inside: str) -> list[str]:
        folder = self._child(inside)
        return [each.path for each in self.files() if each.path.startswith(f"{folder}/")]

    def _child(self, inside: str) -> str:
        return f"{self.name}/{inside}" if inside else self.name


@dataclass(frozen=True, kw_only=True)
class _Output:
    """Rows to be staged: what to count of them (aggregates by name, in SQL), which tasks write them, columns that are left
    out then, where in the folder of the attempt the rest goes, and a column whose values name folders there."""

    rows: "DataFrame"
    counts: Mapping[str, str]
    tasks: Tasks
    flags: tuple[str, ...] = ()
    inside: str = ""
    by: str | None = None


def write_rows(
    rows: "DataFrame", folder: StagingFolder, counts: Mapping[str, str], *, tasks: Tasks, scans: Scans
) -> dict[str, int]:
    """Write rows that are committed as they are.

    Args:
        rows: The rows, which come from `scans`.
        folder: The folder of the attempt.
        counts: What to count: aggregates by name, in SQL.
        tasks: Which tasks write them.
        scans: What the rows are read from.

    Returns:
        The counts.
    """
    return _staged(_Output(rows=rows, counts=counts, tasks=tasks), folder, scans)


def write_new(rows: "DataFrame", folder: StagingFolder, *, tasks: Tasks, scans: Scans) -> dict[str, int]:
    """Write rows of a view that are all to be inserted: as `write_changes`, without the sorting that its folders take."""
    given = _Output(rows=rows, counts={"insert": "count(1)"}, tasks=tasks, inside=f"{ROWS}/{OPERATION}=insert")
    return {**_staged(given, folder, scans), "update": 0, "delete": 0}


def write_changes(
    rows: "DataFrame",
    folder: StagingFolder,
    *flags: str,
    tasks: Tasks,
    scans: Scans,
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, int]:
    """Write rows that have `__op`; how many of each kind, for how many each of the `flags`, columns left out, holds, and
    what else is to be told of them: aggregates by name, in SQL. `scans` are those that the rows come from."""
    counts = {kind: f"count_if({OPERATION} = '{kind}')" for kind in ("insert", "update", "delete")}
    counts |= {flag: f"count_if({flag})" for flag in flags} | dict(more)
    given = _Output(rows=rows, counts=counts, tasks=tasks, flags=flags, inside=ROWS, by=OPERATION)
    return _staged(given, folder, scans)


def put_changes(rows: pa.Table, folder: StagingFolder) -> dict[str, int]:
    """Write rows that have `__op` and that this process holds; how many of each kind."""
    parts = _by_operation(rows, ROWS)
    folder.put(parts)
    return {kind: len(parts.get(f"{ROWS}/{OPERATION}={kind}", ())) for kind in ("insert", "update", "delete")}


def write_by_spark(
    rows: "DataFrame", table: TableLocation, folder: str, *, tasks: int
) -> tuple[tuple[StagedFile, ...], int]:
    """Have Spark write rows into a folder of a table with this number of tasks; the files with rows, and how many rows Spark
    has counted."""
    counted, seen = _counted(rows.coalesce(tasks), {"rows": "count(1)"})
    return described(table, write_files(counted, table, folder)), seen()["rows"]


def _staged(given: _Output, folder: StagingFolder, scans: Scans) -> dict[str, int]:
    if given.tasks.number == 1 and not folder.table.is_local:
        return _staged_here(given, folder, scans)
    counted, seen = _counted(given.rows.coalesce(given.tasks.number), given.counts)
    written = counted.drop(*given.flags)
    folder.write(written, given.inside, by=given.by, most_rows=given.tasks.most_rows)
    scans.computed(written)
    return seen()


def _staged_here(given: _Output, folder: StagingFolder, scans: Scans) -> dict[str, int]:
    """Count rows, which Spark keeps meanwhile, and write them here; if their bytes turn out to be many, Spark does."""
    from pyspark.sql import functions as F  # noqa: N812

    with kept(given.rows.coalesce(1)) as once:
        wanted = {**given.counts, _BYTES: f"sum({bytes_of(once.dtypes)})"}
        counted = once.agg(*(F.expr(sql).alias(name) for name, sql in wanted.items()))
        (row,) = counted.collect()
        scans.computed(counted)
        found = {name: int(row[name] or 0) for name in wanted}
        rows = once.drop(*given.flags)
        if found.pop(_BYTES) > FEW_BYTES:
            folder.write(rows, given.inside, by=given.by)
        else:
            table = rows.toArrow()
            folder.put({given.inside: table} if given.by is None else _by_operation(table, given.inside))
    return found


def _by_operation(rows: pa.Table, inside: str) -> "dict[str, pa.Table]":
    """The rows of each operation, by the folder in which they are staged."""
    kinds = pc.unique(rows.column(OPERATION)).to_pylist()
    parts = {kind: rows.filter(pc.equal(rows.column(OPERATION), kind)) for kind in kinds}
    return {f"{inside}/{OPERATION}={kind}": part.drop_columns(OPERATION) for kind, part in parts.items()}


def bytes_of(columns: Iterable[tuple[str, str]]) -> str:
    """SQL for the bytes of a row of these columns, which have these types."""
    return _sum([str(_WIDE) if kind.startswith(_FIXED) else _long(backquoted(name), kind) for name, kind in columns])


def _sum(terms: Sequence[str]) -> str:
    """SQL for a sum, halved by brackets: Spark nests a plain one as deep as it has terms, and fails at some hundreds."""
    if len(terms) <= _TERMS:
        return " + ".join(terms)
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])}) + ({_sum(terms[middle:])})"


def _long(name: str, kind: str) -> str:
    value = name if kind in {"string", "binary"} else f"CAST({name} AS STRING)"
    return f"{_WIDE} + coalesce(octet_length({value}), 0)"


def _counted(rows: "DataFrame", counts: Mapping[str, str]) -> "tuple[DataFrame, Callable[[], dict[str, int]]]":
    """Rows that Spark counts by its own observation while they are written, so that nothing is read twice."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    seen = Observation("staged")
    wanted = [F.expr(sql).alias(name) for name, sql in counts.items()]
    return rows.observe(seen, *wanted), lambda: {name: int(value or 0) for name, value in seen.get.items()}
