"""Errors of Spark that its set-up causes, not the data: jars, keys, rights, buckets, hosts, memory, disks."""

import re

__all__ = ["setup_remedy"]

_JARS = "start Spark with the jars of its connectors (`backfill up` and sessions in the run's process have them)"
_KEYS = "check the keys that Spark uses for this store, and their rights to read, write and delete below the warehouse"
_PLACE = "check the names of bucket and host, the endpoint and the region"
_MEMORY = (
    "give Spark more memory: its driver by `driver_memory` of SparkResource, or spark.driver.memory of its server, or its "
    "executors by spark.executor.memory. A lower spark.sql.autoBroadcastJoinThreshold needs less in the driver"
)
_REMEDIES = (
    (r"DATA_SOURCE_NOT_FOUND|ClassNotFoundException|NoClassDefFoundError|No FileSystem for scheme", _JARS),
    (
        r"Status Code: 40[13]\b|AccessDenied|AccessControlException|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken"
        r"|NoAuthWithAWSException|Unable to load credentials",
        _KEYS,
    ),
    (r"NoSuchBucket|UnknownStoreException|UnknownHostException", _PLACE),
    (r"OutOfMemoryError|Not enough memory to build and broadcast", _MEMORY),
    (r"No space left on device|Disk quota exceeded", "make room on the disks of Spark's executors"),
)


def setup_remedy(error: Exception) -> str:
    """What to do about an error of Spark that its set-up causes; empty for another error.

    Example:
        >>> setup_remedy(RuntimeError("java.io.IOException: No space left on device"))
        "make room on the disks of Spark's executors"
    """
    said = str(error)
    return next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, said)), "")
