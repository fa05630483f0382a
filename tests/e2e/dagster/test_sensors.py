"""The sensors: what they request, why they request nothing, and what they leave alone. A tick never starts Spark."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.adapters.runtime.processes import process_of
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.adapters.spark import resource
from backfill_assets.adapters.state.state_store import State
from backfill_assets.defs import sensors
from backfill_assets.defs.sensors import TABLE_TAG, TRANSITION_TAG
from tests.support.broker import delete_topic
from tests.support.dagster_project import DagsterProject
from tests.support.project import Project

pytestmark = pytest.mark.e2e


@pytest.fixture
def shop(project: Project) -> Iterator[DagsterProject]:
    """A source, a view that is live, and one that is not created yet; 20 records are in the first two."""
    topic = project.topic()
    project.produce(topic, [{"id": number} for number in range(20)])
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    live = materialized_view("live", query="SELECT id FROM orders", upstreams=[orders])
    late = materialized_view("late", query="SELECT id FROM orders WHERE id > 3", upstreams=[orders])
    project.declare(orders, live, late)
    project.refresh("orders")
    project.refresh("live")
    with dg.DagsterInstance.ephemeral() as instance:
        yield DagsterProject(project, instance)


@pytest.fixture(autouse=True)
def no_spark_in_ticks(monkeypatch: pytest.MonkeyPatch, shop: DagsterProject) -> None:
    del shop  # first, because its tables are created with Spark

    def refuse(*_: object) -> None:
        raise AssertionError("a tick started Spark")

    monkeypatch.setattr(resource.SparkRunner, "run", refuse)


def tick(
    shop: DagsterProject, name: str = "new_kafka_data", cursor: str | None = None, **given: Any
) -> SensorExecutionData:
    """One evaluation of a sensor, as the daemon makes it."""
    definitions = shop.definitions(**given)
    repository = definitions.get_repository_def()
    resources = dict(definitions.resources or {})
    with dg.build_sensor_context(
        instance=shop.instance, repository_def=repository, resources=resources, cursor=cursor
    ) as context:
        return repository.get_sensor_def(name).evaluate_tick(context)


def asked(result: SensorExecutionData) -> list[list[str]]:
    """The tables of each requested run."""
    return [[key.path[-1] for key in each.asset_selection or ()] for each in result.run_requests or ()]


def reason(result: SensorExecutionData) -> str:
    """Why nothing was requested."""
    assert not result.run_requests
    return str(result.skip_message)


def key(result: SensorExecutionData) -> str | None:
    """The key of the only requested run."""
    (request,) = result.run_requests or ()
    return request.run_key


def more(shop: DagsterProject) -> None:
    """New records for the source."""
    shop.project.produce(shop.project.declared["orders"].topic, [{"id": 1}, {"id": 2}])  # type: ignore[union-attr]


def state(shop: DagsterProject) -> State:
    return shop.project.workspace().state


def ended(shop: DagsterProject, tags: dict[str, str], status: dg.DagsterRunStatus) -> dg.DagsterRun:
    """A run with these tags in the instance, with a status."""
    job = shop.definitions().resolve_job_def("backfill_tables")
    run = shop.instance.create_run_for_job(job, tags=tags, status=dg.DagsterRunStatus.NOT_STARTED)
    event = {
        dg.DagsterRunStatus.FAILURE: dg.DagsterEventType.PIPELINE_FAILURE,
        dg.DagsterRunStatus.STARTED: dg.DagsterEventType.PIPELINE_START,
    }[status]
    shop.instance.report_dagster_event(dg.DagsterEvent(event_type_value=event.value, job_name=job.name), run.run_id)
    return run


def test_a_source_with_new_records_is_refreshed_with_its_live_views(shop: DagsterProject) -> None:
    assert reason(tick(shop)) == "orders: up to date; live: up to date; late: not created yet; materialize it once"
    more(shop)
    result = tick(shop)
    assert asked(result) == [["orders", "live"]]
    (request,) = result.run_requests or ()
    assert request.tags[TRANSITION_TAG].startswith("sources/orders@")
    assert {name for name in request.tags if name.startswith(TABLE_TAG)} == {f"{TABLE_TAG}/orders", f"{TABLE_TAG}/live"}
    (again,) = tick(shop).run_requests or ()
    assert again.run_key == request.run_key, "asking twice for one thing starts one run"


def test_a_tick_without_time_for_all_tables_leaves_the_rest_to_the_next_one(
    shop: DagsterProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "TICK_SECONDS", -1.0)
    first = tick(shop)
    assert (reason(first), first.cursor) == (
        "orders: up to date; live and what comes after it are for the next tick",
        "live",
    )
    second = tick(shop, cursor=first.cursor)
    assert reason(second).startswith("live: up to date; late and")
    more(shop)
    third = tick(shop, cursor=second.cursor)
    assert reason(third).startswith("late: not created yet")
    fourth = tick(shop, cursor=third.cursor)
    assert (asked(fourth), fourth.cursor) == ([["orders", "live"]], "live")
    monkeypatch.setattr(sensors, "TICK_SECONDS", 60.0)
    assert tick(shop, cursor="a table that is gone").cursor == "orders"


def test_a_view_that_is_still_backfilling_gets_a_run_of_its_own(
    shop: DagsterProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert shop.refresh("late", max_rows=5).success
    assert asked(tick(shop)) == [["late"]]
    more(shop)
    assert asked(tick(shop)) == [["orders", "live"], ["late"]]


def test_what_is_paused_or_throttled_to_nothing_is_left_alone(shop: DagsterProject) -> None:
    more(shop)
    assert shop.control("pause", "orders").success
    assert "orders: paused; live: up to date" in reason(tick(shop))
    assert shop.control("resume", "orders").success
    assert shop.control("throttle", "live", rows_per_second=0).success
    assert asked(tick(shop)) == [["orders"]]


def test_a_table_that_a_run_is_working_on_is_left_alone(shop: DagsterProject) -> None:
    more(shop)
    state(shop).put_lease("sources/orders", "another-run")
    assert "orders: run another-run is working on it" in reason(tick(shop))
    state(shop).free_lease("sources/orders")
    ended(shop, {f"{TABLE_TAG}/orders": "true"}, dg.DagsterRunStatus.STARTED)
    assert "orders: a run of it has not ended" in reason(tick(shop))


@pytest.mark.full
def test_a_broker_that_is_down_is_a_reason_and_not_an_error(shop: DagsterProject) -> None:
    found = reason(tick(shop, servers=f"127.0.0.1:{free_port()}"))
    assert found.startswith("orders: [BROKER_UNAVAILABLE] no Kafka broker answered at 127.0.0.1:")


def test_one_request_covers_all_topics_and_a_dead_broker_delays_no_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # these tables are created with Spark, too
    topics = [project.topic() for _ in range(3)]
    sources = [kafka_source(f"s{number}", topic=topic, schema="id LONG") for number, topic in enumerate(topics)]
    loose = kafka_source("loose", topic=topics[0], schema="id LONG", isolation="read_uncommitted")
    project.declare(*sources, loose)
    for each in (*sources, loose):
        project.refresh(each.name)
    delete_topic(project, topics[1])
    for topic in (topics[0], topics[2]):
        project.produce(topic, [{"id": 1}])
    asked_for = []
    call = KafkaClient._call

    def counted(self: KafkaClient, request: Any) -> Any:
        asked_for.append(request)
        return call(self, request)

    monkeypatch.setattr(KafkaClient, "_call", counted)
    with dg.DagsterInstance.ephemeral() as instance:
        found = tick(DagsterProject(project, instance))
    assert sorted(asked(found)) == [["loose"], ["s0"], ["s2"]]
    assert len(asked_for) == 5, "topics, their settings, earliest and, for each isolation level, latest offsets"


def test_runs_that_fail_are_requested_again_but_not_at_once(
    shop: DagsterProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    more(shop)
    transition = f"sources/orders@{shop.project.record('orders').incarnation}:1"
    keys = {key(tick(shop))}
    ended(shop, {TRANSITION_TAG: transition}, dg.DagsterRunStatus.FAILURE)
    assert "orders: its last 1 runs did not get beyond epoch 1; the next comes in " in reason(tick(shop))
    monkeypatch.setattr(sensors, "BACKOFF_SECONDS", (0, 0))
    for _ in range(8):
        keys.add(key(tick(shop)))
        ended(shop, {TRANSITION_TAG: transition}, dg.DagsterRunStatus.FAILURE)
    assert len(keys) == 9, "a key that was used before would never start a run again"


def test_only_a_run_whose_process_is_gone_is_reported(shop: DagsterProject, monkeypatch: pytest.MonkeyPatch) -> None:
    running = ended(shop, {}, dg.DagsterRunStatus.STARTED)
    state(shop).put_lease("views/live", running.run_id)
    assert reason(tick(shop, "reap_dead_runs")) == "no dead runs"

    dead = ended(shop, {}, dg.DagsterRunStatus.STARTED)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_of(process.pid).created
    monkeypatch.setattr("backfill_assets.adapters.state.state_store.os.getpid", lambda: process.pid)
    state(shop).put_lease("sources/orders", dead.run_id)
    monkeypatch.undo()
    assert state(shop).leases()["sources/orders"].process_started == started
    process.communicate()
    assert not state(shop).leases()["sources/orders"].alive(datetime.now(UTC))
    assert reason(tick(shop, "reap_dead_runs")) == f"reported 1 dead runs as failed: {dead.run_id}"
    statuses = {run.run_id: run.status for run in shop.instance.get_runs()}
    assert statuses[dead.run_id] is dg.DagsterRunStatus.FAILURE
    assert statuses[running.run_id] is dg.DagsterRunStatus.STARTED
    assert reason(tick(shop, "reap_dead_runs")) == "no dead runs"
