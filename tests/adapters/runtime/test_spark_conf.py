"""Settings of a Spark whose processes are elsewhere."""

from collections.abc import Collection
from pathlib import Path

import pytest

from backfill_assets.adapters.runtime import jars
from backfill_assets.adapters.runtime.spark_conf import changed_conf, spark_conf

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2", "spark.authenticate": "true"}


@pytest.mark.parametrize("master", ["local[4]", "local-cluster[2,1,1024]", ""])
def test_a_spark_on_this_machine_is_reached_by_nobody_else(master: str) -> None:
    given = {"spark.master": master} if master else {"spark.ui.enabled": "true"}
    assert changed_conf(LOCAL, given) == {**LOCAL, **given}


@pytest.mark.parametrize("master", ["yarn", "k8s://https://api:6443", "spark://master:7077"])
def test_executors_elsewhere_reach_the_driver_and_bring_their_own_cores(master: str) -> None:
    given = {"spark.master": master, "spark.driver.host": "run-1"}
    assert changed_conf(LOCAL, given) == {"spark.authenticate": "true", **given}


@pytest.mark.parametrize("stores", [(), ("s3",), ("azure",), ("local", "s3", "azure"), ("gcs",)])
def test_connectors_are_there_for_the_stores_that_are_read_alone(
    stores: Collection[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(download: jars._Download, name: str) -> tuple[Path, ...]:
        return (Path(f"/{download.file.name}/{name}.jar"),)

    monkeypatch.setattr(jars, "_jars", named)
    found = spark_conf(scratch=tmp_path, stores=stores)["spark.jars"].split(",")
    connectors = {"s3": "/ivy-s3a.xml/s3a.jar", "azure": "/ivy-abfs.xml/abfs.jar", "gcs": "/ivy-gcs.xml/gcs.jar"}
    assert found == ["/ivy.xml/spark.jar", *(connectors[each] for each in sorted(stores) if each in connectors)]
