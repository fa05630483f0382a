"""Runs of Dagster's jobs on a real broker and in-process Spark: what they record, when they stop, and how they fail."""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.app import heartbeat
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.defs import jobs
from backfill_assets.defs.checks import CHEAP_TAG
from tests.support.dagster_project import DagsterProject, failure, materialized, observed, passed
from tests.support.project import Project

pytestmark = pytest.mark.e2e

NUMBERS = {
    "dagster/row_count",
    "backfill_percent",
    "epoch",
    "epoch_seconds",
    "epochs",
    "expected_seconds",
    "lag_rows",
    "rows_bad",
    "rows_left_out",
    "rows_per_second",
    "rows_read",
    "rows_total",
    "rows_written",
    "seconds",
}


@pytest.fixture
def shop(project: Project) -> Iterator[DagsterProject]:
    """A source with 60 records and a view over it, not created yet."""
    topic = project.topic()
    project.produce(topic, [{"id": number} for number in range(60)])
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    even = materialized_view("even", query="SELECT id FROM orders WHERE id % 2 = 0", upstreams=[orders])
    project.declare(orders, even)
    with dg.DagsterInstance.ephemeral() as instance:
        yield DagsterProject(project, instance)


@pytest.fixture(autouse=True)
def no_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of the machine's speed: a run then records an observation only at its end."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 3600.0)


def more(shop: DagsterProject, count: int = 10) -> None:
    """New records for the source."""
    shop.project.produce(shop.project.declared["orders"].topic, [{"id": number} for number in range(count)])  # type: ignore[union-attr]


def newest_version(shop: DagsterProject, name: str) -> str | None:
    """The data version of the newest materialization."""
    event = shop.instance.get_latest_materialization_event(shop.project.declared[name].key)
    assert event is not None
    found = event.asset_materialization
    return (found.tags or {}).get("dagster/data_version") if found else None


def test_a_run_materializes_and_checks_and_the_next_one_has_nothing_to_say(shop: DagsterProject) -> None:
    first = shop.refresh()
    assert first.success
    found = materialized(first, "even")
    assert found is not None
    assert {name for name, value in found.items() if isinstance(value, int | float)} == NUMBERS
    assert (found["stopped_reason"], found["phase"], found["rows_written"]) == ("caught_up", "live", 30)
    assert found["dagster/row_count"] == 30
    assert [(each.name, each.type) for each in found["dagster/column_schema"].columns] == [("id", "bigint")]
    (source,) = found["dagster/column_lineage"].deps_by_column["id"]
    assert (source.asset_key, source.column_name) == (shop.project.declared["orders"].key, "id")
    assert [
        (row.data["partition"], row.data["phase"], row.data["lag_rows"]) for row in found["partitions"].records
    ] == [
        (0, "finished", 0),
        (1, "finished", 0),
    ]
    record = shop.project.record("even")
    assert newest_version(shop, "even") == f"{record.incarnation}:{record.epoch}"
    assert passed(first) == {f"{name}:{check}": True for name in ("orders", "even") for check in CHECKS}
    assert observed(first, "even") == []

    idle = shop.refresh()
    assert idle.success
    assert (materialized(idle, "orders"), materialized(idle, "even")) == (None, None)
    assert passed(idle) == passed(first), "what was checked still stands"

    more(shop)
    second = shop.refresh()
    assert materialized(second, "even") is not None
    assert newest_version(shop, "even") == f"{record.incarnation}:{record.epoch + 1}"
    proofs = {
        each.asset_key.path[-1]: each.metadata["rows_found"].value
        for each in second.get_asset_check_evaluations()
        if each.check_name == "exactly_once"
    }
    assert proofs == {"orders": 10, "even": 5}, "what was proved before is not proved again"
    whole = shop.run("verify_even")
    assert passed(whole) == {f"even:{check}": True for check in CHECKS}
    (proof,) = [each for each in whole.get_asset_check_evaluations() if each.check_name == "exactly_once"]
    assert proof.metadata["rows_found"].value == 35


def test_until_a_view_is_live_its_stops_are_observations_and_nothing_below_it_starts(shop: DagsterProject) -> None:
    started: list[str] = []

    @dg.asset(deps=[shop.project.declared["even"].key])
    def report() -> None:
        started.append("report")

    def run(**config: Any) -> dg.ExecuteInProcessResult:
        merged = dg.Definitions.merge(shop.definitions(), dg.Definitions(assets=[report]))
        ops = {"backfill_refresh": {"config": config}}
        return merged.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=shop.instance,
            run_config={"ops": ops},
            asset_selection=[shop.project.declared["even"].key, report.key],
        )

    stopped = run(max_rows=20, chunk_rows=10)
    assert stopped.success
    assert materialized(stopped, "even") is None
    assert started == []
    (seen,) = observed(stopped, "even")
    assert (seen["stopped_reason"], seen["phase"], seen["epochs"], seen["lag_rows"]) == (
        "max_rows",
        "backfilling",
        2,
        40,
    )
    assert 0 < seen["backfill_percent"] < 100
    finished = run()
    found = materialized(finished, "even")
    assert found is not None
    assert found["epoch"] == 3
    assert started == ["report"]
    run()
    assert started == ["report"], "an idle refresh starts nothing"


def test_a_long_run_reports_its_progress(shop: DagsterProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.0)
    beats = observed(shop.refresh("even", chunk_rows=20), "even")
    assert [each["epoch"] for each in beats] == [1, 2, 3]
    assert [each["phase"] for each in beats] == ["backfilling", "backfilling", "live"]
    percents = [each["backfill_percent"] for each in beats]
    assert percents == sorted(percents)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"dry_run": True}, "dry_run"),
        ({"rows_per_second": 0}, "paused"),
        ({"max_rows": 10, "chunk_rows": 5}, "max_rows"),
        ({"max_seconds": 0.000_001}, "max_seconds"),
    ],
)
def test_every_planned_stop_is_a_success_with_its_reason(
    shop: DagsterProject, config: dict[str, Any], reason: str
) -> None:
    result = shop.refresh("even", **config)
    assert result.success
    assert [each["stopped_reason"] for each in observed(result, "even")] == [reason]
    assert materialized(result, "even") is None


def test_a_run_that_finds_another_one_at_work_stops(shop: DagsterProject) -> None:
    shop.project.workspace().state.put_lease("views/even", "another-run")
    before_creation = shop.refresh("even")
    assert before_creation.success
    assert [each["stopped_reason"] for each in observed(before_creation, "even")] == ["lease_held"]
    shop.project.workspace().state.free_lease("views/even")
    shop.refresh("even", max_rows=10)
    shop.project.workspace().state.put_lease("views/even", "another-run")
    (seen,) = observed(shop.refresh("even"), "even")
    assert seen["stopped_reason"] == "lease_held"
    assert "another-run" in seen["stopped_detail"]


def test_the_operator_pauses_throttles_resumes_resets_and_drops_by_jobs(shop: DagsterProject) -> None:
    def stopped() -> list[str]:
        return [each["stopped_reason"] for each in observed(shop.refresh("even"), "even")]

    assert shop.control("pause", "even").success
    assert stopped() == ["paused"]
    assert shop.control("throttle", "even", rows_per_second=0).success
    assert shop.control("resume", "even").success
    assert stopped() == ["paused"], "a throttle of 0 lets nothing through"
    assert shop.control("throttle", "even").success
    assert materialized(shop.refresh("even"), "even") is not None
    life = shop.project.record("even").incarnation
    assert shop.control("reset", "even").success
    assert shop.project.record("even").incarnation != life
    assert shop.control("drop", "even").success
    assert status(shop.project.workspace(), "even").state == "dropped"


def test_a_job_puts_a_view_back_or_forgets_what_it_was_and_builds_nothing(
    shop: DagsterProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    for name in ("undo_replacement", "forget_replaced", "replace_view"):
        monkeypatch.setattr(jobs, name, lambda _workspace, view, *_, name=name, **__: done.append((name, view)))
    assert shop.control("replace", "even", undo=True).success
    assert shop.control("replace", "even", forget=True).success
    assert done == [("undo_replacement", "even"), ("forget_replaced", "even")]


@pytest.mark.parametrize("verb", ["pause", "resume", "throttle", "reset", "drop"])
def test_a_control_job_for_an_unknown_view_says_what_there_is(shop: DagsterProject, verb: str) -> None:
    result = shop.control(verb, "revenue")
    assert not result.success
    assert "there is no source or view 'revenue'; expected one of even, orders" in failure(result)


def test_a_run_for_ever_serves_only_one_table(shop: DagsterProject) -> None:
    result = shop.refresh(until="forever")
    assert not result.success
    assert "until='forever' was asked for 2 tables at once" in failure(result)


def test_a_table_that_fails_says_why_and_does_not_stop_the_others(shop: DagsterProject) -> None:
    lost = kafka_source("lost", topic="no-such-topic", schema="id LONG")
    shop.project.declare(lost)
    result = shop.refresh("lost", "orders")
    assert not result.success
    assert materialized(result, "orders") is not None
    message = failure(result)
    assert message.startswith("sources/lost: [UNKNOWN_TOPIC] Kafka at ")
    assert "What to do: check the source's `topic`" in message
    assert "Traceback" not in message


def test_checks_of_a_missing_table_fail_and_say_so(shop: DagsterProject) -> None:
    result = shop.run("verify_even")
    assert result.success, "a check that fails does not fail the run"
    assert passed(result) == {f"even:{check}": False for check in CHECKS}
    texts = {each.description for each in result.get_asset_check_evaluations()}
    assert texts == {"views/even has not been created, so there is nothing to check"}


def test_a_check_that_cannot_be_made_has_not_passed_and_does_not_prevent_others(shop: DagsterProject) -> None:
    assert shop.refresh("orders").success
    job = shop.definitions(servers=f"127.0.0.1:{free_port()}").resolve_job_def("verify_orders")
    result = job.execute_in_process(instance=shop.instance, raise_on_error=False)
    assert result.success
    assert passed(result) == {f"orders:{check}": check != "exactly_once" for check in CHECKS}
    (said,) = (each.description for each in result.get_asset_check_evaluations() if not each.passed)
    assert said is not None
    assert said.startswith("could not be checked: [BROKER_UNAVAILABLE] ")


def test_wrong_run_config_is_refused_before_anything_runs(shop: DagsterProject) -> None:
    with pytest.raises((dg.DagsterInvalidConfigError, dg.DagsterExecutionStepExecutionError, ValueError)) as caught:
        shop.definitions().resolve_job_def("refresh_even").execute_in_process(
            instance=shop.instance, run_config={"ops": {"backfill_refresh": {"config": {"max_rows": 0}}}}
        )
    assert "max_rows" in str(caught.value) + str(caught.value.__cause__)


def test_jobs_that_also_refresh_are_marked_for_cheap_checks(shop: DagsterProject) -> None:
    definitions = shop.definitions()
    cheap: Callable[[str], str | None] = lambda job: definitions.resolve_job_def(job).tags.get(CHEAP_TAG)  # noqa: E731
    assert {cheap("refresh_even"), cheap("backfill_tables")} == {"since_last_pass"}
    assert cheap("verify_even") is None
