"""How the job ends that replaces a view: read as before, it has failed, and says why."""

from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.core.epoch.limits import Stop
from backfill_assets.defs import jobs
from backfill_assets.defs.definitions import definitions_at

orders = kafka_source("orders", topic="orders", schema="order_id LONG, amount DOUBLE")
large = materialized_view("large", query="SELECT order_id FROM orders WHERE amount > 100", upstreams=[orders])


@pytest.mark.parametrize(("detail", "why"), [("", "max_seconds"), ("orders is paused", "orders is paused")])
@pytest.mark.parametrize("switched", [True, False])
def test_a_replacement_that_has_not_caught_up_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switched: bool, detail: str, why: str
) -> None:
    done = SimpleNamespace(switched=switched, report=SimpleNamespace(detail=detail, stopped=Stop.MAX_SECONDS))
    asked = list[str]()

    def replaced(_workspace: object, view: str, *_: object, **__: object) -> SimpleNamespace:
        asked.append(view)
        return done

    monkeypatch.setattr(jobs, "replace_view", replaced)
    job = definitions_at(tmp_path, (orders, large)).resolve_job_def("backfill_replace")
    config = {"ops": {"replace_table": {"config": {"view": "large"}}}}
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
    failed = [each.step_failure_data.user_failure_data for each in result.all_events if each.is_step_failure]
    assert asked == ["large"]
    assert [each.description if each else "" for each in failed] == (
        [] if switched else [f"large is read as before: its replacement has not caught up: {why}"]
    )
