"""An executor, a worker or the run itself is killed in the middle of an epoch: the tables are exact, by one commit for each
epoch."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

import psutil
import pytest

from backfill_assets.core.epoch.protocol import STEPS
from tests.support.cluster_world import NAMES, assert_exact, declare, events, job
from tests.support.commits import epochs
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import HASHED, order_of
from tests.support.spark_workers import LIMIT, Cluster, is_running, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(LIMIT)]

CHUNK, CHUNKS = 10, 3
A_FEW_ROWS = 0.3
"""Seconds of a processor: the rows of an epoch of `slow` take several times as many."""


def epoch_of(project: Project, name: str) -> int:
    """The newest epoch of a table; 0 while it is not there."""
    record = project.workspace().table(project.declared[name]).output.look().record
    return 0 if record is None else record.epoch


def seconds(executors: Mapping[str, psutil.Process]) -> dict[str, float]:
    """What executors have used of their processors."""
    return {name: sum(process.cpu_times()[:2]) for name, process in executors.items()}


def worker_at_work(cluster: Cluster) -> str:
    """The worker whose executor computes rows."""
    executors, found = cluster.executors(), ""
    before = seconds(executors)

    def works() -> bool:
        nonlocal found
        busiest, used = max(seconds(executors).items(), key=lambda each: each[1] - before[each[0]])
        found = busiest if used - before[busiest] > A_FEW_ROWS else ""
        return bool(found)

    wait_until("a worker to compute", works)
    return found


def kill(cluster: Cluster, lost: str) -> None:
    """Kill the executor that is computing, or its worker, too."""
    worker = worker_at_work(cluster)
    if lost == "worker":
        cluster.lose(worker)
        return
    executor = cluster.executors()[worker]
    executor.kill()
    wait_until("the executor to be gone", lambda: not is_running(executor))


@pytest.mark.parametrize("lost", ["executor", "worker"])
def test_a_run_goes_on_when_what_computes_its_epoch_is_killed(
    on_s3: Project, runs: Processes, cluster: Cluster, lost: str
) -> None:
    topic = on_s3.topic()
    declare(on_s3, topic)
    on_s3.produce(topic, events(0, CHUNK * CHUNKS))
    assert runs.run(order_of(on_s3, topic), job("orders"))[0] == 0
    with cluster.running(on_s3, topic, job("slow", chunk_rows=CHUNK)) as run:
        wait_until("the first epoch", lambda: epoch_of(on_s3, "slow") == 1 or run.poll() is not None)
        kill(cluster, lost)
        assert (epoch_of(on_s3, "slow"), run.poll()) == (1, None), "it was in the middle of the second epoch"
        wait_until("the run to end", lambda: run.poll() is not None)
    assert run.returncode == 0
    assert on_s3.rows("slow", "id", "hashed") == Counter(
        (number, sha256(b"x" * (HASHED + number)).hexdigest()) for number in range(CHUNK * CHUNKS)
    )
    assert epochs(on_s3, "slow") == list(range(CHUNKS + 1)), "one commit for each epoch, and one for the creation"


@pytest.mark.parametrize("step", STEPS)
def test_runs_that_are_killed_at_any_step_are_resumed(on_s3: Project, runs: Processes, step: str) -> None:
    topic = on_s3.topic()
    declare(on_s3, topic)
    order = order_of(on_s3, topic)
    on_s3.produce(topic, events(0, 30))
    assert runs.run(order, *map(job, NAMES))[0] == 0
    on_s3.produce(topic, events(30, 60))
    for name in NAMES:
        runs.kill(order, job(name), step)
        assert runs.run(order, job(name))[0] == 0
    assert_exact(on_s3, events(0, 60))
    for name in NAMES:
        assert epochs(on_s3, name) == sorted(set(epochs(on_s3, name))), "one commit for each epoch"
