"""Processes that outlive the one that started them, identified by process id and start (an id may be reused)."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from backfill_assets.errors import EnvironmentSetupError

__all__ = ["Process", "is_alive", "process_of", "start", "stop", "wait_until"]

_START = 19
"""Which of the fields behind a process's name is its start, in ticks since the machine was booted (`proc_pid_stat(5)`)."""
_POLL_SECONDS = 0.1
_LOG_LINES = 15


@dataclass(frozen=True, kw_only=True)
class Process:
    """A running or past process; `created` tells it from others of the same id."""

    pid: int
    created: float


def start(command: Sequence[str], *, folder: Path, log: Path, environment: Mapping[str, str]) -> Process:
    """Start `command` in `folder`, in a session of its own; its output goes to `log` (the last log is kept as `.1`).

    The shell in between ends at once, so the server is not a child of this process: it does not die with it, and does not
    become a zombie.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    done = subprocess.run(
        ["/bin/sh", "-c", 'log=$1; shift; "$@" >"$log" 2>&1 </dev/null & echo $!', "sh", str(log), *command],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
        check=True,
    )
    pid = int(done.stdout)
    try:
        return process_of(pid)
    except psutil.NoSuchProcess:
        return Process(pid=pid, created=-1.0)  # already gone: who waits for it finds this out, and shows the log


def process_of(pid: int) -> Process:
    """The process that has this id now.

    On Linux, psutil makes the time of a start from that of the boot, which moves whenever the clock is set: a server would be
    taken for gone, and started once more beside itself. So there `created` is in seconds since the boot, which stay.

    Raises:
        psutil.NoSuchProcess: there is none.
    """
    process = psutil.Process(pid)
    if not psutil.LINUX:
        return Process(pid=pid, created=process.create_time())
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # names may be any bytes
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    return Process(pid=pid, created=int(fields[_START]) / os.sysconf("SC_CLK_TCK"))


def is_alive(process: Process) -> bool:
    """Whether this very process still runs; a zombie does not."""
    return _find(process) is not None


def stop(processes: Sequence[Process], *, patience: float = 20.0) -> None:
    """End exactly these processes: SIGTERM, then SIGKILL for those that still run after `patience` seconds."""
    for process in processes:
        if found := _find(process):
            _signal(found.terminate)
    if not _wait_for_end(processes, limit=patience):
        for process in processes:
            if found := _find(process):
                _signal(found.kill)
        _wait_for_end(processes, limit=5.0)


def wait_until(ready: Callable[[], bool], *, process: Process, name: str, log: Path, limit: float) -> None:
    """Wait until `ready`; raises `EnvironmentSetupError` with the end of the log if the process dies or time is up."""
    deadline = time.monotonic() + limit
    while not ready():
        if not is_alive(process):
            raise _failed_start(f"{name} stopped while it was starting", log)
        if time.monotonic() > deadline:
            raise _failed_start(f"{name} was not ready within {limit:.0f} seconds", log)
        time.sleep(_POLL_SECONDS)


def _failed_start(what: str, log: Path) -> EnvironmentSetupError:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    shown = "\n".join(f"    {line}" for line in lines) or "    (empty)"
    return EnvironmentSetupError(
        f"{what}. The last lines of {log}:\n{shown}",
        hint="If the log names a port or memory, free it, then run the same command again.",
    )


def _find(process: Process) -> psutil.Process | None:
    try:
        same = process_of(process.pid) == process
        found = psutil.Process(process.pid)
        return found if same and found.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _signal(send: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):  # it may end by itself in between
        send()


def _wait_for_end(processes: Sequence[Process], *, limit: float) -> bool:
    deadline = time.monotonic() + limit
    while any(is_alive(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS / 2)
    return True
