"""Refreshes whose tasks the workers of a cluster do: every table is exact, and no worker is idle."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil
import pytest

from backfill_assets.adapters.compute.tasks import ROWS_OF_TASK, parallelism, tasks_for
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.app.table_checks import CHECKS
from tests.support.cluster_world import NAMES, assert_exact, declare, events, job
from tests.support.commits import epochs
from tests.support.over_connect import over_connect
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import order_of
from tests.support.spark_workers import LIMIT, WORKERS, Cluster, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(LIMIT)]

PROCESS = "java_method('java.lang.ProcessHandle', 'current')"


def asked() -> list[object]:
    """How many tasks Spark says that it runs at once, and which processes do that many."""

    def ask(spark: "SparkSession") -> list[object]:
        count = parallelism(spark)
        rows = spark.range(0, count, 1, count).selectExpr(f"{PROCESS} AS process").collect()
        return [count, tasks_for(spark, 10**9), sorted(int(row.process) for row in rows)]

    runner = SparkResource().runner(Warehouse(uri="/"))
    try:
        return runner.run(ask)
    finally:
        runner.close()


def test_spark_runs_a_task_on_each_worker_at_once(cluster: Cluster) -> None:
    executors = sorted(each.pid for each in cluster.executors().values())
    assert over_connect(cluster.remote, asked) == [len(WORKERS), len(WORKERS), executors]


def test_first_rows_of_a_source_and_of_groups_are_exact(on_s3: Project, runs: Processes) -> None:
    refreshed(on_s3, runs, ["orders", "sums"], ends=(40,))


@pytest.mark.full
def test_tables_are_exact(on_s3: Project, runs: Processes) -> None:
    refreshed(on_s3, runs, NAMES)
    for name in NAMES:
        assert epochs(on_s3, name) == sorted(set(epochs(on_s3, name))), "one commit for each epoch"


@pytest.mark.full
def test_all_checks_of_all_tables_pass(on_s3: Project, runs: Processes) -> None:
    order = refreshed(on_s3, runs, NAMES)
    code, said = runs.run(order, *(job(name, verify=name) for name in NAMES))
    assert (code, said) == (0, [dict.fromkeys(CHECKS, True)] * len(NAMES))


def refreshed(
    project: Project, runs: Processes, names: Sequence[str], ends: Sequence[int] = (40, 60)
) -> dict[str, object]:
    """Refresh tables after each batch, to these `ends`, and compare them; the arguments of further jobs."""
    topic = project.topic()
    declare(project, topic)
    order = order_of(project, topic)
    for first, end in pairwise((0, *ends)):
        project.produce(topic, events(first, end))
        assert runs.run(order, *map(job, names))[0] == 0
        assert_exact(project, events(0, end), names)
    return order


@pytest.mark.full
def test_the_rows_of_one_epoch_are_written_by_both_workers(
    on_s3: Project, cluster: Cluster, s3: dict[str, str]
) -> None:
    topic, sent = on_s3.topic(), events(0, 2 * ROWS_OF_TASK + 1)
    declare(on_s3, topic)
    on_s3.produce(topic, sent)
    store = urlsplit(s3["AWS_ENDPOINT_URL"]).port
    worked: set[str] = set()
    with cluster.running(on_s3, topic, job("orders", chunk_rows=len(sent))) as run:

        def has_ended() -> bool:
            worked.update(name for name, each in cluster.executors().items() if store in asked_by(each))
            return run.poll() is not None

        wait_until("the run to end", has_ended)
    assert run.returncode == 0
    assert worked == set(WORKERS), "only who reads or writes a file asks the store"
    assert on_s3.record("orders").epoch == 1
    assert sum(on_s3.rows("orders", "id").values()) == len(on_s3.rows("orders", "id")) == len(sent)


def asked_by(process: psutil.Process) -> set[int]:
    """The ports to which a process has connections."""
    try:
        return {each.raddr.port for each in process.net_connections() if each.raddr}
    except psutil.Error:
        return set()
