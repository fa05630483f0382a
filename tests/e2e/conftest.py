"""The Spark session of the tests that look at Spark code alone, without a broker."""

import os
from typing import TYPE_CHECKING

import pytest

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
