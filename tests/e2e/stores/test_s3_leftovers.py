"""What killed jobs leave behind on S3, such as the empty objects with which S3A marks folders: it goes for good."""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from backfill_assets import materialized_view
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staging import delete_folder, sweep, sweep_leftovers
from backfill_assets.adapters.storage.markers import rooted_at
from backfill_assets.adapters.storage.object_store import ObjectFolder
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.app.lifecycle import maintain
from backfill_assets.core.epoch.records import CommitKind
from tests.e2e.stores.test_s3_faults import LIFE, output_of, rows, stage
from tests.support.outputs import commit, record
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of

pytestmark = pytest.mark.e2e

DEAD = f"{LIFE}-2-bbbbbbbb"
COMING = f"{LIFE}-3-cccccccc"
LIMIT = 120
WIDE = {"refresh": "wide", "query": "SELECT id, repeat('x', 200000) AS wide FROM orders"}
"""A view whose rows are too large for the planning process to write them."""


@pytest.fixture
def output(s3: dict[str, str]) -> DeltaOutput:
    """A table on S3 with two epochs."""
    options = {
        "endpoint": s3["AWS_ENDPOINT_URL"],
        "region": s3["AWS_REGION"],
        "access_key_id": s3["AWS_ACCESS_KEY_ID"],
        "secret_access_key": s3["AWS_SECRET_ACCESS_KEY"],
        "allow_http": "true",
    }
    made = output_of(Warehouse(uri=f"s3://lake/{uuid.uuid4().hex} ü", storage_options=options))
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch in (1, 2):
        commit(made, record(CommitKind.EPOCH, LIFE, epoch), stage(made, epoch, [epoch]))
    return made


def mark(folder: ObjectFolder, *names: str) -> None:
    """Mark folders as S3A does."""
    for name in names:
        rooted_at(folder, name).put("", b"")


def empty(folder: ObjectFolder) -> set[str]:
    """The empty objects of a folder that are no files."""
    return {path for path, size in folder.sizes("").items() if not size and not path.endswith("_SUCCESS")}


def test_marks_of_folders_are_swept_but_for_those_of_an_epoch_in_progress(output: DeltaOutput) -> None:
    folder, committed = output.location.objects(), f"{LIFE}-1-aaaaaaaa"
    held, late = {f"{COMING}/_temporary/0", f"{COMING}/part.parquet"}, f"{committed}/_temporary/0/task_1/part.parquet"
    left = {committed, f"{committed}/_temporary/0", "_change_data", f"_spool/{LIFE}-1-dddddddd/base/1/_temporary/0"}
    mark(folder, *left, *held)
    folder.put(late, b"what a task wrote too late")
    assert empty(folder) >= left | held
    swept = sweep_leftovers(output.location, output.look)
    assert {late, *(f"{name}/" for name in left)} <= {*swept}
    assert empty(folder) == held
    assert late not in folder.names("")
    assert sweep_leftovers(output.location, output.look) == []
    assert rows(output) == [1, 2]


def test_an_uncommitted_folder_goes_with_its_marks_and_does_not_come_back(output: DeltaOutput) -> None:
    folder = output.location.objects()
    mark(folder, DEAD, f"{DEAD}/_temporary/0")
    folder.put(f"{DEAD}/_temporary/0/part.parquet", b"half")
    assert sweep(output.location, output.look) == [DEAD]
    assert sweep(output.location, output.look) == []
    assert folder.names(DEAD) == []
    delete_folder(output.location, DEAD)
    assert rows(output) == [1, 2]


@pytest.mark.full
def test_what_a_killed_spark_left_of_its_job_is_gone_after_the_next_run_and_maintenance(
    on_s3: Project, processes: Processes
) -> None:
    topic = on_s3.topic()
    orders, *_ = declared(topic)
    on_s3.declare(orders, materialized_view("wide", query=WIDE["query"], upstreams=[orders]))
    on_s3.produce(topic, [{"id": number, "amount": 1.0} for number in range(200)])
    order = order_of(on_s3, topic)
    assert processes.run(order, {"refresh": "orders"}, {**WIDE, "chunk_rows": 200})[0] == 0
    folder = on_s3.workspace().table(on_s3.declared["wide"]).output.location.objects()
    mark(folder, "_change_data")
    on_s3.produce(topic, [{"id": number, "amount": 1.0} for number in range(400)])
    assert processes.run(order, {"refresh": "orders"})[0] == 0
    kill_in_a_job(order, folder)
    assert any(map(is_of_a_job, empty(folder))), "S3A has left marks"
    assert processes.run(order, WIDE)[0] == 0
    maintain(on_s3.workspace(), "wide")
    assert empty(folder) == set()
    assert of_jobs(folder) == set()
    assert sum(on_s3.rows("wide", "id").values()) == 600


def kill_in_a_job(order: dict[str, object], folder: ObjectFolder) -> None:
    """Kill a run with its Spark, both in processes of their own, while a job writes."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    before = of_jobs(folder)
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.support.runner", json.dumps({**order, "jobs": [WIDE]})],
        cwd=Path(__file__).parents[3],
        env=environment,
    )
    deadline = time.monotonic() + LIMIT
    while not of_jobs(folder) - before:
        assert run.poll() is None, "it ended before it wrote"
        assert time.monotonic() < deadline
    for process in (*psutil.Process(run.pid).children(recursive=True), psutil.Process(run.pid)):
        process.kill()
    run.wait(timeout=LIMIT)


def of_jobs(folder: ObjectFolder) -> set[str]:
    return set(filter(is_of_a_job, folder.names("")))


def is_of_a_job(path: str) -> bool:
    """Whether it is of the log of a staged folder, which lists what tasks have written."""
    return "/_delta_log/" in path
