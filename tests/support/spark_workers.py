"""The cluster that Spark's tasks run on: which processes it has, what each does, and what is left when some are killed."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.support.project import Project
from tests.support.runner import start
from tests.support.servers import cluster_root, remote_of

__all__ = ["LIMIT", "WORKERS", "Cluster", "has_mapped", "is_running", "parts_of", "processes_of", "wait_until"]

WORKERS = ("spark-worker-1", "spark-worker-2")
LIMIT = 900
BACKEND = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Cluster:
    """The cluster of a test run, with one executor on each worker."""

    root: Path

    @classmethod
    def whole(cls) -> "Cluster":
        """The cluster with all of its parts, of which an earlier test may have killed some."""
        cluster = cls(cluster_root())
        wait_until("both workers to have an executor", lambda: len(cluster.executors()) == len(WORKERS))
        return cluster

    @property
    def remote(self) -> str:
        """The address of the Spark server, with its token."""
        return remote_of(self.root)

    def executors(self) -> dict[str, psutil.Process]:
        """The executor of each worker that has one."""
        parts = parts_of(self.root)
        found = {name: _executor(parts[name]) for name in WORKERS if name in parts}
        return {name: executor for name, executor in found.items() if executor is not None}

    @contextmanager
    def running(self, project: Project, topic: str, job: dict[str, Any]) -> "Iterator[subprocess.Popen[str]]":
        """A job that is done on the cluster by a process of its own, which does not outlive its test."""
        with start(project, topic, self.remote, job) as process:
            try:
                yield process
            finally:
                process.kill()

    def lose(self, worker: str) -> None:
        """Kill a worker together with its executor, as they are lost with their machine."""
        lost = [parts_of(self.root)[worker], self.executors()[worker]]
        for process in lost:
            process.kill()
        wait_until(f"{worker} to be gone", lambda: not any(map(is_running, lost)))


def parts_of(root: Path) -> dict[str, psutil.Process]:
    """The servers of a project that are running, by name."""
    entries = json.loads((root / ".backfill" / "endpoints.json").read_text())["processes"]
    found = {name: psutil.Process(entry["pid"]) for name, entry in entries.items() if psutil.pid_exists(entry["pid"])}
    return {name: process for name, process in found.items() if is_running(process)}


def processes_of(root: Path) -> list[psutil.Process]:
    """The servers of a project, and the executors of its workers."""
    parts = parts_of(root)
    return [*parts.values(), *filter(None, (_executor(parts[name]) for name in WORKERS if name in parts))]


def has_mapped(process: psutil.Process, file: Path) -> bool:
    """Whether a file is mapped into a process's memory. Java lets go of an archive that does not fit its class path."""
    return str(file.resolve()) in {each.path for each in process.memory_maps()}


def is_running(process: psutil.Process) -> bool:
    """Whether a process is there; the system decides when its zombie is collected."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < deadline, f"waited {LIMIT} s for {what}"
        time.sleep(0.1)


def _executor(worker: psutil.Process) -> psutil.Process | None:
    try:
        return next((each for each in worker.children() if _is_executor(each)), None)
    except psutil.NoSuchProcess:
        return None


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(BACKEND in word for word in process.cmdline())
    except psutil.Error:
        return False
