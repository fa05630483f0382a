"""Runs whose process died without reporting: Dagster does not end them, so they would occupy their slot for ever."""

import os
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import dagster as dg

from backfill_assets.adapters.runtime.processes import Process, is_alive, process_of
from backfill_assets.adapters.state.state_store import Lease, State
from backfill_assets.errors import StoredFormatError

__all__ = ["UNFINISHED", "mark_run", "report_dead_runs"]

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


HOST_TAG, PROCESS_TAG, MARKED_TAG = "backfill/host", "backfill/process", "backfill/marked_at"
PATIENCE_SECONDS = 120.0
"""How long after a step's process has ended a run may take to begin its next step."""


def mark_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Record on a run which process works on its present step; a lease is only held while a table is written."""
    process = process_of(os.getpid())
    instance.add_run_tags(
        run_id,
        {
            HOST_TAG: socket.gethostname(),
            PROCESS_TAG: f"{process.pid} {process.created}",
            MARKED_TAG: str(datetime.now(UTC).timestamp()),
        },
    )


def _marked_dead(run: dg.DagsterRun, now: datetime) -> bool:
    marked = run.tags.get(PROCESS_TAG)
    if marked is None or now.timestamp() - float(run.tags[MARKED_TAG]) < PATIENCE_SECONDS:
        return False
    pid, created = marked.split()
    return not is_alive(Process(pid=int(pid), created=float(created)))


def _readable(leases: Mapping[str, Lease], targets: Collection[str]) -> Iterator[Lease]:
    """The leases of some tables. One that cannot be read is reported by the table's own runs, and does not affect
    others."""
    for target in leases.keys() & targets:
        with suppress(StoredFormatError):
            yield leases[target]


def report_dead_runs(
    instance: dg.DagsterInstance, state: State, targets: Collection[str], *, spare: str = ""
) -> list[str]:
    """Report unfinished runs that hold a lease of one of these tables and are dead as failed; returns their ids.

    Runs of other code locations or warehouses hold no such lease. A run on this machine is dead if its process is gone; a
    run on another machine, if it has not renewed its lease for too long. `spare` names a run that is known to be alive.
    """
    now = datetime.now(UTC)
    reported: list[str] = []
    for lease in _readable(state.leases(), targets):
        if not lease.dead(now) or lease.run_id in {spare, *reported}:
            continue
        run = instance.get_run_by_id(lease.run_id)
        if run is not None and run.status in UNFINISHED:
            instance.report_run_failed(
                run,
                f"Its process is gone: the lease of {lease.target} was last renewed at {lease.renewed_at:%F %T} UTC. "
                "What it committed stays; the next refresh continues from there.",
            )
            reported.append(lease.run_id)
    unfinished = dg.RunsFilter(statuses=UNFINISHED, tags={HOST_TAG: socket.gethostname()})
    for run in instance.get_runs(unfinished):
        if run.run_id not in {spare, *reported} and _marked_dead(run, now):
            instance.report_run_failed(run, "Its process is gone: it ended between writing and the end of the run.")
            reported.append(run.run_id)
    return reported
