"""Ports of the embedded servers on the loopback address: whether one is free, and which one to use."""

import os
import socket
from collections.abc import Collection

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["HOST", "accepts", "choose_port", "free_port"]

HOST = "127.0.0.1"


def choose_port(name: str, *, variable: str, last: int | None) -> int:
    """The port that the environment `variable` names; otherwise the `last` one if it is free; otherwise any free one.

    The last one is preferred because clients and saved settings still use it. Raises `EnvironmentSetupError` if the named
    port is taken or invalid.
    """
    named = os.environ.get(variable)
    if not named:
        return last if last is not None and _is_free(last) else free_port()
    if not named.isdecimal() or not 0 < int(named) < 65536:
        raise EnvironmentSetupError(
            f"{variable} is {named!r}, which is not a port.",
            hint=f"Set {variable} to a number from 1 to 65535, or unset it to have a free port chosen.",
        )
    if not _is_free(int(named)):
        raise EnvironmentSetupError(
            f"Port {named}, which {variable} names for {name}, is taken by another process.",
            hint=f"Stop that process, or set {variable} to a free port, or unset it to have one chosen.",
        )
    return int(named)


def free_port(*, other_than: Collection[int] = ()) -> int:
    """A port that nobody listens on, chosen by the system."""
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in other_than:
            return port


def accepts(port: int) -> bool:
    """Whether something accepts connections on `port`."""
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do it: lingering connections of a stopped server do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
