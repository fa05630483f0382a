"""Rows that are left out: the plan of an epoch decides which, and this never changes for offsets that have been read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import NextEpoch, TableSize, planned
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.epoch.skips import (
    KeySkip,
    Offsets,
    OffsetSkip,
    left_out_words,
    offsets_left_out,
    offsets_of,
    read_skip,
    rows_left_out,
)
from backfill_assets.core.progress.positions import NamedKey, SnapshotPosition
from backfill_assets.core.progress.reads import SkipRead
from backfill_assets.core.strategies.table_skips import keys_left_out
from backfill_assets.errors import ComputeError
from backfill_assets.testing.crash_points import Crash
from backfill_assets.testing.simulation import POISON, World
from tests.support.orders_world import SOURCE, VIEW, make, position, right
from tests.support.tables_world import Follower, Lake, Table

OFFSETS = st.dictionaries(st.integers(0, 2), st.sets(st.integers(0, 9), min_size=1).map(lambda s: tuple(sorted(s))))


def skip(offset: int, partition: int = 0) -> OffsetSkip:
    return OffsetSkip(source="orders", partition=partition, offset=offset)


def refused(world: World) -> None:
    with pytest.raises(ComputeError):
        world.refresh(VIEW)


def left_out(world: World) -> Offsets:
    return position(world).sources["orders"].skipped


def stand(world: World) -> dict[int, str]:
    return {each.place["offset"]: each.status for each in rows_left_out(position(world), world.skips.get(VIEW, set()))}


@given(held=OFFSETS, wanted=OFFSETS, consumed=st.dictionaries(st.integers(0, 2), st.integers(0, 10)))
def test_what_was_read_keeps_its_list_and_all_else_follows_what_is_wanted(
    held: Offsets, wanted: Offsets, consumed: dict[int, int]
) -> None:
    after = offsets_left_out(held, wanted, consumed)
    for partition in range(3):
        for offset in range(10):
            meant = held if offset < consumed.get(partition, 0) else wanted
            assert (offset in after.get(partition, ())) == (offset in meant.get(partition, ()))
    assert all(after.values()), "partitions without any are not named"
    assert offsets_left_out(after, wanted, consumed) == after


def test_offsets_are_named_by_source_and_partition() -> None:
    wanted = [skip(3), skip(1), skip(3, partition=1), OffsetSkip(source="other", partition=0, offset=9)]
    assert offsets_of(wanted, "orders") == {0: (1, 3), 1: (3,)}
    assert offsets_of(wanted, "none") == {}


def test_a_poison_record_stops_a_view_until_it_is_left_out_and_all_others_are_there() -> None:
    world, topic = make(rows=["a", POISON, "b"])
    refused(world)
    refused(world)
    world.skips[VIEW] = {skip(1)}
    assert world.refresh(VIEW).record.live, "the plan that cannot be carried out was superseded"
    assert right(world)
    assert {row.offset for row in world.table(VIEW).rows} == {0, 2}
    assert left_out(world) == {0: (1,)}
    world.refresh(SOURCE)
    topic.append(0, "c")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    assert left_out(world) == {0: (1,)}, "a position goes on saying what it leaves out"
    assert right(world)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_around_a_skip_is_continued_with_the_list_of_its_plan(step: str) -> None:
    world, _ = make(rows=["a", POISON, "b", "c"])
    refused(world)
    world.skips[VIEW] = {skip(1)}

    def die(at: str) -> None:
        if at == step:
            raise Crash(step)

    with pytest.raises(Crash):
        world.refresh(VIEW, parts=world.parts(VIEW, on_step=die))
    assert world.refresh(VIEW).record.live
    assert right(world)
    assert (left_out(world), len(world.table(VIEW).rows)) == ({0: (1,)}, 3)


def test_leaving_out_what_was_read_is_too_late_and_changes_nothing() -> None:
    world, topic = make(rows=["a", "b", "c"])
    world.refresh(VIEW)
    world.skips[VIEW] = {skip(1), skip(3)}
    topic.append(0, "de")
    world.refresh(SOURCE)
    world.refresh(VIEW)
    assert left_out(world) == {0: (3,)}
    assert right(world)
    assert stand(world) == {1: "too late", 3: "left out"}


def test_what_was_left_out_stays_so_until_a_reset_takes_the_list_as_it_is_then() -> None:
    world, topic = make(rows=["a", "b", "c"])
    world.skips[VIEW] = {skip(1), skip(7)}
    world.refresh(VIEW)
    assert stand(world) == {1: "left out", 7: "waiting"}
    world.skips[VIEW] = set()
    topic.append(0, "d")
    world.refresh(SOURCE)
    assert world.refresh(VIEW).epochs
    assert stand(world) == {1: "until reset"}
    assert right(world)
    world.skips[VIEW] = {skip(0)}
    world.reset(VIEW)
    world.refresh(VIEW, Limits(chunk_rows=1))
    assert {row.offset for row in world.table(VIEW).rows} == {1, 2, 3}
    assert right(world)


def test_before_there_is_a_position_all_that_is_wanted_waits() -> None:
    assert [each.status for each in rows_left_out(None, [skip(2), skip(1)])] == ["waiting", "waiting"]


def test_a_skip_may_name_a_partition_that_is_added_later() -> None:
    world, topic = make(rows=["a"])
    world.refresh(SOURCE)
    world.refresh(VIEW)
    topic.append(topic.add_partition(), [POISON, "b"])
    world.refresh(SOURCE)
    refused(world)
    world.skips[VIEW] = {skip(0, partition=1)}
    world.refresh(VIEW)
    assert right(world)
    assert left_out(world) == {1: (0,)}


def key(number: int, table: str = "orders") -> KeySkip:
    return KeySkip(source=table, key=(("id", str(number)),))


def follower(*files: int, buckets: int = 4) -> Follower:
    return Follower(Lake({"orders": Table(files=files)}), buckets=buckets)


def listed(follower: Follower) -> tuple[NamedKey, ...]:
    return follower.position.tables["orders"].skipped


def skip_read(step: NextEpoch[Any] | None) -> SkipRead:
    assert step is not None
    (found,) = (read for read in step.reads if isinstance(read, SkipRead))
    return found


def test_a_list_that_a_life_begins_with_needs_no_read() -> None:
    world = follower(3, 3)
    world.skips = {key(2), key(1), key(7, table="others")}
    step = world.step()
    assert step is not None
    assert [read.kind for read in step.reads] == ["snapshot"]
    assert listed(world) == (key(1).key, key(2).key)


def test_keys_that_go_are_read_where_the_view_stands_and_those_that_come_back_where_the_epoch_ends() -> None:
    world = follower(3, 3)
    world.skips = {key(1)}
    world.finish()
    table = world.lake.tables["orders"]
    table.commit(2)
    world.skips = {key(2)}
    assert skip_read(world.step()) == SkipRead(
        source="orders", table_id="first", before=0, after=1, out=(key(2).key,), back=(key(1).key,)
    )
    assert listed(world) == (key(2).key,)
    world.skips = set()
    assert skip_read(world.step()).versions == [1], "a change of the list is work by itself"
    assert world.step() is None


def test_while_history_is_read_a_key_may_have_been_read_already() -> None:
    world = follower(3, 3, buckets=1)
    world.step(budget=3)
    world.skips = {key(1)}
    found = world.step(budget=3)
    assert (skip_read(found).out, skip_read(found).versions) == ((key(1).key,), [0])
    assert found is not None
    assert [read.kind for read in found.reads] == ["skips", "snapshot"]


def test_tables_that_are_read_in_full_are_read_without_the_keys_of_the_new_list() -> None:
    world = follower(3)
    world.finish()
    table = world.lake.tables["orders"]
    table.size = TableSize(rows=3, bytes=1)
    table.commit(3, deletes=True, size=2**22)
    world.skips = {key(1)}
    step = world.step()
    assert step is not None
    assert [read.kind for read in step.reads] == ["full"]
    plan = plan_of(step, world.position)
    assert keys_left_out(plan, "orders") == [key(1).key]


def test_everything_else_is_read_without_the_keys_of_either_list() -> None:
    world = follower(3)
    world.skips = {key(1)}
    world.finish()
    before = world.position
    world.skips = {key(2)}
    step = world.step()
    assert step is not None
    assert keys_left_out(plan_of(step, before), "orders") == [key(1).key, key(2).key]


def test_a_plan_of_another_list_is_superseded() -> None:
    world = follower(3)
    step = world.decider.next(world.position, live=False, budget=9)
    assert step is not None
    plan = plan_of(step, world.position)
    assert world.decider.readable(planned(plan, SnapshotPosition))
    world.skips = {key(1)}
    assert not world.decider.readable(planned(plan, SnapshotPosition))


def test_keys_stay_on_the_list_until_the_epoch_that_brings_them_back() -> None:
    world = follower(3)
    world.skips = {key(1)}
    world.finish()

    def stands(*wanted: KeySkip) -> list[tuple[str, str]]:
        return [(each.words, each.status) for each in rows_left_out(world.position, wanted)]

    assert stands(key(1), key(2)) == [
        ("table orders, key id = 1", "left out"),
        ("table orders, key id = 2", "waiting"),
    ]
    assert stands() == [("table orders, key id = 1", "coming back")]


def test_a_row_is_named_as_text_and_as_options_of_the_command() -> None:
    row = KeySkip(source="a", key=(("id", "it's 1"), ("day", None)))
    assert (row.words, row.options) == (
        "table a, key id = it's 1, day is null",
        """--source a --key 'id=it'"'"'s 1' --key day""",
    )
    assert read_skip(row.model_dump(mode="json")) == row
    assert read_skip(skip(3).model_dump(mode="json")) == skip(3)
    assert row.id != KeySkip(source="a", key=(("id", "it's 1"), ("day", "null"))).id
    many = rows_left_out(None, [skip(number) for number in range(9)])
    assert left_out_words(many) == "", "what only waits is not left out"


def plan_of(step: NextEpoch[Any], before: SnapshotPosition) -> Plan:
    return Plan(
        target="views/large",
        incarnation="1" * 12,
        epoch=1,
        fingerprint={},
        reads=step.reads,
        before=before,
        after=step.after,
        live=step.live,
    )
