"""The case table of `test_protocol_cases`: what can happen between a look and its commit, and the expected outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backfill_assets.core.epoch.commit import COMMIT_TRIES
from backfill_assets.core.epoch.lives import restate
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.protocol import check_look, run_epoch
from backfill_assets.errors import BackfillError, ExternalWriteError, FencedError, StagingError, UnsettledCommitError
from backfill_assets.testing.simulated_table import Outcome
from backfill_assets.testing.simulated_topic import Row, SimulatedTopic
from backfill_assets.testing.simulation import World

SOURCE, VIEW = "sources/orders", "views/orders_view"


def make() -> World:
    """A view whose first epoch is to read six records of history from Kafka; bronze is still empty."""
    topic = SimulatedTopic("orders")
    topic.append(0, "abcdef")
    world = World(topic)
    world.create(VIEW)
    return world


def rival_of_the_same_plan(world: World) -> None:
    one_epoch(world, world.parts(VIEW))


def rival_two_epochs_ahead(world: World) -> None:
    one_epoch(world, world.parts(VIEW))
    world.refresh(SOURCE)
    world.topics["orders"].append(0, "gh")
    world.refresh(SOURCE)
    one_epoch(world, world.parts(VIEW))


def rival_of_another_plan(world: World) -> None:
    world.refresh(SOURCE)
    world.topics["orders"].retain(0, 3)
    one_epoch(world, world.parts(VIEW))


def rival_that_only_replaced_the_plan(world: World) -> None:
    world.refresh(SOURCE)
    world.topics["orders"].retain(0, 3)
    parts = world.parts(VIEW)
    record = parts.output.look().record
    assert record is not None
    step = parts.decider.next(record.position, live=False, budget=9)
    life = (VIEW, record.incarnation)
    assert step is not None
    newer = world.ledger.plans[life][-1].model_copy(update={"reads": step.reads, "after": step.after})
    world.ledger.plans[life].append(newer)


def maintenance(world: World) -> None:
    world.table(VIEW).maintain()


def restated(world: World) -> None:
    parts = world.parts(VIEW)
    restate(parts, parts.output.look())


def external_append(world: World) -> None:
    world.table(VIEW).write_external([Row("orders", 0, 0, "a")])


def restored(world: World) -> None:
    world.table(VIEW).restore(0)


def maintained_then_written_by_hand(world: World) -> None:
    maintenance(world)
    external_append(world)
    maintenance(world)


def reset(world: World) -> None:
    world.reset(VIEW)


def dropped(world: World) -> None:
    world.drop(VIEW)


def dropped_and_made_again(world: World) -> None:
    world.drop(VIEW)
    world.create(VIEW)
    one_epoch(world, world.parts(VIEW))


def swept(world: World) -> None:
    world.table(VIEW).files.clear()


@dataclass(frozen=True)
class Case:
    what: str
    between: Callable[[World], None] | None = None
    times: int = 1
    outcomes: tuple[Outcome, ...] = ()
    error: type[BackfillError] | None = None
    says: str = ""
    rows: int = 6
    epochs: int = 1


CASES = [
    Case("it landed"),
    Case("it landed but was reported failed", outcomes=(Outcome.WORKED_BUT_RAISED,)),
    Case("it did nothing, was reported failed, and went through again", outcomes=(Outcome.DID_NOTHING_AND_RAISED,)),
    Case("it failed cleanly, and went through again", outcomes=(Outcome.FAILED_CLEANLY,) * (COMMIT_TRIES - 1)),
    Case("it was reported failed and landed only after we had looked", outcomes=(Outcome.LANDED_LATE,)),
    Case(
        "it never did anything: given up after a bounded number of tries",
        outcomes=(Outcome.DID_NOTHING_AND_RAISED,) * COMMIT_TRIES,
        error=UnsettledCommitError,
        says="no other writer has changed the table",
        rows=0,
        epochs=0,
    ),
    Case(
        "it was accepted and never done, as by a proxy that answers in the place of a store",
        outcomes=(Outcome.DID_NOTHING,) * COMMIT_TRIES,
        error=UnsettledCommitError,
        says="accepted without an error, but the table's log does not show it",
        rows=0,
        epochs=0,
    ),
    Case("a rival committed the same plan", rival_of_the_same_plan, error=FencedError, says="of the same plan"),
    Case(
        "a rival committed the same plan and our commit lands late",
        rival_of_the_same_plan,
        outcomes=(Outcome.LANDED_LATE,),
        error=FencedError,
        says="of the same plan",
    ),
    Case("a rival committed another plan", rival_of_another_plan, error=FencedError, says="fenced"),
    Case("a rival replaced the plan and has not committed: ours is as good", rival_that_only_replaced_the_plan),
    Case("a rival is two epochs ahead", rival_two_epochs_ahead, error=FencedError, says="epoch 2", rows=8, epochs=2),
    Case("maintenance came between once", maintenance),
    Case("maintenance came between up to the bound", maintenance, times=COMMIT_TRIES - 1),
    Case(
        "maintenance came between beyond the bound",
        maintenance,
        times=COMMIT_TRIES,
        error=UnsettledCommitError,
        says="keeps changing the table",
        rows=0,
        epochs=0,
    ),
    Case("the newest record was restated in between", restated),
    Case("somebody appended by hand", external_append, error=ExternalWriteError, says="version 2", rows=1, epochs=0),
    Case(
        "somebody restored the table",
        restored,
        error=ExternalWriteError,
        says="not written by an epoch",
        rows=0,
        epochs=0,
    ),
    Case(
        "somebody appended by hand between two maintenance commits",
        maintained_then_written_by_hand,
        error=ExternalWriteError,
        says="version 3",
        rows=1,
        epochs=0,
    ),
    Case("the table was reset in between", reset, error=FencedError, says="found", rows=0, epochs=0),
    Case("the table was dropped in between", dropped, error=FencedError, says="fenced", rows=0, epochs=0),
    Case("it was dropped, made again and filled in between", dropped_and_made_again, error=FencedError, says="fenced"),
    Case(
        "the staged files were gone when it was tried again",
        swept,
        1,
        (Outcome.FAILED_CLEANLY,),
        StagingError,
        "no file",
        0,
        0,
    ),
]


def one_epoch(world: World, parts: Parts[Any]) -> None:
    run_epoch(parts, check_look(parts, world.create(VIEW, parts)), budget=100)
