"""A test run that is killed leaves no server behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.broker import wait_until
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
