"""Ranges of a Delta table's key: cut by the statistics of its files, or after one pass over its key; and read with
Spark.

Values are stored as strings that Spark casts to the column's type, instants as microseconds since 1970, so they do not
depend on a session's time zone. Spark compares structs of columns in the order of keys: column by column, null first,
NaN last.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from backfill_assets.adapters.compute.version_rows import rows_at
from backfill_assets.adapters.delta.key_statistics import sortable_key, spans
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.core.epoch.ports import KeyRanges
from backfill_assets.core.progress.positions import Key, KeyRange
from backfill_assets.core.strategies.key_cuts import RANGES, by_files, by_sample, thinned
from backfill_assets.query.ddl import Column, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["in_ranges", "key_ranges", "sampled"]

FLOATING = frozenset({"FLOAT", "DOUBLE"})
SAMPLED = 100 * RANGES
"""About this many rows of a key are sampled; the number of rows in a range is then within about a tenth of its share.
"""


def key_ranges(runner: SparkRunner, upstream: DeltaUpstream, version: int) -> KeyRanges:
    """Cut the key of a version into ranges; data is read only if the files' statistics are not sufficient.

    Errors: `UpstreamRefusedError` with reason `NO_KEY` or `KEY_NOT_SORTABLE`.
    """
    key = sortable_key(upstream)
    known = spans(upstream, version, key[0])
    cut = by_files(known) if known is not None else None
    rows = sum(upstream.rows(version))
    return thinned(cut or runner.run(lambda spark: by_sample(sampled(spark, upstream, version, key, rows), rows)))


def in_ranges(rows: "DataFrame", upstream: DeltaUpstream, ranges: Sequence[KeyRange]) -> "DataFrame":
    """The rows whose key is in one of the ranges.

    The condition on the leading column alone is added as a separate one, because Delta skips files by it.
    """
    key = sortable_key(upstream)
    exact = _any([_inside(each, key) for each in ranges])
    if key[0].type in FLOATING:  # statistics of files ignore NaN, which is the greatest value
        return rows.where(exact)
    return rows.where(_any([_near(each, key[0]) for each in ranges])).where(exact)


def _any(conditions: "Sequence[SparkColumn]") -> "SparkColumn":
    """Whether one of the conditions holds: joined in pairs, because Spark does not accept deep expressions."""
    from pyspark.sql import functions as F  # noqa: N812

    while len(conditions) > 1:
        conditions = [reduce(or_, conditions[at : at + 2]) for at in range(0, len(conditions), 2)]
    return conditions[0] if conditions else F.lit(False)


def _inside(each: KeyRange, key: Sequence[Column]) -> "SparkColumn":
    from pyspark.sql import functions as F  # noqa: N812

    found = F.lit(True)
    if each.after is not None:
        found = found & (_columns(key, each.after) > _place(key, each.after))
    if each.upto is not None:
        found = found & (_columns(key, each.upto) <= _place(key, each.upto))
    return found


def _near(each: KeyRange, leading: Column) -> "SparkColumn":
    from pyspark.sql import functions as F  # noqa: N812

    column, found = F.col(quoted(leading.name)), F.lit(True)
    if each.after is not None and each.after[0] is not None:
        start = _value(leading, each.after[0])  # a cut by this column alone: equal values are in the range before
        found = found & (column > start if len(each.after) == 1 else column >= start)
    if each.upto is not None and each.upto[0] is not None:
        found = found & (column.isNull() | (column <= _value(leading, each.upto[0])))
    return found


def _columns(key: Sequence[Column], place: Key) -> "SparkColumn":
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(*(F.col(quoted(each.name)).alias(f"k{at}") for at, each in enumerate(key[: len(place)])))


def _place(key: Sequence[Column], place: Key) -> "SparkColumn":
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(
        *(_value(each, text).alias(f"k{at}") for at, (each, text) in enumerate(zip(key, place, strict=False)))
    )


def _value(column: Column, text: str | None) -> "SparkColumn":
    from pyspark.sql import functions as F  # noqa: N812

    if column.type == "TIMESTAMP":
        return F.timestamp_micros(F.lit(text).cast("BIGINT"))
    return F.lit(text).cast(column.type)


def sampled(
    spark: "SparkSession", upstream: DeltaUpstream, version: int, key: Sequence[Column], rows: int
) -> list[Key]:
    """Keys of a version as strings, in their order: all of them, or a sample of about `SAMPLED`; without those whose bytes
    are no text, as no string can name them."""
    from pyspark.sql import functions as F  # noqa: N812

    names = [quoted(each.name) for each in key]
    are_texts = [f"is_valid_utf8({quoted(each.name)}) IS NOT FALSE" for each in key if each.type == "STRING"]
    keys = rows_at(spark, upstream.location, version).select(*names).where(" AND ".join(["TRUE", *are_texts]))
    some = keys if rows <= SAMPLED else keys.sample(fraction=SAMPLED / rows)
    texts = (
        F.unix_micros(F.col(quoted(each.name))) if each.type == "TIMESTAMP" else F.col(quoted(each.name))
        for each in key
    )
    ordered = some.orderBy(*names).select(*(each.cast("STRING") for each in texts))
    return [tuple(row) for row in ordered.collect()]
