"""A session that reaches the same stores as the planning process: its settings, and a check that they do.

What this process has written, and Spark reads, is found nowhere else. So the warehouse's store is checked before Spark
writes there, and where it has failed, which another store would explain; not by runs of which this process writes the rows.

The settings are the session's own, so that a Spark Connect server needs none. What it must have is the connector's jars.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from backfill_assets.adapters.storage.put_if_absent import MARKER
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.adapters.storage.upstream_location import TableElsewhere
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import EnvironmentSetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_reached", "reach_table", "told"]

_NOT_THERE = "PATH_NOT_FOUND"
_CONNECTORS = (
    ("org.apache.hadoop.fs.s3a.S3AFileSystem", "ivy-s3a.xml", "--s3-tables"),
    ("org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem", "ivy-abfs.xml", "--azure-tables"),
    ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem", "ivy-gcs.xml", "--google-tables"),
)
"""The class by which Spark reaches the stores of a provider, where its modules are listed, and how `backfill up` has them."""
_PATTERN = re.compile(r"[\[\]{}*?\\]")
"""What Spark takes for a pattern in the address of a file, so that it cannot be told to read just this one."""

_SAME_CLIENT = "a Spark server keeps the client that it made first for a bucket: start it again if the endpoint changed"


def told(session: "SparkSession", warehouse: Warehouse) -> "SparkSession":
    """The session, told how to reach the warehouse; a local one takes nothing."""
    _tell(session, warehouse.spark_settings)
    return session


def check_reached(session: "SparkSession", warehouse: Warehouse) -> None:
    """Check that a session reaches the warehouse, by some requests of Spark; nothing is asked of a local one.

    Errors: `EnvironmentSetupError` if it does not reach it, with the reason, or reaches another one of that name.
    """
    settings = warehouse.spark_settings
    if not settings:
        return
    expected = warehouse.objects("").get(MARKER)
    try:
        found = _read(session, f"{warehouse.uri}/{MARKER}")
    except Exception as error:  # whatever a connector raises on its way to the store
        raise _unreached(warehouse.uri, error, settings) from None
    if expected is not None and found != expected.decode().splitlines():
        raise EnvironmentSetupError(
            f"Spark reaches another store than this process at {warehouse.uri}: {MARKER} holds something else there, or is "
            "missing",
            hint=_SAME_CLIENT,
        )


def reach_table(session: "SparkSession", table: TableElsewhere) -> None:
    """Tell a session how to reach a table's bucket on S3, and check that it finds the table's newest commit there.

    A commit whose address Spark would take for a pattern is not looked for.

    Errors: `EnvironmentSetupError` if it does not reach it, with the reason, or finds something else.
    """
    loaded = table.load()
    entry = f"_delta_log/{0 if loaded is None else loaded.version():020d}.json"
    expected = None if _PATTERN.search(table.uri) else table.objects().get(entry)
    try:
        _tell(session, table.spark_settings)
        found = None if expected is None else _digest(session, table.child(entry))
    except Exception as error:  # as above
        raise _unreached(table.uri, error, table.spark_settings) from None
    if expected is not None and found != hashlib.sha256(expected).hexdigest():
        raise EnvironmentSetupError(
            f"Spark reaches another store than this process for table {table.name!r} at {table.uri}: {entry} holds something "
            "else there, or is missing",
            hint=_SAME_CLIENT,
        )


def _tell(session: "SparkSession", settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


def _read(session: "SparkSession", address: str) -> list[str] | None:
    """The lines of a file as Spark sees them; None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        return [row["value"] for row in session.read.text(address).collect()]
    except AnalysisException as error:
        if error.getCondition() != _NOT_THERE:
            raise
        return None


def _digest(session: "SparkSession", address: str) -> str | None:
    """The SHA-256 of a file as Spark sees it; None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        rows = session.read.format("binaryFile").load(address).selectExpr("sha2(content, 256) AS digest").collect()
    except AnalysisException as error:
        if error.getCondition() != _NOT_THERE:
            raise
        return None
    return str(rows[0]["digest"]) if rows else None


def _unreached(uri: str, error: Exception, settings: Mapping[str, str]) -> EnvironmentSetupError:
    for connector, modules, option in _CONNECTORS:
        if f"ClassNotFoundException: Class {connector}" not in str(error):
            continue
        return EnvironmentSetupError(
            f"Spark has no connector for {uri}: the class {connector} is missing",
            hint=f"give it the modules of backfill_assets/adapters/runtime/{modules}. The server of `backfill up` has them "
            f"with `{option}`, or if BACKFILL_WAREHOUSE was there when it was started: `backfill down`, then "
            f"`backfill up {option}`",
        )
    return EnvironmentSetupError(
        f"Spark does not reach {uri}: {said(error, settings)}",
        hint="check endpoint, region and bucket, and that Spark's own machines have keys for it: in storage=… of "
        "StateStore(…) or delta_table(…), for both sides, or where Spark runs",
    )
