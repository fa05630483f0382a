"""Processes that run jobs of `tests.support.runner` over a Spark Connect server, and that a test may kill."""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Processes"]

LIMIT = 300


class Processes:
    """Runs each request in a process of its own, in the environment that the test has then.

    They are forked from a process that has only imported modules, which saves seconds for each. All tests share it.
    """

    def __init__(self, remote: str) -> None:
        self._remote = remote

    def run(self, order: Mapping[str, object], *jobs: Mapping[str, object]) -> tuple[int, list[dict[str, Any]]]:
        """Run jobs in a process; returns its exit code (for a signal: minus its number), and the answer of each job."""
        parent = _parent()
        assert parent.stdin is not None
        assert parent.stdout is not None
        others = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
        environment = {**others, **({"SPARK_REMOTE": self._remote} if self._remote else {})}
        parent.stdin.write(json.dumps({**order, "jobs": jobs, "environment": environment}) + "\n")
        parent.stdin.flush()
        said = []
        for line in iter(parent.stdout.readline, ""):
            said.append(json.loads(line))
            if "code" in said[-1]:
                return said.pop()["code"], said
        raise AssertionError("the parent of all processes ended")

    def kill(self, order: Mapping[str, object], job: Mapping[str, object], step: str, *, at: int = 1) -> None:
        """A job whose process kills itself at a step."""
        assert self.run(order, {**job, "die": [step, at]}) == (-signal.SIGKILL, [])


@cache
def _parent() -> "subprocess.Popen[str]":
    """It ends with this process, as its input does."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.support.runner", "serve"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(started.communicate, timeout=LIMIT)
    return started
