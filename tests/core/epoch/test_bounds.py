"""Which bounds the log of a file may have: exact ones that include every value, for columns for which all files have
them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.bounds import MAX_TEXT, are_trusted, boundable, named, naming, restated, unbounded

LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("\ud7ff\ue000\uffff\U0010ffff"))
TEXTS = st.text(LETTERS, max_size=3 * MAX_TEXT)


def stats(low: Any, high: Any, *, nulls: int | None = 0, rows: int = 5) -> dict[str, Any]:
    counts = {} if nulls is None else {"nullCount": {"c": nulls}}
    return {"numRecords": rows, "minValues": {"c": low}, "maxValues": {"c": high}, **counts}


@given(TEXTS)
def test_bounds_of_long_strings_are_cut_and_still_include_them(text: str) -> None:
    made = restated(stats(text, text), {"c": "string"})
    if unbounded(stats(text, text), {"c": "string"}):
        assert set(text[:MAX_TEXT]) == {"\U0010ffff"}, "nothing that is as short lies above"
        return
    low, high = made["minValues"]["c"], made["maxValues"]["c"]
    assert low.encode() <= text.encode() <= high.encode()
    assert max(len(low), len(high)) <= MAX_TEXT
    if len(text) <= MAX_TEXT:
        assert low == high == text


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a" * 64, "a" * 64, "a" * 64),
        ("a" * 65, "a" * 64, "a" * 63 + "b"),
        ("a" * 63 + "\ud7ff" + "a", "a" * 63 + "\ud7ff", "a" * 63 + "\ue000"),  # what is in between is not a character
    ],
)
def test_a_string_that_is_too_long_is_cut_and_its_last_character_raised(text: str, low: str, high: str) -> None:
    said = {"numRecords": 1, "minValues": {"w": text}, "maxValues": {"w": text}, "nullCount": {"w": 0}}
    found = restated(said, {"w": "string"})
    assert (found["minValues"], found["maxValues"]) == ({"w": low}, {"w": high})


@given(st.lists(st.text(min_size=1), unique=True))
def test_swapped_and_unusual_names_stay_distinct(names: list[str]) -> None:
    assert list(named(naming(names))) == names


def test_names_that_were_written_by_somebody_else_are_not_taken_for_ours() -> None:
    assert naming(named("id, amount")) != "id, amount"


def test_only_columns_whose_bounds_any_writer_states_exactly_may_have_some() -> None:
    kinds = (
        "byte", "short", "integer", "long", "date", "string",
        "float", "double", "decimal(5,2)", "decimal(38,18)", "timestamp", "timestamp_ntz", "binary", "boolean",
        {"type": "array", "elementType": "long", "containsNull": True},
    )  # fmt: skip
    fields = [{"name": str(kind), "type": kind, "nullable": True, "metadata": {}} for kind in kinds]
    schema = json.dumps({"type": "struct", "fields": fields})
    assert list(boundable(schema)) == ["byte", "short", "integer", "long", "date", "string"]


@pytest.mark.parametrize(
    ("said", "kind", "bounded"),
    [
        (stats(1, 2), "long", True),
        (stats(1, 2, nulls=None), "long", True),
        (stats("a", "b"), "string", True),
        (stats("0001-01-01", "9999-12-31"), "date", True),
        (stats("0000-12-31", "2024-01-01"), "date", False),
        (stats("2024-01-01", "+10000-01-01"), "date", False),
        (stats("-0044-03-15", "2024-01-01"), "date", False),
        (stats("a", None), "string", False),
        (stats(None, 3), "long", False),
        (stats("a", "\U0010ffff" * 100), "string", False),
        ({"numRecords": 5, "minValues": {}, "maxValues": {}, "nullCount": {"c": 5}}, "long", True),
        ({"numRecords": 5, "minValues": {}, "maxValues": {}, "nullCount": {"c": 4}}, "long", False),
        ({"numRecords": 5, "minValues": {"d": 1}, "maxValues": {"d": 1}}, "long", False),
        ({"numRecords": 0, "nullCount": {"c": 0}}, "long", True),
        ({"numRecords": 5}, "long", True),
        ({}, "long", True),
    ],
)
def test_a_column_is_without_bounds_if_a_file_has_values_of_it_and_lacks_one(
    said: dict[str, Any], kind: str, bounded: bool
) -> None:
    assert unbounded(said, {"c": kind}) == (set() if bounded else {"c"})


def test_what_is_stated_of_other_columns_goes_and_all_else_stays() -> None:
    said = {
        "numRecords": 3,
        "tightBounds": True,
        "minValues": {"id": 1, "amount": 1.5, "text": "a" * 100, "part": {"x": 1}},
        "maxValues": {"id": 9, "amount": 2.5, "text": "b" * 100, "part": {"x": 1}},
        "nullCount": {"id": 0, "amount": 0, "text": 1, "part": {"x": 0}},
    }
    assert restated(said, {"id": "long", "text": "string", "none": "long"}) == {
        "numRecords": 3,
        "tightBounds": True,
        "minValues": {"id": 1, "text": "a" * MAX_TEXT},
        "maxValues": {"id": 9, "text": "b" * (MAX_TEXT - 1) + "c"},
        "nullCount": {"id": 0, "text": 1},
    }
    assert restated(said, {}) == {"numRecords": 3, "tightBounds": True}, "an empty list of bounds misleads readers"


@pytest.mark.parametrize(
    ("kind", "trusted"),
    [
        ("BIGINT", True),
        ("string", True),
        ("TIMESTAMP", True),
        ("DECIMAL(15,2)", True),
        ("DECIMAL(16,2)", False),
        ("decimal(38,18)", False),
        ("DOUBLE", False),
        ("float", False),
        ("struct<a:bigint,b:struct<c:decimal(20,0)>>", False),
        ("struct<a:bigint,b:decimal(9,0)>", True),
    ],
)
def test_bounds_of_others_are_trusted_if_no_writer_stores_them_as_doubles(kind: str, trusted: bool) -> None:
    assert are_trusted(kind) == trusted
