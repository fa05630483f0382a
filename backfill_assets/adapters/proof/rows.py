"""Proof by deriving rows again: the rows that a table must have, recomputed from its upstreams, against those it has.

Rows are compared as multisets over all columns, in Spark. `core.audit` decides where the records are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from backfill_assets.adapters.compute.changes import batch, kept
from backfill_assets.adapters.compute.no_rows import no_rows
from backfill_assets.adapters.compute.source_compute import SourceReader, bronze_inputs
from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.footers import held_rows
from backfill_assets.adapters.delta.log_replay import Version
from backfill_assets.adapters.proof.written import Written, file_rows
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.sql.named_rows import named_rows
from backfill_assets.adapters.sql.offset_ranges import within
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.skips import Offsets
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import Read
from backfill_assets.query.ddl import ddl, quoted
from backfill_assets.query.query import Query
from backfill_assets.query.working_columns import BALANCE, EXPECTED_ROWS, SIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "EXPECTED",
    "FOUND",
    "Derived",
    "Difference",
    "Proof",
    "balanced",
    "compared",
    "derive",
    "difference",
    "footer_rows",
    "stated_rows",
    "table_bytes",
    "whole_difference",
]

MAX_VIOLATIONS_SHOWN = 10

FOUND, EXPECTED = -1, 1
"""The sides of a comparison (`SIDE`)."""


@dataclass(frozen=True, kw_only=True)
class Derived:
    """How rows are derived again: from these reads of these sources, without the offsets that the table's position
    leaves out, and by the query if the table has one."""

    reads: tuple[Read, ...]
    sources: Mapping[str, SourceReader]
    query: Query | None
    left_out: Mapping[str, Offsets] = field(default_factory=dict)


Branches = Mapping[int, Mapping[int, OffsetRange]]
"""Ranges of offsets by the number of a query's part and by partition."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What has to be proved: a table at a version, keyed by partition, offset (and branch), except what is `left_out`.

    `since`: only what was written since a pass has to be proved, and the offsets `proved` are already proved; without
    it, all rows. `subset`: a topic is compacted, so rows that can no longer be derived are not a violation. Rows that
    were proved are a violation if they were added again.
    """

    table: TableLocation
    version: int
    partition_column: str
    offset_column: str
    left_out: Branches
    branch_column: str | None = None
    subset: bool = False
    since: Written | None = None
    proved: Branches = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The result of a comparison: the number of rows, and the first violations."""

    rows_expected: int
    rows_found: int
    missing: int
    unexpected: int
    violations: list[dict[str, object]]


def difference(runner: SparkRunner, derived: Derived, proof: Proof) -> Difference:
    """Compare derived rows with the table's, as multisets over all columns."""
    return runner.run(lambda spark: _compare(spark, derived, proof))


def whole_difference(
    runner: SparkRunner, derived: Derived, table: TableLocation, version: int, key: Sequence[str]
) -> Difference:
    """Compare derived rows with all of a table's, as multisets over all columns; violations come in the order of `key`."""
    return runner.run(
        lambda spark: compared(rows_at(spark, table, version), derive(spark, derived), first=key, rounded=True)
    )


def stated_rows(table: TableLocation, version: Version) -> int:
    """The number of rows in a version's data files according to its log, or to the footers of those of which it does not say
    it. 0 where such a file is outside of the table's folder, which nothing here makes."""
    return held_rows(table, version.files) or 0


def table_bytes(table: TableLocation) -> int:
    """The size of a table's data files, according to its log."""
    loaded = table.last()
    return 0 if loaded is None else sum(loaded.get_add_actions().column("size_bytes").to_pylist())


def footer_rows(table: TableLocation) -> int:
    """The number of rows in a table's data files, according to their own footers."""
    loaded = table.last()
    if loaded is None:
        return 0
    files = table.files()
    rows = 0
    for path in loaded.get_add_actions().column("path").to_pylist():
        with files.open_input_file(path) as stream:
            rows += pq.read_metadata(stream).num_rows
    return rows


def _compare(spark: "SparkSession", derived: Derived, proof: Proof) -> Difference:
    expected, since = derive(spark, derived), proof.since
    if since is None:
        actual = rows_at(spark, proof.table, proof.version)
    else:
        actual, went = (file_rows(spark, since, paths) for paths in (since.came, since.went))
        expected = went if expected is None else went.unionAll(expected.select(*map(quoted, went.columns)))
    return compared(
        actual.where(f"NOT {_inside(proof, proof.left_out)}"),
        expected,
        first=(proof.partition_column, proof.offset_column),
        forgiven=f"NOT {_inside(proof, proof.proved)}" if proof.subset else "FALSE",
    )


def compared(
    actual: "DataFrame",
    expected: "DataFrame | None",
    *,
    first: Sequence[str],
    forgiven: str = "FALSE",
    rounded: bool = False,
) -> Difference:
    """Compare two sets of rows as multisets over all columns of `actual`; violations come in the order of `first`.

    Rows that meet the condition `forgiven` and are not expected at all are not a violation. With `rounded`, ten digits
    of floats are compared, because their sums depend on the order in which Spark adds them up, also in batch.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = actual.columns
    if rounded:
        actual = _rounded(actual, dict(actual.dtypes))
        expected = None if expected is None else _rounded(expected, dict(actual.dtypes))
    sides = actual.withColumn(SIDE, F.lit(FOUND))
    if expected is not None:
        sides = sides.unionAll(expected.select(*map(quoted, columns)).withColumn(SIDE, F.lit(EXPECTED)))
    return balanced(sides, first=first, forgiven=forgiven)


def balanced(sides: "DataFrame", *, first: Sequence[str], forgiven: str = "FALSE") -> Difference:
    """Compare rows of which each says in `SIDE` whether it is `FOUND` or `EXPECTED`, as `compared` does."""
    from pyspark.sql import functions as F  # noqa: N812

    from backfill_assets.adapters.sql.map_columns import grouped

    side, columns = F.col(SIDE), [name for name in sides.columns if name != SIDE]
    counted = grouped(sides, columns, F.sum(side).alias(BALANCE), F.count_if(side == EXPECTED).alias(EXPECTED_ROWS))
    balance = F.col(BALANCE)
    # In a subset, a row that can no longer be derived is not a violation; one that can be derived but exists too often
    # is.
    surplus = F.greatest(-balance, F.lit(0)) * F.when((F.col(EXPECTED_ROWS) == 0) & F.expr(forgiven), 0).otherwise(1)
    summed = counted.agg(
        F.sum(EXPECTED_ROWS).alias("expected"),
        F.sum(F.col(EXPECTED_ROWS) - balance).alias("found"),
        F.sum(F.greatest(balance, F.lit(0))).alias("missing"),
        F.sum(surplus).alias("unexpected"),
    ).first()
    counts = {name: int(value or 0) for name, value in (summed.asDict() if summed else {}).items()}
    violations = []
    if counts["missing"] or counts["unexpected"]:
        # Spark cannot plan conditions on a union with a correlated subquery, so they are on rows that are kept.
        with kept(counted) as once:
            wrong = once.where((balance > 0) | (surplus > 0))
            named = named_rows(wrong.orderBy(*map(quoted, first)).limit(MAX_VIOLATIONS_SHOWN))
        violations = [_violation(row.asDict()) for row in named]
    return Difference(
        rows_expected=counts["expected"],
        rows_found=counts["found"],
        missing=counts["missing"],
        unexpected=counts["unexpected"],
        violations=violations,
    )


def _rounded(rows: "DataFrame", types: Mapping[str, str]) -> "DataFrame":
    def text(name: str) -> str:
        same = quoted(name)
        if types.get(name) not in {"float", "double"}:
            return same
        plain = f"CAST(format_string('%.9e', CAST({same} AS DOUBLE)) AS {types[name]})"
        return f"IF({same} IS NULL OR isnan({same}) OR abs({same}) = double('Infinity'), {same}, {plain}) AS {same}"

    return rows.selectExpr(*map(text, rows.columns))


def derive(spark: "SparkSession", derived: Derived) -> "DataFrame | None":
    """The rows of the table, recomputed; None if there is nothing to read for a table without a query."""
    inputs = dict(bronze_inputs(spark, derived.reads, derived.sources, derived.left_out))
    if derived.query is None:
        return next(iter(inputs.values()), None)
    unread = derived.sources.keys() - inputs.keys()
    inputs |= {name: no_rows(spark, ddl(derived.sources[name].bronze_columns)) for name in unread}
    return batch(derived.query, inputs)


def _inside(proof: Proof, branches: Branches) -> str:
    """SQL for whether a row's key is in ranges of offsets; never null."""
    inside = []
    for branch, partitions in branches.items():
        here = "TRUE" if proof.branch_column is None else f"{proof.branch_column} = {branch}"
        inside.append(f"({here} AND {within(proof.partition_column, proof.offset_column, partitions)})")
    return f"coalesce({' OR '.join(inside) or 'FALSE'}, FALSE)"


def _violation(row: dict[str, object]) -> dict[str, object]:
    balance = int(str(row.pop(BALANCE)))
    row.pop(EXPECTED_ROWS)
    return {"violation": "missing" if balance > 0 else "unexpected", "rows": abs(balance), **row}
