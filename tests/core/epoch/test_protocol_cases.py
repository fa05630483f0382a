"""Every way in which a commit can end, one row of `commit_cases` each: what the run learns, and the state of the table."""

import contextlib
from collections.abc import Callable

import pytest

from backfill_assets.core.epoch.records import CommitKind
from backfill_assets.errors import ExternalWriteError
from backfill_assets.testing.simulated_table import Outcome, SimulatedOutput, UnreliableOutput
from backfill_assets.testing.simulation import World
from tests.support.commit_cases import CASES, SOURCE, VIEW, Case, make, one_epoch


def meddle(world: World, case: Case) -> Callable[[str], None]:
    left = case.times if case.between is not None else 0

    def on_step(step: str) -> None:
        nonlocal left
        if step == "verified" and left and case.between is not None:
            left -= 1
            case.between(world)

    return on_step


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "_"))
def test_every_commit_ends_as_its_case_says(case: Case) -> None:
    world = make()
    outcomes = iter(case.outcomes)
    output = UnreliableOutput(SimulatedOutput(world.table(VIEW)), lambda: next(outcomes, Outcome.WORKED))
    parts = world.parts(VIEW, on_step=meddle(world, case), output=output)
    if case.error is None:
        one_epoch(world, parts)
    else:
        with pytest.raises(case.error) as caught:
            one_epoch(world, parts)
        assert case.says in str(caught.value)
        assert caught.value.hint
    output.land_late()
    table = world.table(VIEW)
    assert table.rows.total() == case.rows
    assert max(table.rows.values(), default=1) == 1, "rows were doubled"
    record = table.commits[-1]
    assert record.epoch == case.epochs
    commits = [
        each for each in table.commits if each.kind is CommitKind.EPOCH and each.incarnation == record.incarnation
    ]
    assert [each.epoch for each in commits] == list(range(1, case.epochs + 1)), "one commit for each epoch"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "_"))
def test_the_next_run_makes_it_right_or_refuses_what_is_not_ours(case: Case) -> None:
    world = make()
    outcomes = iter(case.outcomes)
    output = UnreliableOutput(SimulatedOutput(world.table(VIEW)), lambda: next(outcomes, Outcome.WORKED))
    with contextlib.suppress(*([case.error] if case.error else [])):
        one_epoch(world, world.parts(VIEW, on_step=meddle(world, case), output=output))
    if case.error is ExternalWriteError:
        with pytest.raises(ExternalWriteError, match="changed data"):
            world.refresh(VIEW)
        world.reset(VIEW)
    world.refresh(VIEW)
    world.refresh(SOURCE)
    world.refresh(VIEW)
    assert world.table(VIEW).rows == world.expected(VIEW)
    assert world.table(VIEW).rows.total() >= 6
