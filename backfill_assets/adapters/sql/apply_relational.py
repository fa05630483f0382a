"""Runs a query of any shape on Spark DataFrames: the user's text, with rows bound to each place that names an upstream."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 # the name that Spark's users know
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from backfill_assets.adapters.sql.apply_aggregate import stored
from backfill_assets.adapters.sql.apply_rowwise import REFUSALS, translated
from backfill_assets.adapters.sql.floats import one_form
from backfill_assets.adapters.sql.sql_over import sql_over
from backfill_assets.errors import QueryError
from backfill_assets.query.ddl import quoted
from backfill_assets.query.named_outputs import check_names
from backfill_assets.query.parameters import Parameter
from backfill_assets.query.relational import COPY, ERROR, ROW_HASH, RelationalQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "apply_relational",
    "are_told_apart",
    "check_columns",
    "computed_rows",
    "hashed",
    "joined_rows",
    "numbered",
    "own_rows",
    "result_rows",
    "row_of_nulls",
    "value_of",
]

_SESSION = "spark.sessionWindow"
"""The entry in a column's metadata by which Spark knows it as a session."""


def apply_relational(
    query: RelationalQuery, inputs: "Mapping[str, DataFrame]", chunks: "Mapping[int, DataFrame] | None" = None
) -> "DataFrame":
    """The view's rows, including hidden columns, for all rows of its upstreams, by name; in some places only for these
    `chunks`.

    Errors: `QueryError` with reason `SPARK` if Spark refuses the query, or `TYPE` if rows have no hash and no key is
    given.
    """
    result = result_rows(query, _bound(query, inputs, chunks))
    fields = result.schema.fields
    if query.grouped is None:
        check_columns(fields[: len(fields) - len(query.classes.hidden)], keyed=bool(query.primary_key))
    return numbered(result, result.columns, query.key_columns) if query.by_copies else result


def result_rows(query: RelationalQuery, bound: "Sequence[DataFrame]") -> "DataFrame":
    """The view's rows, but for their numbers as copies, with these rows in each place that names an upstream."""
    return (
        computed_rows(query, bound)
        if query.grouped is None
        else stored(query.grouped.groups, joined_rows(query, bound))
    )


def joined_rows(query: RelationalQuery, bound: "Sequence[DataFrame]") -> "DataFrame":
    """The rows that a query groups; with a row of nulls where they make one group, which is there without any other row."""
    assert query.grouped is not None
    rows = computed_rows(query.grouped.rows, bound)
    if not query.grouped.of_all:
        return rows
    return rows.unionAll(row_of_nulls(rows))


def row_of_nulls(rows: "DataFrame") -> "DataFrame":
    """One row with the columns of these rows, each null: it makes the group of all rows be there, and counts for nothing."""
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema.fields]
    return rows.sparkSession.range(1).select(*nulls)


def own_rows(
    query: RelationalQuery, inputs: "Mapping[str, DataFrame]", chunks: "Mapping[int, DataFrame] | None" = None
) -> "DataFrame":
    """What the user's own text gives, whatever rule keeps the view; the arguments are those of `apply_relational`. Chunks are
    of places in the text without WITH."""
    if query.written is not None and not chunks:
        query = replace(query, template=query.written.template, occurrences=query.written.occurrences)
    return computed_rows(query, _bound(query, inputs, chunks))


def _bound(
    query: RelationalQuery, inputs: "Mapping[str, DataFrame]", chunks: "Mapping[int, DataFrame] | None"
) -> "list[DataFrame]":
    chosen = chunks or {}
    return [chosen[at] if at in chosen else inputs[name] for at, name in enumerate(query.occurrences)]


def computed_rows(query: RelationalQuery, bound: "Sequence[DataFrame]") -> "DataFrame":
    """What the query's own text gives, with these rows in each place that names an upstream.

    Values that are equal as keys have one form in the key's columns: zero without a sign, and NaN with the same bits.
    Sessions are plain values.
    """
    rows = _seen(query, dict(enumerate(bound)))
    try:
        result = sql_over(bound[0].sparkSession, query.template, **rows)
        fields = result.schema.fields
    except REFUSALS as error:
        raise translated(error) from error
    types = {field.name: field.dataType for field in fields}
    forms = {name: one_form(quoted(name), types[name]) for name in query.primary_key if name in types}
    odd = {name: F.expr(form) for name, form in forms.items() if form != quoted(name)}
    sessions = {field.name: _plain(field.name) for field in fields if _SESSION in field.metadata}
    return result.withColumns(sessions | odd) if sessions or odd else result


def value_of(query: RelationalQuery, parameter: Parameter, bound: "Mapping[int, DataFrame]") -> "DataFrame":
    """The value of a parameter, with these rows in its places."""
    session = next(iter(bound.values())).sparkSession
    return sql_over(session, f"SELECT ({parameter.template}) AS value", **_seen(query, bound))


def _seen(query: RelationalQuery, bound: "Mapping[int, DataFrame]") -> dict[str, Any]:
    """The rows of places, under the names that templates have for them, with those columns that a query sees."""
    names = {at: query.occurrences[at] for at in bound}
    return {
        f"occurrence_{at}": (each.where(f"{ERROR.name} IS NULL") if names[at] in query.good else each).select(
            *(quoted(column.name) for column in query.columns[names[at]])
        )
        for at, each in bound.items()
    }


def _plain(name: str) -> "Column":
    """The value of a session: wherever rows are grouped by what Spark knows as one, it merges those that overlap."""
    session = F.col(quoted(name))
    return F.when(session.isNotNull(), F.struct(session["start"].alias("start"), session["end"].alias("end")))


def hashed(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    """Rows with the hash of these columns. Floats that are equal have the same hash."""
    return rows.withColumn(ROW_HASH, F.xxhash64(*map(quoted, columns)))


def numbered(rows: "DataFrame", columns: Sequence[str], key: Sequence[str]) -> "DataFrame":
    """Rows with their hash, and the number of each among the rows that are alike in the other columns of the view's key.

    Rows with the same hash need not be equal: numbers are unique within a hash, so hash and number are always a key.
    """
    # Hashes ignore nulls: (1, NULL) and (NULL, 1) are told apart by the columns themselves.
    alike = Window.partitionBy(*(quoted(name) for name in key if name != COPY))
    same = alike.orderBy(F.hash(*map(quoted, columns)), *map(quoted, columns))
    return hashed(rows, columns).withColumn(COPY, F.row_number().over(same).cast("bigint"))


def check_columns(fields: Sequence[StructField], *, keyed: bool) -> None:
    """Refuse columns of a result whose names depend on Spark, and types by which rows cannot be identified unless the
    view is `keyed`. Errors: `QueryError`."""
    check_names([field.name for field in fields])
    for field in () if keyed else fields:
        if what := next(filter(None, map(_unlike, _parts(field.dataType))), ""):
            raise QueryError(
                f"column {field.name!r} has {what}, by which rows cannot be told apart",
                reason="TYPE",
                hint="declare a primary_key, or convert it to another type: array_sort(map_entries(...)) for a map, "
                "to_json(...) for a VARIANT, CAST(... AS STRING) for a string with a collation",
            )


def are_told_apart(fields: Sequence[StructField]) -> bool:
    """Whether values of these columns are the same where Spark compares them as equal, and it compares them."""
    return not any(map(_unlike, (part for field in fields for part in _parts(field.dataType))))


def _unlike(kind: DataType) -> str:
    """The name of types whose values may differ although Spark compares them as equal, or that Spark does not compare."""
    match kind:
        case MapType():
            return "a map"
        case VariantType():
            return "a VARIANT"
        case StringType() if not kind.isUTF8BinaryCollation():
            return "a text with a collation"
        case _:
            return ""


def _parts(kind: DataType) -> Iterator[DataType]:
    yield kind
    match kind:
        case ArrayType():
            yield from _parts(kind.elementType)
        case StructType():
            for field in kind.fields:
                yield from _parts(field.dataType)
