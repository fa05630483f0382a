"""Which runs Dagster is told to be dead: those whose process on this machine is gone, and only these."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from backfill_assets.adapters.runtime.processes import process_of
from backfill_assets.defs.dead_runs import HOST_TAG, MARKED_TAG, PROCESS_TAG, mark_run, report_dead_runs


class NoLeases:
    def leases(self) -> dict[str, Any]:
        return {}


STATE: Any = NoLeases()


@dg.op
def nothing() -> None:
    """Does nothing."""


@dg.job
def work() -> None:
    nothing()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def started(instance: dg.DagsterInstance, **tags: str) -> str:
    run = instance.create_run_for_job(work, tags=tags)
    event = dg.DagsterEvent(event_type_value=dg.DagsterEventType.PIPELINE_START.value, job_name=work.name)
    instance.report_dagster_event(event, run.run_id)
    return run.run_id


def marks(process: str, *, minutes: float, host: str = "") -> dict[str, str]:
    """What a step leaves on its run that began some minutes ago."""
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    return {HOST_TAG: host or socket.gethostname(), PROCESS_TAG: process, MARKED_TAG: str(at.timestamp())}


@pytest.fixture
def gone() -> str:
    """A process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = process_of(process.pid)
    process.communicate()
    return f"{found.pid} {found.created}"


def test_a_run_whose_process_is_gone_is_reported_once(instance: dg.DagsterInstance, gone: str) -> None:
    dead = started(instance, **marks(gone, minutes=3))
    assert report_dead_runs(instance, STATE, ()) == [dead]
    run = instance.get_run_by_id(dead)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert report_dead_runs(instance, STATE, ()) == []


def test_others_are_left_alone(instance: dg.DagsterInstance, gone: str) -> None:
    mine = started(instance)
    mark_run(instance, mine)
    instance.add_run_tags(mine, {MARKED_TAG: marks("", minutes=60)[MARKED_TAG]})
    spared = started(instance, **marks(gone, minutes=3))
    started(instance, **marks(gone, minutes=1))  # which may be about to begin its next step
    started(instance, **marks(gone, minutes=60, host="another machine"))
    started(instance, **{HOST_TAG: socket.gethostname()})
    assert report_dead_runs(instance, STATE, (), spare=spared) == []
