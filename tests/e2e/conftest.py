"""Spark sessions that tests share: a session in this process, and a server for the runs that are killed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import Processes
from tests.support.servers import spark_remote
from tests.support.settings import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """A session in this process. It is not stopped, because tests of whole projects in the same process continue to use
    it."""
    from backfill_assets.adapters.spark.resource import SparkResource
    from backfill_assets.adapters.storage.warehouse import Warehouse

    runner = SparkResource(config=SPARK).runner(Warehouse(uri="/"))
    session: SparkSession = runner.run(lambda session: session)
    runner.close()
    return session


@pytest.fixture(scope="session")
def remote() -> str:
    """A Spark Connect server, with its token, for runs in processes of their own, especially those that are killed."""
    return spark_remote()


@pytest.fixture(scope="session")
def processes(remote: str) -> Iterator[Processes]:
    """The project in which runs are killed."""
    started = Processes(remote)
    yield started
    started.close()
