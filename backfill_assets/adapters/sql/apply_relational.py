"""Runs a query of any shape on Spark DataFrames: the user's text, with rows in the place of each name of an upstream."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 # the name that Spark's users know
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from backfill_assets.adapters.sql.apply_rowwise import translated
from backfill_assets.adapters.sql.floats import one_form
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import quoted
from backfill_assets.query.relational import COPY, ERROR, ROW_HASH, RelationalQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["apply_relational", "computed_rows", "hashed", "numbered"]


def apply_relational(query: RelationalQuery, inputs: "Mapping[str, DataFrame]") -> "DataFrame":
    """The view's rows, hidden columns included, for all rows of its upstreams, by name.

    Errors: `QueryError` with reason `SPARK` if Spark refuses the query, or `TYPE` if rows have no hash and no key is given.
    """
    result = computed_rows(query, [inputs[name] for name in query.occurrences])
    return result if query.primary_key else numbered(result, result.columns)


def computed_rows(query: RelationalQuery, bound: "Sequence[DataFrame]") -> "DataFrame":
    """The query's own columns, with these rows in each place that names an upstream.

    What is equal as a key has one form in the key's columns: zero without a sign, and NaN of the same bits.
    """
    rows: dict[str, Any] = {
        f"occurrence_{at}": (each.where(f"{ERROR.name} IS NULL") if name in query.good else each).select(
            *(quoted(column.name) for column in query.columns[name])
        )
        for at, (name, each) in enumerate(zip(query.occurrences, bound, strict=True))
    }
    try:
        result = bound[0].sparkSession.sql(query.template, None, **rows)
        types = {field.name: field.dataType for field in result.schema.fields}
    except AnalysisException as error:
        raise translated(error) from error
    if not query.primary_key:
        _check_hashed(types)
    forms = {name: one_form(quoted(name), types[name]) for name in query.primary_key if name in types}
    odd = {name: F.expr(form) for name, form in forms.items() if form != quoted(name)}
    return result.withColumns(odd) if odd else result


def hashed(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    """Rows with the hash of these columns. Floats that are equal have one hash."""
    return rows.withColumn(ROW_HASH, F.xxhash64(*map(quoted, columns)))


def numbered(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    """Rows with their hash, and which of those of the same hash each is.

    Rows that share a hash need not be equal: numbers are given within a hash, so that the two are a key in any case.
    """
    same = Window.partitionBy(ROW_HASH).orderBy(F.hash(*map(quoted, columns)))
    return hashed(rows, columns).withColumn(COPY, F.row_number().over(same))


def _check_hashed(types: Mapping[str, DataType]) -> None:
    for name, kind in types.items():
        if _has_map(kind):
            raise QueryError(
                f"column {name!r} holds a map, by which rows cannot be told apart",
                reason="TYPE",
                hint="declare a primary_key, or turn it into an array: array_sort(map_entries(...))",
            )


def _has_map(kind: DataType) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _has_map(kind.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in kind.fields)
        case _:
            return False
