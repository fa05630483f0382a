"""The inputs of a check (a table as it was loaded, and what was proved before) and its outcome."""

from dataclasses import dataclass, field
from typing import Any

from backfill_assets.adapters.proof.written import Written, written_between
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.records import CommitRecord, TableState
from backfill_assets.core.proof_scope import Everything
from backfill_assets.declare.model import MaterializedView
from backfill_assets.query.aggregate import AggregateQuery
from backfill_assets.query.query import unique_keys
from backfill_assets.query.record_columns import RECORD_KEY
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery

__all__ = ["Case", "LastPass", "Outcome", "branch_column_of", "branches_of", "copies_of", "is_aggregate", "keys_of"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a check. `summary` is one sentence; `violations` say what is wrong; `facts` are numbers.

    `unproved` says that nothing is wrong with the table, but nothing could be proved either: no pass, and no error.
    """

    passed: bool
    summary: str
    unproved: bool = False
    violations: list[Any] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LastPass:
    """The commit up to which a check has passed before, and the version of the table that it looked at."""

    record: CommitRecord
    version: int


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check of one table. `since` is its last pass; if there is none that counts, it says why. `seed` selects what
    is read again without Spark; nothing if it is empty."""

    workspace: Workspace
    table: Table
    look: TableState
    record: CommitRecord
    since: LastPass | Everything
    seed: str = ""

    @property
    def runner(self) -> SparkRunner:
        """Spark for what is read of the table and of its upstreams."""
        declared = self.table.declared
        if isinstance(declared, MaterializedView) and declared.tables:
            return self.workspace.inputs(declared).runner
        return self.workspace.runner

    @property
    def last(self) -> LastPass | None:
        """The last pass; None to prove everything."""
        return self.since if isinstance(self.since, LastPass) else None

    @property
    def since_epoch(self) -> int:
        """The epoch up to which all was proved before; 0 to prove everything."""
        return self.last.record.epoch if self.last else 0

    def written(self) -> Written | Everything:
        """What was written to the table since the last pass, or why that is not known."""
        if isinstance(self.since, Everything):
            return self.since
        return written_between(self.table.output.location, self.since.version, self.look.version)


def branches_of(case: Case) -> list[str]:
    """The upstream of each part of a view's query; one part for a source."""
    declared = case.table.declared
    if not isinstance(declared, MaterializedView):
        return [""]
    query = case.workspace.bound(declared)
    return [each.upstream for each in query.branches] if isinstance(query, RowwiseQuery) else list(query.upstreams)


def copies_of(case: Case) -> int | None:
    """How many rows of the table one row of its upstreams may become; None: any number."""
    declared = case.table.declared
    whole = isinstance(declared, MaterializedView) and isinstance(case.workspace.bound(declared), RelationalQuery)
    return None if whole else len(branches_of(case))


def is_aggregate(case: Case) -> bool:
    """Whether rows are groups, which do not show the offsets that they come from."""
    declared = case.table.declared
    return isinstance(declared, MaterializedView) and isinstance(case.workspace.bound(declared), AggregateQuery)


def keys_of(case: Case) -> tuple[tuple[str, ...], ...]:
    """All keys that must be unique in the table; none if rows are only ever added."""
    declared = case.table.declared
    if isinstance(declared, MaterializedView):
        return unique_keys(case.workspace.bound(declared))
    return (RECORD_KEY,)


def branch_column_of(case: Case) -> str:
    """The column that distinguishes the parts of UNION ALL; empty if there is none."""
    declared = case.table.declared
    query = case.workspace.bound(declared) if isinstance(declared, MaterializedView) else None
    return query.branch_column if isinstance(query, RowwiseQuery) else ""
