"""The embedded servers, for real: started, found, stopped, started again."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from backfill_assets.adapters.local.servers import Endpoints, down, endpoints, up
from backfill_assets.errors import EnvironmentSetupError

pytestmark = pytest.mark.e2e

USE_SPARK = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(3).write.format("delta").save(sys.argv[1])
print(spark.read.format("delta").load(sys.argv[1]).count(), spark.conf.get("spark.sql.session.timeZone"))
spark.stop()
"""


@pytest.fixture(autouse=True)
def no_named_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKFILL_KAFKA_PORT", raising=False)
    monkeypatch.delenv("BACKFILL_SPARK_PORT", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    down(tmp_path)


def admin(found: Endpoints) -> AdminClient:
    return AdminClient({"bootstrap.servers": found.bootstrap_servers or "", "log_level": 0})


def recorded(root: Path) -> dict[str, dict[str, int]]:
    content: dict[str, dict[str, dict[str, int]]] = json.loads((root / ".backfill" / "endpoints.json").read_text())
    return content["processes"]


def runs(pid: int) -> bool:
    """Whether the process is alive; the system decides when its zombie is collected."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.full
def test_both_servers_come_up_once_serve_and_go_down(root: Path) -> None:
    first = up(root)
    processes = recorded(root)
    assert up(root) == first == endpoints(root)
    assert recorded(root) == processes, "a second call starts nothing"
    assert first.bootstrap_servers is not None
    assert first.spark_remote is not None

    # In a process of its own: PySpark, once attached to a server, refuses sessions inside of that process. As the README
    # has it: PySpark sends a token without TLS to `localhost` alone.
    by_hand = {
        "SPARK_REMOTE": first.spark_remote.replace("127.0.0.1", "localhost"),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": (root / ".backfill" / "spark" / "token").read_text(),
    }
    told = subprocess.run(
        [sys.executable, "-c", USE_SPARK, str(root / "table")],
        env={**os.environ, **by_hand}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert told.stdout.split() == ["3", "UTC"]

    assert down(root) == ("kafka", "spark")
    assert endpoints(root) is None
    assert not any(runs(process["pid"]) for process in processes.values())
    assert down(root) == ()


@pytest.mark.full
def test_topics_cluster_and_port_survive_down_and_up(root: Path) -> None:
    before = up(root, spark=False)
    client = admin(before)
    client.create_topics([NewTopic("orders", num_partitions=3)])["orders"].result()
    cluster = client.list_topics(timeout=5).cluster_id
    down(root)
    after = up(root, spark=False)
    assert after == before
    found = admin(after).list_topics(timeout=5)
    assert found.cluster_id == cluster
    assert len(found.topics["orders"].partitions) == 3


@pytest.mark.full
def test_a_killed_broker_counts_as_down_and_comes_up_again(root: Path) -> None:
    before = up(root, spark=False)
    broker = psutil.Process(recorded(root)["kafka"]["pid"])
    broker.kill()
    broker.wait(10)
    assert endpoints(root) is None
    assert up(root, spark=False) == before


def test_an_entry_whose_process_id_now_belongs_to_another_process_is_stale(root: Path) -> None:
    (root / ".backfill").mkdir()
    stale = {"ports": {"kafka": 1}, "processes": {"kafka": {"pid": os.getpid(), "created": 0.5}}}
    (root / ".backfill" / "endpoints.json").write_text(json.dumps(stale))
    assert endpoints(root) is None
    assert down(root) == (), "this very test would have been stopped"


@pytest.mark.parametrize(("variable", "kafka"), [("BACKFILL_KAFKA_PORT", True), ("BACKFILL_SPARK_PORT", False)])
def test_a_named_port_that_is_taken_is_an_error_that_names_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str, kafka: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv(variable, str(port))
        with pytest.raises(EnvironmentSetupError, match=f"Port {port}, which {variable} names for .* is taken"):
            up(root, kafka=kafka, spark=not kafka)
    assert endpoints(root) is None


def test_a_broker_that_dies_while_starting_shows_the_end_of_its_log(root: Path) -> None:
    kafka = root / ".backfill" / "kafka"
    (kafka / "data").mkdir(parents=True)
    (kafka / "data" / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=7\n")
    with pytest.raises(EnvironmentSetupError, match=r"(?s)broker stopped while it was starting.*node.?id"):
        up(root, spark=False)
    assert endpoints(root) is None
