"""Records as a parser other than Spark's reads them, and which differences from a source's table it reports."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.adapters.kafka.log import Record
from backfill_assets.adapters.proof.topic_samples import RecordRow, comparable_values, otherwise
from backfill_assets.query.ddl import parse_schema

COLUMNS = parse_schema("id LONG, name STRING, odd BOOLEAN, amount DECIMAL(9,2), ratio DOUBLE, at TIMESTAMP")
VALUE = b'{"id": 7, "name": "n", "odd": true, "amount": 1.005, "ratio": 0.1, "at": "2024-01-01"}'
TOLD: dict[str, Any] = {"id": 7, "name": "n", "odd": True, "amount": Decimal("1.01"), "ratio": 0.1}
RECORD = Record(partition=0, offset=3, timestamp_ms=5, key=b"k", value=VALUE, headers=(("h", None),))
ROW = RecordRow(timestamp_ms=5, key=b"k", headers=(("h", None),), error=None, raw_value=None, values=TOLD)


def said(
    record: Record = RECORD, row: RecordRow | None = ROW, columns: str = "", record_format: str = "json"
) -> list[str]:
    rows = {} if row is None else {(0, 3): row}
    return list(otherwise([record], rows, parse_schema(columns) if columns else COLUMNS, record_format))


def test_a_record_that_is_in_the_table_unchanged_is_no_violation() -> None:
    assert said() == []
    assert comparable_values(VALUE, COLUMNS) == TOLD


def test_a_record_that_is_not_in_the_table_is_named() -> None:
    assert said(row=None) == [
        "partition 0, offset 3: a record that a Kafka client other than Spark's finds is not in the table"
    ]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"timestamp_ms": 6}, "_timestamp is 5 in the record, 6 in the table"),
        ({"key": None}, "_key is b'k' in the record, None in the table"),
        ({"headers": ()}, "_headers is (('h', None),) in the record, () in the table"),
        ({"raw_value": VALUE}, f"_value is None in the record, {VALUE!r} in the table"),
        ({"values": {**TOLD, "name": "m"}}, "name is 'n' in the record, 'm' in the table"),
        ({"values": {**TOLD, "amount": Decimal(1)}}, "amount is Decimal('1.01') in the record, Decimal('1') in the table"),
        ({"values": {**TOLD, "ratio": None}}, "ratio is 0.1 in the record, None in the table"),
        ({"error": "bad"}, f"_value is {VALUE!r} in the record, None in the table"),
    ],
    ids=["time", "key", "headers", "raw value", "text", "rounding", "emptied", "bad without its value"],
)  # fmt: skip
def test_the_values_that_differ_are_named(change: dict[str, Any], wrong: str) -> None:
    assert said(row=replace(ROW, **change)) == [f"partition 0, offset 3: {wrong}"]


@pytest.mark.parametrize("value", [b"[]", b"no JSON", b'{"id": 7} {}', b'"\xff"', None])
def test_a_record_that_is_no_json_object_may_not_be_a_good_one(value: bytes | None) -> None:
    (wrong,) = said(replace(RECORD, value=value))
    assert wrong.endswith("its value is not a JSON object for a parser other than Spark's, but it is one in the table")


def test_a_bad_record_is_stored_with_its_value() -> None:
    assert said(replace(RECORD, value=b"no JSON"), replace(ROW, error="bad", raw_value=b"no JSON", values={})) == []


@pytest.mark.parametrize(
    "value",
    [
        b'{"id": 7.0, "name": 1, "odd": "true", "amount": "1", "ratio": NaN}',
        b'{"id": 1e2, "name": {}, "odd": 1, "amount": [], "ratio": "1"}',
    ],
)
def test_values_of_another_kind_than_their_column_are_not_judged(value: bytes) -> None:
    assert said(replace(RECORD, value=value)) == []


def test_values_that_are_not_there_are_null_and_the_last_of_repeated_ones_counts() -> None:
    nothing: dict[str, Any] = dict.fromkeys(TOLD)
    assert comparable_values(b'{"ID": 7}', COLUMNS) == nothing
    assert comparable_values(b'{"id": 7, "id": 8}', COLUMNS) == {**nothing, "id": 8}


@pytest.mark.parametrize(("columns", "values"), [("v STRING", {"v": "é"}), ("v BINARY", {"v": "é".encode()})])
def test_a_raw_value_is_the_value(columns: str, values: dict[str, Any]) -> None:
    record, row = replace(RECORD, value="é".encode()), replace(ROW, values=values)
    assert said(record, row, columns, "raw") == []
    assert len(said(record, replace(row, values={"v": None}), columns, "raw")) == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_are_the_nearest_double(number: float) -> None:
    assert comparable_values(f'{{"ratio": {number!r}}}'.encode(), COLUMNS)["ratio"] == number  # type: ignore[index]


def test_a_record_that_python_cannot_parse_for_its_depth_is_not_compared() -> None:
    deep = b'{"id": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    values = comparable_values(deep, COLUMNS)
    assert values is not None
    assert set(values) == set(TOLD)
    assert said(replace(RECORD, value=deep), replace(ROW, values=dict.fromkeys(TOLD))) == []
