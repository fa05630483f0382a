"""A record that a view cannot compute: it is named and left out on request, and all other rows stay provably exact."""

from collections import Counter
from typing import Any

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.lifecycle import reset
from backfill_assets.app.skipping import Named, left_out, set_skips
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.cli.printing import status_text
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.defs.metadata import refresh_metadata
from backfill_assets.errors import DeclarationError, PoisonRowError
from tests.support.project import Project

pytestmark = pytest.mark.e2e

QUERY = "SELECT id, 60 DIV parts AS share FROM orders WHERE CAST(note AS INT) > 0"


def event(number: int, parts: int = 2, note: str = "1") -> dict[str, Any]:
    return {"id": number, "parts": parts, "note": note}


def declare(project: Project, query: str = QUERY) -> str:
    topic = project.topic(partitions=2)
    orders = kafka_source("orders", topic=topic, schema="id LONG, parts LONG, note STRING")
    project.declare(orders, materialized_view("shares", query=query, upstreams=[orders]))
    return topic


def skip(project: Project, partition: int, *offsets: int, undo: bool = False) -> dict[str, str]:
    named = Named(partition=partition, offsets=offsets)
    found = set_skips(project.workspace(), "shares", named, undo=undo, by="test")
    return {f"{row.place['partition']}/{row.place['offset']}": row.status for row in found}


def poison(project: Project, **limits: Any) -> PoisonRowError:
    with pytest.raises(PoisonRowError) as caught:
        project.refresh("shares", Limits(**limits))
    return caught.value


def places(error: PoisonRowError) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in error.facts["rows"]]


def assert_proved(project: Project, *named: str) -> None:
    for check in CHECKS:
        outcome = project.check("shares", check)
        assert outcome.passed, (check, outcome)
        assert all(each in outcome.summary for each in named), outcome.summary


def test_poison_records_are_named_left_out_and_shown_and_all_others_are_proved(project: Project) -> None:
    topic = declare(project)
    project.produce(topic, [event(0), event(1, parts=0), event(2), event(3, note="one"), event(4)], partition=0)
    project.produce(topic, [event(5), event(6)], partition=1)
    error = poison(project)
    assert places(error) == [(0, 1), (0, 3)]
    assert "source orders, partition 0, offset 1" in error.message
    assert "DIVIDE_BY_ZERO" in error.message
    assert "CAST_INVALID_INPUT" in error.facts["rows"][1]["reason"]
    assert "backfill skip shares --source orders --partition 0 --offset 3" in str(error)
    assert skip(project, 0, 1) == {"0/1": "waiting"}
    assert places(poison(project)) == [(0, 3)], "the plan is redone without it"
    assert skip(project, 0, 3) == {"0/1": "waiting", "0/3": "waiting"}
    done = project.refresh("shares")
    assert done.report.record.live
    assert project.rows("shares", "id", "share") == Counter((number, 30) for number in (0, 2, 4, 5, 6))
    assert_proved(project, "2 rows are left out on request", "partition 0, offset 1", "partition 0, offset 3")

    shown = refresh_metadata(done)
    assert (shown["rows_left_out"], "partition 0, offset 3" in shown["left_out"]) == (2, True)
    assert [row.status for row in status(project.workspace(), "shares").left_out] == ["left out"] * 2
    assert status_text([status(project.workspace(), "shares")], partitions=False)


def test_live_rows_can_be_left_out_too_but_not_after_they_were_read(project: Project) -> None:
    topic = declare(project)
    project.produce(topic, [event(0), event(1)], partition=0)
    project.refresh("shares")
    project.produce(topic, [event(2, parts=0), event(3)], partition=0)
    project.refresh("orders")
    assert places(poison(project)) == [(0, 2)]
    with pytest.raises(DeclarationError, match="has read source orders, partition 0, offset 0 already"):
        skip(project, 0, 0)
    with pytest.raises(DeclarationError, match="no partition 7; it has 0, 1"):
        skip(project, 7, 0)
    with pytest.raises(DeclarationError, match="does not leave out"):
        skip(project, 0, 2, undo=True)
    with pytest.raises(DeclarationError, match="ingests every record"):
        set_skips(project.workspace(), "orders", Named(partition=0, offsets=(2,)), undo=False, by="test")
    skip(project, 0, 2)
    project.refresh("shares")
    assert project.rows("shares", "id") == {(0,): 1, (1,): 1, (3,): 1}
    assert_proved(project, "1 row is left out on request: source orders, partition 0, offset 2")
    assert skip(project, 0, 2, undo=True) == {"0/2": "until reset"}
    assert_proved(project, "1 row is left out")
    reset(project.workspace(), "shares")
    assert left_out(project.workspace(), "shares") == []
    assert places(poison(project)) == [(0, 2)]


@pytest.mark.full
def test_an_aggregate_leaves_out_what_it_cannot_be_computed_of(project: Project) -> None:
    topic = declare(project, "SELECT note, sum(60 DIV parts) AS shares, count(*) AS n FROM orders GROUP BY note")
    project.produce(topic, [event(0), event(1, parts=0), event(2)], partition=0)
    assert places(poison(project)) == [(0, 1)]
    skip(project, 0, 1)
    project.refresh("shares")
    assert project.rows("shares", "note", "shares", "n") == {("1", 60, 2): 1}
    assert_proved(project, "partition 0, offset 1")
