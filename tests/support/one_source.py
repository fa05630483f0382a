"""A simulated source that is created over a topic with some records."""

from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World

__all__ = ["SOURCE", "make", "produce", "right"]

SOURCE = "sources/orders"


def make(rows: int) -> World:
    """A world in which the source has read none of so many records."""
    world = World(SimulatedTopic("orders"))
    produce(world, rows)
    world.create(SOURCE)
    return world


def produce(world: World, rows: int) -> None:
    """Send so many records more."""
    world.topics["orders"].append(0, "x" * rows)


def right(world: World) -> bool:
    """Whether the source has just the records that were sent."""
    return world.table(SOURCE).rows == world.expected(SOURCE)
