"""What Kafka really does: transactions, retention, topics that grow, and topics that are deleted and created again."""

from collections import Counter

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.core.epoch.limits import Limits, Stop
from backfill_assets.declare.model import KafkaSource, MaterializedView
from backfill_assets.errors import BackfillError, ComputeError, OffsetsLostError, TopicRecreatedError
from tests.support.broker import abort, add_partitions, commit, delete_before, end_of, recreate, transaction, wait_until
from tests.support.damage import first, rewrite
from tests.support.project import Project

pytestmark = pytest.mark.e2e

ALL = "SELECT id FROM orders"


def ids(*numbers: int) -> Counter[tuple[int]]:
    return Counter((number,) for number in numbers)


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def declare(project: Project, topic: str) -> tuple[KafkaSource, MaterializedView]:
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    view = materialized_view("copy", query=ALL, upstreams=[orders])
    project.declare(orders, view)
    return orders, view


def version(project: Project, name: str) -> int:
    return project.workspace().table(project.declared[name]).output.look().version


def refused(project: Project, name: str, error: type[BackfillError]) -> BackfillError:
    """A refresh that fails with this error and a hint, and writes nothing."""
    before = version(project, name)
    with pytest.raises(error) as caught:
        project.refresh(name)
    assert caught.value.hint
    assert version(project, name) == before
    return caught.value


@pytest.mark.full
def test_only_committed_records_count_and_a_marker_at_the_end_hangs_nothing(project: Project) -> None:
    topic = project.topic(partitions=1)
    commit(project, topic, *rows(1, 2, 3))
    abort(project, topic, *rows(-1, -2))
    declare(project, topic)
    anything = kafka_source("anything", topic=topic, schema="id LONG", isolation="read_uncommitted")
    project.declare(anything)
    # Three records, two aborted ones, two markers; the broker writes the last one after it has answered the producer.
    wait_until(lambda: end_of(project, topic) == 7)

    with transaction(project, topic, *rows(4)):
        project.refresh("anything")
        assert project.rows("anything", "id") == ids(1, 2, 3, -1, -2, 4)
        backfill = project.refresh("copy")
        ingest = project.refresh("orders")
        assert project.refresh("copy").progress.lag_rows == 0
        assert (backfill.report.stopped, backfill.first_live) == (Stop.CAUGHT_UP, True)
        assert ingest.progress.lag_rows == 0
        assert project.rows("copy", "id") == project.rows("orders", "id") == ids(1, 2, 3)
    project.refresh("orders")
    project.refresh("copy")
    assert project.rows("copy", "id") == project.rows("orders", "id") == ids(1, 2, 3, 4)
    for name in ("orders", "copy", "anything"):
        for check in ("exactly_once", "rows_conserved"):
            assert project.check(name, check).passed, (name, check)


@pytest.mark.full
def test_a_topic_of_nothing_but_aborted_records_gives_empty_tables_that_are_live(project: Project) -> None:
    topic = project.topic(partitions=1)
    declare(project, topic)
    assert project.refresh("copy").first_live
    abort(project, topic, *rows(-1, -2))
    assert project.refresh("orders").progress.lag_rows == 0
    assert project.refresh("copy").progress.lag_rows == 0
    assert project.rows("copy", "id") == project.rows("orders", "id") == ids()
    assert project.check("copy").passed
    commit(project, topic, *rows(1))
    project.refresh("orders")
    project.refresh("copy")
    assert project.rows("copy", "id") == ids(1)


def test_what_retention_took_is_read_from_bronze_or_named_but_never_skipped(project: Project) -> None:
    topic = project.topic(partitions=1)
    declare(project, topic)
    late = kafka_source("late", topic=topic, schema="id LONG", bronze="new")
    project.declare(late, materialized_view("late_copy", query="SELECT id FROM late", upstreams=[late]))
    project.produce(topic, rows(*range(10)))
    project.refresh("orders")
    project.refresh("late")
    delete_before(project, topic, 8)

    project.refresh("copy")
    assert project.rows("copy", "id") == ids(*range(10))
    proof = project.check("copy")
    assert (proof.passed, proof.facts["derived_from"]) == (True, "bronze and kafka")
    proof = project.check("orders")
    assert (proof.passed, proof.facts["not_provable"]) == (True, {"orders/0": "0 to 8"})
    assert proof.facts["proved_share"] == 0.2
    assert "0 to 8" in proof.summary

    with pytest.raises(OffsetsLostError, match=r"offset 0.* earliest offset that Kafka still has is 8") as caught:
        project.refresh("late_copy")
    assert "reset late" in caught.value.hint
    assert project.rows("late_copy") == Counter()

    project.produce(topic, rows(*range(10, 15)))
    delete_before(project, topic, 12)
    lost = refused(project, "orders", OffsetsLostError)
    assert (lost.facts["expected"], lost.facts["earliest"], lost.facts["partition"]) == (10, 12, 0)
    assert "reset orders" in lost.hint
    assert project.refresh("copy").report.epochs == []
    assert project.rows("orders", "id") == project.rows("copy", "id") == ids(*range(10))
    rewrite(project, "copy", first(lambda _row: {"id": -1}))
    proof = project.check("copy")
    assert (proof.passed, proof.facts["derived_from"], proof.facts["missing"]) == (False, "bronze", 1)


def test_records_that_are_lost_between_plan_and_reading_fail_the_epoch(project: Project) -> None:
    topic = project.topic(partitions=1)
    declare(project, topic)
    project.produce(topic, rows(*range(10)))

    def lose(step: str) -> None:
        if step == "planned":
            delete_before(project, topic, 5)

    with pytest.raises(ComputeError):
        project.refresh("orders", on_step=lose)
    assert project.rows("orders") == Counter()
    with pytest.raises(OffsetsLostError, match=r"offset 0.* still has is 5"):
        project.refresh("orders")


def test_partitions_that_join_are_read_from_their_first_record_while_backfilling_and_while_live(
    project: Project,
) -> None:
    topic = project.topic(partitions=1)
    declare(project, topic)
    project.produce(topic, rows(*range(6)))
    assert project.refresh("copy", Limits(max_rows=3)).report.stopped is Stop.MAX_ROWS
    add_partitions(project, topic, 2)
    project.produce(topic, rows(10, 11), partition=1)
    project.refresh("orders")
    project.refresh("copy")
    assert project.rows("copy", "id") == ids(*range(6), 10, 11)
    assert project.record("copy").live

    add_partitions(project, topic, 3)
    project.produce(topic, rows(20, 21), partition=2)
    project.refresh("orders")
    project.refresh("copy")
    assert project.rows("copy", "id") == project.rows("orders", "id") == ids(*range(6), 10, 11, 20, 21)
    for name in ("orders", "copy"):
        for check in ("positions_contiguous", "exactly_once"):
            assert project.check(name, check).passed, (name, check)


def test_a_topic_that_was_recreated_is_never_taken_for_the_old_one(project: Project) -> None:
    topic = project.topic(partitions=1)
    orders, _ = declare(project, topic)
    project.declare(materialized_view("done", query=ALL, upstreams=[orders]))
    project.produce(topic, rows(*range(6)))
    project.refresh("orders")
    project.refresh("done")
    project.refresh("copy", Limits(max_rows=3))
    before = project.rows("copy", "id")
    recreate(project, topic)
    project.produce(topic, rows(*range(100, 110)))

    for name in ("orders", "copy"):
        error = refused(project, name, TopicRecreatedError)
        assert error.facts["expected"] != error.facts["found"]
        assert "reset orders" in error.hint
    assert project.refresh("done").report.epochs == []
    assert project.rows("copy", "id") == before
    assert project.rows("done", "id") == project.rows("orders", "id") == ids(*range(6))

    proof = project.check("orders")
    assert (proof.passed, proof.unproved, proof.facts["not_provable"]) == (False, True, {"orders/0": "0 to 6"})
    assert "cannot be proved" in proof.summary
    assert proof.facts["proved_share"] == 0
    proof = project.check("done")
    assert (proof.passed, proof.facts["derived_from"]) == (True, "bronze")
