"""Kafka records to bronze rows on real Spark: each value is in its column, or the record is marked and stored
unchanged."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.adapters.sql.kafka_records import parse_records
from backfill_assets.declare.model import ERROR_COLUMNS, METADATA_COLUMNS
from backfill_assets.query.ddl import Column, ddl, parse_schema
from tests.support.kafka_rows import WHEN, kafka_rows

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.e2e

COLUMNS = parse_schema(
    "a INT, l LONG, h SHORT, d DECIMAL(6,2), f FLOAT, x DOUBLE, s STRING, t TIMESTAMP, n TIMESTAMP_NTZ, dt DATE, "
    "b BINARY, bo BOOLEAN, xs ARRAY<INT>, st STRUCT<p: INT, q: STRING>, ss ARRAY<STRUCT<p: INT>>, m MAP<STRING, INT>, "
    "ts ARRAY<TIMESTAMP>, by TINYINT, `odd-'name` INT"
)
TODAY = datetime.now(UTC).date().isoformat()

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("{}", {}),
    ('{"a": 1, "unknown": {"x": [1]}}', {"a": 1}),
    (' {"a":1}\n', {"a": 1}),
    ('{"a":null,"s":null,"st":null}', {}),
    ('{"A":1}', {}),
    ('{"a":1,"a":2}', {"a": 2}),
    ('{"l":9223372036854775807}', {"l": 9223372036854775807}),
    ('{"d":1234.56}', {"d": Decimal("1234.56")}),
    ('{"d":"1.5"}', {"d": Decimal("1.50")}),
    ('{"d":1.239}', {"d": Decimal("1.24")}),
    ('{"d":1e3}', {"d": Decimal("1000.00")}),
    ('{"x":1}', {"x": 1.0}),
    ('{"x":"Infinity"}', {"x": float("inf")}),
    ('{"x":"-INF"}', {"x": float("-inf")}),
    ('{"s":5}', {"s": "5"}),
    ('{"s":{"k":[1,2]}}', {"s": '{"k":[1,2]}'}),
    ('{"s":"} 12:30 ]}{é😀"}', {"s": "} 12:30 ]}{é😀"}),
    ('{"s":"],\\"end\\":1}","a":1,"end":2,"record":[3]}', {"s": '],"end":1}', "a": 1}),
    ('{"s":"\\ud83d\\ude00 \\\\ud83d"}', {"s": "😀 \\ud83d"}),
    ('{"t":"2024-01-02T03:04:05.678Z"}', {"t": WHEN}),
    ('{"t":"2024-01-02T04:04:05.678+01:00"}', {"t": WHEN}),
    ('{"t":"2024-01-02 03:04:05.678"}', {"t": WHEN}),
    ('{"t":1704164645}', {"t": WHEN.replace(microsecond=0)}),
    (f'{{"t":"{TODAY}T01:02:03Z","s":"12:30"}}', {"t": datetime.fromisoformat(f"{TODAY}T01:02:03"), "s": "12:30"}),
    ('{"n":"2024-01-02T03:04:05.678"}', {"n": WHEN}),
    ('{"dt":"2024-01-02"}', {"dt": date(2024, 1, 2)}),
    ('{"b":"YWJj"}', {"b": b"abc"}),
    ('{"bo":true}', {"bo": True}),
    ('{"xs":[1,null]}', {"xs": [1, None]}),
    ('{"st":{"p":1}}', {"st": {"p": 1, "q": None}}),
    ('{"ss":[{"p":1},{}]}', {"ss": [{"p": 1}, {"p": None}]}),
    ('{"m":{"k":1,"l":null}}', {"m": {"k": 1, "l": None}}),
    ('{"ts":["2024-01-02T03:04:05.678Z"]}', {"ts": [WHEN]}),
    ('{"by":-128}', {"by": -128}),
    ('{"dt":"2024-01-02T03:04:05.678+01:00"}', {"dt": date(2024, 1, 2)}),
    ('{"dt":"2024-01-02 23:04 Europe/Berlin"}', {"dt": date(2024, 1, 2)}),
    ('{"dt":" 2024-1-2\\t","s":"\\\\"}', {"dt": date(2024, 1, 2), "s": "\\"}),
    ('{"dt":"2024"}', {"dt": date(2024, 1, 1)}),
    ('{"by":127}', {"by": 127}),
    ('{"t":1704164645,"l":1704164645000000}', {"t": WHEN.replace(microsecond=0), "l": 1704164645000000}),
    ('{"s":"\\"Infinity\\" 1"}', {"s": '"Infinity" 1'}),
    ('{"s":"\\"Infinity\\""}', {"s": '"Infinity"'}),
    ('{"s":"1e30000000, \\"5E99999"}', {"s": '1e30000000, "5E99999'}),
    ('{"d":0.0012e6}', {"d": Decimal("1200.00")}),
    ('{"odd-\'name":1}', {"odd-'name": 1}),
]

BAD: list[tuple[bytes | str | None, str]] = [
    ('{"t":18446744073710}', "column t does not take its value as TIMESTAMP"),
    ('{"t":1600000000000001}', "column t does not take its value as TIMESTAMP"),
    ('{"t": -9223372036855}', "column t does not take its value as TIMESTAMP"),
    ('{"\\u0074":18446744073710}', "column t does not take its value as TIMESTAMP"),
    ('{"dt":"2024-01-02 garbage"}', "column dt does not take its value as DATE"),
    ('{"dt":"2024-01-02Tgarbage"}', "column dt does not take its value as DATE"),
    ('{"dt":"99"}', "column dt does not take its value as DATE"),
    ('{"\\u0064t":"99"}', "column dt does not take its value as DATE"),
    ('{"by":128}', "column by does not take its value as TINYINT"),
    ('{"by":255}', "column by does not take its value as TINYINT"),
    ('{"m":{"k":1,"k":2}}', "column m does not take its value as MAP<STRING, INT>"),
    ('{"s":1e400}', "column s does not take its value as STRING"),
    ('{"d":1e30000000}', "the value has a number with an exponent of more than three digits"),
    (None, "the value is null (a tombstone)"),
    (b'{"s":"\xc3\x28"}', "the value is not UTF-8"),
    (b"\xff\xfe", "the value is not UTF-8"),
    ("", "the value is empty"),
    ("  ", "the value is empty"),
    ("null", "the value is not a JSON object but null"),
    ("5", "the value is not a JSON object but a scalar"),
    ('"x"', "the value is not a JSON object but a string"),
    ("[]", "the value is not a JSON object but an array"),
    ('[{"a":1}]', "the value is not a JSON object but an array"),
    *(
        (text, "the value is not JSON, or not one JSON value alone")
        for text in (
            '{"a":1} x',
            '{"a":1}{"a":2}',
            '{"a":1},{"a":2}',
            '{"a":1}, "l":2',
            '{"a":1}}',
            '{"a":1}]',
            '{"a":1}]}',
            '{"a":1',
            '{"a":',
            '{"a":1,}',
            '{"a":01}',
            "{a:1}",
            "plain text",
            '\ufeff{"a":1}',
            '{"s":"line\nbreak"}',
            '{"s":"nul\0"}',
            '{"a":1}\0',
            '{"a":1/**/}',
            '{"a":1}//',
            "{'a':1}",
            '{"s":"\\\'"}',
            '{"a":1}],"end":1}',
            '{"a":1}],"end":1} x',
            '{"a":1}],"end":1,"z":[{"b":9}',
            '{"a":1}],"end":1,"record":[{"a":2}',
            '{"a":1}],"z":[2',
            '{"a":1}},"end":1,"z":{"a":2}',
            '{"a":1},"value":{"a":2}',
            '{"a":1}]},"end":1,"z":{"y":[2',
            '1],"end":1}',
        )
    ),
    *(
        (f'{{"{name}":"{half}"}}', "the value has half of a surrogate pair, which is no character")
        for name in ("s", "unknown")
        for half in ("\\ud83d", "\\uDE00", "\\ude00\\ud83d", "\\\\\\ud83d", "\\ud83d\\\\ude00")
    ),
    *(
        (f'{{"a":{text}}}', "column a does not take its value as INT")
        for text in ("3000000000", "1.5", '"1"', '""', "true")
    ),
    ('{"s":"kept","a":"x"}', "column a does not take its value as INT"),
    ('{"l":9223372036854775808}', "column l does not take its value as BIGINT"),
    ('{"h":40000}', "column h does not take its value as SMALLINT"),
    ('{"d":12345.6}', "column d does not take its value as DECIMAL(6,2)"),
    ('{"d":"x"}', "column d does not take its value as DECIMAL(6,2)"),
    ('{"f":1e50}', "column f does not take its value as FLOAT"),
    ('{"x":1e999}', "column x does not take its value as DOUBLE"),
    ('{"x":"1.5"}', "column x does not take its value as DOUBLE"),
    *(
        (f'{{"t":{text}}}', "column t does not take its value as TIMESTAMP")
        for text in (
            '"2024-13-01T00:00:00Z"',
            '"2024-02-30"',
            '"soon"',
            '""',
            "1.5",
            "1704164645678",
            '"12:30"',
            '"T1:2:3"',
            '"T12"',
            '"\\u00312:30"',
            '"1\\u003a30"',
            '"\\u00541:2"',
            '"\\t12:30"',
            '" \x7f12:30"',
        )
    ),
    ('{"n":"2024-01-02T03:04:05Z"}', "column n does not take its value as TIMESTAMP_NTZ"),
    ('{"dt":"2024-02-30"}', "column dt does not take its value as DATE"),
    ('{"b":"!!"}', "column b does not take its value as BINARY"),
    ('{"bo":"true"}', "column bo does not take its value as BOOLEAN"),
    *((f'{{"xs":{text}}}', "column xs does not take its value as ARRAY<INT>") for text in ("1", '[1,"x"]', '{"p":1}')),
    *(
        (f'{{"st":{text}}}', "column st does not take its value as STRUCT<p: INT, q: STRING>")
        for text in ('{"p":"x","q":"kept"}', "[1]", '[{"p":1}]', "5", '""')
    ),
    ('{"ss":[{"p":1},{"p":"x"}]}', "column ss does not take its value as ARRAY<STRUCT<p: INT>>"),
    ('{"m":{"k":"x"}}', "column m does not take its value as MAP<STRING, INT>"),
    *(
        (f'{{"ts":["{text}"]}}', "column ts does not take its value as ARRAY<TIMESTAMP>")
        for text in ("12:30", "\\u00312:30", "T12")
    ),
    ('{"odd-\'name":"x"}', "column odd-'name does not take its value as INT"),
]


def as_bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """The value with rows as dictionaries and binary values as bytes."""
    if hasattr(value, "asDict"):
        return value.asDict(recursive=True)
    if isinstance(value, list):
        return [plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.fixture(scope="module")
def bronze(spark: "SparkSession") -> "dict[bytes | None, Row]":
    """The bronze row of each value, all read in one job."""
    values = [as_bytes(value) for value, _ in [*GOOD, *BAD]]
    rows = parse_records(kafka_rows(spark, values), columns=COLUMNS, record_format="json").collect()
    return {values[row["_offset"]]: row for row in rows}


@pytest.mark.parametrize(("text", "values"), GOOD, ids=[text for text, _ in GOOD])
def test_a_good_record_has_each_value_in_its_column(
    bronze: "dict[bytes | None, Row]", text: str, values: dict[str, Any]
) -> None:
    row = bronze[text.encode()]
    found = {column.name: plain(row[column.name]) for column in COLUMNS if row[column.name] is not None}
    assert (row["_error"], row["_value"], found) == (None, None, values)


@pytest.mark.parametrize(("value", "reason"), BAD, ids=[str(value) for value, _ in BAD])
def test_a_bad_record_has_its_reason_and_raw_value_and_nothing_else(
    bronze: "dict[bytes | None, Row]", value: bytes | str | None, reason: str
) -> None:
    row = bronze[as_bytes(value)]
    found = {column.name: row[column.name] for column in COLUMNS if row[column.name] is not None}
    assert (row["_error"], plain(row["_value"]), found) == (reason, as_bytes(value), {})


def test_a_mere_time_of_day_is_bad_where_no_other_column_calls_for_a_second_look(spark: "SparkSession") -> None:
    raw = kafka_rows(spark, [b'{"t":"12:30"}', b'{"t":"2024-01-02T03:04:05.678Z"}'])
    rows = parse_records(raw, columns=parse_schema("t TIMESTAMP"), record_format="json").collect()
    assert [(row["t"], row["_error"]) for row in rows] == [
        (None, "column t does not take its value as TIMESTAMP"),
        (WHEN, None),
    ]


@pytest.mark.parametrize(
    ("column_type", "value"), [("TIMESTAMP", "18446744073710"), ("DATE", '"99"'), ("TIMESTAMP", "1704164645678")]
)
def test_a_value_is_bad_under_a_name_with_an_escape_where_no_other_column_calls_for_a_second_look(
    spark: "SparkSession", column_type: str, value: str
) -> None:
    raw = kafka_rows(spark, [f'{{"\\u0074":{value}}}'.encode(), f'{{"t":{value}}}'.encode()])
    rows = parse_records(raw, columns=parse_schema(f"t {column_type}"), record_format="json").collect()
    assert [(row["t"], row["_error"]) for row in rows] == [
        (None, f"column t does not take its value as {column_type}")
    ] * 2


def test_not_a_number_is_taken_by_name(spark: "SparkSession") -> None:
    raw = kafka_rows(spark, [b'{"x":NaN}', b'{"x":"NaN"}'])
    rows = parse_records(raw, columns=parse_schema("x DOUBLE"), record_format="json").collect()
    assert [(str(row["x"]), row["_error"]) for row in rows] == [("nan", None)] * 2


def test_the_columns_are_those_of_the_bronze_table_in_order(spark: "SparkSession") -> None:
    rows = parse_records(kafka_rows(spark, [b'{"a":1}']), columns=COLUMNS, record_format="json")
    wanted = spark.createDataFrame([], ddl((*METADATA_COLUMNS, *COLUMNS, *ERROR_COLUMNS))).dtypes
    assert rows.dtypes == wanted
    (row,) = rows.collect()
    parts = [plain(row[column.name]) for column in METADATA_COLUMNS]
    assert parts == [3, 0, WHEN, b"k", [{"key": "h", "value": b"\x00"}]]


@pytest.mark.parametrize(
    ("column_type", "value", "expected"),
    [
        ("STRING", b"text {", ("text {", None, None)),
        ("STRING", b"", ("", None, None)),
        ("STRING", b"\xff", (None, "the value is not UTF-8", b"\xff")),
        ("STRING", None, (None, "the value is null (a tombstone)", None)),
        ("BINARY", b"\xff", (b"\xff", None, None)),
        ("BINARY", None, (None, "the value is null (a tombstone)", None)),
    ],
)
def test_a_raw_source_takes_the_value_as_it_is(
    spark: "SparkSession", column_type: str, value: bytes | None, expected: tuple[Any, ...]
) -> None:
    columns = (Column("body", column_type),)
    (row,) = parse_records(kafka_rows(spark, [value]), columns=columns, record_format="raw").collect()
    assert (plain(row["body"]), row["_error"], plain(row["_value"])) == expected
