"""The definitions for Dagster: created offline and at once, and usable together with a user's own definitions."""

import subprocess
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.metadata.metadata_set import TableMetadataSet

from backfill_assets import build_definitions, kafka_source, materialized_view
from backfill_assets.adapters.state.state_store import StateStore
from backfill_assets.defs.assets import workspace_in
from backfill_assets.defs.definitions import definitions_at
from backfill_assets.errors import DeclarationError

orders = kafka_source("orders", topic="orders", schema="order_id LONG, amount DOUBLE")
large = materialized_view("large", query="SELECT order_id FROM orders WHERE amount > 100", upstreams=[orders])
CHECKS = ("exactly_once", "ledger_matches_table", "positions_contiguous", "rows_conserved", "unique_key")


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    return definitions_at(tmp_path, (large,))


def graph_of(definitions: dg.Definitions) -> Any:
    return definitions.resolve_asset_graph()


def test_each_table_is_an_asset_that_depends_on_its_upstreams(definitions: dg.Definitions) -> None:
    graph = graph_of(definitions)
    found = {key.to_user_string(): sorted(map(str, map(key_text, graph.get(key).parent_keys))) for key in keys(graph)}
    assert found == {
        "kafka/orders_topic": [],
        "sources/orders": ["kafka/orders_topic"],
        "views/large": ["sources/orders"],
    }
    assert {key_text(key) for key in graph.materializable_asset_keys} == {"sources/orders", "views/large"}


def test_every_table_has_its_checks(definitions: dg.Definitions) -> None:
    found = sorted(f"{key_text(key.asset_key)}:{key.name}" for key in graph_of(definitions).asset_check_keys)
    assert found == [f"{table}:{check}" for table in ("sources/orders", "views/large") for check in CHECKS]


def test_every_table_has_its_jobs(definitions: dg.Definitions) -> None:
    ours = [job.name for job in definitions.resolve_all_job_defs() if not job.name.startswith("__")]
    assert sorted(ours) == [
        "backfill_drop",
        "backfill_pause",
        "backfill_replace",
        "backfill_reset",
        "backfill_resume",
        "backfill_tables",
        "backfill_throttle",
        "refresh_large",
        "refresh_orders",
        "verify_large",
        "verify_orders",
    ]
    executors = {definitions.resolve_job_def(name).executor_def.name for name in ours}
    assert executors == {"in_process"}


def test_sensors_are_shipped_stopped(definitions: dg.Definitions) -> None:
    sensors = {each.name: each for each in definitions.sensors or ()}
    assert sorted(sensors) == ["new_delta_data", "new_kafka_data", "reap_dead_runs"]
    assert {each.default_status for each in sensors.values()} == {dg.DefaultSensorStatus.STOPPED}


def test_resource_keys_begin_with_backfill(definitions: dg.Definitions) -> None:
    assert sorted(definitions.resources or {}) == [
        "backfill_kafka",
        "backfill_spark",
        "backfill_state",
        "backfill_tables",
    ]


def test_loading_needs_no_broker_no_spark_and_no_network(tmp_path: Path) -> None:
    script = f"""
import socket, sys
def refuse(*_): raise AssertionError("loading definitions opened a connection")
socket.socket.connect = refuse
from datetime import timedelta
from pathlib import Path
from backfill_assets import kafka_source, materialized_view
assert "dagster" not in sys.modules
orders = kafka_source("orders", topic="orders", schema="id LONG")
view = materialized_view("view", query="SELECT id FROM orders", upstreams=[orders])
from backfill_assets.defs.definitions import definitions_at
definitions_at(Path({str(tmp_path)!r}), (view,)).resolve_all_job_defs()
heavy = {{"pyspark", "delta", "dagster_pyspark", "grpc.aio", "mlflow"}} & sys.modules.keys()
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [], "loading wrote something"


def test_they_merge_with_a_users_own_definitions(definitions: dg.Definitions) -> None:
    @dg.asset(deps=[large.key])
    def report() -> None: ...

    @dg.op
    def greet() -> None: ...

    @dg.job
    def greeting() -> None:
        greet()

    own = dg.Definitions(
        assets=[report],
        jobs=[greeting],
        resources={"io_manager": dg.mem_io_manager, "kafka": object()},
        executor=dg.multiprocess_executor,
    )
    merged = dg.Definitions.merge(own, definitions)
    assert graph_of(merged).get(dg.AssetKey("report")).parent_keys == {large.key}
    assert merged.resolve_job_def("greeting").executor_def.name == "multiprocess"
    assert merged.resolve_job_def("refresh_large").executor_def.name == "in_process"
    assert workspace_in(merged).declared == {"orders": orders, "large": large}


def test_labels_arrive_on_the_asset(tmp_path: Path) -> None:
    eager = dg.AutomationCondition.eager()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster says that freshness policies are in preview
        fresh = dg.FreshnessPolicy.cron(deadline_cron="0 9 * * *", lower_bound_delta=timedelta(1))
    view = materialized_view(
        "view",
        query="SELECT order_id FROM orders",
        upstreams=[orders],
        key=["sales", "view"],
        description="Sales.",
        owners=["team:sales"],
        tags={"tier": "gold"},
        metadata={"contact": "sales"},
        group_name="sales",
        automation_condition=eager,
        freshness_policy=fresh,
    )
    node = graph_of(definitions_at(tmp_path, (view,))).get(dg.AssetKey(["sales", "view"]))
    assert (node.group_name, list(node.owners)) == ("sales", ["team:sales"])
    assert str(node.description).startswith("Sales.\n\n```sql\nSELECT")
    assert node.tags["tier"] == "gold"
    assert node.metadata["contact"] == "sales"
    assert node.automation_condition == eager
    assert node.freshness_policy == fresh


def test_dagster_finds_each_table_by_its_name_in_the_warehouse_or_by_the_one_that_was_given(tmp_path: Path) -> None:
    other = materialized_view("Other", query="SELECT order_id FROM orders", upstreams=[orders], key=["sales", "other"])
    metadata = {"dagster/table_name": "lake.sales.small", "contact": "sales"}
    small = materialized_view("small", query="SELECT order_id FROM orders", upstreams=[orders], metadata=metadata)
    graph = graph_of(definitions_at(tmp_path, (large, other, small)))
    names = {key_text(key): TableMetadataSet.extract(graph.get(key).metadata).table_name for key in keys(graph)}
    assert names == {
        "kafka/orders_topic": None,
        "sales/other": "views.Other",
        "sources/orders": "sources.orders",
        "views/large": "views.large",
        "views/small": "lake.sales.small",
    }

    @dg.asset(deps=[dg.AssetDep("wherever", metadata={"dagster/table_name": "views.large"})])
    def report() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster says that it may match by names in another way some day
        merged = dg.Definitions.merge(definitions_at(tmp_path, (large,)), dg.Definitions(assets=[report]))
        assert graph_of(merged).get(report.key).parent_keys == {large.key}


def test_unknown_resource_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="'resources' has unknown keys kafka") as caught:
        definitions_at(tmp_path, (orders,), resources={"kafka": object()})
    assert "backfill_state, backfill_kafka, backfill_spark" in caught.value.hint


def test_a_given_resource_and_executor_are_used(tmp_path: Path) -> None:
    store = StateStore(warehouse=str(tmp_path / "elsewhere"))
    found = definitions_at(tmp_path, (orders,), executor=dg.multiprocess_executor, resources={"backfill_state": store})
    assert workspace_in(found).store is store
    assert found.resolve_job_def("refresh_orders").executor_def.name == "multiprocess"
    assert found.resolve_job_def("backfill_pause").executor_def.name == "in_process"


def test_a_relative_warehouse_lies_in_the_project_whatever_the_callers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "code").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "workspace.yaml").touch()
    module = project / "code" / "definitions.py"
    module.write_text("from backfill_assets import build_definitions\ndefs = build_definitions(*declared)\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("BACKFILL_WAREHOUSE", "data/tables")
    space: dict[str, Any] = {"__file__": str(module), "declared": (orders,)}
    exec(compile(module.read_text(), module, "exec"), space)
    assert workspace_in(space["defs"]).store.place.uri == str(project / "data" / "tables")


def test_two_tables_of_one_name_are_refused() -> None:
    other = kafka_source("orders", topic="other", schema="id LONG")
    with pytest.raises(DeclarationError, match="two tables named 'orders'"):
        build_definitions(orders, other)


def test_what_is_not_a_source_or_view_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'orders' is not a source or view"):
        build_definitions("orders")  # type: ignore[arg-type]


def keys(graph: Any) -> list[dg.AssetKey]:
    return sorted(graph.get_all_asset_keys())


def key_text(key: dg.AssetKey) -> str:
    return key.to_user_string()
