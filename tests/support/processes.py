"""Processes that run jobs of `tests.support.runner` over one Spark Connect server, and that a test may kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Processes"]

LIMIT = 300


class Processes:
    """Runs each request in a process of its own.

    They are forked from a process that has only imported modules, which saves seconds for each.
    """

    def __init__(self, remote: str) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.runner", "serve"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "SPARK_REMOTE": remote},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, order: Mapping[str, object], *jobs: Mapping[str, object]) -> tuple[int, list[dict[str, Any]]]:
        """Run jobs in a process; returns its exit code (for a signal: minus its number), and the answer of each job."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps({**order, "jobs": jobs}) + "\n")
        self._parent.stdin.flush()
        said = []
        for line in iter(self._parent.stdout.readline, ""):
            said.append(json.loads(line))
            if "code" in said[-1]:
                return said.pop()["code"], said
        raise AssertionError("the parent of all processes ended")

    def kill(self, order: Mapping[str, object], job: Mapping[str, object], step: str, *, at: int = 1) -> None:
        """A job whose process kills itself at a step."""
        assert self.run(order, {**job, "die": [step, at]}) == (-signal.SIGKILL, [])

    def close(self) -> None:
        """End the parent process."""
        self._parent.communicate(timeout=LIMIT)
