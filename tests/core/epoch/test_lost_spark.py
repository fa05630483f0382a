"""An epoch whose Spark is lost, while it stages or merges, is computed again as another attempt, a few times."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from backfill_assets.core.epoch.protocol import STAGE_TRIES
from backfill_assets.core.epoch.records import CommitRecord, Plan, Staged
from backfill_assets.errors import (
    BackfillError,
    ComputeError,
    EnvironmentSetupError,
    ExternalWriteError,
    FencedError,
    ReadMismatchError,
    SparkLostError,
    StagingError,
)
from backfill_assets.testing.simulated_table import SimulatedOutput, SimulatedTable, Timeout
from backfill_assets.testing.simulation import SimulatedSpark, World
from tests.support.commit_cases import VIEW, external_append, maintenance, make, one_epoch, rival_of_the_same_plan


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


class Merging(SimulatedOutput):
    """Commits by what Spark merges, and meets these errors before it does."""

    def __init__(self, table: SimulatedTable, *errors: Exception, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(table)
        self.errors = [*errors]
        self.meanwhile = meanwhile
        self.attempts: list[str] = []

    def commit(self, record: CommitRecord, staged: Staged) -> None:
        self.attempts.append(record.attempt)
        if self.errors:
            self.meanwhile()
            raise self.errors.pop(0)
        super().commit(record, staged)


LOST = SparkLostError("gone", hint="none")


@pytest.mark.parametrize("times", range(STAGE_TRIES + 1))
def test_spark_that_is_lost_in_a_commit_is_not_waited_for_by_trying_the_commit_again(times: int) -> None:
    world = make()
    output = Merging(world.table(VIEW), *[LOST] * times)
    parts = world.parts(VIEW, output=output)
    compute = Losing(SimulatedSpark(world), 0)
    world.create(VIEW, parts)
    output.attempts.clear()
    if times < STAGE_TRIES:
        one_epoch(world, replace(parts, compute=compute))
        assert world.table(VIEW).commits[-1].attempt == compute.attempts[-1]
        assert max(world.table(VIEW).rows.values()) == 1, "rows were doubled"
    else:
        with pytest.raises(SparkLostError):
            one_epoch(world, replace(parts, compute=compute))
        assert world.table(VIEW).commits[-1].epoch == 0
    assert output.attempts == compute.attempts, "each attempt tries to commit once"
    assert len({*compute.attempts}) == min(times + 1, STAGE_TRIES)


@pytest.mark.parametrize(
    ("between", "expected"), [(rival_of_the_same_plan, FencedError), (external_append, ExternalWriteError)]
)
def test_what_others_did_while_spark_was_lost_is_told_first(
    between: Callable[[World], None], expected: type[BackfillError]
) -> None:
    world = make()
    output = Merging(world.table(VIEW), LOST, meanwhile=lambda: between(world))
    with pytest.raises(expected):
        one_epoch(world, world.parts(VIEW, output=output))


def test_maintenance_while_spark_was_lost_hinders_nobody() -> None:
    world = make()
    output = Merging(world.table(VIEW), LOST, meanwhile=lambda: maintenance(world))
    one_epoch(world, world.parts(VIEW, output=output))
    assert (world.table(VIEW).rows.total(), len(output.attempts)) == (6, 2)


def test_a_commit_that_lands_late_counts_though_spark_was_lost_since() -> None:
    world = make()
    table = world.table(VIEW)

    class Late(Merging):
        late: Callable[[], None] | None = None

        def commit(self, record: CommitRecord, staged: Staged) -> None:
            if self.late is not None:
                self.late()
                raise LOST
            self.late = lambda on=self.loaded: table.commit(record, staged, on=on)
            raise Timeout

    one_epoch(world, world.parts(VIEW, output=Late(table)))
    assert (table.commits[-1].epoch, table.rows.total()) == (1, 6)


def test_a_server_that_is_not_there_after_a_commit_has_lost_it_is_told_as_lost() -> None:
    world = make()
    attempts: list[str] = []

    class Once:
        def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:
            attempts.append(attempt)
            if len(attempts) > 1:
                raise EnvironmentSetupError("nobody answers", hint="none")
            return SimulatedSpark(world).stage(plan, attempt, at=at)

    with pytest.raises(SparkLostError):
        one_epoch(world, replace(world.parts(VIEW, output=Merging(world.table(VIEW), LOST)), compute=Once()))
    assert len(attempts) == 2


@pytest.mark.parametrize("kind", [ComputeError, ReadMismatchError, StagingError, EnvironmentSetupError])
def test_what_is_no_outcome_of_a_commit_is_not_tried_again(kind: type[BackfillError]) -> None:
    world = make()
    output = Merging(world.table(VIEW), *[kind("no", hint="none")] * 2)
    with pytest.raises(kind, match="no"):
        one_epoch(world, world.parts(VIEW, output=output))
    assert len(output.errors) == 1
