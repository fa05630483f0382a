"""Sparks that tests share: a session in this process, and a server for the runs that are killed."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """A session in this process. It is not stopped: tests of whole projects in the same process go on with it."""
    from pyspark.sql import SparkSession

    from backfill_assets.resources.java import java_home
    from backfill_assets.resources.spark_conf import spark_conf

    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    conf = {**spark_conf(), "spark.master": "local[2]"}
    return SparkSession.builder.config(map=conf).getOrCreate()


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server that runs in processes of their own share, killed ones above all."""
    from backfill_assets.resources.embedded import down, up

    root = tmp_path_factory.mktemp("spark")
    address = up(root, kafka=False).spark_remote
    assert address is not None
    yield address
    down(root)


@pytest.fixture(scope="session")
def processes(remote: str) -> Iterator[Processes]:
    """Where runs are killed."""
    started = Processes(remote)
    yield started
    started.close()
