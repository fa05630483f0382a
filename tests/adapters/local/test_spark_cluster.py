"""A cluster on this machine, without starting one: who may see its secret, and what is refused."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from backfill_assets.adapters.local import servers, spark_cluster, spark_server
from backfill_assets.adapters.local.servers import SparkNeeds, endpoints, up
from backfill_assets.adapters.local.spark_cluster import Master, new_secret, page_headers, saved_secret
from backfill_assets.adapters.runtime.processes import Process, process_of
from backfill_assets.errors import EnvironmentSetupError

SECRET = "c2VjcmV0LW9mLXRoaXJ0eS10d28tYnl0ZXMtZXhhY3Q"
MASTER = Master(port=7077, pages=8080, secret=SECRET)
ME = process_of(os.getpid())


class Started:
    """Records how a program would be started."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.environment: Mapping[str, str] = {}

    def __call__(self, command: Sequence[str], *, folder: Path, log: Path, environment: Mapping[str, str]) -> Process:
        """Start nothing."""
        assert log.parent == folder
        self.shown, self.environment = [*command, *environment.values()], environment
        return ME


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()
    for module in (spark_cluster, spark_server):
        monkeypatch.setattr(module, "start", found)
    return found


def start(program: str, folder: Path) -> Process:
    if program == "master":
        return spark_cluster.start_master(folder, MASTER)
    if program == "worker":
        return spark_cluster.start_worker(folder, MASTER, port=7078, variables={})
    settings = MASTER.driver_settings()
    return spark_server.start_spark_server(folder, port=15002, token="token", settings=settings, variables={})


@pytest.mark.parametrize("program", ["master", "worker", "server"])
def test_the_secret_is_in_a_file_of_its_owner_and_not_among_arguments(
    program: str, tmp_path: Path, started: Started
) -> None:
    assert start(program, tmp_path) == ME
    assert not [word for word in started.shown if SECRET in word]
    file = tmp_path / "conf" / "spark-defaults.conf"
    assert f"spark.authenticate.secret {SECRET}\n" in file.read_text()
    assert started.shown[started.shown.index("--properties-file") + 1] == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET not in repr(MASTER)


@pytest.mark.parametrize("program", ["master", "worker"])
def test_nobody_else_can_send_programs_to_it_or_end_them(program: str, tmp_path: Path, started: Started) -> None:
    start(program, tmp_path)
    assert started.shown
    lines = dict(
        line.split(" ", 1) for line in (tmp_path / "conf" / "spark-defaults.conf").read_text().splitlines() if line
    )
    closed = {
        "spark.authenticate": "true",
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        "spark.master.rest.enabled": "false",
        "spark.ui.filters": "org.apache.spark.ui.JWSFilter",
    }
    assert closed.items() <= lines.items()
    assert started.environment["SPARK_LOCAL_IP"] == "127.0.0.1", "it listens for this machine alone"


def test_a_worker_that_has_died_does_not_count() -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            workers = [{"port": 7078, "state": "ALIVE"}, {"port": 7079, "state": "DEAD"}]
            self.wfile.write(json.dumps({"workers": workers}).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.handle_request, daemon=True).start()
        assert Master(port=7077, pages=server.server_port, secret=SECRET).workers() == {7078}


def test_a_server_without_a_cluster_forgets_the_secret_of_one(tmp_path: Path, started: Started) -> None:
    start("server", tmp_path)
    spark_server.start_spark_server(tmp_path, port=15002, token="token", settings={}, variables={})
    assert started.shown
    assert not (tmp_path / "conf" / "spark-defaults.conf").read_text()


def test_the_secret_of_a_cluster_is_new_at_each_start(tmp_path: Path) -> None:
    first = new_secret(tmp_path)
    assert new_secret(tmp_path) == saved_secret(tmp_path) != first


def test_the_token_of_pages_is_signed_with_the_secret() -> None:
    head, claims, signature = page_headers(SECRET)["Authorization"].split(".")
    assert (head, claims) == ("Bearer eyJhbGciOiAiSFMyNTYifQ", "eyJzdWIiOiAiYmFja2ZpbGwifQ")
    assert signature == "1X6vAORfCS5h12j5PapF5Ee7PlQ5qMSmeS3LA5Z3gvc"


def test_a_cluster_is_not_added_to_a_server_that_runs_without_one(tmp_path: Path) -> None:
    folder = tmp_path / ".backfill"
    folder.mkdir()
    running = {"ports": {"spark": 15002}, "processes": {"spark": {"pid": ME.pid, "created": ME.created}}}
    (folder / "endpoints.json").write_text(json.dumps(running))
    with pytest.raises(EnvironmentSetupError, match=r"has no cluster\.(?s:.*)backfill down"):
        up(tmp_path, kafka=False, needs=SparkNeeds(cluster=True))
    found = endpoints(tmp_path)
    assert found is not None
    assert found.spark_remote == "sc://127.0.0.1:15002", "it is not stopped either"


def test_workers_of_a_master_that_is_gone_are_stopped_before_another_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_started(*_: object) -> Process:
        raise EnvironmentSetupError("no master is needed to see this")

    monkeypatch.setattr(servers, "start_master", not_started)
    folder = tmp_path / ".backfill"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as orphan:
        entry = asdict(process_of(orphan.pid))
        running = {"ports": {"spark-worker-1": 7078}, "processes": {"spark-worker-1": entry}}
        (folder / "endpoints.json").write_text(json.dumps(running))
        with pytest.raises(EnvironmentSetupError, match="to see this"):
            up(tmp_path, kafka=False, needs=SparkNeeds(cluster=True))
        assert orphan.wait(20) == -signal.SIGTERM


def test_a_master_that_does_not_answer_counts_on_no_workers() -> None:
    assert Master(port=1, pages=1, secret=SECRET).workers() == frozenset()
