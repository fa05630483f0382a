"""What is Azure's own, in Microsoft's emulator: marks of folders, upstreams, tags, errors; keys are shown nowhere."""

import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets import materialized_view
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.put_if_absent import check_store
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.app.lifecycle import maintain
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.errors import EnvironmentSetupError
from tests.support.azurite import Account
from tests.support.processes import Processes
from tests.support.project import Project, storage_on_azure, warehouse_on_azure
from tests.support.runner import declared, order_of, over_lake
from tests.support.settings import PLACE

pytestmark = [pytest.mark.e2e, pytest.mark.full]

WIDE = {"refresh": "wide", "query": "SELECT id, repeat('x', 200000) AS wide FROM orders"}
"""A view whose rows are too large for the planning process to write them, so that Spark does."""
LIMIT = 600


@pytest.fixture
def runs(processes: Processes) -> Processes:
    assert PLACE == "azure", "these tests are run by `make test-full PART=azure`"
    return processes


@pytest.fixture
def on_azure(broker: str, tmp_path: Path) -> Project:
    return Project(root=tmp_path, servers=broker, warehouse=warehouse_on_azure(), storage=storage_on_azure())


def test_what_spark_writes_leaves_no_marks_of_folders(on_azure: Project, runs: Processes) -> None:
    topic = on_azure.topic()
    orders, *_ = declared(topic)
    on_azure.declare(orders)
    on_azure.produce(topic, [{"id": number, "amount": 1.0} for number in range(200)])
    order = order_of(on_azure, topic)
    wide = {**WIDE, "chunk_rows": 200}
    assert runs.run(order, {"refresh": "orders"}, wide)[0] == 0
    on_azure.produce(topic, [{"id": number, "amount": 1.0} for number in range(200)])
    assert runs.run(order, {"refresh": "orders"})[0] == 0
    runs.kill(order, wide, "staged")
    assert runs.run(order, wide)[0] == 0
    on_azure.declare(materialized_view("wide", query=WIDE["query"], upstreams=[orders]))
    folder = on_azure.workspace().table(on_azure.declared["wide"]).output.location.objects()
    folder.put("_change_data", b"")  # as the connector marks a folder
    maintain(on_azure.workspace(), "wide")
    assert {path for path, size in folder.sizes("").items() if not size} == set()
    assert sum(on_azure.rows("wide", "id").values()) == 400


def test_a_local_warehouse_reads_tables_on_azure_in_the_runs_own_process(tmp_path: Path, account: Account) -> None:
    project = Project(root=tmp_path, servers="127.0.0.1:1", warehouse="warehouse", storage={"provider": "local"})
    uri = account.uri(f"{uuid.uuid4().hex}/base")
    options = {
        "account_name": account.name,
        "account_key": account.key,
        "endpoint": account.endpoint,
        "allow_http": "true",
    }
    rows = pa.table({"id": range(50), "v": [number % 7 for number in range(50)]})
    write_deltalake(uri, rows, storage_options=options, configuration={"delta.enableChangeDataFeed": "true"})
    base = {"path": uri, "storage": storage_on_azure()}
    project.declare(*over_lake(tmp_path, base=base))
    events = tmp_path / "events"
    events.mkdir()
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{events}\n"
    )
    order = {**order_of(project, ""), "base": base}
    jobs = [{"refresh": "large"}, {"verify": "large"}]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    environment["SPARK_CONF_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.runner", json.dumps({**order, "jobs": jobs})],
        cwd=Path(__file__).parents[3], env=environment, capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(CHECKS, True)
    assert project.rows("large", "id", "twice").total() > 0
    texts = [each.read_bytes().decode("latin-1") for each in tmp_path.rglob("*") if each.is_file()]
    assert any("SparkListenerSQLExecutionStart" in text and account.host in text for text in texts)
    assert account.key not in "".join([*texts, done.stderr, done.stdout])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"account_key": "d3Jvbmc="}, "403|Forbidden|Authenti"), ({"container": "none"}, "ContainerNotFound|404")],
)
def test_a_wrong_key_and_a_missing_container_are_told_without_keys(
    on_azure: Project, account: Account, wrong: dict[str, str], said: str
) -> None:
    uri = on_azure.warehouse.replace("lake@", f"{wrong.get('container', 'lake')}@")
    storage = {**on_azure.storage, **{name: value for name, value in wrong.items() if name != "container"}}
    project = replace(on_azure, warehouse=uri, storage=storage)
    warehouse: Warehouse = project.workspace().store.place
    with pytest.raises(EnvironmentSetupError, match=said) as found:
        check_store(warehouse)
    assert account.key not in str(found.value)
    assert "d3Jvbmc=" not in str(found.value)


def test_tags_of_objects_are_the_same_in_lists_and_in_answers(on_azure: Project) -> None:
    folder: ObjectFolder = on_azure.workspace().store.place.objects("tags")
    written, tag = folder.put_new("a", b"content")
    assert written
    head = folder.head("a")
    assert head is not None
    assert {tag, head.tag, folder.listed("")["a"].tag} == {tag}
    assert tag
