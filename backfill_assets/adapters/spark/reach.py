"""A session that reaches the warehouse's store as the planning process does: its settings, and a check that they do.

The settings are the session's own, so that a Spark Connect server needs none. What it must have is the connector's jars.
"""

from typing import TYPE_CHECKING

from backfill_assets.adapters.storage.put_if_absent import MARKER
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import EnvironmentSetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["reaching"]

_NOT_THERE = "PATH_NOT_FOUND"
_SECRET = ("access.key", "secret.key", "session.token")
_NO_CONNECTOR = "S3AFileSystem"
_SHOWN = 300


def reaching(session: "SparkSession", warehouse: Warehouse) -> "SparkSession":
    """The session, told how to reach the warehouse; a local one takes nothing.

    Errors: `EnvironmentSetupError` if it does not reach it, with the reason, or reaches another one of that name.
    """
    settings = warehouse.spark_settings
    for name, value in settings.items():
        session.conf.set(name, value)
    if not settings:
        return session
    expected = warehouse.objects("").get(MARKER)
    try:
        found = _read(session, f"{warehouse.uri}/{MARKER}")
    except Exception as error:  # whatever a connector raises on its way to the store
        raise _unreached(warehouse, error, settings) from None
    if expected is not None and found != expected.decode().splitlines():
        raise EnvironmentSetupError(
            f"Spark reaches another store than this process at {warehouse.uri}: {MARKER} holds something else there, or is "
            "missing",
            hint="a Spark server keeps the client that it made first for a bucket: start it again if the endpoint changed",
        )
    return session


def _read(session: "SparkSession", address: str) -> list[str] | None:
    """The lines of a file as Spark sees them; None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        return [row["value"] for row in session.read.text(address).collect()]
    except AnalysisException as error:
        if error.getCondition() != _NOT_THERE:
            raise
        return None


def _unreached(warehouse: Warehouse, error: Exception, settings: dict[str, str]) -> EnvironmentSetupError:
    said = str(error)
    for secret in (value for name, value in settings.items() if name.endswith(_SECRET)):
        said = said.replace(secret, "…")
    if f"ClassNotFoundException: Class org.apache.hadoop.fs.s3a.{_NO_CONNECTOR}" in said:
        return EnvironmentSetupError(
            f"Spark has no connector for {warehouse.uri}: the class {_NO_CONNECTOR} of hadoop-aws is missing",
            hint="give it the modules of backfill_assets/adapters/runtime/ivy-s3a.xml (the server of `backfill up` has them "
            "if BACKFILL_WAREHOUSE was on S3 when it was started: `backfill down`, then `backfill up`)",
        )
    return EnvironmentSetupError(
        f"Spark does not reach {warehouse.uri}: {' '.join(said.split())[:_SHOWN]}",
        hint="check endpoint, region and bucket, and that Spark's own machines have keys for it: in StateStore(storage=…), "
        "for both sides, or where Spark runs",
    )
