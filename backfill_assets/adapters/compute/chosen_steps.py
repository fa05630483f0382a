"""How an epoch of a query over whole tables follows what changed: by the rule of its query, if nothing stands against it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backfill_assets.adapters.compute.relational_changes import changes_readable, check_changes_readable
from backfill_assets.adapters.delta.key_statistics import may_be_null
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.core.epoch.records import CommitRecord, Plan, WhyFull
from backfill_assets.core.progress.reads import FullRead
from backfill_assets.core.strategies.rule_choice import (
    Changes,
    chosen_rule,
    expected_seconds,
    is_replaced,
    often_in_full,
    reach_of_changes,
)
from backfill_assets.core.strategies.table_plans import by_hashes, chunk_places
from backfill_assets.core.strategies.table_skips import leaves_out
from backfill_assets.errors import VersionsLostError
from backfill_assets.query.query import Query
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.steps import Steps

__all__ = ["Chosen", "StepChoice", "changed_reads", "held_rows"]


def changed_reads(plan: Plan) -> list[FullRead]:
    """The reads of tables that changed."""
    return [each for each in plan.reads if isinstance(each, FullRead) and each.first <= each.last and each.rows]


def held_rows(plan: Plan) -> int:
    """How many rows all tables have that a plan reads in full."""
    return sum(each.held for each in plan.reads if isinstance(each, FullRead))


class Chosen(NamedTuple):
    """The steps of an epoch, why it is computed in full if it is, and whether the view is then replaced without a comparison
    with the rows that it holds."""

    steps: Steps
    why_full: WhyFull = ""
    replaced: bool = False


@dataclass(frozen=True, kw_only=True)
class StepChoice:
    """Chooses the steps of a view's epochs. `mode` is its refresh mode, `is_read` whether other views read it; `records`
    gives its newest commits, newest first."""

    upstreams: Mapping[str, DeltaUpstream]
    mode: str
    is_read: bool
    records: Callable[[], Sequence[CommitRecord]]

    def of(self, query: Query, plan: Plan) -> Chosen:
        """How the view follows what changed, and why it is computed in full if it is. Errors: `VersionsLostError` where it
        may only follow changes, and these are gone."""
        if plan.redefines:
            return Chosen(Steps("full"), "definition", replaced=True)
        if not isinstance(query, RelationalQuery):
            return Chosen(Steps("full"))
        if by_hashes(plan):
            return Chosen(Steps("restricted"))
        if not plan.replaces:
            return Chosen(query.chunk_steps(chunk_places(plan)))
        changed = changed_reads(plan)
        names = [each.source for each in changed]
        steps = query.steps(names)
        before = steps.rule != "restricted" or bool(steps.linear or steps.parameters)
        if changed and steps.rule != "full" and self.mode == "incremental_strict":
            check_changes_readable(self.upstreams, changed, before=before)
        is_auto = self.mode == "auto"
        changes = Changes(
            rows=sum(each.rows for each in changed),
            held=held_rows(plan),
            left_out=leaves_out(plan),
            readable=lambda: changes_readable(self.upstreams, changed, before=before),
            reach=reach_of_changes(self.records(), names) if is_auto and steps.by_class else 1.0,
            moved=is_auto and bool(steps.parameters) and often_in_full(self.records(), names, "parameters"),
            lacking=is_auto and steps.first and often_in_full(self.records(), names, "first_rows"),
            is_read=self.is_read,
            seconds=lambda: expected_seconds(self.records(), names, sum(each.rows for each in changed)),
            nulls=lambda: any(self._may_be_null(query, plan, *each) for each in steps.nulls),
        )
        rule, why_full = chosen_rule(steps.rule, self.mode, changes)
        return Chosen(steps if rule == steps.rule else Steps("full"), why_full, is_replaced(why_full, changes))

    def _may_be_null(self, query: RelationalQuery, plan: Plan, place: int, column: str) -> bool:
        """Whether a place's column may be null in a row, before or after, as far as the logs say."""
        name = query.occurrences[place]
        (chosen,) = (each for each in query.columns[name] if each.name.lower() == column.lower())
        (read,) = (each for each in plan.reads if isinstance(each, FullRead) and each.source == name)
        try:
            versions = [self.upstreams[name].version(number) for number in sorted({read.first - 1, read.last})]
        except VersionsLostError:
            return True
        return any(may_be_null(each, chosen) for each in versions)
