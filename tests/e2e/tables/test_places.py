"""Places of a query that follow their changes one after the other, beside places that did not change, with Spark."""

from typing import TYPE_CHECKING

import pytest

from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

COLUMNS = {"a": "id INT, k INT", "b": "id INT, s STRING", "c": "id INT, n INT"}


QUERY = "SELECT a.id, b.s, c.n FROM a JOIN b ON a.k = b.id JOIN c ON c.id = b.id"


def test_two_of_three_tables_change_at_once(spark: "SparkSession") -> None:
    made = analyze_relational(QUERY, {name: parse_schema(schema) for name, schema in COLUMNS.items()})
    old: Tables = {"a": [(1, 1), (2, 2)], "b": [(1, "x"), (2, "y")], "c": [(1, 10), (2, 20), (3, 30)]}
    new: Tables = old | {"a": [(1, 1), (3, 3), (4, 2)], "b": [(2, "y"), (3, "z"), (1, "v")]}
    assert made.steps(["a", "b"]).rule == "linear"
    with frames(spark, old, COLUMNS) as before, frames(spark, new, COLUMNS) as now:
        expected = visible(made, now)
        assert len(expected) == 3
        assert after(made, before, now, ["a", "b"]) == expected
