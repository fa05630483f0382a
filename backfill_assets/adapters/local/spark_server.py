"""The embedded Spark Connect server: one local Spark that many runs connect to, instead of each starting its own."""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from backfill_assets.adapters.runtime.java import java_home
from backfill_assets.adapters.runtime.processes import Process, start, wait_until
from backfill_assets.adapters.runtime.tcp_ports import HOST, accepts

__all__ = ["start_spark_server", "wait_for_spark_server"]

_START_LIMIT = 120.0
_LOG = "server.log"
_CONF = "conf"
_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def start_spark_server(
    folder: Path, *, port: int, token: str, settings: Mapping[str, str], variables: Mapping[str, str]
) -> Process:
    """Start the server on `port` with Spark's `settings` and further environment `variables`; its own files stay in `folder`.

    It serves clients that send `token`. The token is in its environment, because others can see arguments and settings.
    Returns at once; `wait_for_spark_server` waits until it is ready.
    """
    (folder / _CONF).mkdir(parents=True, exist_ok=True)
    (folder / _CONF / "log4j2.properties").write_text(_LOG4J)
    # A server that was killed leaves its shuffle files behind.
    shutil.rmtree(folder / "local", ignore_errors=True)
    settings = {
        **settings,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
    }
    home = _spark_home()
    command = [str(home / "bin" / "spark-submit")]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    return start(
        command, folder=folder, log=folder / _LOG, environment={**_environment(folder, home, token), **variables}
    )


def wait_for_spark_server(folder: Path, *, port: int, process: Process) -> None:
    """Wait until the server accepts connections, which it does once its session exists; errors as `wait_until`."""
    wait_until(
        lambda: accepts(port),
        process=process,
        name="The embedded Spark server",
        log=folder / _LOG,
        limit=_START_LIMIT,
    )


def _environment(folder: Path, home: Path, token: str) -> dict[str, str]:
    """The caller's environment without its Spark settings, which are for another Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "TZ": "UTC",
        "JAVA_HOME": java_home(),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / _CONF),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "PYSPARK_PYTHON": sys.executable,
    }


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
