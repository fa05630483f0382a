"""One topic `orders`, its source and a view over it, with helpers for short tests."""

from collections.abc import Iterable
from typing import Any

import pytest

from backfill_assets.core.epoch.ports import NextEpoch
from backfill_assets.core.epoch.records import Plan
from backfill_assets.core.progress.positions import PartitionState, ViewPosition
from backfill_assets.core.progress.reads import OffsetRead, Read
from backfill_assets.errors import BackfillError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import SourceSettings, World

SOURCE, VIEW = "sources/orders", "views/orders_view"


def make(*, bronze: str = "all", compacted: bool = False, rows: Iterable[str] = "") -> tuple[World, SimulatedTopic]:
    topic = SimulatedTopic("orders", compacted=compacted)
    topic.append(0, rows)
    return World(topic, settings=SourceSettings(keep_history=bronze == "all")), topic


def position(world: World) -> ViewPosition:
    found = world.table(VIEW).commits[-1].position
    assert isinstance(found, ViewPosition)
    return found


def partition(world: World, number: int = 0) -> PartitionState:
    return position(world).sources["orders"].partitions[number]


def step(world: World, *, budget: int = 100) -> NextEpoch[Any] | None:
    record = world.create(VIEW).record
    assert record is not None
    return world.decider(VIEW).next(record.position, live=record.live, budget=budget)


def offset_reads(found: Iterable[Read]) -> list[OffsetRead]:
    """These reads, which are all of a topic or of its bronze table."""
    every = list(found)
    of_offsets = [read for read in every if isinstance(read, OffsetRead)]
    assert of_offsets == every
    return of_offsets


def reads(found: NextEpoch[Any] | Plan | None) -> dict[str, tuple[int, int]]:
    """From where the only partition is read, by kind: exclusive ends."""
    assert found is not None
    return {read.kind: (read.ranges[0].start, read.ranges[0].end) for read in offset_reads(found.reads)}


def refused(world: World, error: type[BackfillError], *texts: str) -> None:
    held = world.table(VIEW).version
    with pytest.raises(error) as caught:
        world.refresh(VIEW)
    assert all(text in str(caught.value) for text in texts), str(caught.value)
    assert caught.value.hint
    assert world.table(VIEW).version == held


def right(world: World) -> bool:
    return world.table(VIEW).rows == world.expected(VIEW)
