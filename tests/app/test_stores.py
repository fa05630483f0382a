"""What commands that only read say of stores that cannot be read: the warehouse's, and those of single upstreams."""

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import KafkaConnector, SparkResource, StateStore, delta_table, materialized_view
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.app.controls import set_controls
from backfill_assets.app.dependents import check_unneeded
from backfill_assets.app.dry_run import plan
from backfill_assets.app.skipping import left_out
from backfill_assets.app.status import status
from backfill_assets.app.table_checks import CHECKS, run_check
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.declare.model import DeltaTable
from backfill_assets.errors import EnvironmentSetupError
from tests.support.refusing_store import Refusing, refusing

KEYS = {"provider": "s3", "access_key_id": "an-id", "secret_access_key": "a-secret"}


@pytest.fixture(scope="module")
def store() -> Iterator[Refusing]:
    """A store that refuses everything."""
    with refusing(403, "AccessDenied") as made:
        yield made


def over(table: DeltaTable, root: Path, **given: Any) -> Workspace:
    """A view over a table, and one over a folder."""
    plain = delta_table("plain", path="lake/plain")
    views = [
        materialized_view(name, query=f"SELECT id FROM {each.name}", upstreams=[each])
        for name, each in (("copied", table), ("other", plain))
    ]
    return Workspace(
        declared={view.name: view for view in views},
        store=StateStore(root=str(root), **given),
        kafka=KafkaConnector(bootstrap_servers="127.0.0.1:1", root=str(root)),
        spark=SparkResource(root=str(root)),
    )


READ_ONLY: dict[str, Callable[[Workspace], object]] = {
    "status": lambda workspace: status(workspace, "copied"),
    "plan": lambda workspace: plan(workspace, "copied", Limits()),
    "verify": lambda workspace: run_check(workspace, "copied", next(iter(CHECKS)), full=True),
    "skip": lambda workspace: left_out(workspace, "copied"),
    "pause": lambda workspace: set_controls(workspace, "copied", paused=True, by="a test"),
}


@pytest.mark.parametrize("command", READ_ONLY.values(), ids=READ_ONLY.keys())
def test_a_warehouse_that_cannot_be_read_is_one_error_after_one_request(
    store: Refusing, tmp_path: Path, command: Callable[[Workspace], object]
) -> None:
    storage = {**KEYS, "endpoint": store.endpoint}
    workspace = over(delta_table("base", path="lake/base"), tmp_path, warehouse="s3://lake/w", storage=storage)
    before = store.requests()
    for _ in range(2):
        with pytest.raises(EnvironmentSetupError, match=r"the warehouse at s3://lake/w cannot be read: .*AccessDenied"):
            command(workspace)
    assert store.requests() == before + 1


def test_an_upstream_that_cannot_be_read_is_named_by_whatever_reads_it(store: Refusing, tmp_path: Path) -> None:
    table = delta_table("base", path="s3://raw/base", storage={**KEYS, "endpoint": store.endpoint})
    workspace = over(table, tmp_path)
    assert status(workspace, "copied").state == "not created"
    before = store.requests()
    for _ in range(2):
        with pytest.raises(
            EnvironmentSetupError, match=r"table 'base' at s3://raw/base cannot be read: .*AccessDenied"
        ):
            plan(workspace, "copied", Limits())
    assert store.requests() == before + 1


def test_storage_that_cannot_be_used_is_the_problem_of_its_view_alone(tmp_path: Path) -> None:
    table = delta_table("base", path="s3://raw/base", storage={**KEYS, "endpoint": "env:NOT_THERE"})
    workspace, named = over(table, tmp_path), "delta_table 'base': storage setting 'endpoint' .* variable NOT_THERE"
    found = status(workspace, "copied")
    assert found.state == "broken"
    assert re.match(named, found.problem)
    assert status(workspace, "other").state == "not created"
    with pytest.raises(EnvironmentSetupError, match=named):
        plan(workspace, "copied", Limits())


def test_what_a_view_still_needs_is_not_taken_for_nothing_if_it_cannot_be_read(store: Refusing, tmp_path: Path) -> None:
    storage = {**KEYS, "endpoint": store.endpoint}
    workspace = over(delta_table("base", path="lake/base"), tmp_path, warehouse="s3://lake/w", storage=storage)
    views = materialized_view("views", query="SELECT id FROM copied", upstreams=[workspace.declared["copied"]])
    workspace.declared = {**workspace.declared, "views": views}
    with pytest.raises(EnvironmentSetupError, match="s3://lake/w/views/copied cannot be read"):
        check_unneeded(workspace, "copied", hours=1)


def test_a_view_whose_table_cannot_be_read_may_need_anything_of_a_table_that_can_be(tmp_path: Path) -> None:
    workspace = over(delta_table("base", path="lake/base"), tmp_path)
    views = materialized_view("views", query="SELECT id FROM copied", upstreams=[workspace.declared["copied"]])
    workspace.declared = {**workspace.declared, "views": views}
    check_unneeded(workspace, "copied", hours=1)
    folder = Path(workspace.store.place.table(views.folder).uri)
    folder.mkdir(parents=True)
    (folder / "_delta_log").touch()  # a file, so that nothing in it can be opened
    with pytest.raises(EnvironmentSetupError, match="/views/views cannot be read"):
        check_unneeded(workspace, "copied", hours=1)


class Asked(SparkResource):
    """Spark that is asked from which stores it reads."""

    def runner(self, warehouse: Warehouse, *, stores: Collection[str] = ()) -> SparkRunner:
        """Fails with the answer."""
        raise LookupError(f"{warehouse.uri}: {', '.join(sorted(stores))}")


@pytest.mark.parametrize(
    ("path", "provider"),
    [
        ("s3://raw/base", "s3"),
        ("s3a://raw/base", "s3"),
        ("lake/base", ""),
        ("abfss://raw@mine.dfs.core.windows.net/base", "azure"),
        ("gs://raw/b", "gcs"),
    ],
)
def test_spark_gets_the_connector_of_stores_that_views_read_from(tmp_path: Path, path: str, provider: str) -> None:
    workspace = over(delta_table("base", path=path), tmp_path)
    workspace.spark = Asked(root=str(tmp_path))
    with pytest.raises(LookupError, match=f"warehouse: {provider}$"):
        assert workspace.runner
