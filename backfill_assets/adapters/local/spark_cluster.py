"""A standalone Spark cluster on this machine: a master and workers, of which each starts one executor for the Spark server.

It is a cluster as production has it: executors are processes of their own, get jars and rows over the network, and may be
lost one by one. All of it listens on the loopback address alone, and talks only to who knows the secret. The pages of master
and workers show logs, and Spark has no setting to leave them out; they ask for a token that is signed with the secret.
"""

import json
import secrets
import shutil
import urllib.request
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import digest
from pathlib import Path

from backfill_assets.adapters.local.spark_programs import spark_environment, spark_home, write_settings
from backfill_assets.adapters.local.spark_server import SECRET
from backfill_assets.adapters.runtime.class_archive import archive_options
from backfill_assets.adapters.runtime.private_files import private_folder, write_private
from backfill_assets.adapters.runtime.processes import Process, start, wait_until
from backfill_assets.adapters.runtime.tcp_ports import HOST, accepts

__all__ = [
    "Master",
    "new_secret",
    "page_headers",
    "saved_secret",
    "start_master",
    "start_worker",
    "wait_for_master",
    "wait_for_worker",
]

_START_LIMIT = 120.0
_ASK_SECONDS = 5.0
_LOG = "server.log"
_SECRET_FILE = "secret"
_SECRET_BYTES = 32
_FILTER = "org.apache.spark.ui.JWSFilter"
_HEAP = "128m"
_CORES, _MEMORY = "1", "1g"


@dataclass(frozen=True, kw_only=True)
class Master:
    """The master of a cluster: its port, that of its pages, and the secret of the cluster."""

    port: int
    pages: int
    secret: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address that workers and drivers are told."""
        return f"spark://{HOST}:{self.port}"

    def driver_settings(self) -> dict[str, str]:
        """The settings of a Spark whose tasks run on the cluster: one executor fills a worker."""
        return {
            "spark.master": self.url,
            SECRET: self.secret,
            "spark.executor.cores": _CORES,
            "spark.executor.memory": _MEMORY,
            "spark.executor.extraJavaOptions": _java_options(),
        }

    def workers(self) -> frozenset[int]:
        """The ports of the workers that the master counts on; none if it does not answer."""
        asked = urllib.request.Request(f"http://{HOST}:{self.pages}/json/", headers=page_headers(self.secret))
        try:
            # Without proxies, which a user's environment may have.
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                asked, timeout=_ASK_SECONDS
            ) as answer:
                found = json.load(answer)["workers"]
        except (OSError, ValueError, LookupError):
            return frozenset()
        return frozenset(each["port"] for each in found if each["state"] == "ALIVE")


def new_secret(folder: Path) -> str:
    """A new secret for the cluster whose master is in `folder`, which is stored there."""
    private_folder(folder)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    write_private(folder / _SECRET_FILE, secret)
    return secret


def saved_secret(folder: Path) -> str:
    """The secret of the cluster whose master is in `folder`."""
    return (folder / _SECRET_FILE).read_text()


def page_headers(secret: str) -> dict[str, str]:
    """The headers with which master and workers show their pages: a JSON Web Token (RFC 7519), signed with the secret."""
    key = secret + "=" * (-len(secret) % 4)
    parts = b".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": "backfill"}))
    signature = _encoded(digest(urlsafe_b64decode(key), parts, "sha256"))
    return {"Authorization": f"Bearer {(parts + b'.' + signature).decode()}"}


def start_master(folder: Path, master: Master) -> Process:
    """Start a master in `folder`. Returns at once; `wait_for_master` waits until it is ready."""
    options = ["--host", HOST, "--port", str(master.port), "--webui-port", str(master.pages)]
    return _start("org.apache.spark.deploy.master.Master", options, folder=folder, secret=master.secret, variables={})


def start_worker(folder: Path, master: Master, *, port: int, variables: Mapping[str, str]) -> Process:
    """Start a worker in `folder`, whose executors have further environment `variables`.

    The master has to be ready. Returns at once; `wait_for_worker` waits until the master knows it.
    """
    shutil.rmtree(folder / "work", ignore_errors=True)  # of the executors before
    options = ["--host", HOST, "--port", str(port), "--webui-port", "0", "--cores", _CORES, "--memory", _MEMORY]
    options += ["--work-dir", str(folder / "work"), master.url]
    name = "org.apache.spark.deploy.worker.Worker"
    return _start(name, options, folder=folder, secret=master.secret, variables=variables)


def wait_for_master(folder: Path, *, port: int, process: Process) -> None:
    """Wait until the master accepts connections; errors as `wait_until`."""
    wait_until(lambda: accepts(port), process=process, name="The Spark master", log=folder / _LOG, limit=_START_LIMIT)


def wait_for_worker(folder: Path, master: Master, *, port: int, process: Process) -> None:
    """Wait until the master counts on the worker; errors as `wait_until`."""
    wait_until(
        lambda: port in master.workers(),
        process=process,
        name="A Spark worker",
        log=folder / _LOG,
        limit=_START_LIMIT,
    )


def _start(program: str, options: list[str], *, folder: Path, secret: str, variables: Mapping[str, str]) -> Process:
    private_folder(folder)
    shutil.rmtree(folder / "local", ignore_errors=True)
    read = write_settings(folder, _settings(folder, secret))
    environment = {
        **spark_environment(folder),
        "SPARK_DAEMON_MEMORY": _HEAP,
        "SPARK_DAEMON_JAVA_OPTS": _java_options(),
        **variables,
    }
    command = [str(spark_home() / "bin" / "spark-class"), program, *read, *options]
    return start(command, folder=folder, log=folder / _LOG, environment=environment)


def _java_options() -> str:
    return f"-Duser.timezone=UTC -XX:+UseSerialGC {archive_options()}".strip()


def _settings(folder: Path, secret: str) -> dict[str, str]:
    return {
        "spark.authenticate": "true",
        SECRET: secret,
        "spark.local.dir": str(folder / "local"),
        "spark.ui.filters": _FILTER,
        f"spark.{_FILTER}.param.secretKey": secret,
        # Whoever reaches the pages may otherwise end applications and workers there, or send programs to run.
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        "spark.master.rest.enabled": "false",
    }


def _encoded(part: bytes) -> bytes:
    return urlsafe_b64encode(part).rstrip(b"=")
