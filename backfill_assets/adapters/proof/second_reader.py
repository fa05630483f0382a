"""Compares what Spark reads from a table with what a reader without Spark reads from its files.

Product and proof read with the same Spark: its session, its Parquet reader, and the statistics of files. An error in
these affects both in the same way. So rows that pyarrow read (`file_samples`) must equal what Spark reads at the same
places; both are converted to Arrow, and compared as multisets in Python. In addition, the result of a row-wise query
over these rows must be in the view.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from backfill_assets.adapters.compute.changes import batch, view_columns
from backfill_assets.adapters.compute.table_rows import as_inserted, parquet_rows
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.proof.file_samples import FileSample, TableSample
from backfill_assets.adapters.proof.rows import compared
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.query.ddl import Column, quoted
from backfill_assets.query.rowwise import RowwiseQuery
from backfill_assets.query.working_columns import FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Compared", "Sampled", "ViewAt", "compare_readers"]

_MET_BY = 16
"""Rows without a key are looked up by this number of their columns."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Rows of an upstream that were read without Spark. `columns`: those that the query reads, some of which may not be
    in the files; `counted`: SQL for whether the view stands for a row; None if that cannot be decided."""

    sample: TableSample
    columns: Sequence[Column]
    counted: str | None


@dataclass(frozen=True, kw_only=True)
class ViewAt:
    """A row-wise view at a version, and the `upstreams` whose sampled rows it must contain."""

    query: RowwiseQuery
    table: TableLocation
    version: int
    upstreams: tuple[Sampled, ...]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The number of rows that both readers read and that were compared, and the violations, as text."""

    rows: int
    violations: list[str]


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A sample's rows in Spark's types, and the violations in them."""

    name: str
    rows: list[pa.Table]
    violations: list[str]


def compare_readers(runner: SparkRunner, samples: Sequence[TableSample], view: ViewAt | None) -> Compared:
    """Compare what Spark reads at some places of tables. If it is the same, check that the view contains what its query
    returns for these rows."""
    if not any(sample.files for sample in samples):
        return Compared(rows=0, violations=[])

    def compare(spark: "SparkSession") -> Compared:
        found = [_of_table(spark, sample) for sample in samples]
        violations = [each for table in found for each in table.violations]
        if not violations and view is not None:
            violations = _lacking(spark, view, {table.name: table.rows for table in found if table.rows})
        return Compared(rows=sum(rows.num_rows for table in found for rows in table.rows), violations=violations)

    return runner.run(compare)


def _of_table(spark: "SparkSession", sample: TableSample) -> _Table:
    broken = [
        f"{sample.name}: another reader than Spark cannot read file {file.path}: {file.error}"
        for file in sample.files
        if file.rows is None
    ]
    table = _Table(name=sample.name, rows=[], violations=broken)
    delivered = _delivered(spark, sample) if sample.read else pa.table({FILE: []})
    for number, (file, rows) in enumerate(sample.read):
        theirs = delivered.filter(pc.equal(delivered[FILE], number)).drop_columns(FILE)
        ours = _shaped(rows, theirs.schema)
        if ours is not None:
            table.rows.append(ours)
            table.violations.extend(_differences(_place(sample, file), _multiset(ours), _multiset(theirs)))
    return table


def _differences(place: str, found: Counter[str], by_spark: Counter[str]) -> list[str]:
    lacking, surplus = (found - by_spark).total(), (by_spark - found).total()
    if not lacking and not surplus:
        return []
    return [
        f"{place}: of {found.total()} rows that another reader finds, Spark misses {lacking}, and it returns {surplus} others"
    ]


def _place(sample: TableSample, file: FileSample) -> str:
    return f"{sample.name}: rows {file.places.start} to {file.places.end} of file {file.path}"


def _delivered(spark: "SparkSession", sample: TableSample) -> pa.Table:
    """What Spark reads at the places of the sample, with the number of the file."""
    names = [quoted(column.name) for column in sample.columns]
    fields = [{**each, "metadata": {}} for each in json.loads(sample.schema)["fields"]]
    schema = json.dumps({
        "type": "struct",
        "fields": fields,
    })  # without the length of CHAR columns, whose values Spark would pad

    def rows(number: int, file: FileSample) -> "DataFrame":
        read = parquet_rows(spark, sample.location, schema, [file.path])
        place = "_metadata.row_index"
        there = read.where(f"{place} >= {file.places.start} AND {place} < {file.places.end}")
        return there.selectExpr(*names, f"{number} AS {FILE}")

    parts = [rows(number, file) for number, (file, _) in enumerate(sample.read)]
    return reduce(lambda some, more: some.unionAll(more), parts).toArrow()


def _lacking(spark: "SparkSession", view: ViewAt, rows: Mapping[str, Sequence[pa.Table]]) -> list[str]:
    """The rows that a view misses of what its query returns for rows that were read without Spark."""
    upstreams = [each for each in view.upstreams if each.sample.name in rows]
    inputs = {each.sample.name: _as_input(spark, each, rows[each.sample.name]) for each in upstreams}
    if not inputs:
        return []
    made = batch(view.query, inputs).selectExpr(*view_columns(view.table))
    held = rows_at(spark, view.table, view.version)
    found = compared(_near(held, made, view.query.key_columns), made, first=made.columns[:1], forgiven="TRUE")
    if not found.missing:
        return []
    where = "; ".join(_place(each.sample, file) for each in upstreams for file, _ in each.sample.read)
    return [
        f"{found.missing} of {found.rows_expected} rows that the query returns for what a reader other than Spark finds are "
        f"not in the view ({where}); first: {found.violations[0]}"
    ]


def _as_input(spark: "SparkSession", each: Sampled, rows: Sequence[pa.Table]) -> "DataFrame":
    made = spark.createDataFrame(pa.concat_tables(rows))
    return as_inserted(made, each.sample.schema, each.columns).where(each.counted or "FALSE")


def _near(held: "DataFrame", made: "DataFrame", key: Sequence[str]) -> "DataFrame":
    """The rows of a view that may be equal to some of these few rows."""
    from backfill_assets.adapters.sql.semi_join import semi_join

    kinds = dict(made.dtypes)
    names = [name for name in key or made.columns if "map<" not in kinds[name]][:_MET_BY]
    return semi_join(held, made.select(*map(quoted, names)).distinct(), {name: name for name in names}, few=True)


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """Rows with Spark's columns, in Spark's order and types; columns that the file does not have are null. None if
    Arrow cannot convert one of the types."""
    names = set(rows.column_names)
    try:
        columns = [
            rows[field.name].cast(field.type) if field.name in names else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
    except pa.ArrowNotImplementedError:
        return None
    return pa.Table.from_arrays(columns, schema=schema)


_PLAIN = (
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_date, pa.int32()),
    (pa.types.is_string, pa.binary()),
    (pa.types.is_large_string, pa.large_binary()),
)


def _multiset(rows: pa.Table) -> Counter[str]:
    """Each row as one string, so that values of all types, NaN, and zero with and without a sign can be told apart."""
    plain = rows.cast(pa.schema([field.with_type(_plain(field.type)) for field in rows.schema]))
    return Counter(map(repr, zip(*(column.to_pylist() for column in plain.columns), strict=True)))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type, with numbers for dates and times, as Python has no years beyond 9999, and with bytes for text, which need not
    be valid UTF-8."""
    for is_one, plain in _PLAIN:
        if is_one(kind):
            return plain
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind
