"""What the epochs of one table are made with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from backfill_assets.core.epoch.costs import Costs
from backfill_assets.core.epoch.ports import (
    Clock,
    Compute,
    Decider,
    Ledger,
    OnStep,
    Output,
    P,
    PlannedEpoch,
    of_kind,
    planned,
)
from backfill_assets.core.epoch.records import CommitRecord, Plan

__all__ = ["Parts"]


def _no_step(_step: str) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[P]):
    """What an epoch needs: a decider, the ports that act, and sources of time and identity."""

    decider: Decider[P]
    output: Output
    ledger: Ledger
    compute: Compute
    clock: Clock
    new_id: Callable[[], str]
    costs: Callable[[], Costs] = Costs
    on_step: OnStep = field(default=_no_step)

    @property
    def name(self) -> str:
        """The table's name on the command line."""
        return self.decider.target.partition("/")[2]

    def position(self, record: CommitRecord) -> P:
        """The position in a commit of the table."""
        return of_kind(record.position, self.decider.kind)

    def planned(self, plan: Plan) -> PlannedEpoch[P]:
        """A plan of the table as its decider sees it."""
        return planned(plan, self.decider.kind)
