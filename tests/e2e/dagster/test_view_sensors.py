"""`new_delta_data`: what it requests when tables and views get new versions, and what a run of it tells of the keys that a
change touched. A tick never starts Spark."""

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from deltalake import DeltaTable

from backfill_assets import delta_table, materialized_view
from backfill_assets.adapters.spark import resource
from tests.e2e.dagster.test_sensors import asked, reason, tick
from tests.support.dagster_project import DagsterProject, materialized, passed
from tests.support.lake import Lake

pytestmark = pytest.mark.e2e


def test_views_are_refreshed_by_version_and_a_child_waits_for_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    for first in (0, 15):
        lake.append("orders", ({"id": at, "kind": at % 3} for at in range(first, first + 15)))
    parent = materialized_view(
        "parent",
        query="SELECT id, kind FROM orders",
        upstreams=[delta_table("orders", path=lake.path("orders"), primary_key="id")],
    )
    query = "SELECT id, count(*) OVER (PARTITION BY kind) AS alike FROM parent"
    child = materialized_view("child", query=query, upstreams=[parent], refresh_mode="incremental")
    lake.project.declare(parent, child)
    with dg.DagsterInstance.ephemeral() as instance:
        shop = DagsterProject(lake.project, instance)

        def looked() -> SensorExecutionData:
            with monkeypatch.context() as patch:
                patch.setattr(resource.SparkRunner, "run", lambda *_: pytest.fail("a tick started Spark"))
                return tick(shop, "new_delta_data")

        assert "parent: not created yet" in reason(looked())
        assert "new_kafka_data" not in reason(looked())
        lake.project.refresh("parent")
        lake.project.refresh("child")
        assert reason(looked()) == "parent: up to date; child: up to date"
        lake.sql("orders", "UPDATE {t} SET kind = 1 WHERE id = 2")
        assert asked(looked()) == [["parent"]]
        lake.project.refresh("parent")
        assert asked(looked()) == [["child"]]
        done = shop.refresh("child")
        found = materialized(done, "child")
        assert found is not None
        told = {name: found.get(name) for name in ("rule", "why_full", "keys_touched", "rows_reached")}
        reached = found["rows_read"] + 20
        assert told == {"rule": "restricted", "why_full": None, "keys_touched": 2, "rows_reached": reached}, (
            "the row's old kind and its new one, and the rows that have one of these"
        )
        assert set(passed(done).values()) == {True}
        assert lake.project.rows("child", "id", "alike")[(2, 11)] == 1
        DeltaTable(lake.path("orders")).optimize.compact()
        assert reason(looked()) == "parent: up to date; child: up to date"
