"""How many tasks Spark runs at once is asked of Spark, in this process and over Spark Connect."""

from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute.tasks import parallelism, tasks_for
from backfill_assets.adapters.runtime.spark_conf import cores
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse
from tests.support.over_connect import over_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


def test_a_local_spark_runs_as_many_tasks_as_there_are_processors(spark: "SparkSession") -> None:
    assert parallelism(spark) == cores()
    assert tasks_for(spark, 0) == tasks_for(spark, 50_000) == 1
    assert tasks_for(spark, 10**9) == cores()


def asked() -> list[int]:
    def ask(spark: "SparkSession") -> list[int]:
        spark.conf.set("spark.sql.leafNodeDefaultParallelism", "7")  # as if the cluster had seven cores
        return [parallelism(spark), *(tasks_for(spark, rows) for rows in (1, 120_000, 10**9))]

    runner = SparkResource().runner(Warehouse(uri="/"))
    try:
        return runner.run(ask)
    finally:
        runner.close()


def test_a_cluster_is_asked_over_spark_connect(remote: str) -> None:
    assert over_connect(remote, asked) == [7, 1, 3, 7]
