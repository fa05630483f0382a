"""Processes that run jobs of `tests.support.runner` over a Spark Connect server, and that a test may kill."""

import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from tests.support.forks import Forks

__all__ = ["Processes"]

_FORKS = Forks("-m", "tests.support.runner", "serve")


class Processes:
    """Runs each request in a process of its own, in the environment that the test has then.

    They are forked from a process that has only imported modules, which saves seconds for each.
    """

    def __init__(self, remote: str) -> None:
        self._remote = remote

    def run(self, order: Mapping[str, object], *jobs: Mapping[str, object]) -> tuple[int, list[dict[str, Any]]]:
        """Run jobs in a process; returns its exit code (for a signal: minus its number), and the answer of each job."""
        others = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
        environment = {**others, **({"SPARK_REMOTE": self._remote} if self._remote else {})}
        lines = _FORKS.ask({**order, "jobs": jobs, "environment": environment}, lambda line: "code" in json.loads(line))
        said = [json.loads(line) for line in lines]
        return said.pop()["code"], said

    def kill(self, order: Mapping[str, object], job: Mapping[str, object], step: str, *, at: int = 1) -> None:
        """A job whose process kills itself at a step."""
        assert self.run(order, {**job, "die": [step, at]}) == (-signal.SIGKILL, [])
