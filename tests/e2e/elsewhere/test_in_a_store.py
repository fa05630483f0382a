"""A warehouse in the store that `BACKFILL_TEST_PLACE` names: exact, also after kills; commits are put if absent."""

from pathlib import Path

import pytest

from backfill_assets.adapters.storage.put_if_absent import check_store
from tests.e2e.stores.test_s3 import assert_resumed
from tests.e2e.stores.test_s3_faults import assert_no_commit_is_lost
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import order_of
from tests.support.settings import IN_A_STORE, PLACE

pytestmark = [pytest.mark.e2e, pytest.mark.full]

WIDE = {"refresh": "wide", "query": "SELECT id, repeat('x', 200000) AS wide FROM orders", "chunk_rows": 200}
"""A view whose rows are too large for the planning process to write them, so that Spark does."""


@pytest.fixture
def runs(processes: Processes) -> Processes:
    assert PLACE in IN_A_STORE, "these tests are run by `make test-full PART=azure` and `PART=google`"
    return processes


@pytest.fixture
def placed(broker: str, tmp_path: Path) -> Project:
    return Project(root=tmp_path, servers=broker)


@pytest.mark.parametrize("step", ["planned", "staged", "committed"])
def test_source_and_views_are_exact_after_kills_and_all_checks_pass(
    placed: Project, runs: Processes, step: str
) -> None:
    assert_resumed(placed, runs, step)


def test_what_spark_writes_is_committed(placed: Project, runs: Processes) -> None:
    topic = placed.topic()
    placed.produce(topic, [{"id": number, "amount": 1.0} for number in range(200)])
    order = order_of(placed, topic)
    assert runs.run(order, {"refresh": "orders"}, WIDE)[0] == 0
    placed.produce(topic, [{"id": number, "amount": 1.0} for number in range(200)])
    assert runs.run(order, {"refresh": "orders"})[0] == 0
    runs.kill(order, WIDE, "staged")
    assert runs.run(order, WIDE)[0] == 0
    table = placed.workspace().store.place.table("views/wide").load()
    assert table is not None
    assert table.to_pyarrow_table(columns=["id"]).num_rows == 400


def test_of_many_writers_at_once_none_loses_a_commit(placed: Project) -> None:
    assert_no_commit_is_lost(placed.workspace().store.place)


def test_an_object_is_put_only_if_it_is_absent(placed: Project) -> None:
    warehouse = placed.workspace().store.place
    assert (check_store(warehouse), check_store(warehouse)) == (False, True)
