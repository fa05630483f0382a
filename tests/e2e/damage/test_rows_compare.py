"""`exactly_once` compares values of every type: no false alarm if they are equal, and no miss if they differ."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from tests.support.damage import recompact, rewrite
from tests.support.lake import Lake
from tests.support.project import Project

pytestmark = pytest.mark.e2e

SCHEMA = """flag BOOLEAN, id LONG, price DOUBLE, ratio FLOAT, amount DECIMAL(20,4), at TIMESTAMP, local TIMESTAMP_NTZ,
    day DATE, note STRING, raw BINARY, tags ARRAY<STRING>, marks MAP<STRING, DOUBLE>,
    parts ARRAY<STRUCT<at: TIMESTAMP, by: MAP<STRING, TIMESTAMP>, cost: DECIMAL(38,10)>>"""

FULL = b"""{"flag": true, "id": 7, "price": 0.1, "ratio": 0.1, "amount": 1234567890123456.7891,
    "at": "2024-01-02T03:04:05.123456Z", "local": "2024-01-02T03:04:05.123456", "day": "2024-01-02", "note": "a",
    "raw": "AAH/", "tags": ["a", "b"], "marks": {"x": 1.5, "y": null, "n": NaN},
    "parts": [{"at": "2024-01-02T03:04:05.123456Z", "by": {"k": "2024-01-02T03:04:05.123456Z"}, "cost": 0.0000000001}]}"""
PECULIAR = (
    b'{"id": 1, "price": NaN, "ratio": NaN, "marks": {}, "tags": [], "parts": []}',
    b'{"id": 2, "price": -0.0, "ratio": -0.0, "marks": {"zero": -0.0}, "tags": [null], "parts": [null]}',
    b'{"id": 3, "note": "", "raw": "", "parts": [{"by": {}}, {"by": null}]}',
    b'{"id": 4, "price": "Infinity", "ratio": "-Infinity", "marks": null}',
    b"{}",
)
TICK = timedelta(microseconds=1)
PART: dict[str, Any] = {
    "at": datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),
    "by": [("k", datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC))],
    "cost": Decimal("0.0000000001"),
}

CHANGES: dict[str, tuple[str, object]] = {
    "a flag": ("flag", False),
    "a number": ("id", 8),
    "the last bit of a double": ("price", 0.10000000000000002),
    "a null for a float": ("ratio", None),
    "a NaN for a double": ("price", float("nan")),
    "the last digit of a decimal": ("amount", Decimal("1234567890123456.7892")),
    "a microsecond": ("at", PART["at"] + TICK),
    "a microsecond without a zone": ("local", datetime(2024, 1, 2, 3, 4, 5, 123457)),
    "a day": ("day", date(2024, 1, 3)),
    "the case of a text": ("note", "A"),
    "a space": ("note", "a "),
    "an empty text for a null": ("note", None),
    "a byte": ("raw", b"\x00\x01\xfe"),
    "the order of an array": ("tags", ["b", "a"]),
    "an empty array": ("tags", []),
    "a value of a map": ("marks", [("x", 1.25), ("y", None), ("n", float("nan"))]),
    "a key whose value is null": ("marks", [("x", 1.5), ("n", float("nan"))]),
    "a null for a map": ("marks", None),
    "a microsecond in a struct": ("parts", [{**PART, "at": PART["at"] + TICK}]),
    "a microsecond in a map in a struct": ("parts", [{**PART, "by": [("k", PART["at"] + TICK)]}]),
    "the last digit of a decimal in a struct": ("parts", [{**PART, "cost": Decimal("0.0000000002")}]),
    "a null in a struct": ("parts", [{**PART, "by": None}]),
}


@pytest.fixture(scope="module")
def values(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A source and a view of all types: unusual values first, then as many equal rows as there are changes."""
    root: Path = tmp_path_factory.mktemp("values")
    project = Project(root=root, servers=broker)
    topic = project.topic(partitions=1)
    project.produce(topic, [*PECULIAR, *[FULL.replace(b"\n", b"")] * len(CHANGES)])
    events = kafka_source("events", topic=topic, schema=SCHEMA)
    project.declare(events, materialized_view("every", query="SELECT * FROM events", upstreams=[events]))
    project.refresh("events")
    project.refresh("every")
    return project


def changed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row with one of the changes."""
    kept = len(PECULIAR)
    return rows[:kept] + [
        {**row, column: value} for row, (column, value) in zip(rows[kept:], CHANGES.values(), strict=True)
    ]


def zero_for_minus_zero(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "price": 0.0} if row["id"] == 2 else row for row in rows]


@pytest.mark.parametrize("name", ["events", "every"])
def test_equal_values_of_every_type_are_equal(values: Project, name: str) -> None:
    proof = values.check(name)
    assert proof.passed, proof
    assert proof.facts["rows_found"] == len(PECULIAR) + len(CHANGES)
    assert all(row[0] is None for row in values.rows("events", "_error")), values.rows("events", "_error")


@pytest.mark.parametrize(("change", "seen"), [(zero_for_minus_zero, 0), (changed, len(CHANGES))])
def test_every_change_of_a_value_is_seen_and_zero_has_no_sign(
    values: Project, change: Callable[..., Any], seen: int
) -> None:
    """Zero is compared as Spark groups it. The file is changed permanently, so the harmless change comes first."""
    rewrite(values, "every", change)
    proof = values.check("every")
    assert (proof.facts["missing"], proof.facts["unexpected"]) == (seen, seen), proof
    assert proof.passed == (seen == 0)


def test_the_last_bit_of_a_float_counts_where_nothing_was_added_up(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": at, "price": 0.1} for at in range(3)])
    lake.view("copied", "SELECT id, price FROM base", lake.table("base"))
    lake.view("summed", "SELECT id, sum(price) AS price FROM base GROUP BY id", lake.table("base"))

    def last_bit(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "price": 0.10000000000000002 if row["id"] == 1 else row["price"]} for row in found]

    for name, seen in (("copied", 1), ("summed", 0)):
        lake.project.refresh(name)
        recompact(lake.project, name, last_bit)
        proof = lake.project.check(name)
        assert (proof.facts["missing"], proof.facts["unexpected"]) == (seen, seen), name
