"""kill -9 of a run's process at every step of the protocol: the next run continues, and no row is lost or doubled."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from backfill_assets.app.lifecycle import maintain
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.epoch.protocol import STEPS
from tests.support.commits import epochs, losers
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of, start

pytestmark = pytest.mark.e2e

LIMIT = 90
QUICK_CHECKS = ("positions_contiguous", "ledger_matches_table", "rows_conserved")
EVENTS = [{"id": number, "amount": number / 4} for number in range(30)]
SOURCE = Counter((each["id"], each["amount"]) for each in EVENTS)
LARGE = Counter((each["id"], each["amount"] * 2) for each in EVENTS)


@pytest.fixture(scope="module")
def topic(broker: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two partitions with the events, and between them records of an aborted transaction."""
    project = Project(root=tmp_path_factory.mktemp("topic"), servers=broker)
    name = project.topic(partitions=2)
    project.produce(name, EVENTS[:10])
    producer = Producer({"bootstrap.servers": broker, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(name, b'{"id": -1, "amount": -1.0}', partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)
    project.produce(name, EVENTS[10:])
    return name


@pytest.fixture
def kill(project: Project, topic: str, processes: Processes) -> Callable[..., None]:
    """Refreshes a table in a process of its own until that kills itself at a step."""
    project.declare(*declared(topic))

    def refresh_until_killed(name: str, step: str, at: int) -> None:
        processes.kill(order_of(project, topic), {"refresh": name, "chunk_rows": 12}, step, at=at)

    return refresh_until_killed


IN_GATE = ("planned", "staged", "committed")


@pytest.mark.parametrize(
    "step", [each if each in IN_GATE else pytest.param(each, marks=pytest.mark.full) for each in STEPS]
)
def test_a_killed_run_is_resumed_with_at_most_one_epoch_redone(
    project: Project, kill: Callable[..., None], step: str
) -> None:
    after = 2 if step == "committed" else 1
    begun = int(step in {"staged", "verified"})
    kill("large", step, 4 if step == "verified" else 2)  # creating source and view takes one verified commit each
    assert (project.record("large").epoch, len(losers(project, "large"))) == (after, begun)
    kill("orders", step, 2)
    assert (project.record("orders").epoch, len(losers(project, "orders"))) == (after, begun)

    for name in ("large", "orders"):
        done = project.refresh(name)
        assert [each.epoch for each in done.report.epochs] == list(range(after + 1, project.record(name).epoch + 1))
        assert epochs(project, name) == list(range(project.record(name).epoch + 1)), "one commit for each epoch"
        assert losers(project, name) == []
    project.refresh("large")
    assert_exact(project, CHECKS if step == "verified" else QUICK_CHECKS)


def test_a_creation_that_was_killed_between_empty_table_and_first_commit_is_taken_up(
    project: Project, kill: Callable[..., None]
) -> None:
    kill("large", "verified", 1)
    source = project.workspace().table(project.declared["orders"]).output
    assert (source.look().version, source.look().exists) == (0, False)
    kill("large", "verified", 2)
    assert source.look().exists
    assert not project.workspace().table(project.declared["large"]).output.look().exists
    project.refresh("large")
    project.refresh("orders")
    assert_exact(project, QUICK_CHECKS)


@pytest.mark.full
def test_a_run_that_is_killed_while_spark_writes_leaves_nothing_that_counts(
    project: Project, topic: str, remote: str
) -> None:
    project.declare(*declared(topic))
    process = start(project, topic, remote, {"refresh": "slow", "chunk_rows": 24})
    folder = project.root / "warehouse" / "views" / "slow"
    wait_until(lambda: any(folder.glob("*-*-*/_temporary/**/*.parquet")))
    process.kill()
    # Its parent has not collected it yet: a dead process that is a zombie holds no lease.
    wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "Z")
    assert project.record("slow").epoch == 0
    done = project.refresh("slow")
    assert [each.epoch for each in done.report.epochs] == [1, 2]
    process.communicate(timeout=LIMIT)
    assert project.rows("slow", "id") == Counter((each["id"],) for each in EVENTS)
    assert project.check("slow", "rows_conserved").passed
    # The server may still be running the dead run's job, and writing into its folder.
    wait_until(lambda: maintain(project.workspace(), "slow") == [] and losers(project, "slow") == [])
    assert project.rows("slow", "id") == Counter((each["id"],) for each in EVENTS)


def assert_exact(project: Project, checks: Iterable[str]) -> None:
    assert project.rows("orders", "id", "amount") == SOURCE
    assert project.rows("large", "id", "twice") == LARGE
    for name in ("orders", "large"):
        for check in checks:
            outcome = project.check(name, check)
            assert outcome.passed, (name, check, outcome)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
