"""What one table must not do to another, or a producer to a run."""

import pytest

from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.errors import UpstreamChangedError
from backfill_assets.testing.simulated_topic import SimulatedTopic
from backfill_assets.testing.simulation import Operator, World


def world(rows: int) -> tuple[World, SimulatedTopic]:
    topic = SimulatedTopic("orders")
    topic.append(0, "x" * rows)
    return World(topic), topic


def test_asking_for_the_lag_of_a_view_does_not_bring_a_dropped_source_back() -> None:
    w, _ = world(3)
    w.refresh("sources/orders")
    w.refresh("views/orders_view")
    w.drop("sources/orders")
    with pytest.raises(UpstreamChangedError, match="dropped"):
        w.decider("views/orders_view").lag(w.table("views/orders_view").commits[-1].position)
    assert not w.table("sources/orders").look().exists


def test_a_table_that_is_outpaced_ends_its_run_at_the_goal_of_its_start() -> None:
    w, topic = world(100)

    def be_busy(_epochs: int) -> None:
        topic.append(0, "x" * 20)
        w.clock.advance(1)

    report = w.refresh("sources/orders", Limits(chunk_rows=10, max_seconds=500), operator=Operator(after=be_busy))
    assert (report.stopped, report.offsets) == (Stop.CAUGHT_UP, 100)
    assert not report.record.live


def test_a_budget_below_the_number_of_sources_starves_none() -> None:
    a, b = SimulatedTopic("a"), SimulatedTopic("b")
    a.append(0, "x" * 5)
    b.append(0, "y" * 5)
    w = World(a, b)
    view = w.add_view("v", ("a", "b"))
    w.create(view)

    def be_busy(_epochs: int) -> None:
        a.append(0, "x")
        w.refresh("sources/a")

    report = w.refresh(view, Limits(chunk_rows=1, max_rows=20), operator=Operator(after=be_busy))
    assert w.decider(view).offsets(report.record.position)["b/0"] == 5


def test_what_one_source_leaves_of_the_budget_goes_to_the_other() -> None:
    a, b = SimulatedTopic("a"), SimulatedTopic("b")
    a.append(0, "x" * 100)
    b.append(0, "y" * 2)
    w = World(a, b)
    view = w.add_view("v", ("a", "b"))
    w.create(view)
    report = w.refresh(view, Limits(chunk_rows=50, max_rows=50))
    assert report.offsets == 50
