"""The embedded Spark Connect server: one local Spark that many runs connect to, instead of each starting its own."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from backfill_assets.adapters.local.spark_programs import spark_environment, spark_home, write_settings
from backfill_assets.adapters.runtime.processes import Process, start, wait_until
from backfill_assets.adapters.runtime.tcp_ports import HOST, accepts

__all__ = ["SECRET", "start_spark_server", "wait_for_spark_server"]

SECRET = "spark.authenticate.secret"
"""The setting with the secret that all parts of one Spark share."""
_START_LIMIT = 120.0
_LOG = "server.log"


def start_spark_server(
    folder: Path, *, port: int, token: str, settings: Mapping[str, str], variables: Mapping[str, str]
) -> Process:
    """Start the server on `port` with Spark's `settings` and further environment `variables`; its own files stay in `folder`.

    It serves clients that send `token`. The token is in its environment, and a secret among the settings in a file, because
    others can see arguments. Returns at once; `wait_for_spark_server` waits until it is ready.
    """
    read = write_settings(folder, {name: value for name, value in settings.items() if name == SECRET})
    # A server that was killed leaves its shuffle files behind.
    shutil.rmtree(folder / "local", ignore_errors=True)
    settings = {
        **{name: value for name, value in settings.items() if name != SECRET},
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [str(spark_home() / "bin" / "spark-submit"), *read]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**spark_environment(folder), "SPARK_CONNECT_AUTHENTICATE_TOKEN": token, **variables}
    return start(command, folder=folder, log=folder / _LOG, environment=environment)


def wait_for_spark_server(folder: Path, *, port: int, process: Process) -> None:
    """Wait until the server accepts connections, which it does once its session exists; errors as `wait_until`."""
    wait_until(
        lambda: accepts(port),
        process=process,
        name="The embedded Spark server",
        log=folder / _LOG,
        limit=_START_LIMIT,
    )
