"""How the programs of the installed Spark are started: their folder of settings, and their environment."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from backfill_assets.adapters.runtime.java import java_home
from backfill_assets.adapters.runtime.private_files import private_folder, write_private
from backfill_assets.adapters.runtime.tcp_ports import HOST

__all__ = ["spark_environment", "spark_home", "write_settings"]

_CONF = "conf"
_LOGS = "log4j2.properties"
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


def write_settings(folder: Path, settings: Mapping[str, str]) -> list[str]:
    """Write what a program of Spark in `folder` reads when it starts: how it logs, and settings that nobody else may read.

    Returns:
        The arguments that tell the program where its settings are.
    """
    private_folder(folder / _CONF)
    (folder / _CONF / _LOGS).write_text(_LOG4J)
    file = folder / _CONF / "spark-defaults.conf"
    write_private(file, "".join(f"{name} {value}\n" for name, value in settings.items()))
    return ["--properties-file", str(file)]


def spark_environment(folder: Path) -> dict[str, str]:
    """The caller's environment without its Spark settings, which are for another Spark, and with the place of the log
    settings in `folder`.

    SPARK_CONF_DIR is not set: Spark would put that folder on its class path, and Java would ignore the archive of classes.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "TZ": "UTC",
        "JAVA_HOME": java_home(),
        "SPARK_HOME": str(spark_home()),
        "LOG4J_CONFIGURATION_FILE": (folder / _CONF / _LOGS).absolute().as_uri(),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
    }


def spark_home() -> Path:
    """The folder of the installed Spark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
