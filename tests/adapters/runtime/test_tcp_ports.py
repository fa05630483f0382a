"""Which port a server gets: the one that is named, if it can, or the last one, or any."""

import socket
from collections.abc import Iterator

import pytest

from backfill_assets.adapters.runtime.tcp_ports import HOST, choose_port, free_port
from backfill_assets.errors import EnvironmentSetupError

VARIABLE = "BACKFILL_UI_PORT"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "3.0", " 80"])
def test_what_is_no_port_is_refused(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv(VARIABLE, port)
    with pytest.raises(EnvironmentSetupError, match=f"{VARIABLE} is '{port}', which is not a port"):
        choose_port("the UI", variable=VARIABLE, last=None)


def test_a_named_port_is_taken_before_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(named := free_port()))
    assert choose_port("the UI", variable=VARIABLE, last=free_port(other_than={named})) == named
    monkeypatch.setenv(VARIABLE, "")
    assert choose_port("the UI", variable=VARIABLE, last=(last := free_port())) == last


def test_a_named_port_that_is_taken_is_refused_and_a_last_one_is_given_up(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert choose_port("the UI", variable=VARIABLE, last=taken) != taken
    monkeypatch.setenv(VARIABLE, str(taken))
    with pytest.raises(EnvironmentSetupError, match=f"Port {taken}, which {VARIABLE} names for the UI, is taken"):
        choose_port("the UI", variable=VARIABLE, last=None)
