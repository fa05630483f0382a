"""A simulated ledger: plans appended by compare-and-swap, in memory."""

from backfill_assets.backfill.epoch import Plan

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

    A swap fails if any plan of this life was appended since this object's last `newest`.
    """

    def __init__(self, store: LedgerStore) -> None:
        self.store = store
        self._seen: dict[Life, int] = {}

    def newest(self, target: str, incarnation: str) -> int | None:
        """The newest planned epoch of a life; the next `append` swaps on exactly this."""
        plans = self.store.plans.get((target, incarnation), [])
        self._seen[target, incarnation] = len(plans)
        return max((plan.epoch for plan in plans), default=None)

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        """The plan in force: of several for one epoch, the last."""
        plans = self.store.plans.get((target, incarnation), [])
        return next((plan for plan in reversed(plans) if plan.epoch == epoch), None)

    def append(self, plan: Plan) -> bool:
        """Append a plan unless a rival did since."""
        life = (plan.target, plan.incarnation)
        plans = self.store.plans.setdefault(life, [])
        if len(plans) != self._seen.get(life, 0):
            return False
        plans.append(plan)
        self._seen[life] = len(plans)
        return True
