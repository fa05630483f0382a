r"""Turns Kafka records into bronze rows: the parsed columns, or the raw value with the reason why it could not be parsed.

The rule: no value is lost silently, and a record always gives the same row. Either each value that the JSON has for a
column is in that column, or the record is marked in `_error`, all columns of the schema are null and `_value` has the
bytes. Spark's `from_json` alone breaks the rule, so:

- The value is parsed inside a frame, `{"record":[` value `],"end":1}`: `from_json` ignores anything after an object, but
  text that is not exactly one JSON value breaks the frame, or makes its list longer or shorter than one. Text that closes
  the frame's list itself, to continue in the frame, has a `]` without a `[` before it; in a second frame,
  `{"record":{"value":` value `},"end":1}`, this is an error. So text that is valid in both frames is one JSON value.
- Strings in single quotes, which Spark accepts by default, are not JSON.
- Half of a surrogate pair (`"\ud800"`) is an error: it is not a character, and Spark replaces it by a question mark.
- A timestamp that is only a time of day ("12:30") is an error: Spark adds today's date.
- In columns of the schema, a number that becomes infinite and a year after 9999 (milliseconds read as seconds) are
  errors, as are what Spark wraps around (128 as TINYINT, microseconds as TIMESTAMP), text after a date, and a map with a
  key twice. In arrays, maps and structs, Spark's values are used.
- With a DECIMAL in the schema, an exponent of more than three digits is an error: Spark writes such a number out, for
  minutes.

As in Spark: unknown fields are ignored, a missing field is null, field names are case-sensitive, the last of repeated
fields counts, decimals are rounded to the column's scale, dates and timestamps are ISO 8601 (UTC if they have no time
zone), a whole number in a TIMESTAMP is seconds since 1970, and STRING accepts any JSON as text, with fractions written
like doubles.

Everything is SQL text: one call to Spark for each step instead of hundreds for the same expression of column objects.
"""

import json
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
# A fixed format does not accept a time of day alone; it is too slow to parse every record with it.
_DATED_ONLY: Final = {**_OPTIONS, "timestampFormat": "yyyy-MM-dd[['T'][' ']HH:mm[:ss][.SSSSSSSSS][XXX][XX]]"}

_TEXT: Final = "try_validate_utf8(CAST(value AS STRING))"
_RECORD: Final = "get(__frame.record, 0)"
_TOMBSTONE: Final = "'the value is null (a tombstone)'"
_NOT_UTF8: Final = "'the value is not UTF-8'"
_INFINITE: Final = "'Infinity', '+Infinity', '-Infinity', 'INF', '+INF', '-INF'"
_LAST_YEAR: Final = 9999
# Spark trims control characters, including DEL; in JSON, any part of the time may be written as an escape.
_IS_TIME_OF_DAY: Final = r"RLIKE r'^[\x00-\x20\x7f]*(T|[0-9]{1,2}:)'"
_HAS_TIME_OF_DAY: Final = rf"""{_TEXT} RLIKE r'"[ \x7f]*(T[0-9]|T?[0-9]{{0,2}}\\|[0-9]{{1,2}}:)'"""
_SOUND_ESCAPE: Final = r"\\([^u]|u(?![dD][89a-fA-F])|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])"
_HAS_HALF: Final = f"contains(regexp_replace({_TEXT}, r'{_SOUND_ESCAPE}', ''), r'\\')"
_HALF_PAIR: Final = rf"((contains({_TEXT}, r'\ud') OR contains({_TEXT}, r'\uD')) AND {_HAS_HALF})"
_DATED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_TOO_LONG: Final = literal(r"[0-9][eE][+-]?[0-9]{4}")
_STRINGS: Final = literal(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_WITHOUT_STRINGS: Final = f"regexp_replace({_TEXT}, {_STRINGS}, '')"
_WRITTEN_OUT: Final = f"({_TEXT} RLIKE {_TOO_LONG} AND {_WITHOUT_STRINGS} RLIKE {_TOO_LONG})"
"""Whether the value has a number of thousands of digits, outside of its strings."""
_WRAPS: Final = "-?[0-9]{13,}"
"""Numbers of seconds that are after the year 9999, or that Spark wraps around."""
_DAY: Final = "[+-]?[0-9]{4,7}(-[0-9]{1,2}){0,2}"
_TIME: Final = r"[ T][0-9]{1,2}(:[0-9]{1,2}){0,2}([.][0-9]*)?"
_ZONE: Final = r"[ ]*(Z|[A-Z]{3}|[A-Za-z_]+/[A-Za-z_/]+)?([+-][0-9]{1,2}(:?[0-9]{2}){0,2})?"
_BLANK: Final = r"[\x00-\x20\x7f]*"
_IS_DATE: Final = f"^{_BLANK}{_DAY}({_TIME}{_ZONE})?{_BLANK}$"
"""A text that is a date, with a time of the day or without. Spark takes anything after a date, and 1 to 999 as days."""
_NO_PLAIN_DATE: Final = f'"(?!{_DAY}")'
_BECOMES_INFINITE: Final = "[eE][+]?[0-9]{3}|[0-9]{309}"
_INFINITE_TEXTS: Final = ", ".join(map(literal, ('"Infinity"', '"-Infinity"')))
_BYTES: Final = frozenset({"BYTE", "TINYINT"})
_HAS_TIMESTAMP: Final = re.compile(r"\bTIMESTAMP\b")


def parse_records(raw: "DataFrame", *, columns: Sequence[Column], record_format: str) -> "DataFrame":
    """Bronze rows from the rows of Spark's Kafka source (with headers), in the order of `KafkaSource.bronze_columns`.

    `columns` is the source's schema. With `record_format="json"`, the value is a JSON object of these columns; with
    `"raw"`, the one column is the value itself, and a STRING must be UTF-8.
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
    """Adds `__record`, the columns as Spark reads them, and `__error`, which is null if these are the values in the
    JSON."""
    framed = raw.selectExpr("*", f"{_framed(_struct(columns))} AS __frame")
    doubt = " OR ".join(doubt for column in columns for doubt in _doubts(column)) or "FALSE"
    # Only records that are bad, or may be, are examined again.
    sound = f"{_is_one('__frame')} AND {_stands_alone()} AND NOT {_HALF_PAIR} AND NOT coalesce({doubt}, FALSE)"
    error = f"IF({sound}, NULL, {_reason(columns)})"
    return framed.selectExpr("*", f"{_RECORD} AS __record", f"{error} AS __error")


def _struct(columns: Iterable[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(column.name)}: {column.type}' for column in columns)}>"


def _framed(record_type: str, options: Mapping[str, str] = _OPTIONS) -> str:
    """The value, parsed in its frame as a list of `record_type`; `broken` is set if a part of it could not be parsed."""
    schema = [Column("record", f"ARRAY<{record_type}>"), Column("end", "INT"), Column("broken", "STRING")]
    return _read(f"""concat('{{"record":[', {_TEXT}, '],"end":1}}')""", schema, options)


def _read(text: str, schema: Sequence[Column], options: Mapping[str, str] = _OPTIONS) -> str:
    pairs = ", ".join(literal(each) for pair in options.items() for each in pair)
    if _has_decimal(schema):
        text = f"IF({_WRITTEN_OUT}, NULL, {text})"
    return f"from_json({text}, {literal(ddl(schema))}, map({pairs}))"


def _has_decimal(columns: Iterable[Column]) -> bool:
    return any("DECIMAL" in column.type for column in columns)


def _stands_alone() -> str:
    """Whether the value, if it is valid in its frame, has not closed the frame's list itself."""
    other_frame = f"""concat('{{"record":{{"value":', {_TEXT}, '}},"end":1}}')"""
    return f"(NOT contains({_TEXT}, ']') OR coalesce({_read(other_frame, [Column('end', 'INT')])}.end = 1, FALSE))"


def _is_one(frame: str) -> str:
    """Whether the value was exactly one JSON value, and all of it has the frame's type."""
    whole = f"{frame}.end = 1 AND {frame}.broken IS NULL AND size({frame}.record) = 1"
    return f"coalesce({whole} AND get({frame}.record, 0) IS NOT NULL, FALSE)"


def _doubts(column: Column) -> list[str]:
    """Cheap signs that Spark's values may differ from the JSON."""
    value = f"{_RECORD}.{quoted(column.name)}"
    doubts: list[str] = []
    if column.type in _FLOATS:
        doubts.append(f"abs({value}) = double('Infinity')")
    if column.type in _DATED:
        doubts.append(f"year({value}) > {_LAST_YEAR}")
    if column.type == "TIMESTAMP":
        # A time of day becomes a time of today, so history needs no second check.
        doubts.append(f"({value} >= date_sub(current_date(), 2) AND {_HAS_TIME_OF_DAY})")
        doubts.append(_has_value(column.name, _WRAPS))
    elif _HAS_TIMESTAMP.search(column.type):
        doubts.append(_HAS_TIME_OF_DAY)
    if column.type == "DATE":
        doubts.append(_has_value(column.name, _NO_PLAIN_DATE))
    if column.type in _BYTES:
        doubts.append(f"{value} < 0")
    if column.type == "STRING":
        doubts.append(f"{value} IN ({_INFINITE_TEXTS})")
    if column.type.startswith("MAP<"):
        doubts.append(_has_key_twice(value))
    return doubts


def _has_value(name: str, value: str) -> str:
    """Whether a field of this name may have a value that begins so; names may be written with escapes."""
    plain = re.escape(json.dumps(name, ensure_ascii=False))
    own, of_any, escape = (literal(each) for each in (rf"{plain}\s*:\s*{value}", rf":\s*{value}", "\\"))
    return f"({_TEXT} RLIKE {own} OR (contains({_TEXT}, {escape}) AND {_TEXT} RLIKE {of_any}))"


def _has_key_twice(value: str) -> str:
    return f"size(array_distinct(map_keys({value}))) < size({value})"


def _reason(columns: Sequence[Column]) -> str:
    """Why a record is bad; null if the second check finds nothing wrong."""
    first = f"substring(ltrim({_TEXT}), 1, 1)"
    kind = f"CASE {first} WHEN '[' THEN 'an array' WHEN '\"' THEN 'a string' WHEN 'n' THEN 'null' ELSE 'a scalar' END"
    return f"""CASE
        WHEN value IS NULL THEN {_TOMBSTONE}
        WHEN {_TEXT} IS NULL THEN {_NOT_UTF8}
        WHEN trim({_TEXT}) = '' THEN 'the value is empty'
        WHEN {first} NOT IN ('{{') AND {_is_json()} THEN concat('the value is not a JSON object but ', {kind})
        WHEN NOT {_is_json()} THEN 'the value is not JSON, or not one JSON value alone'
        WHEN {_HALF_PAIR} THEN 'the value has half of a surrogate pair, which is no character'
        WHEN {_WRITTEN_OUT if _has_decimal(columns) else "FALSE"}
            THEN 'the value has a number with an exponent of more than three digits'
        ELSE coalesce({_first_mismatch(columns)}, IF({_is_one("__frame")}, NULL, 'the value does not match the schema'))
    END"""


def _is_json() -> str:
    one = "coalesce(f.end = 1 AND f.broken IS NULL AND size(f.record) = 1, FALSE)"
    return f"(exists(array({_framed('STRING')}), f -> {one}) AND {_stands_alone()})"


def _first_mismatch(columns: Sequence[Column]) -> str:
    """The first column whose value in the JSON does not fit its type, as a message; null if there is none."""
    texts = _framed(_struct([Column(column.name, "STRING") for column in columns]))
    cases = " ".join(f"WHEN {_mismatch(column)} THEN {literal(_message(column))}" for column in columns)
    # The lambda gives the strings a name, so that they are parsed once and not for each column.
    return f"get(transform({texts}.record, t -> CASE {cases} END), 0)"


def _message(column: Column) -> str:
    return f"column {column.name} does not take its value as {column.type}"


def _mismatch(column: Column) -> str:
    """Whether Spark's value of the column differs from its text `t` in the JSON."""
    name = quoted(column.name)
    value, text = f"{_RECORD}.{name}", f"t.{name}"
    if column.type.endswith(">"):
        # Only a part of a nested value may exist.
        found = f"NOT exists(array({_framed(_struct([column]))}), f -> {_is_one('f')})"
        if _HAS_TIMESTAMP.search(column.type):
            dated = f"exists(array({_framed(_struct([column]), _DATED_ONLY)}), f -> {_is_one('f')})"
            found += f" OR ({_HAS_TIME_OF_DAY} AND NOT {dated})"
        if column.type.startswith("MAP<"):
            found += f" OR {_has_key_twice(value)}"
        return found
    found = f"({value} IS NULL AND {text} IS NOT NULL)"
    if column.type in _FLOATS:
        found += f" OR (abs({value}) = double('Infinity') AND {text} NOT IN ({_INFINITE}))"
    if column.type in _DATED:
        found += f" OR year({value}) > {_LAST_YEAR}"
    if column.type == "TIMESTAMP":
        found += f" OR {text} {_IS_TIME_OF_DAY} OR {text} RLIKE {literal(f'^{_WRAPS}$')}"
    if column.type == "DATE":
        found += f" OR NOT {text} RLIKE {literal(_IS_DATE)}"
    if column.type in _BYTES:
        found += f" OR ({value} < 0 AND NOT startswith({text}, '-'))"
    if column.type == "STRING":
        found += f" OR ({value} IN ({_INFINITE_TEXTS}) AND {_TEXT} RLIKE {literal(_BECOMES_INFINITE)})"
    return found
