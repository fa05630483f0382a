"""Servers keep their ports, and what ran before stays when another one does not start. Each is a process that only sleeps."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.adapters.local import servers
from backfill_assets.adapters.local.servers import SparkNeeds
from backfill_assets.adapters.runtime.processes import Process, start
from backfill_assets.errors import EnvironmentSetupError


def asleep(folder: Path, **_: Any) -> Process:
    folder.mkdir(exist_ok=True)
    return start(["sleep", "60"], folder=folder, log=folder / "log", environment=os.environ)


def refuse(*_: Any, **__: Any) -> Process:
    raise EnvironmentSetupError("it does not start", hint="none")


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports on which brokers were started."""
    started: list[int] = []

    def start_broker(folder: Path, *, port: int) -> Process:
        started.append(port)
        return asleep(folder)

    monkeypatch.setattr(servers, "start_broker", start_broker)
    monkeypatch.setattr(servers, "_WAITING", {"kafka": lambda *_, **__: None})
    return started


def test_a_server_gets_the_port_that_it_had(tmp_path: Path, ports: list[int]) -> None:
    for _ in range(2):
        assert servers.up(tmp_path, spark=False).bootstrap_servers == f"127.0.0.1:{ports[-1]}"
        assert servers.down(tmp_path) == ("kafka",)
        assert servers.endpoints(tmp_path) is None
    assert len(ports) == 2
    assert len({*ports}) == 1


def test_what_runs_already_stays_when_another_server_does_not_start(
    tmp_path: Path, ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "start_s3_server", refuse)
    before = servers.up(tmp_path, spark=False)
    try:
        with pytest.raises(EnvironmentSetupError, match="it does not start"):
            servers.up(tmp_path, spark=False, s3=True)
        assert servers.endpoints(tmp_path) == before
    finally:
        servers.down(tmp_path)
    assert len(ports) == 1


@pytest.mark.usefixtures("ports")
def test_what_a_call_has_started_ends_again_when_another_server_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "start_s3_server", asleep)
    monkeypatch.setattr(servers, "start_broker", refuse)
    with pytest.raises(EnvironmentSetupError, match="it does not start"):
        servers.up(tmp_path, spark=False, s3=True)
    assert servers.endpoints(tmp_path) is None


def test_every_server_keeps_its_port_and_what_reaches_the_store_gets_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: dict[str, list[dict[str, Any]]] = {}

    def starts(name: str) -> Callable[..., Process]:
        def begin(folder: Path, *_: Any, **given: Any) -> Process:
            started.setdefault(name, []).append(given)
            return asleep(folder)

        return begin

    for name in ("start_broker", "start_spark_server", "start_s3_server", "start_worker"):
        monkeypatch.setattr(servers, name, starts(name))
    monkeypatch.setattr(
        servers, "start_master", lambda folder, master: starts("start_master")(folder, port=master.port)
    )
    for name in ("wait_for_master", "wait_for_worker"):
        monkeypatch.setattr(servers, name, lambda *_, **__: None)
    monkeypatch.setattr(
        servers, "_WAITING", dict.fromkeys(("kafka", "spark", "s3", "spark-master"), lambda *_, **__: None)
    )
    monkeypatch.setattr(servers, "s3_environment", lambda _folder, *, port: {"AWS_ENDPOINT_URL": f"at {port}"})
    monkeypatch.setattr(servers, "spark_conf", lambda **_: {})
    needs = SparkNeeds(stores=frozenset({"s3"}), cluster=True)
    try:
        for _ in range(2):
            servers.up(tmp_path, s3=True, needs=needs)
            assert len(servers.down(tmp_path)) == 6
    finally:
        servers.down(tmp_path)
    for name in ("start_broker", "start_spark_server", "start_s3_server", "start_master"):
        before, after = (each["port"] for each in started[name])
        assert before == after, name
    store = {"AWS_ENDPOINT_URL": f"at {started['start_s3_server'][0]['port']}"}
    assert [each["variables"] for each in started["start_worker"]] == [store] * 4
    assert [each["variables"] for each in started["start_spark_server"]] == [store] * 2
