"""A process that only imports modules, and from which others are forked: imports take seconds, and prove nothing."""

import atexit
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

__all__ = ["Forks"]

ROOT = Path(__file__).parents[2]
LIMIT = 300


class Forks:
    """The parent of processes, which all tests of this process share. It starts when it is first asked, and ends with this
    process, as its input does; with all its forks where an answer is not waited for, as a test that runs out of time."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._parent: subprocess.Popen[str] | None = None
        atexit.register(self._end)

    def ask(self, order: Mapping[str, object], is_last: Callable[[str], bool] = lambda _line: True) -> list[str]:
        """Have an order, a line of JSON, done by a fork; returns the lines that are said, up to the last."""
        parent = self._started()
        assert parent.stdin is not None
        assert parent.stdout is not None
        lines: list[str] = []
        try:
            parent.stdin.write(json.dumps(order) + "\n")
            parent.stdin.flush()
            while not lines or not is_last(lines[-1]):
                lines.append(parent.stdout.readline())
                assert lines[-1], "the parent of all processes ended"
        except BaseException:
            self._kill(parent)
            raise
        return lines

    def _started(self) -> "subprocess.Popen[str]":
        if self._parent is None:
            command = [sys.executable, *self._arguments]
            self._parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self._parent

    def _kill(self, parent: "subprocess.Popen[str]") -> None:
        self._parent = None
        if parent.poll() is None:
            forks = psutil.Process(parent.pid).children(recursive=True)
            parent.kill()
            for each in forks:
                each.kill()
        parent.communicate(timeout=LIMIT)

    def _end(self) -> None:
        if self._parent is not None:
            self._parent.communicate(timeout=LIMIT)
