"""The Spark settings of this project, the same for the embedded server and for a session in this process."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from backfill_assets.adapters.runtime.cache import cache_folder
from backfill_assets.adapters.runtime.class_archive import archive_options
from backfill_assets.adapters.runtime.jars import connector_jars, spark_jars
from backfill_assets.adapters.runtime.session_settings import PINNED, REQUIRED

__all__ = ["changed_conf", "cores", "spark_conf"]

_MAX_SHUFFLE_PARTITIONS = 8
_OF_THIS_MACHINE = (
    *("spark.driver.host", "spark.driver.bindAddress", "spark.sql.shuffle.partitions"),
    "spark.sql.sources.parallelPartitionDiscovery.parallelism",
)
"""Settings that fit a Spark all of whose processes are on this machine."""
_KEPT_OF_KAFKA = ("cache", "fetchedData.cache")
"""What Spark's Kafka source keeps for the next batch: consumers, and records that they have fetched."""


def cores() -> int:
    """The number of processors that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spark_conf(*, scratch: Path | None = None, stores: Collection[str] = ()) -> dict[str, str]:
    """All settings of a local Spark with Delta and the Kafka source; fetches the jars if they are missing.

    `scratch` is the folder for Spark's own files (by default in the cache), never the caller's folder. The connectors
    of the providers in `stores` are there, too.
    """
    scratch = scratch or cache_folder("spark")
    jars = [*spark_jars(), *(jar for provider in sorted(stores) for jar in connector_jars(provider))]
    return {
        **{name: value for name, value in PINNED.items() if name.startswith("spark.")},
        **REQUIRED,
        "spark.app.name": "backfill-assets",
        "spark.master": f"local[{cores()}]",
        "spark.jars": ",".join(map(str, jars)),
        # Nobody else in the network can reach this Spark.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Nor can other users of this machine: whoever reaches Spark's own ports can run code.
        "spark.authenticate": "true",
        # Python fetches each result over such a port; the default of 15 s to connect is too short on a busy machine.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Otherwise PySpark makes four more calls for each expression, to tell the JVM which line of this package it is from.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {archive_options()}".strip(),
        # Tables are named by path: no metastore, hence no Derby files.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        # Small work is the common case; the defaults (200 and 50 partitions) would start a task for each.
        "spark.sql.shuffle.partitions": str(min(cores(), _MAX_SHUFFLE_PARTITIONS)),
        "spark.databricks.delta.snapshotPartitions": "2",
        # Each broadcast takes at least a page, by default 16 MB with a heap of 1 GB, and a query may have many of them.
        "spark.buffer.pageSize": "2m",
        # The caches of Spark and Delta fill a small heap in a session that runs for long: Delta keeps 10,000 tables
        # with their plans for an hour, Spark the plans of a thousand queries.
        "spark.databricks.delta.delta.log.cacheSize": "20",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        # A consumer has fetched megabytes of each partition beyond its batch, and is kept for five minutes.
        **{f"spark.kafka.consumer.{kept}.timeout": "5s" for kept in _KEPT_OF_KAFKA},
        **{f"spark.kafka.consumer.{kept}.evictorThreadRunInterval": "5s" for kept in _KEPT_OF_KAFKA},
        # More than 32 files are listed by a Spark job, and more tasks than cores are only a cost here.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores()),
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
    }


def changed_conf(conf: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The settings with those that are given. If these name a master that is not local, executors have to reach this process,
    and its cores say nothing of theirs.

    Example:
        >>> changed_conf({"spark.driver.host": "127.0.0.1"}, {"spark.master": "yarn"})
        {'spark.master': 'yarn'}
    """
    is_local = given.get("spark.master", "local").startswith("local")
    return {**{name: each for name, each in conf.items() if is_local or name not in _OF_THIS_MACHINE}, **given}
