"""Calls a function in a process of its own that uses a Spark Connect server: a process can use either that, or a
session."""

from collections.abc import Callable
from typing import Any

from tests.support.processes import Processes

__all__ = ["over_connect"]


def over_connect(remote: str, function: Callable[..., object], *arguments: object) -> Any:
    """The result (as JSON) of a function of a module for these string arguments; without a server it may find another one, or
    start a Spark."""
    call = {"call": [function.__module__, function.__name__], "arguments": [*map(str, arguments)]}
    code, said = Processes(remote).run(call)
    assert code == 0, said
    return said[0]["returned"]
