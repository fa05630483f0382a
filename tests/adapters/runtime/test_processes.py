"""Processes are told apart by what does not move with the clock."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from backfill_assets.adapters.runtime import processes
from backfill_assets.adapters.runtime.processes import Process, is_alive, process_of, stop, wait_until
from backfill_assets.errors import EnvironmentSetupError


def test_a_process_is_the_same_after_the_clock_was_set() -> None:
    me = process_of(os.getpid())
    with patch.object(psutil.Process, "create_time", lambda _process: 15.0):
        assert is_alive(me)


def test_another_process_of_the_same_id_is_not_it() -> None:
    me = process_of(os.getpid())
    assert [is_alive(each) for each in (me, replace(me, created=me.created + 0.01))] == [True, False]


def test_a_process_that_is_gone_is_not_found() -> None:
    gone = next(number for number in range(2**22 - 1, 0, -1) if not psutil.pid_exists(number))
    assert not is_alive(Process(pid=gone, created=1.5))
    with pytest.raises(psutil.NoSuchProcess):
        process_of(gone)


STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); input()"


@pytest.mark.parametrize(("program", "patience"), [(STUBBORN, 0.2), ("print('ready', flush=True); input()", 20.0)])
def test_a_process_is_ended_even_if_it_does_not_listen(program: str, patience: float) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        found = process_of(process.pid)
        stop([found], patience=patience)
        assert not is_alive(found)
        assert process.wait() == (-signal.SIGKILL if patience < 1 else -signal.SIGTERM)


def test_a_start_that_takes_too_long_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    log, me = tmp_path / "server.log", process_of(os.getpid())
    with pytest.raises(EnvironmentSetupError, match=r"it was not ready within 0 seconds(.|\n)*\(empty\)"):
        wait_until(lambda: False, process=me, name="it", log=log, limit=0.1)
    log.write_text("".join(f"line {at}\n" for at in range(500)))
    with pytest.raises(EnvironmentSetupError, match="line 499") as found:
        wait_until(lambda: False, process=me, name="it", log=log, limit=0.1)
    assert "line 3\n" not in str(found.value)
    answers = iter((False, True))
    wait_until(lambda: next(answers), process=me, name="it", log=log, limit=10)


def test_a_process_that_ends_at_once_is_told_when_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_pid: int) -> Process:
        raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(processes, "process_of", gone)
    log = tmp_path / "server.log"
    started = processes.start(["/bin/echo", "no room"], folder=tmp_path, environment={}, log=log)
    with pytest.raises(EnvironmentSetupError, match="it stopped while it was starting"):
        wait_until(lambda: False, process=started, name="it", log=log, limit=10)
