"""A test run that is killed leaves no server behind, and a test that ends early no process that it has forked."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.broker import wait_until
from tests.support.forks import Forks
from tests.support.servers import FOLDER

pytestmark = pytest.mark.e2e

RUN = """
import json, sys, time
from tests.support.servers import Guard, servers
guard = Guard()
servers(kafka=True)
print(guard.folder, flush=True)
time.sleep(600)
"""


def test_the_servers_of_a_killed_run_end_by_themselves() -> None:
    environment = {name: value for name, value in os.environ.items() if name != FOLDER}
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=Path(__file__).parents[3], env=environment, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        noted = json.loads((folder / ".backfill" / "endpoints.json").read_text())
        broker = psutil.Process(noted["processes"]["kafka"]["pid"])
        assert broker.is_running()
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not broker.is_running())
    wait_until(lambda: not folder.exists())


FORKING = """
import os, sys, time
for line in sys.stdin:
    child = os.fork()
    if not child:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os.waitpid(child, 0)
"""


def test_forks_whose_answer_is_not_waited_for_end() -> None:
    told: list[psutil.Process] = []

    def give_up(line: str) -> bool:
        told.append(psutil.Process(int(line)))
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Forks("-c", FORKING).ask({}, give_up)
    (fork,) = told
    wait_until(lambda: not fork.is_running() or fork.status() == psutil.STATUS_ZOMBIE)
