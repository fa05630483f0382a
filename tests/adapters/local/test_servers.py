"""Servers keep their ports, and what ran before stays when another one does not start. Each is a process that only sleeps."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.local import servers
from backfill_assets.adapters.local.servers import SparkNeeds
from backfill_assets.adapters.runtime.processes import Process, is_alive, start, stop
from backfill_assets.errors import EnvironmentSetupError

NAMES = ("broker", "spark_server", "s3_server", "master", "worker")


class Sleeping:
    """Starts a process that sleeps in the place of each server, and records what each was given."""

    def __init__(self) -> None:
        self.given: dict[str, list[dict[str, Any]]] = {}
        self.processes: list[Process] = []
        self.last: dict[str, list[int | None]] = {}

    def starts(self, name: str) -> Callable[..., Process]:
        def begin(folder: Path, *_: Any, **given: Any) -> Process:
            folder.mkdir(exist_ok=True)
            self.given.setdefault(name, []).append(given)
            self.processes.append(start(["sleep", "60"], folder=folder, log=folder / "log", environment=os.environ))
            return self.processes[-1]

        return begin

    def port(self, name: str, *, variable: str, last: int | None) -> int:  # noqa: ARG002  (tcp_ports.choose_port)
        """The last port, or another one for each server."""
        self.last.setdefault(name, []).append(last)
        return last or 20_000 + len(self.processes)


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeping]:
    found = Sleeping()
    for name in NAMES:
        monkeypatch.setattr(servers, f"start_{name}", found.starts(name))
    for name in ("wait_for_master", "wait_for_worker"):
        monkeypatch.setattr(servers, name, lambda *_, **__: None)
    monkeypatch.setattr(
        servers, "_WAITING", dict.fromkeys(("kafka", "spark", "s3", "spark-master"), lambda *_, **__: None)
    )
    monkeypatch.setattr(servers, "choose_port", found.port)
    monkeypatch.setattr(servers, "s3_environment", lambda _folder, *, port: {"AWS_ENDPOINT_URL": f"at {port}"})
    monkeypatch.setattr(servers, "spark_conf", lambda **_: {})
    yield found
    stop(found.processes)


def refuse(*_: Any, **__: Any) -> Process:
    raise EnvironmentSetupError("it does not start", hint="none")


def test_servers_are_asked_for_the_ports_that_they_had(tmp_path: Path, sleeping: Sleeping) -> None:
    needs = SparkNeeds(stores=frozenset({"s3"}), cluster=True)
    for _ in range(2):
        servers.up(tmp_path, s3=True, needs=needs)
        assert all(map(is_alive, sleeping.processes[-6:]))
        assert len(servers.down(tmp_path)) == 6
        assert not any(map(is_alive, sleeping.processes))
    assert len(sleeping.last) == 4
    assert all(first is None and again for first, again in sleeping.last.values())
    for name in ("broker", "spark_server", "s3_server"):
        before, after = (each["port"] for each in sleeping.given[name])
        assert before == after, name


def test_what_reaches_the_store_gets_its_keys(tmp_path: Path, sleeping: Sleeping) -> None:
    servers.up(tmp_path, s3=True, needs=SparkNeeds(stores=frozenset({"s3"}), cluster=True))
    store = {"AWS_ENDPOINT_URL": f"at {sleeping.given['s3_server'][0]['port']}"}
    assert [each["variables"] for each in sleeping.given["worker"]] == [store] * 2
    assert [each["variables"] for each in sleeping.given["spark_server"]] == [store]


def test_what_runs_already_stays_when_another_server_does_not_start(
    tmp_path: Path, sleeping: Sleeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "start_s3_server", refuse)
    before = servers.up(tmp_path, spark=False)
    with pytest.raises(EnvironmentSetupError, match="it does not start"):
        servers.up(tmp_path, spark=False, s3=True)
    assert servers.endpoints(tmp_path) == before
    assert [is_alive(each) for each in sleeping.processes] == [True]


def test_what_a_call_has_started_ends_again_when_another_server_does_not_start(
    tmp_path: Path, sleeping: Sleeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "start_broker", refuse)
    with pytest.raises(EnvironmentSetupError, match="it does not start"):
        servers.up(tmp_path, spark=False, s3=True)
    assert servers.endpoints(tmp_path) is None
    assert [is_alive(each) for each in sleeping.processes] == [False]


def test_each_server_that_runs_is_named_by_its_address(tmp_path: Path, sleeping: Sleeping) -> None:
    assert servers.spark_token(tmp_path) is None
    found = servers.up(tmp_path, kafka=True, spark=True, s3=True, needs=SparkNeeds(cluster=True))
    assert found == servers.endpoints(tmp_path)
    addresses = (found.bootstrap_servers, found.spark_remote, found.s3_endpoint, found.spark_master)
    assert [str(each).partition("127.0.0.1:")[0] for each in addresses] == ["", "sc://", "http://", "spark://"]
    assert len({str(each).rpartition(":")[2] for each in addresses}) == len(addresses)
    assert servers.spark_token(tmp_path) == sleeping.given["spark_server"][0]["token"]
