"""A local broker, a local Spark server, alone or on a cluster of its own, and a local S3 server.

They outlive the command that started them.

`<root>/.backfill/endpoints.json` says what runs: the port of each server, and its process id and start time while it is up.
A process that is gone counts as down, whoever ended it. Ports are kept, so that the next `up` uses the same ones if they are
free.

Whoever runs queries on the Spark server can run code as its owner. So it serves only clients that send its token, a new one
at each start, in `<root>/.backfill/spark/token`. All of `.backfill` is closed to other users.
"""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from backfill_assets.adapters.local.broker import start_broker, wait_for_broker
from backfill_assets.adapters.local.s3_server import s3_environment, start_s3_server, wait_for_s3_server
from backfill_assets.adapters.local.spark_cluster import (
    Master,
    new_secret,
    saved_secret,
    start_master,
    start_worker,
    wait_for_master,
    wait_for_worker,
)
from backfill_assets.adapters.local.spark_server import start_spark_server, wait_for_spark_server
from backfill_assets.adapters.runtime.private_files import private_folder, write_private
from backfill_assets.adapters.runtime.processes import Process, is_alive, stop
from backfill_assets.adapters.runtime.spark_conf import spark_conf
from backfill_assets.adapters.runtime.tcp_ports import HOST, choose_port, free_port
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["Endpoints", "SparkNeeds", "down", "endpoints", "s3_variables", "spark_token", "up"]

_KAFKA = "kafka"
_SPARK = "spark"
_S3 = "s3"
_MASTER = "spark-master"
_PAGES = "spark-master-pages"
_WORKERS = ("spark-worker-1", "spark-worker-2")
_WAITING = {
    _KAFKA: wait_for_broker,
    _SPARK: wait_for_spark_server,
    _S3: wait_for_s3_server,
    _MASTER: wait_for_master,
}
_TOKEN = "token"
_TOKEN_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The addresses of the running servers; None for one that is down."""

    bootstrap_servers: str | None
    spark_remote: str | None
    s3_endpoint: str | None = None
    spark_master: str | None = None


@dataclass(frozen=True, kw_only=True)
class SparkNeeds:
    """What the Spark server is started with: its heap, as Spark writes it, the providers whose stores it reaches, and whether
    its tasks run on a cluster: a master and two workers of one core and 1 GiB each."""

    memory: str = "1g"
    stores: frozenset[str] = frozenset()
    cluster: bool = False


def up(
    root: Path,
    *,
    kafka: bool = True,
    spark: bool = True,
    s3: bool = False,
    needs: SparkNeeds = SparkNeeds(),
) -> Endpoints:
    """Start the requested servers that are not running, and wait until they are ready.

    Running servers are not changed, so a second call does nothing. If a server does not start, those that this call started
    are stopped again. Raises `EnvironmentSetupError`: no Java, a taken port, a broken download, a Spark server that runs
    without the cluster that is asked for, or the last lines of the log of a server that died.
    """
    folder = _folder(root)
    private_folder(folder)
    with _locked(folder):
        before = _read(folder).processes
        try:
            # All are started before waiting for any, because starting takes most of the time.
            if s3 and _S3 not in before:
                _start_s3(folder)
            if kafka and _KAFKA not in before:
                _start_kafka(folder)
            if spark and needs.cluster:
                _start_cluster(folder, needs)
            if spark and _SPARK not in before:
                _start_spark(folder, needs)
            _wait_until_ready(folder)
        except BaseException:
            _stop(folder, spared=before)
            raise
        return _read(folder).endpoints()


def down(root: Path) -> tuple[str, ...]:
    """Stop the recorded servers, and nothing else.

    Returns the names of those that were running: `kafka`, `spark`, `s3`, `spark-master`, `spark-worker-1`, `spark-worker-2`.
    The data of broker and S3 server and all ports are kept for the next `up`.
    """
    folder = _folder(root)
    if not folder.exists():
        return ()
    with _locked(folder):
        return _stop(folder)


def endpoints(root: Path) -> Endpoints | None:
    """The addresses of the servers of `root`, or None if none of them is running. Starts and changes nothing."""
    state = _read(_folder(root))
    return state.endpoints() if state.processes else None


def spark_token(root: Path) -> str | None:
    """The token that the Spark server of `root` asks for; None if none was ever started."""
    try:
        return (_folder(root) / _SPARK / _TOKEN).read_text()
    except FileNotFoundError:
        return None


def s3_variables(root: Path) -> Mapping[str, str]:
    """The environment variables with which clients reach the S3 server of `root`; none if it does not run."""
    return _s3_variables(_folder(root))


@dataclass(frozen=True, kw_only=True)
class _State:
    """The content of the endpoints file, without processes that are gone."""

    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)

    def endpoints(self) -> Endpoints:
        at = {name: f"{HOST}:{self.ports[name]}" for name in self.processes}
        return Endpoints(
            bootstrap_servers=at.get(_KAFKA),
            spark_remote=f"sc://{at[_SPARK]}" if _SPARK in at else None,
            s3_endpoint=f"http://{at[_S3]}" if _S3 in at else None,
            spark_master=f"spark://{at[_MASTER]}" if _MASTER in at else None,
        )

    def with_server(self, name: str, port: int, process: Process) -> "_State":
        return _State(ports={**self.ports, name: port}, processes={**self.processes, name: process})


def _start_kafka(folder: Path) -> None:
    state = _read(folder)
    port = choose_port("the embedded Kafka broker", variable="BACKFILL_KAFKA_PORT", last=state.ports.get(_KAFKA))
    process = start_broker(folder / _KAFKA, port=port)
    _write(folder, state.with_server(_KAFKA, port, process))


def _start_spark(folder: Path, needs: SparkNeeds) -> None:
    state = _read(folder)
    port = choose_port("the embedded Spark server", variable="BACKFILL_SPARK_PORT", last=state.ports.get(_SPARK))
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    private_folder(folder / _SPARK)
    write_private(folder / _SPARK / _TOKEN, token)
    settings = {**spark_conf(scratch=folder / _SPARK, stores=needs.stores), "spark.driver.memory": needs.memory}
    if _MASTER in state.processes:
        settings |= _master(folder).driver_settings()
    variables = _s3_variables(folder) if "s3" in needs.stores else {}
    process = start_spark_server(folder / _SPARK, port=port, token=token, settings=settings, variables=variables)
    _write(folder, state.with_server(_SPARK, port, process))


def _start_cluster(folder: Path, needs: SparkNeeds) -> None:
    """Start what is not running of the cluster. Workers and drivers give up on a master that is not ready."""
    state = _read(folder)
    if _MASTER not in state.processes:
        if _SPARK in state.processes:
            raise EnvironmentSetupError(
                "The Spark server that is running has no cluster.",
                hint="Stop it with `backfill down`, then run the same command again.",
            )
        _start_master(folder)
        state = _read(folder)
    wait_for_master(folder / _MASTER, port=state.ports[_MASTER], process=state.processes[_MASTER])
    variables = _s3_variables(folder) if "s3" in needs.stores else {}
    for name in _WORKERS:
        state = _read(folder)
        if name not in state.processes:
            port = free_port()
            process = start_worker(folder / name, _master(folder), port=port, variables=variables)
            _write(folder, state.with_server(name, port, process))


def _start_master(folder: Path) -> None:
    state = _read(folder)
    # Workers of a master that is gone know another secret.
    stop([state.processes[name] for name in _WORKERS if name in state.processes])
    state = _read(folder)
    port = choose_port("the Spark master", variable="BACKFILL_SPARK_MASTER_PORT", last=state.ports.get(_MASTER))
    master = Master(port=port, pages=free_port(other_than=[port]), secret=new_secret(folder / _MASTER))
    state = replace(state, ports={**state.ports, _PAGES: master.pages})
    _write(folder, state.with_server(_MASTER, port, start_master(folder / _MASTER, master)))


def _master(folder: Path) -> Master:
    ports = _read(folder).ports
    return Master(port=ports[_MASTER], pages=ports[_PAGES], secret=saved_secret(folder / _MASTER))


def _start_s3(folder: Path) -> None:
    state = _read(folder)
    port = choose_port("the embedded S3 server", variable="BACKFILL_S3_PORT", last=state.ports.get(_S3))
    _write(folder, state.with_server(_S3, port, start_s3_server(folder / _S3, port=port)))


def _s3_variables(folder: Path) -> Mapping[str, str]:
    state = _read(folder)
    return s3_environment(folder / _S3, port=state.ports[_S3]) if _S3 in state.processes else {}


def _wait_until_ready(folder: Path) -> None:
    """Wait for every running server; an interrupted call may have left one that is still starting."""
    state = _read(folder)
    for name, process in state.processes.items():
        if name not in _WORKERS:
            _WAITING[name](folder / name, port=state.ports[name], process=process)
        elif _MASTER in state.processes:
            wait_for_worker(folder / name, _master(folder), port=state.ports[name], process=process)


def _stop(folder: Path, *, spared: Collection[str] = ()) -> tuple[str, ...]:
    state = _read(folder)
    ending = {name: process for name, process in state.processes.items() if name not in spared}
    stop(list(ending.values()))
    _write(
        folder, replace(state, processes={name: state.processes[name] for name in spared if name in state.processes})
    )
    return tuple(ending)


def _folder(root: Path) -> Path:
    return root.resolve() / ".backfill"


def _locked(folder: Path) -> FileLock:
    return FileLock(folder / "lock")


def _read(folder: Path) -> _State:
    try:
        saved = json.loads((folder / "endpoints.json").read_text())
    except (FileNotFoundError, ValueError):
        return _State()
    processes = {name: Process(**entry) for name, entry in saved["processes"].items()}
    alive = {name: process for name, process in processes.items() if is_alive(process)}
    return _State(ports=saved["ports"], processes=alive)


def _write(folder: Path, state: _State) -> None:
    write_private(folder / "endpoints.json", json.dumps(asdict(state), indent=1))
