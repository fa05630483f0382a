"""Turns Kafka records into bronze rows: parsed columns, or the reason why a record did not parse beside its raw value.

The rule: no value is lost in silence. Either each value that the JSON has for a column is in that column, or the record
is marked in `_error`, all columns of the schema are null and `_value` holds the bytes. Spark's `from_json` alone breaks
the rule (it passes over text after the object, takes "12:30" as today and makes too large a number infinite), so:

- The value is read inside of a frame, `{"record":[` value `],"end":1}`. A value that is not exactly one JSON object
  makes the frame wrong, or its list longer or shorter than one. That costs no second parse.
- Dates and timestamps are read by fixed ISO 8601 formats, never completed from the clock, in UTC where they name no zone.
- A number that becomes infinite or a year past 9999 (milliseconds taken for seconds) is an error in a column of the
  schema. Inside of arrays, maps and structs Spark's reading stands.

What is accepted as Spark does: unknown fields are left out, a missing field is null, field names count with their case,
of a repeated field the last one counts, decimals are rounded to the column's scale, a whole number in a TIMESTAMP is
seconds since 1970, STRING takes any JSON as text.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from backfill_assets.query.ddl import Column, ddl, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["parse_records"]

_TOMBSTONE: Final = "the value is null (a tombstone)"
_NOT_UTF8: Final = "the value is not UTF-8"
_FRAME: Final = "__frame"
_RECORD: Final = "__record"
_BROKEN: Final = "broken"
_TIMESTAMP: Final = "yyyy-MM-dd[['T'][' ']HH:mm[:ss][.SSSSSSSSS]"
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BROKEN,
    "timeZone": "UTC",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": f"{_TIMESTAMP}[XXX][XX]]",
    "timestampNTZFormat": f"{_TIMESTAMP}]",
    "enableDateTimeParsingFallback": "false",
}
_LIMITED: Final = frozenset({"FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
_LAST_YEAR: Final = 9999
_INFINITE: Final = ("Infinity", "+Infinity", "-Infinity", "INF", "+INF", "-INF")


def parse_records(raw: "DataFrame", *, columns: Sequence[Column], record_format: str) -> "DataFrame":
    """Bronze rows from the rows of Spark's Kafka source (with headers), in the order of `KafkaSource.bronze_columns`.

    `columns` is the source's schema. With `record_format="json"` the value is a JSON object of these columns; with
    `"raw"` the one column takes the value as it is, and a STRING has to be UTF-8.
    """
    if record_format == "raw":
        return _raw_rows(raw, columns[0])
    # One step each, and the raw value is carried along, so that Spark parses a good record exactly once.
    framed = raw.select("*", _framed(_fields(columns)).alias(_FRAME))
    judged = framed.select("*", F.when(_is_good(columns), _only(F.col(_FRAME))).alias(_RECORD))
    is_bad = F.col(_RECORD).isNull()
    values = [F.col(_RECORD)[column.name].alias(column.name) for column in columns]
    error = F.when(is_bad, _reason(columns)).alias("_error")
    return judged.select(*_metadata(), *values, error, F.when(is_bad, F.col("value")).alias("_value"))


def _raw_rows(raw: "DataFrame", column: Column) -> "DataFrame":
    value = F.col("value")
    error = F.when(value.isNull(), F.lit(_TOMBSTONE))
    if column.type == "STRING":
        value = F.try_validate_utf8(value.cast("string"))
        error = error.when(value.isNull(), F.lit(_NOT_UTF8))
    raw_value = F.when(error.isNotNull(), F.col("value")).alias("_value")
    return raw.select(*_metadata(), value.alias(column.name), error.alias("_error"), raw_value)


def _metadata() -> "list[SparkColumn]":
    return [
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
        F.col("key").alias("_key"),
        F.col("headers").alias("_headers"),
    ]


def _fields(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(column.name)}: {column.type}' for column in columns)}>"


def _text() -> "SparkColumn":
    """The value as text; null if it is not UTF-8."""
    return F.try_validate_utf8(F.col("value").cast("string"))


def _framed(record_type: str) -> "SparkColumn":
    """The value, read in its frame as a list of `record_type`; `_BROKEN` is set where a part of it could not be read."""
    text = F.concat(F.lit('{"record":['), _text(), F.lit('],"end":1}'))
    schema = ddl([Column("record", f"ARRAY<{record_type}>"), Column("end", "INT"), Column(_BROKEN, "STRING")])
    return F.from_json(text, schema, _OPTIONS)


def _only(frame: "SparkColumn") -> "SparkColumn":
    """The value itself; null where there is none (`[0]` would be an error under ANSI)."""
    return F.get(frame["record"], F.lit(0))


def _is_one(frame: "SparkColumn") -> "SparkColumn":
    """Whether the value was exactly one JSON value, all of it of the frame's type; null counts as no."""
    return (frame["end"] == 1) & frame[_BROKEN].isNull() & (F.size(frame["record"]) == 1)


def _is_good(columns: Sequence[Column]) -> "SparkColumn":
    beyond = [_is_beyond(column) for column in columns if column.type in _LIMITED]
    good = _is_one(F.col(_FRAME))
    return good & ~_any(beyond) if beyond else good


def _parsed(column: Column) -> "SparkColumn":
    return _only(F.col(_FRAME))[column.name]


def _as_text(columns: Sequence[Column]) -> "SparkColumn":
    """The frame with the text of each column; only for records that need a second look."""
    return _framed(_fields([Column(column.name, "STRING") for column in columns]))


def _is_beyond(column: Column) -> "SparkColumn":
    """Whether Spark made of a number what the JSON does not say: infinity, or a year that no other reader takes."""
    value = _parsed(column)
    if column.type in {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}:
        return F.coalesce(F.year(value) > _LAST_YEAR, F.lit(False))
    infinite = F.coalesce(F.abs(value) == F.lit(float("inf")), F.lit(False))
    # Behind a condition, as it parses the record again.
    return F.when(
        infinite, ~F.coalesce(_only(_as_text([column]))[column.name].isin(*_INFINITE), F.lit(False))
    ).otherwise(F.lit(False))


def _reason(columns: Sequence[Column]) -> "SparkColumn":
    """Why a record is bad. Spark computes it for bad records only: it stands behind a condition."""
    text = _text()
    any_json = _framed("STRING")
    first = F.substring(F.ltrim(text), 1, 1)
    kind = F.when(first == "[", "an array").when(first == '"', "a string").when(first == "n", "null")
    return (
        F
        .when(F.col("value").isNull(), F.lit(_TOMBSTONE))
        .when(text.isNull(), F.lit(_NOT_UTF8))
        .when(F.trim(text) == "", F.lit("the value is empty"))
        .when(~F.coalesce(_is_one(any_json), F.lit(False)), F.lit("the value is not JSON, or not one JSON value alone"))
        .when(first != "{", F.concat(F.lit("the value is not a JSON object but "), F.coalesce(kind, F.lit("a scalar"))))
        .otherwise(_first_mismatch(columns))
    )


def _first_mismatch(columns: Sequence[Column]) -> "SparkColumn":
    """Names the first column whose value in the JSON does not fit its type."""
    texts = _only(_as_text(columns))
    found = F.when(F.lit(False), F.lit(""))
    for column in columns:
        found = found.when(
            _mismatch(column, texts), F.lit(f"column {column.name} does not take its value as {column.type}")
        )
    return found.otherwise(F.lit("the value does not match the schema"))


def _mismatch(column: Column, texts: "SparkColumn") -> "SparkColumn":
    if column.type.endswith(">"):
        # A nested value may be there in part.
        return ~F.coalesce(_is_one(_framed(_fields([column]))), F.lit(False))
    lost = _parsed(column).isNull() & texts[column.name].isNotNull()
    return lost | _is_beyond(column) if column.type in _LIMITED else lost


def _any(conditions: "list[SparkColumn]") -> "SparkColumn":
    return reduce(lambda left, right: left | right, conditions)
