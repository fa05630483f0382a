"""A Spark Connect server that is killed in the middle of an epoch: the run goes on with the next one, or ends in time.
One that hangs ends it in time, too, and an interrupt ends it at once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from backfill_assets.adapters.local.servers import SparkNeeds, down, up
from backfill_assets.adapters.spark.patience import ATTACHING_SECONDS, RUNNING_SECONDS
from backfill_assets.adapters.spark.resource import CANCEL_SECONDS
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import SparkLostError
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.settings import ON_A_CLUSTER

pytestmark = [pytest.mark.e2e, pytest.mark.full]

ROWS = 10
NEEDS = SparkNeeds(memory="1g", stores=frozenset({"s3"} if ON_A_CLUSTER else ()), cluster=ON_A_CLUSTER)
IN_TIME = RUNNING_SECONDS + 45
SIGN_OF_LIFE, CONNECTION = 30, 10
HANGS_IN_TIME = SIGN_OF_LIFE + RUNNING_SECONDS + CONNECTION + ATTACHING_SECONDS + CONNECTION + 5


def world(root: str) -> Lake:
    lake = Lake(Path(root))
    for file in range(4):
        lake.append("base", ({"id": at, "v": at % 7} for at in range(file * ROWS, (file + 1) * ROWS)))
    lake.view("large", "SELECT id, v * 2 AS twice FROM base", lake.table("base"), strategy="snapshot")
    return lake


def kill(root: str) -> None:
    """Kill the project's server."""
    for process in servers(root):
        process.send_signal(signal.SIGKILL)
        process.wait(20)


def servers(root: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if "SparkConnectServer" in words and str(Path(root).resolve()) in words:
            yield process


def go_on(root: str) -> list[object]:
    """The server is killed, and started again, in each of two epochs of a run: before Spark computes, and while it does."""
    lake, killed, threads = world(root), [], []

    def start_again() -> None:
        up(Path(root), kafka=False, needs=NEEDS)

    def kill_and_start() -> None:
        kill(root)
        threads.append(threading.Thread(target=start_again))
        threads[-1].start()

    def on_step(step: str) -> None:
        if step == "planned":
            killed.append(step)
            if len(killed) == 2:
                kill_and_start()
            if len(killed) == 3:
                threads.append(threading.Timer(0.3, kill_and_start))
                threads[-1].start()

    report = lake.project.refresh("large", Limits(chunk_rows=ROWS), on_step=on_step).report
    for thread in threads:
        thread.join()
    rows = sorted(lake.project.rows("large", "id", "twice").elements())
    checks = [lake.project.check("large", check).passed for check in CHECKS]
    return [report.record.epoch, report.record.live, rows, checks]


def stay_dead(root: str) -> list[object]:
    """The server is killed and not started again."""
    lake, at = world(root), []

    def on_step(step: str) -> None:
        if step == "planned":
            at.append(time.monotonic())
            if len(at) == 2:
                kill(root)

    try:
        lake.project.refresh("large", Limits(chunk_rows=ROWS), on_step=on_step)
    except SparkLostError as error:
        return [error.code, time.monotonic() - at[1], lake.project.record("large").epoch]
    return []


def hang(root: str) -> list[object]:
    """The server is stopped before an epoch is computed, and does not go on."""
    lake, at = world(root), []

    def on_step(step: str) -> None:
        if step == "planned":
            at.append(time.monotonic())
            if len(at) == 2:
                for process in servers(root):
                    process.suspend()

    try:
        lake.project.refresh("large", Limits(chunk_rows=ROWS), on_step=on_step)
    except SparkLostError as error:
        return [error.code, error.message, time.monotonic() - at[1], lake.project.record("large").epoch]
    return []


def hang_and_interrupt(root: str) -> list[object]:
    """The server is stopped while it computes, and the run is interrupted."""
    lake, at = world(root), []

    def stop_all() -> None:
        for process in servers(root):
            process.suspend()
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def on_step(step: str) -> None:
        if step == "planned" and not at:
            threading.Timer(0.3, stop_all).start()

    try:
        lake.project.refresh("large", Limits(chunk_rows=ROWS), on_step=on_step)
    except KeyboardInterrupt:
        return [time.monotonic() - at[0], lake.project.record("large").epoch]
    return []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    up(tmp_path, kafka=False, needs=NEEDS)
    yield tmp_path
    try:
        kill(str(tmp_path))  # one that hangs ends in no other way
    finally:
        down(tmp_path)


def test_a_run_goes_on_when_its_server_was_killed_and_started_again(server: Path) -> None:
    epoch, live, rows, checks = over_connect("", go_on, server)
    assert (epoch, live) == (4, True)
    assert rows == [[at, at % 7 * 2] for at in range(4 * ROWS)]
    assert checks == [True] * len(CHECKS)


def test_a_run_ends_in_time_when_its_server_stays_dead(server: Path) -> None:
    code, seconds, epoch = over_connect("", stay_dead, server)
    assert (code, epoch) == ("SPARK_LOST", 1)
    assert seconds < IN_TIME


def test_a_run_ends_in_time_when_its_server_hangs(server: Path) -> None:
    code, message, seconds, epoch = over_connect("", hang, server)
    assert (code, epoch) == ("SPARK_LOST", 1)
    assert "UNAVAILABLE: " in message
    assert seconds < HANGS_IN_TIME


def test_an_interrupt_ends_a_run_whose_server_hangs(server: Path) -> None:
    seconds, epoch = over_connect("", hang_and_interrupt, server)
    assert epoch <= 1
    assert seconds < CANCEL_SECONDS + 10
