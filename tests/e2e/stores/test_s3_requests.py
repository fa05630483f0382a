"""Few rows are written to an object store by this process: what it takes in requests, and that nothing else differs."""

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.adapters.compute.version_rows import FEW_OBJECTS
from tests.support.commands import run
from tests.support.few_rows import staged_rows
from tests.support.over_connect import over_connect
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of, over_lake
from tests.support.s3_proxy import Request, S3Proxy, before
from tests.support.servers import FOLDER
from tests.support.spark_writes import written

pytestmark = pytest.mark.e2e

MOST = {"orders": 14, "large": 22, "sums": 32}
"""Requests of a refresh with one epoch of 1,000 records, in a process of its own, on young logs."""
OF_AN_EPOCH = {"orders": 7, "large": 15, "sums": 25}
"""Requests from one commit of a table to the next, in a run of several epochs: the median."""
TOGETHER, IDLE = 60, 15
"""Requests of one process that refreshes all three, with one epoch of each, and with nothing to do."""
PROVED = 190
"""Requests of the fifteen checks of that epoch: files are read by Spark for each of them, and logs by two readers."""


@pytest.fixture
def counted(on_s3: Project, s3: dict[str, str]) -> Iterator[tuple[Project, S3Proxy]]:
    """A project that reaches its warehouse through a proxy, as Spark does: in a bucket of its own, as a Spark server keeps
    the address at which it has reached a bucket first."""
    bucket = f"counted-{uuid.uuid4().hex}"
    Path(os.environ[FOLDER], ".backfill", "s3", "data", bucket).mkdir()
    with before(s3["AWS_ENDPOINT_URL"]) as proxy:
        storage = {**on_s3.storage, "endpoint": proxy.endpoint}
        yield replace(on_s3, warehouse=f"s3://{bucket}/warehouse", storage=storage), proxy


@pytest.mark.parametrize("names", [["orders"], pytest.param([*MOST], marks=pytest.mark.full)], ids=["source", "views"])
def test_a_refresh_of_a_thousand_records_takes_few_requests(
    counted: tuple[Project, S3Proxy], processes: Processes, names: list[str]
) -> None:
    project, proxy = counted
    topic = project.topic()
    project.declare(*declared(topic))
    order = order_of(project, topic)
    took: dict[str, int] = {}
    for first in (0, 1000):
        project.produce(topic, [{"id": number, "amount": number / 4} for number in range(first, first + 1000)])
        for name in names:
            proxy.requests()
            assert processes.run(order, {"refresh": name, "chunk_rows": 10_000})[0] == 0
            took[name] = len(proxy.requests())
    assert project.rows("orders", "id") == Counter((number,) for number in range(2000))
    assert "sums" not in took or project.rows("sums", "n") == Counter([(667,), (667,), (666,)])
    assert all(took[name] <= MOST[name] for name in names), took


@pytest.mark.parametrize(
    "epochs", [0, *(pytest.param(each, marks=pytest.mark.full) for each in (2, 24))], ids=["new", "young", "old"]
)
def test_tables_that_are_refreshed_together_take_few_requests_and_so_do_the_epochs_before(
    counted: tuple[Project, S3Proxy], processes: Processes, epochs: int
) -> None:
    project, proxy = counted
    topic = project.topic()
    project.declare(*declared(topic))
    order, together = order_of(project, topic), {"together": [*MOST], "chunk_rows": 1000}
    produce(project, topic, 1)
    assert processes.run(order, together)[0] == 0
    produce(project, topic, epochs)
    took: dict[str, list[int]] = {}
    for name in MOST if epochs else ():
        proxy.requests()
        assert processes.run(order, {"refresh": name, "chunk_rows": 1000})[0] == 0
        took[name] = between_commits(proxy.requests(), name)
        assert len(took[name]) == epochs - 1
    produce(project, topic, 1)
    proxy.requests()
    assert processes.run(order, together)[0] == 0
    busy = len(proxy.requests())
    assert processes.run(order, together)[0] == 0
    idle = len(proxy.requests())
    assert sum(n for (n,) in project.rows("sums", "n").elements()) == (epochs + 2) * 1000
    assert all(median(each) <= OF_AN_EPOCH[name] for name, each in took.items()), took
    assert (busy <= TOGETHER, idle <= IDLE) == (True, True), (busy, idle)


DEFINITIONS = """
from backfill_assets import StateStore, build_definitions, kafka_source, materialized_view
orders = kafka_source("orders", topic="{topic}", schema="id LONG, amount DOUBLE")
large = materialized_view("large", query="SELECT id, amount * 2 AS twice FROM orders", upstreams=[orders])
query = "SELECT id % 3 AS third, count(*) AS n, sum(amount) AS total FROM orders GROUP BY id % 3"
sums = materialized_view("sums", query=query, upstreams=[orders])
store = StateStore(warehouse="{warehouse}", storage={storage})
defs = build_definitions(large, sums, resources={{"backfill_state": store}})
"""


@pytest.mark.full
def test_a_command_with_its_checks_takes_few_requests(counted: tuple[Project, S3Proxy], remote: str) -> None:
    project, proxy = counted
    topic = project.topic()
    given = {"topic": topic, "warehouse": project.warehouse, "storage": project.storage}
    (project.root / "definitions.py").write_text(DEFINITIONS.format(**given))
    (project.root / "workspace.yaml").write_text("load_from: [{python_file: definitions.py}]\n")
    kept = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    environment = {**kept, "KAFKA_BOOTSTRAP_SERVERS": project.servers, "SPARK_REMOTE": remote}

    def refreshed() -> int:
        proxy.requests()
        done = run(["refresh", *MOST], project.root, environment)
        assert done.code == 0, done
        return len(proxy.requests())

    produce(project, topic, 1)
    took = [refreshed()]
    produce(project, topic, 1)
    took += [refreshed(), refreshed()]
    assert took[1] <= TOGETHER + PROVED, took
    assert took[2] <= IDLE, took


def produce(project: Project, topic: str, epochs: int) -> None:
    project.produce(topic, [{"id": number, "amount": number / 4} for number in range(epochs * 1000)])


def between_commits(requests: Sequence[Request], name: str) -> list[int]:
    """How many requests there are from one commit of a table to the next."""
    commits = [
        at
        for at, each in enumerate(requests)
        if each.method == "PUT"
        and each.status == 200
        and f"/{name}/_delta_log/" in each.address
        and "json" in each.address
    ]
    return [after - before for before, after in pairwise(commits)]


FILE, FOLDER_OF_FILES = 8, 22
"""Requests for a file that Spark writes, with those for its footer, and for the folder that it writes into."""


@pytest.mark.full
def test_a_file_that_spark_writes_takes_few_requests(counted: tuple[Project, S3Proxy], remote: str) -> None:
    project, proxy = counted
    place = project.workspace().store.place
    took = {}
    for files in (1, 4):
        proxy.requests()
        rows = over_connect(remote, written, place.uri, json.dumps(dict(place.storage_options)), f"{files:08}", files)
        took[files] = len(proxy.requests())
        assert (len(rows), sum(rows)) == (files, 100)
    assert took[1] <= FOLDER_OF_FILES + FILE, took
    assert took[4] - took[1] <= 3 * FILE, took


def test_spark_does_not_look_for_many_files_one_by_one(counted: tuple[Project, S3Proxy], processes: Processes) -> None:
    project, proxy = counted
    path, keys = project.warehouse.replace("/warehouse", "/raw"), dict(project.workspace().store.place.storage_options)
    feed = {"delta.enableChangeDataFeed": "true"}
    for number in range(FEW_OBJECTS + 1):
        rows = pa.table({"id": [number], "v": [-number]})
        write_deltalake(path, rows, mode="append", storage_options=keys, configuration=feed)
    proxy.requests()
    assert (
        processes.run({**order_of(project), "base": {"path": path}}, {"refresh": "large", "chunk_rows": 1000})[0] == 0
    )
    looked = [each.address for each in proxy.requests() if "list-type" in each.address and "raw%2Fpart" in each.address]
    assert looked == []
    project.declare(*over_lake(project.root, base={"path": path}))
    assert project.rows("large", "id", "twice") == Counter((each, -2 * each) for each in range(FEW_OBJECTS + 1))


def test_rows_are_staged_alike_by_spark_and_by_this_process(on_s3: Project, remote: str) -> None:
    place = on_s3.workspace().store.place
    found = over_connect(remote, staged_rows, place.uri, json.dumps(dict(place.storage_options)))
    assert found["few"]["by"] == ["part-"] * 3
    assert found["much"]["by"] == ["part-00000-"] * 3
    for kind in ("few", "much"):
        assert found[kind]["counts"] == {"insert": 4, "update": 2, "delete": 1, "odd": 3, "bytes": 5}
        assert found[kind]["rows"] == found[kind]["wanted"]
        assert found[kind]["logs"] == []
        assert found[kind]["columns"] == found["few"]["columns"]
        assert "__op" not in found[kind]["columns"][0]
    assert found["long"] == {"insert": 7}
    assert found["odd"] == ["a, b=c", 1]
    assert found["none"] == {"insert": 0, "files": 0}
