"""One topic whose log may lose its end, and its source, with helpers for short tests."""

import pytest

from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.progress.positions import IngestPosition
from backfill_assets.errors import LogTruncatedError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World

__all__ = ["SOURCE", "VIEW", "make", "newest", "position", "refused"]

SOURCE, VIEW = "sources/orders", "views/orders_view"


def make(*, partitions: int = 1, rows: str = "") -> tuple[World, SimulatedTopic]:
    topic = SimulatedTopic("orders", partitions=partitions)
    topic.append(0, rows)
    return World(topic), topic


def newest(world: World, target: str = SOURCE) -> CommitRecord:
    return world.table(target).commits[-1]


def position(world: World) -> IngestPosition:
    found = newest(world).position
    assert isinstance(found, IngestPosition)
    return found


def refused(world: World, target: str, ranges: dict[int, tuple[int, int]], *texts: str) -> None:
    """The refresh fails, names exactly these ranges with the choices, and writes nothing."""
    version = world.table(target).version
    with pytest.raises(LogTruncatedError) as caught:
        world.refresh(target)
    assert caught.value.facts["ranges"] == ranges
    for text in ("nothing was written", "backfill reset", *texts):
        assert text in str(caught.value)
    assert world.table(target).version == version
