"""A simulated ledger: plans as rivals see it, in memory."""

from backfill_assets.core.epoch.records import Plan

__all__ = ["LedgerStore", "SimulatedLedger"]

Life = tuple[str, str]


class LedgerStore:
    """The plans of all tables, oldest first, shared by all objects that have the ledger open."""

    def __init__(self) -> None:
        self.plans: dict[Life, list[Plan]] = {}

    def lose(self) -> None:
        """Delete the state store."""
        self.plans.clear()


class SimulatedLedger:
    """One process's object of the ledger; implements `ports.Ledger`.

    A swap fails if a plan of the same epoch was appended since this object's last `newest`.
    """

    def __init__(self, store: LedgerStore) -> None:
        self.store = store
        self._seen: dict[tuple[Life, int], int] = {}

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """The newest planned epoch of a life; the next `append` competes with plans that come after this."""
        life = (target, incarnation)
        epochs = [plan.epoch for plan in self.store.plans.get(life, []) if plan.epoch >= since]
        self._seen.update({(life, epoch): epochs.count(epoch) for epoch in epochs})
        return max(epochs, default=None)

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        """The plan in force: of several for one epoch, the last."""
        plans = self.store.plans.get((target, incarnation), [])
        return next((plan for plan in reversed(plans) if plan.epoch == epoch), None)

    def append(self, plan: Plan) -> bool:
        """Append a plan unless a rival planned the epoch since."""
        life = (plan.target, plan.incarnation)
        plans = self.store.plans.setdefault(life, [])
        revisions = sum(planned.epoch == plan.epoch for planned in plans)
        if revisions != self._seen.get((life, plan.epoch), 0):
            return False
        plans.append(plan)
        self._seen[life, plan.epoch] = revisions + 1
        return True
