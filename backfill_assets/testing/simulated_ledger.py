"""A ledger in memory, as several competing runs see it."""

from backfill_assets.core.epoch.records import Plan

__all__ = ["LedgerStore", "SimulatedLedger"]

Life = tuple[str, str]


class LedgerStore:
    """The plans of all tables, oldest first, shared by all `SimulatedLedger` objects.

    Examples:
        >>> LedgerStore().plans
        {}
    """

    def __init__(self) -> None:
        self.plans: dict[Life, list[Plan]] = {}

    def lose(self) -> None:
        """Delete the state store."""
        self.plans.clear()


class SimulatedLedger:
    """One run's access to the ledger; implements `ports.Ledger`.

    Args:
        store: The plans, shared with other runs.

    Examples:
        >>> ledger = SimulatedLedger(LedgerStore())
        >>> ledger.newest("views/sales", "a1") is None
        True
    """

    def __init__(self, store: LedgerStore) -> None:
        self.store = store
        self._seen: dict[tuple[Life, int], int] = {}
        self.left_behind = False

    def newest(self, target: str, incarnation: str, *, since: int = 0) -> int | None:
        """The newest planned epoch. The next `append` competes with plans that others append after this call.

        Args:
            target: The table.
            incarnation: The table's incarnation.
            since: Look only at plans from this epoch on.

        Returns:
            The epoch's number; None if there is no plan.
        """
        life = (target, incarnation)
        epochs = [plan.epoch for plan in self.store.plans.get(life, []) if plan.epoch >= since]
        self._seen.update({(life, epoch): epochs.count(epoch) for epoch in epochs})
        self.left_behind |= max(epochs, default=since) > since
        return max(epochs, default=None)

    def plan(self, target: str, incarnation: str, epoch: int) -> Plan | None:
        """The plan that counts; the last one if an epoch was planned several times.

        Args:
            target: The table.
            incarnation: The table's incarnation.
            epoch: The epoch's number.

        Returns:
            The plan; None if there is none.
        """
        plans = self.store.plans.get((target, incarnation), [])
        return next((plan for plan in reversed(plans) if plan.epoch == epoch), None)

    def append(self, plan: Plan) -> bool:
        """Append a plan, unless another run has planned the epoch since the last call of `newest`.

        Args:
            plan: The plan.

        Returns:
            Whether it was appended.
        """
        life = (plan.target, plan.incarnation)
        plans = self.store.plans.setdefault(life, [])
        revisions = sum(planned.epoch == plan.epoch for planned in plans)
        if revisions != self._seen.get((life, plan.epoch), 0):
            return False
        plans.append(plan)
        self._seen[life, plan.epoch] = revisions + 1
        return True
