"""Plans that were refused, and are made anew once there is something that may correct them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.core.epoch.records import Plan, Staged
from backfill_assets.core.epoch.run import RunReport
from backfill_assets.errors import DuplicateKeyError, PoisonRowError
from backfill_assets.testing.crash_points import Crash, CrashPoint
from backfill_assets.testing.simulation import World
from tests.support.one_source import SOURCE, make, produce, right


class Strict:
    """Computes like the world, but refuses plans with fewer than this many offsets: the correction of the rows comes
    later."""

    def __init__(
        self, world: World, least: int, error: type[DuplicateKeyError | PoisonRowError] = DuplicateKeyError
    ) -> None:
        self.inner, self.least, self.error = world.parts(SOURCE).compute, least, error

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        if plan.offsets < self.least:
            raise self.error("no", hint="correct it")
        return self.inner.stage(plan, attempt, at=at)


def test_a_plan_whose_rows_were_refused_is_superseded_once_something_came_that_may_correct_them() -> None:
    world = make(4)
    strict = replace(world.parts(SOURCE), compute=Strict(world, least=6))
    for _ in range(2):
        with pytest.raises(DuplicateKeyError):
            world.refresh(SOURCE, parts=strict)
    assert list(map(len, world.ledger.plans.values())) == [1], "what is refused again is not planned again"
    produce(world, 3)
    report = world.refresh(
        SOURCE, Limits(chunk_rows=1, max_rows=1), parts=replace(strict, decider=world.decider(SOURCE))
    )
    assert [each.rows_written for each in report.epochs] == [7], "all of it, whatever the budget"
    assert right(world)


def test_records_of_a_topic_that_were_refused_are_not_planned_again_as_they_stay_what_they_are() -> None:
    world = make(4)
    strict = replace(world.parts(SOURCE), compute=Strict(world, 6, PoisonRowError))
    for _ in range(2):
        with pytest.raises(PoisonRowError):
            world.refresh(SOURCE, parts=replace(strict, decider=world.decider(SOURCE)))
        produce(world, 3)
    assert list(map(len, world.ledger.plans.values())) == [1]


class Meanwhile:
    """Decides like `inner`; before it decides for the second time, something else happens."""

    def __init__(self, inner: Any, happens: Callable[[], object]) -> None:
        self.inner, self.happens, self.decided = inner, happens, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def next(self, position: object, **given: Any) -> Any:
        self.decided += 1
        if self.decided == 2:
            self.happens()
        return self.inner.next(position, **given)


def corrected(world: World, meanwhile: Callable[[], object]) -> RunReport:
    """A run whose first plan is refused, while something happens before it plans anew; all is right after the next run."""
    parts = replace(
        world.parts(SOURCE), compute=Strict(world, least=6), decider=Meanwhile(world.decider(SOURCE), meanwhile)
    )
    report = world.refresh(SOURCE, parts=parts)
    assert parts.ledger.left_behind, "what was refused is swept"
    world.refresh(SOURCE)
    assert right(world)
    assert max(world.table(SOURCE).rows.values()) == 1
    return report


def test_what_was_refused_is_planned_anew_though_a_rival_has_died_over_it() -> None:
    world = make(4)

    def die() -> None:
        produce(world, 3)
        with pytest.raises(Crash):
            world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("staged")))

    assert corrected(world, die).stopped is Stop.CAUGHT_UP


def test_a_rival_that_has_gone_on_while_refused_rows_are_planned_anew_has_won() -> None:
    world = make(4)

    def go_on() -> None:
        produce(world, 3)
        with pytest.raises(Crash):
            world.refresh(SOURCE, parts=world.parts(SOURCE, on_step=CrashPoint("planned", at=2)))

    assert corrected(world, go_on).stopped is Stop.FENCED


def test_a_rival_that_has_replaced_the_plan_meanwhile_has_won() -> None:
    world = make(4)

    def replace_it() -> None:
        produce(world, 3)
        (plans,) = world.ledger.plans.values()
        plans.append(plans[-1].model_copy(update={"expected_seconds": 9.0}))

    assert corrected(world, replace_it).stopped is Stop.FENCED
    assert [len(plans) for plans in world.ledger.plans.values()] == [3], "that of the rival, and of the next epoch"
