"""Runs whose process died without a word: nothing in Dagster ends them, so they would hold their place for ever."""

from collections.abc import Collection
from datetime import UTC, datetime

import dagster as dg

from backfill_assets.resources.state_store import State

__all__ = ["UNFINISHED", "report_dead_runs"]

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def report_dead_runs(
    instance: dg.DagsterInstance, state: State, targets: Collection[str], *, spare: str = ""
) -> list[str]:
    """Report as failed the unfinished runs that hold a lease of one of these tables and live no more; their ids.

    Runs of other code locations or warehouses hold no such lease. A run of this machine is dead if its process is
    gone; one of another machine, if it has not renewed its lease for long. `spare` names a run that is known to live.
    """
    now = datetime.now(UTC)
    reported: list[str] = []
    for lease in state.leases().values():
        if lease.target not in targets or not lease.dead(now) or lease.run_id in {spare, *reported}:
            continue
        run = instance.get_run_by_id(lease.run_id)
        if run is not None and run.status in UNFINISHED:
            instance.report_run_failed(
                run,
                f"Its process is gone: the lease of {lease.target} was last renewed at {lease.renewed_at:%F %T} UTC. "
                "What it committed stays; the next refresh goes on from there.",
            )
            reported.append(lease.run_id)
    return reported
