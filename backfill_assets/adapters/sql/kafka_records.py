r"""Turns Kafka records into bronze rows: parsed columns, or the reason why a record did not parse beside its raw value.

The rule: no value is lost in silence, and a record always gives the same row. Either each value that the JSON has for a
column is in that column, or the record is marked in `_error`, all columns of the schema are null and `_value` holds the
bytes. Spark's `from_json` alone breaks the rule, so:

- The value is read inside of a frame, `{"record":[` value `],"end":1}`: `from_json` passes over what follows an object,
  but text that is not exactly one JSON value makes the frame wrong, or its list longer or shorter than one. Text that
  closes the frame's list itself, to go on in the frame as it likes, has a `]` that nothing in it opened; in a second
  frame, `{"record":{"value":` value `},"end":1}`, that closes nothing. So text that is right in both is one JSON value.
- Text in single quotes, which Spark takes by default, is no JSON.
- Half of a surrogate pair (`"\ud800"`) is an error: it is no character, and Spark makes it a question mark.
- A timestamp that is only a time of day ("12:30") is an error: Spark completes it with today's date.
- In columns of the schema, a number that becomes infinite and a year past 9999 (milliseconds taken for seconds) are
  errors. Inside of arrays, maps and structs Spark's reading stands.

As Spark reads JSON: unknown fields are left out, a missing field is null, field names count with their case, the last of
repeated fields counts, decimals are rounded to the column's scale, dates and timestamps are ISO 8601 (in UTC where they
name no zone), a whole number in a TIMESTAMP is seconds since 1970, STRING takes any JSON as text, with fractions written
as doubles are.

All is SQL text: one call to Spark for each step, where building the same from column objects takes hundreds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from backfill_assets.query.ddl import Column, ddl, literal, quoted
from backfill_assets.query.record_columns import ERROR, OFFSET, PARTITION, VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["parse_records"]

_METADATA: Final = {
    "partition": PARTITION,
    "offset": OFFSET,
    "timestamp": "_timestamp",
    "key": "_key",
    "headers": "_headers",
}
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "broken",
    "timeZone": "UTC",
    "allowSingleQuotes": "false",
}
# A fixed format takes no time of day alone; it is too slow to read every record with.
_DATED_ONLY: Final = {**_OPTIONS, "timestampFormat": "yyyy-MM-dd[['T'][' ']HH:mm[:ss][.SSSSSSSSS][XXX][XX]]"}

_TEXT: Final = "try_validate_utf8(CAST(value AS STRING))"
_RECORD: Final = "get(__frame.record, 0)"
_TOMBSTONE: Final = "'the value is null (a tombstone)'"
_NOT_UTF8: Final = "'the value is not UTF-8'"
_INFINITE: Final = "'Infinity', '+Infinity', '-Infinity', 'INF', '+INF', '-INF'"
_LAST_YEAR: Final = 9999
# Spark trims control characters, DEL among them; in the JSON itself, any part of the time may be written as an escape.
_IS_TIME_OF_DAY: Final = r"RLIKE r'^[\x00-\x20\x7f]*(T|[0-9]{1,2}:)'"
_HAS_TIME_OF_DAY: Final = rf"""{_TEXT} RLIKE r'"[ \x7f]*(T[0-9]|T?[0-9]{{0,2}}\\|[0-9]{{1,2}}:)'"""
_SOUND_ESCAPE: Final = r"\\([^u]|u(?![dD][89a-fA-F])|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])"
_HAS_HALF: Final = f"contains(regexp_replace({_TEXT}, r'{_SOUND_ESCAPE}', ''), r'\\')"
_HALF_PAIR: Final = rf"((contains({_TEXT}, r'\ud') OR contains({_TEXT}, r'\uD')) AND {_HAS_HALF})"
_DATED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_HAS_TIMESTAMP: Final = re.compile(r"\bTIMESTAMP\b")


def parse_records(raw: "DataFrame", *, columns: Sequence[Column], record_format: str) -> "DataFrame":
    """Bronze rows from the rows of Spark's Kafka source (with headers), in the order of `KafkaSource.bronze_columns`.

    `columns` is the source's schema. With `record_format="json"` the value is a JSON object of these columns; with
    `"raw"` the one column takes the value as it is, and a STRING has to be UTF-8.
    """
    judged = _raw_judged(raw, columns[0]) if record_format == "raw" else _json_judged(raw, columns)
    values = [f"IF(__error IS NULL, __record.{quoted(each.name)}, NULL) AS {quoted(each.name)}" for each in columns]
    metadata = [f"{theirs} AS {ours}" for theirs, ours in _METADATA.items()]
    raw_value = f"IF(__error IS NOT NULL, value, NULL) AS {VALUE}"
    return judged.selectExpr(*metadata, *values, f"__error AS {ERROR}", raw_value)


def _raw_judged(raw: "DataFrame", column: Column) -> "DataFrame":
    name = quoted(column.name)
    if column.type != "STRING":
        return raw.selectExpr(
            "*", f"struct(value AS {name}) AS __record", f"IF(value IS NULL, {_TOMBSTONE}, NULL) AS __error"
        )
    read = raw.selectExpr("*", f"struct({_TEXT} AS {name}) AS __record")
    error = f"CASE WHEN value IS NULL THEN {_TOMBSTONE} WHEN __record.{name} IS NULL THEN {_NOT_UTF8} END"
    return read.selectExpr("*", f"{error} AS __error")


def _json_judged(raw: "DataFrame", columns: Sequence[Column]) -> "DataFrame":
    """Adds `__record`, the columns as Spark read them, and `__error`, null where that is what the JSON says."""
    framed = raw.selectExpr("*", f"{_framed(_struct(columns))} AS __frame")
    doubt = " OR ".join(doubt for column in columns for doubt in _doubts(column)) or "FALSE"
    # Only records that are not as they should be, or that may not be, are looked at again.
    sound = f"{_is_one('__frame')} AND {_stands_alone()} AND NOT {_HALF_PAIR} AND NOT coalesce({doubt}, FALSE)"
    error = f"IF({sound}, NULL, {_reason(columns)})"
    return framed.selectExpr("*", f"{_RECORD} AS __record", f"{error} AS __error")


def _struct(columns: Iterable[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(column.name)}: {column.type}' for column in columns)}>"


def _framed(record_type: str, options: Mapping[str, str] = _OPTIONS) -> str:
    """The value, read in its frame as a list of `record_type`; `broken` is set where a part of it could not be read."""
    schema = [Column("record", f"ARRAY<{record_type}>"), Column("end", "INT"), Column("broken", "STRING")]
    return _read(f"""concat('{{"record":[', {_TEXT}, '],"end":1}}')""", schema, options)


def _read(text: str, schema: Sequence[Column], options: Mapping[str, str] = _OPTIONS) -> str:
    pairs = ", ".join(literal(each) for pair in options.items() for each in pair)
    return f"from_json({text}, {literal(ddl(schema))}, map({pairs}))"


def _stands_alone() -> str:
    """Whether the value, if it is right in its frame, is all that it read there: it has not closed the frame's list."""
    other_frame = f"""concat('{{"record":{{"value":', {_TEXT}, '}},"end":1}}')"""
    return f"(NOT contains({_TEXT}, ']') OR coalesce({_read(other_frame, [Column('end', 'INT')])}.end = 1, FALSE))"


def _is_one(frame: str) -> str:
    """Whether the value was exactly one JSON value, all of it of the frame's type."""
    whole = f"{frame}.end = 1 AND {frame}.broken IS NULL AND size({frame}.record) = 1"
    return f"coalesce({whole} AND get({frame}.record, 0) IS NOT NULL, FALSE)"


def _doubts(column: Column) -> list[str]:
    """Cheap signs that Spark may have made of a value what the JSON does not say."""
    value = f"{_RECORD}.{quoted(column.name)}"
    doubts: list[str] = []
    if column.type in _FLOATS:
        doubts.append(f"abs({value}) = double('Infinity')")
    if column.type in _DATED:
        doubts.append(f"year({value}) > {_LAST_YEAR}")
    if column.type == "TIMESTAMP":
        # A time of day comes out as today, so history needs no second look.
        doubts.append(f"({value} >= date_sub(current_date(), 2) AND {_HAS_TIME_OF_DAY})")
    elif _HAS_TIMESTAMP.search(column.type):
        doubts.append(_HAS_TIME_OF_DAY)
    return doubts


def _reason(columns: Sequence[Column]) -> str:
    """Why a record is bad; null if a second look finds nothing wrong."""
    first = f"substring(ltrim({_TEXT}), 1, 1)"
    kind = f"CASE {first} WHEN '[' THEN 'an array' WHEN '\"' THEN 'a string' WHEN 'n' THEN 'null' ELSE 'a scalar' END"
    return f"""CASE
        WHEN value IS NULL THEN {_TOMBSTONE}
        WHEN {_TEXT} IS NULL THEN {_NOT_UTF8}
        WHEN trim({_TEXT}) = '' THEN 'the value is empty'
        WHEN {first} NOT IN ('{{') AND {_is_json()} THEN concat('the value is not a JSON object but ', {kind})
        WHEN NOT {_is_json()} THEN 'the value is not JSON, or not one JSON value alone'
        WHEN {_HALF_PAIR} THEN 'the value has half of a surrogate pair, which is no character'
        ELSE coalesce({_first_mismatch(columns)}, IF({_is_one("__frame")}, NULL, 'the value does not match the schema'))
    END"""


def _is_json() -> str:
    one = "coalesce(f.end = 1 AND f.broken IS NULL AND size(f.record) = 1, FALSE)"
    return f"(exists(array({_framed('STRING')}), f -> {one}) AND {_stands_alone()})"


def _first_mismatch(columns: Sequence[Column]) -> str:
    """Names the first column whose value in the JSON does not fit its type; null if there is none."""
    texts = _framed(_struct([Column(column.name, "STRING") for column in columns]))
    cases = " ".join(f"WHEN {_mismatch(column)} THEN {literal(_message(column))}" for column in columns)
    # The lambda gives the texts a name, so that they are read once and not for each column.
    return f"get(transform({texts}.record, t -> CASE {cases} END), 0)"


def _message(column: Column) -> str:
    return f"column {column.name} does not take its value as {column.type}"


def _mismatch(column: Column) -> str:
    """Whether Spark's reading of the column differs from its text `t` in the JSON."""
    name = quoted(column.name)
    value, text = f"{_RECORD}.{name}", f"t.{name}"
    if column.type.endswith(">"):
        # A nested value may be there in part.
        found = f"NOT exists(array({_framed(_struct([column]))}), f -> {_is_one('f')})"
        if _HAS_TIMESTAMP.search(column.type):
            dated = f"exists(array({_framed(_struct([column]), _DATED_ONLY)}), f -> {_is_one('f')})"
            found += f" OR ({_HAS_TIME_OF_DAY} AND NOT {dated})"
        return found
    found = f"({value} IS NULL AND {text} IS NOT NULL)"
    if column.type in _FLOATS:
        found += f" OR (abs({value}) = double('Infinity') AND {text} NOT IN ({_INFINITE}))"
    if column.type in _DATED:
        found += f" OR year({value}) > {_LAST_YEAR}"
    if column.type == "TIMESTAMP":
        found += f" OR {text} {_IS_TIME_OF_DAY}"
    return found
