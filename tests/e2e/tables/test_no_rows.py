"""Inputs without rows cost nothing: Spark knows that they are empty, and runs no Python worker for them."""

from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute.no_rows import no_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e

SCHEMA = "id BIGINT NOT NULL, m MAP<STRING, INT>, v VARIANT, s STRUCT<x: INT>"


def plan_of(frame: "DataFrame") -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


def test_what_joins_no_rows_is_left_out_of_the_plan(spark: "SparkSession") -> None:
    empty = no_rows(spark, SCHEMA)
    assert empty.schema == spark.createDataFrame([], SCHEMA).schema
    joined = spark.range(5).join(empty, "id", "left")
    assert "Join" not in plan_of(joined)
    assert "RDD" not in plan_of(empty)
    assert (empty.count(), joined.count()) == (0, 5)
