"""The shortest complete path: a topic, a source, a view, and checks that prove both."""

from collections import Counter

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.limits import Limits, Stop
from tests.support.project import Project

pytestmark = pytest.mark.e2e


def test_a_refresh_with_nothing_new_writes_nothing_and_starts_no_spark(project: Project) -> None:
    topic = project.topic()
    project.produce(topic, [{"id": 1}])
    project.declare(kafka_source("orders", topic=topic, schema="id LONG"))
    project.refresh("orders")
    workspace = project.workspace()
    before = workspace.table(project.declared["orders"]).output.look().version
    from backfill_assets.app.refresh import refresh

    done = refresh(workspace, "orders", Limits(), run_id="idle")
    assert done.report.epochs == []
    assert not workspace.runner.started
    assert workspace.table(project.declared["orders"]).output.look().version == before


def test_history_and_new_events_reach_the_view_each_once(project: Project) -> None:
    topic = project.topic(partitions=3)
    events = [{"id": number, "amount": number / 4} for number in range(600)]
    project.produce(topic, [*events[:400], b"not json"])
    orders = kafka_source("orders", topic=topic, schema="id LONG, amount DOUBLE")
    large = materialized_view(
        "large", query="SELECT id, amount * 2 AS twice FROM orders WHERE amount >= 25", upstreams=[orders]
    )
    project.declare(orders, large)

    backfill = project.refresh("large", Limits(chunk_rows=150))
    assert backfill.report.stopped is Stop.CAUGHT_UP
    assert len(backfill.report.epochs) == 3
    project.refresh("orders")
    project.produce(topic, events[400:])
    project.refresh("orders")
    project.refresh("large")

    expected = Counter((each["id"], each["amount"] * 2) for each in events if each["amount"] >= 25)
    assert project.rows("large", "id", "twice") == expected
    assert project.rows("orders", "id") == Counter([*((each["id"],) for each in events), (None,)])
    for name in ("orders", "large"):
        for check in CHECKS:
            outcome = project.check(name, check)
            assert outcome.passed, (name, check, outcome)
