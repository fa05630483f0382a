"""A cluster: brokers with SASL over TLS, a Spark Connect server, and tables in an object store.

Keep keys of the object store out of this file: use the machine's own identity, or the variables that its clients read. The
address of Spark may hold a token, so it stays in its variable, too: Dagster shows what is in this file.
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
    """The resources of a cluster.

    Args:
        project: The project's root folder.

    Returns:
        The resources by their Dagster keys.

    Raises:
        EnvironmentSetupError: An environment variable that is needed is not set; the error names it.

    Examples:
        >>> os.environ |= {"BACKFILL_WAREHOUSE": "s3://lake/warehouse", "KAFKA_BOOTSTRAP_SERVERS": "broker-1:9093"}
        >>> os.environ |= {"SPARK_REMOTE": "sc://spark:15002/;use_ssl=true"}
        >>> resources(".")["backfill_state"].warehouse
        's3://lake/warehouse'
    """
    _named("SPARK_REMOTE", "such as sc://spark:15002/;use_ssl=true")
    return {
        "backfill_state": StateStore(
            warehouse=_named("BACKFILL_WAREHOUSE", "such as s3://bucket/warehouse"), root=project
        ),
        "backfill_kafka": KafkaConnector(
            bootstrap_servers=_named("KAFKA_BOOTSTRAP_SERVERS", "such as broker-1:9093,broker-2:9093"),
            client_config=SASL if "KAFKA_USERNAME" in os.environ else {},
            root=project,
        ),
        "backfill_spark": SparkResource(root=project),  # it reads SPARK_REMOTE
    }


def _named(variable: str, example: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise EnvironmentSetupError(
            f"{variable} is not set, which the environment 'cluster' needs", hint=f"set it, {example}"
        )
    return value
