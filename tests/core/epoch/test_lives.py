"""The lives of a table: reset, drop, creation after a drop, restating, and a ledger that disagrees with the table."""

from collections.abc import Callable

import pytest

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.lives import begin_life, end_life, restate, take_over
from backfill_assets.core.epoch.records import CommitKind, Staged, StagedFile, fingerprint
from backfill_assets.errors import (
    DefinitionChangedError,
    DroppedError,
    ExternalWriteError,
    FencedError,
    StateLostError,
)
from backfill_assets.testing.crash_points import CrashPoint
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World

SOURCE = "sources/orders"


@pytest.fixture
def world() -> World:
    """A source that has ingested four records in two epochs."""
    topic = SimulatedTopic("orders")
    topic.append(0, "abcd")
    made = World(topic)
    made.refresh(SOURCE, Limits(chunk_rows=2))
    return made


def right(world: World) -> bool:
    return world.table(SOURCE).rows == world.expected(SOURCE) and world.table(SOURCE).rows.total() > 0


def test_a_reset_removes_all_data_in_one_commit_and_the_next_run_reads_everything(world: World) -> None:
    before = world.table(SOURCE).version
    world.reset(SOURCE)
    assert (world.table(SOURCE).version, world.table(SOURCE).rows.total()) == (before + 1, 0)
    assert [each.epoch for each in world.refresh(SOURCE).epochs] == [1]
    assert right(world)


def test_every_life_has_an_incarnation_of_its_own_and_the_log_goes_on(world: World) -> None:
    world.reset(SOURCE)
    world.drop(SOURCE)
    world.refresh(SOURCE)
    creations = [each for each in world.table(SOURCE).commits if each.kind is CommitKind.CREATE]
    assert len({each.incarnation for each in creations}) == 3
    assert right(world)


def test_a_dropped_table_holds_nothing_and_says_so(world: World) -> None:
    world.drop(SOURCE)
    look = world.table(SOURCE).look()
    assert (look.exists, world.table(SOURCE).rows.total()) == (False, 0)
    assert look.record is not None
    assert (look.record.kind, look.record.live) == (CommitKind.DROP, False)


def test_one_of_two_concurrent_resets_is_fenced(world: World) -> None:
    parts = world.parts(SOURCE)
    look = parts.output.look()
    world.reset(SOURCE)
    with pytest.raises(FencedError):
        begin_life(parts, look, parts.decider.begin(), incarnation="late")
    assert "late" not in {each.incarnation for each in world.table(SOURCE).commits}


@pytest.mark.parametrize("dropped", [False, True])
def test_two_concurrent_creations_both_continue_with_the_life_that_won(dropped: bool) -> None:
    world = World(SimulatedTopic("orders"))
    if dropped:
        world.create(SOURCE)
        world.drop(SOURCE)

    def create() -> None:
        world.create(SOURCE)

    slow = world.parts(SOURCE, on_step=CrashPoint("verified", action=create))
    found = world.create(SOURCE, slow)
    assert found == world.create(SOURCE)
    assert [each.kind for each in world.table(SOURCE).commits][-2:].count(CommitKind.CREATE) == 1


def test_a_drop_does_not_end_a_life_that_began_since(world: World) -> None:
    parts = world.parts(SOURCE)
    look = parts.output.look()
    world.reset(SOURCE)
    with pytest.raises(FencedError):
        end_life(parts, look)
    assert world.table(SOURCE).look().exists


@pytest.mark.parametrize("change", [begin_life, end_life], ids=["reset", "drop"])
def test_reset_and_drop_ignore_epochs_and_external_writes_in_between(
    world: World, change: Callable[..., object]
) -> None:
    parts = world.parts(SOURCE)
    look = parts.output.look()
    world.topics["orders"].append(0, "ef")
    world.refresh(SOURCE)
    world.table(SOURCE).write_external([])
    if change is begin_life:
        begin_life(parts, look, parts.decider.begin(), incarnation="fresh")
    else:
        end_life(parts, look)
    world.refresh(SOURCE)
    assert right(world)


def test_restating_repeats_the_newest_record_and_changes_nothing(world: World) -> None:
    parts = world.parts(SOURCE)
    before = world.table(SOURCE).commits[-1]
    after = restate(parts, parts.output.look())
    assert after.model_copy(update={"kind": before.kind, "attempt": before.attempt}) == before
    world.topics["orders"].append(0, "ef")
    world.refresh(SOURCE)
    assert right(world)


def test_restating_yields_to_an_epoch_that_was_committed_in_between(world: World) -> None:
    parts = world.parts(SOURCE)
    look = parts.output.look()
    world.topics["orders"].append(0, "ef")
    world.refresh(SOURCE)
    with pytest.raises(FencedError):
        restate(parts, look)
    assert world.table(SOURCE).commits[-1].epoch == 3


def test_restating_never_hides_an_external_write_nor_revives_a_dropped_table(world: World) -> None:
    parts = world.parts(SOURCE)
    world.table(SOURCE).write_external([])
    with pytest.raises(ExternalWriteError):
        restate(parts, parts.output.look())
    world.drop(SOURCE)
    with pytest.raises(DroppedError):
        restate(parts, parts.output.look())
    assert not world.table(SOURCE).look().exists


def test_a_foreign_table_in_its_place_is_not_taken_over() -> None:
    world = World(SimulatedTopic("orders"))
    world.table(SOURCE).empty()
    world.table(SOURCE).write_external([])
    with pytest.raises(ExternalWriteError, match="already"):
        world.refresh(SOURCE)


def test_a_lost_ledger_is_an_error_that_names_both_sides(world: World) -> None:
    world.ledger.lose()
    with pytest.raises(StateLostError, match=r"at epoch 2, but the ledger knows none") as caught:
        world.refresh(SOURCE)
    assert "backfill rebuild" in caught.value.hint
    world.table(SOURCE).restore_backup(world.table(SOURCE).version - 1)
    with pytest.raises(StateLostError, match="at epoch 1, but the ledger knows none"):
        world.refresh(SOURCE)


def test_a_ledger_from_an_older_backup_is_an_error(world: World) -> None:
    next(iter(world.ledger.plans.values())).pop()
    with pytest.raises(StateLostError, match=r"at epoch 2, but the ledger knows 1"):
        world.refresh(SOURCE)


def test_a_table_restored_by_one_epoch_redoes_that_epoch_as_it_was_planned(world: World) -> None:
    world.table(SOURCE).restore_backup(world.table(SOURCE).version - 1)
    assert [each.epoch for each in world.refresh(SOURCE).epochs] == [2]
    assert right(world)


def test_a_table_restored_by_more_than_one_epoch_is_an_error(world: World) -> None:
    world.table(SOURCE).restore_backup(world.table(SOURCE).version - 2)
    with pytest.raises(
        ExternalWriteError, match=r"ledger planned epoch 2, but the table is only at epoch 0: it was restored"
    ):
        world.refresh(SOURCE)


def test_a_changed_declaration_is_refused_and_names_the_parts_that_changed(world: World) -> None:
    world.fingerprint = fingerprint(query="SELECT 1", schema="value STRING", key="value")
    with pytest.raises(DefinitionChangedError, match=r"key, query changed since") as caught:
        world.refresh(SOURCE)
    assert caught.value.facts["changed"] == ["key", "query"]
    world.reset(SOURCE)
    world.refresh(SOURCE)
    assert right(world)


def test_the_slower_of_two_runs_that_plan_at_the_same_time_is_fenced(world: World) -> None:
    world.topics["orders"].append(0, "ef")
    slow = world.parts(SOURCE)
    newest = slow.ledger.newest

    def overtaken(target: str, incarnation: str, *, since: int = 0) -> int | None:
        found = newest(target, incarnation, since=since)
        world.refresh(SOURCE)
        return found

    slow.ledger.newest = overtaken  # type: ignore[method-assign]
    report = world.refresh(SOURCE, parts=slow)
    assert (report.stopped.value, report.epochs) == ("fenced", [])
    assert "planned by another run" in report.detail
    assert right(world)


def test_a_life_that_takes_over_has_the_rows_and_the_position_of_another_table(world: World) -> None:
    beside = World(world.topics["orders"])
    beside.topics["orders"].append(0, "gh")
    made = beside.refresh(SOURCE).record
    taken = take_over(world.parts(SOURCE), world.table(SOURCE).look(), made, copied(beside, world), incarnation="taken")
    assert (taken.kind, taken.epoch, taken.live, taken.rows_total) == (CommitKind.CREATE, 0, True, 6)
    assert (taken.position, taken.fingerprint) == (made.position, made.fingerprint)
    assert right(world)
    world.topics["orders"].append(0, "ij")
    assert [each.epoch for each in world.refresh(SOURCE).epochs] == [1]
    assert right(world)


def test_a_table_that_has_gone_on_is_not_taken_over(world: World) -> None:
    beside = World(world.topics["orders"])
    made, look, parts = beside.refresh(SOURCE).record, world.table(SOURCE).look(), world.parts(SOURCE)
    parts.output.look()
    world.topics["orders"].append(0, "ef")
    world.refresh(SOURCE)
    with pytest.raises(FencedError, match="has continued"):
        take_over(parts, look, made, copied(beside, world), incarnation="taken")
    assert world.table(SOURCE).commits[-1].epoch == 3
    assert right(world)


def copied(giver: World, taker: World) -> Staged:
    """The rows of a table as a file beside another one's log."""
    rows = giver.table(SOURCE).versions[-1].rows
    taker.table(SOURCE).files["copy"] = rows
    file = StagedFile(path="copy", size=1, rows=len(rows), modified_ms=0, stats="", columns=())
    return Staged(files=(file,), rows_written=len(rows), replaces=True)
