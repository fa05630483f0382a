"""Settings of a Spark whose processes are elsewhere."""

import pytest

from backfill_assets.adapters.runtime.spark_conf import changed_conf

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2", "spark.authenticate": "true"}


@pytest.mark.parametrize("master", ["local[4]", "local-cluster[2,1,1024]", ""])
def test_a_spark_on_this_machine_is_reached_by_nobody_else(master: str) -> None:
    given = {"spark.master": master} if master else {"spark.ui.enabled": "true"}
    assert changed_conf(LOCAL, given) == {**LOCAL, **given}


@pytest.mark.parametrize("master", ["yarn", "k8s://https://api:6443", "spark://master:7077"])
def test_executors_elsewhere_reach_the_driver_and_bring_their_own_cores(master: str) -> None:
    given = {"spark.master": master, "spark.driver.host": "run-1"}
    assert changed_conf(LOCAL, given) == {"spark.authenticate": "true", **given}
