"""The order in which histories are read: an upstream that waits is not read, and an impossible order is refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.progress.order import order_of, waits_for
from backfill_assets.core.progress.positions import ViewPosition
from backfill_assets.core.strategies.source import SourceDecider
from backfill_assets.errors import DeclarationError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import World

names = st.sampled_from("abcdef")
orders = st.dictionaries(names, st.lists(names, max_size=3))


@given(orders)
def test_everything_is_read_once_all_before_it_is_and_only_a_circle_is_refused(after: dict[str, list[str]]) -> None:
    try:
        possible = list(TopologicalSorter(after).static_order())
    except CycleError:
        with pytest.raises(ValueError, match=" after "):
            order_of(after)
        return
    order, unfinished = order_of(after), set(possible)
    while unfinished:
        ready = {name for name in unfinished if not waits_for(order, name, unfinished)}
        assert ready, "something can always be read"
        for name in ready:
            assert not unfinished & set(after.get(name, [])), "what comes before it has been read"
        unfinished -= ready


def test_a_sequence_is_read_from_first_to_last_also_past_one_that_is_done_already() -> None:
    order = order_of(["a", "b", "c"])
    assert waits_for(order, "c", {"a", "c"}) == ["a"], "though b, directly before it, is done"
    assert waits_for(order, "c", {"c"}) == []
    assert waits_for(order, "other", {"a", "b", "c"}) == []


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (["orders", "oders"], "'oders' is none of its upstreams, which are customers, orders"),
        ({"orders": "costumers"}, "'costumers'"),
        ({"nobody": ["orders"]}, "'nobody'"),
        (["orders", "customers", "orders"], "has a cycle: orders after orders"),
        ({"orders": "orders"}, "orders after orders"),
        ({"orders": ["customers"], "customers": "orders"}, "has a cycle"),
        ("orders", "it is 'orders'"),
        (3, "it is 3"),
    ],
)
def test_an_impossible_order_is_refused_with_the_names(order: object, found: str) -> None:
    tables = [delta_table(name, path=name) for name in ("orders", "customers")]
    with pytest.raises(DeclarationError, match="backfill_order") as caught:
        materialized_view(
            "all_ids",
            query="SELECT id FROM orders UNION ALL SELECT id FROM customers",
            upstreams=tables,
            backfill_order=order,  # type: ignore[arg-type]
        )
    assert found in str(caught.value)


def test_what_comes_after_a_name_comes_after_all_that_it_waits_for() -> None:
    after = order_of({"facts": "dimensions", "dimensions": "units"})
    assert after == {"facts": {"dimensions", "units"}, "dimensions": {"units"}}


def ordered(world: World, after: Mapping[str, Sequence[str]]) -> Parts[Any]:
    """A new process that works on the view, with an order."""
    parts = world.parts("views/both")
    assert isinstance(parts.decider, SourceDecider)
    return replace(parts, decider=replace(parts.decider, order=order_of(after)))


def test_a_source_that_waits_is_not_read_before_or_after_a_restart_and_nothing_is_lost() -> None:
    small, large = SimulatedTopic("small"), SimulatedTopic("large")
    world = World(small, large)
    view = world.add_view("both", ("large", "small"))
    small.append(0, "s" * 5)
    large.append(0, "l" * 7)
    for source in ("sources/small", "sources/large"):
        world.refresh(source)

    def read() -> Counter[str]:
        position = world.table(view).commits[-1].position
        assert isinstance(position, ViewPosition)
        return Counter({name: each.partitions[0].next for name, each in position.sources.items()})

    after = {"large": ["small"]}
    world.refresh(view, Limits(chunk_rows=2, max_rows=4), parts=ordered(world, after))
    assert read() == Counter(small=4, large=0)
    small.append(0, "s" * 3)
    large.append(0, "l" * 3)
    for source in ("sources/small", "sources/large"):
        world.refresh(source)
    world.refresh(view, Limits(chunk_rows=2, max_rows=2), parts=ordered(world, after))
    assert read()["large"] == 0, "still its turn to wait, in a new process"
    assert world.refresh(view, parts=ordered(world, after)).record.live
    assert read() == Counter(small=8, large=10)
    assert world.table(view).rows == world.expected(view)


def test_views_over_sources_take_an_order_too() -> None:
    sources = [kafka_source(name, topic=name, schema="id LONG") for name in ("facts", "dims")]
    view = materialized_view(
        "all_ids",
        query="SELECT id FROM facts UNION ALL SELECT id FROM dims",
        upstreams=sources,
        backfill_order=["dims", "facts"],
    )
    assert view.backfill_order == {"facts": frozenset({"dims"})}
