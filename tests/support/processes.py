"""Processes that do orders of `tests.support.runner` over one Spark Connect server, and that a test may have killed."""

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
    """Does each order in a process of its own.

    They are forked from one that has loaded everything and touched nothing, which saves each the seconds of that.
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
        """Do jobs in a process; its exit code (of a signal: minus its number), and what it said of each job."""
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
        """End the parent of all."""
        self._parent.communicate(timeout=LIMIT)
