"""An S3 server with its files in a folder: object storage as a warehouse in production has it, to try things on.

Its keys are new at each first start, and readable for the owner alone.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from backfill_assets.adapters.runtime.jars import s3_server_jars
from backfill_assets.adapters.runtime.java import java_command
from backfill_assets.adapters.runtime.private_files import private_folder, write_private
from backfill_assets.adapters.runtime.processes import Process, start, wait_until
from backfill_assets.adapters.runtime.tcp_ports import HOST, accepts

__all__ = ["BUCKET", "s3_environment", "start_s3_server", "wait_for_s3_server"]

BUCKET = "lake"

_START_LIMIT = 60.0
_LOG = "server.log"
_DATA = "data"
_SERVER_FILE = "s3proxy.properties"
_LOGBACK_FILE = "logback.xml"
_VARIABLES_FILE = "environment"
_KEY = "key"
_KEY_BYTES = 24
_ID = "backfill"

_LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c{1}: %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""

_SERVER = """\
s3proxy.endpoint=http://{host}:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={id}
s3proxy.credential={key}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={data}
"""


def start_s3_server(folder: Path, *, port: int) -> Process:
    """Start the server on `port`; its keys and its data, one bucket, are created on the first start and then kept.

    Returns at once; `wait_for_s3_server` waits until it is ready.
    """
    private_folder(folder)
    (folder / _DATA / BUCKET).mkdir(parents=True, exist_ok=True)
    (folder / _LOGBACK_FILE).write_text(_LOGBACK)
    if not (folder / _KEY).exists():
        write_private(folder / _KEY, secrets.token_hex(_KEY_BYTES))
    key = (folder / _KEY).read_text()
    write_private(
        folder / _SERVER_FILE, _SERVER.format(host=HOST, port=port, id=_ID, key=key, data=_escaped(folder / _DATA))
    )
    variables = {**s3_environment(folder, port=port), "BACKFILL_WAREHOUSE": f"s3://{BUCKET}/warehouse"}
    write_private(folder / _VARIABLES_FILE, "".join(f"{name}={value}\n" for name, value in variables.items()))
    classes = os.pathsep.join(map(str, s3_server_jars()))
    command = [java_command(), "-Xmx128m", "-XX:+UseSerialGC", f"-Dlogback.configurationFile={_LOGBACK_FILE}"]
    command += ["-cp", classes, "org.gaul.s3proxy.Main", "--properties", _SERVER_FILE]
    return start(command, folder=folder, log=folder / _LOG, environment={**os.environ, "TZ": "UTC"})


def _escaped(path: Path) -> str:
    """A path in a properties file, which is in Latin-1. With a relative one the server lists nothing."""
    units = memoryview(str(path.resolve()).encode("utf-16-le")).cast("H")
    return "".join(chr(unit) if chr(unit).isascii() and chr(unit) != "\\" else f"\\u{unit:04x}" for unit in units)


def wait_for_s3_server(folder: Path, *, port: int, process: Process) -> None:
    """Wait until the server accepts connections; errors as `wait_until`."""
    wait_until(
        lambda: accepts(port), process=process, name="The embedded S3 server", log=folder / _LOG, limit=_START_LIMIT
    )


def s3_environment(folder: Path, *, port: int) -> Mapping[str, str]:
    """The environment variables with which clients find the server, and may use it."""
    return {
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": _ID,
        "AWS_SECRET_ACCESS_KEY": (folder / _KEY).read_text(),
    }
