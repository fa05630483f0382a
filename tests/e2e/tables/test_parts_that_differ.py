"""Which rows of a recomputed view are compared with its present rows, one by one: those of parts that differ."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute import parts_that_differ as module
from backfill_assets.adapters.compute.differences import differences
from backfill_assets.adapters.compute.parts_that_differ import parts_that_differ
from tests.support.local_rows import local_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

ROWS = 640
SCHEMA = "id INT, f DOUBLE, s STRING, k INT"
Row = tuple[int | None, float | None, str | None, int | None]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 0)


def some(random: Random, number: int) -> list[Row]:
    return [
        (
            random.choice([None, random.randrange(9), number]),
            random.choice([None, 0.0, 1.5, float("inf")]),
            random.choice([None, "", "x"]),
            random.choice([None, 0, number]),
        )
        for number in range(number)
    ]


def net(rows: "DataFrame") -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows.collect():
        found[repr(row[:-1])] += 1 if row[-1] == "insert" else -1
    return Counter({row: count for row, count in found.items() if count})


def compared(spark: "SparkSession", new: Sequence[Row], held: Sequence[Row]) -> tuple[Counter[str], int] | None:
    """What differs among the rows that are compared, and how many these are; None where all differ too much."""
    sides = [local_rows(spark, each, SCHEMA) for each in (new, held)]
    with parts_that_differ(sides[0], sides[1], ["id"], rows=len(held), read=len(held)) as parts:
        if parts is None:
            return None
        assert parts.differing is not None
        found = differences(*map(parts.only, sides))
        return net(found), found.count()


@pytest.mark.parametrize("seed", range(3))
def test_all_differences_are_in_the_few_rows_that_are_compared(spark: "SparkSession", seed: int) -> None:
    random = Random(seed)
    held = some(random, ROWS)
    new = [*held, held[0], (-7, float("nan"), "new", None)]
    del new[random.randrange(1, ROWS)]
    random.shuffle(new)
    expected = net(differences(local_rows(spark, new, SCHEMA), local_rows(spark, held, SCHEMA)))
    found = compared(spark, new, held)
    assert found is not None
    assert found[0] == expected
    assert expected.total() == 1
    assert found[1] < ROWS


def test_equal_rows_are_not_compared(spark: "SparkSession") -> None:
    rows = some(Random(5), ROWS)
    unsigned = [(each[0], -0.0 if each[1] == 0 else each[1], *each[2:]) for each in rows]
    assert compared(spark, rows, unsigned[::-1]) == (Counter(), 0)


def test_rows_that_come_and_go_in_one_part_are_told_apart(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their number alone is the same."""
    monkeypatch.setattr(module, "ROWS_OF_PART", ROWS // 2)
    rows = some(Random(7), ROWS)
    found = compared(spark, [(None, 9.5, "another", None), *rows[1:]], rows)
    assert found is None or found[0].total() == 0 < len(found[0])


@pytest.mark.parametrize("kind", ["INT", "ARRAY<INT>", "STRUCT<x: INT, y: INT>"])
def test_a_value_that_moves_to_where_a_null_was_is_seen(spark: "SparkSession", kind: str) -> None:
    """Spark's own hashes leave out nulls, in columns and within values."""
    moved = {"INT": ("5", "NULL"), "ARRAY<INT>": ("array(5, NULL)", "array(NULL, 5)")}
    one, other = moved.get(kind, ("named_struct('x', 5, 'y', NULL)", "named_struct('x', NULL, 'y', 5)"))
    held, new = (
        spark.range(ROWS).selectExpr(
            "id", *(f"IF(id = 7, {value}, CAST(NULL AS {kind})) AS c{at}" for at, value in enumerate(values))
        )
        for values in ((one, other), (other, one))
    )
    with parts_that_differ(new, held, ["id"], rows=ROWS, read=ROWS) as parts:
        assert parts is not None
        assert sum(net(differences(parts.only(new), parts.only(held))).values()) == 0
        assert len(net(differences(parts.only(new), parts.only(held)))) == 2


def test_where_most_rows_differ_none_are_compared(spark: "SparkSession") -> None:
    rows = some(Random(9), ROWS)
    assert compared(spark, [(at, 9.5, "another", None) for at in range(ROWS)], rows) is None
