"""A cluster: brokers with SASL over TLS, a Spark Connect server, and tables in an object store.

Keys of the object store are best left to the machine's own identity, or to the variables that its clients read.
"""

import os
from typing import Any

from backfill_assets import KafkaConnector, SparkResource, StateStore
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["resources"]

SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "env:KAFKA_USERNAME",  # read when a client is made, so that Dagster never shows them
    "sasl.password": "env:KAFKA_PASSWORD",
}


def resources(project: str) -> dict[str, Any]:
    """The resources of a cluster. Raises `EnvironmentSetupError` where a variable is not set."""
    return {
        "backfill_state": StateStore(
            warehouse=_named("BACKFILL_WAREHOUSE", "such as s3://bucket/warehouse"), root=project
        ),
        "backfill_kafka": KafkaConnector(
            bootstrap_servers=_named("KAFKA_BOOTSTRAP_SERVERS", "such as broker-1:9093,broker-2:9093"),
            client_config=SASL if "KAFKA_USERNAME" in os.environ else {},
            root=project,
        ),
        "backfill_spark": SparkResource(
            remote=_named("SPARK_REMOTE", "such as sc://spark:15002/;use_ssl=true"), root=project
        ),
    }


def _named(variable: str, example: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise EnvironmentSetupError(
            f"{variable} is not set, which the environment 'cluster' needs", hint=f"set it, {example}"
        )
    return value
