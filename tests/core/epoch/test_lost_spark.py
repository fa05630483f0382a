"""An epoch whose Spark is lost is computed again as another attempt, a few times."""

from dataclasses import dataclass, field, replace

import pytest

from backfill_assets.core.epoch.protocol import STAGE_TRIES
from backfill_assets.core.epoch.records import Plan, Staged
from backfill_assets.errors import ComputeError, EnvironmentSetupError, SparkLostError
from backfill_assets.testing.simulation import SimulatedSpark
from tests.support.commit_cases import VIEW, make, one_epoch


@dataclass
class Losing:
    """Computes an epoch, and is lost after that for the first `times`."""

    compute: SimulatedSpark
    times: int
    attempts: list[str] = field(default_factory=list)

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
        self.attempts.append(attempt)
        staged = self.compute.stage(plan, attempt, at=at)
        if len(self.attempts) <= self.times:
            raise SparkLostError("gone", hint="none")
        return staged


@pytest.mark.parametrize("times", range(STAGE_TRIES + 1))
def test_an_epoch_is_committed_once_however_often_spark_was_lost_or_not_at_all(times: int) -> None:
    world = make()
    parts = world.parts(VIEW)
    compute = Losing(SimulatedSpark(world), times)
    before = world.table(VIEW).rows.total()
    if times < STAGE_TRIES:
        one_epoch(world, replace(parts, compute=compute))
        assert world.table(VIEW).rows.total() > before
        assert max(world.table(VIEW).rows.values()) == 1, "rows were doubled"
        assert world.table(VIEW).commits[-1].attempt == compute.attempts[-1]
    else:
        with pytest.raises(SparkLostError):
            one_epoch(world, replace(parts, compute=compute))
        assert world.table(VIEW).rows.total() == before
    assert len(compute.attempts) == len(set(compute.attempts)) == min(times + 1, STAGE_TRIES)


def test_a_run_says_that_spark_was_lost_where_there_is_no_other() -> None:
    world = make()
    errors = [SparkLostError("gone", hint="none"), EnvironmentSetupError("nobody answers", hint="none")]

    class Dead:
        def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
            raise errors.pop(0)

    with pytest.raises(SparkLostError):
        one_epoch(world, replace(world.parts(VIEW), compute=Dead()))
    assert not errors
    errors.append(EnvironmentSetupError("nobody answers", hint="none"))
    with pytest.raises(EnvironmentSetupError):
        one_epoch(world, replace(world.parts(VIEW), compute=Dead()))


def test_other_errors_of_spark_are_not_tried_again() -> None:
    world = make()
    parts = world.parts(VIEW)
    attempts: list[str] = []

    class Failing:
        def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (ports.Compute)
            attempts.append(attempt)
            raise ComputeError("no", hint="none")

    with pytest.raises(ComputeError, match="no"):
        one_epoch(world, replace(parts, compute=Failing()))
    assert len(attempts) == 1
