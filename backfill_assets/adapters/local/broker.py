"""The embedded broker: one real Kafka node (KRaft, broker and controller in one process) with its files in a folder."""

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from backfill_assets.adapters.runtime.jars import kafka_jars
from backfill_assets.adapters.runtime.java import java_command
from backfill_assets.adapters.runtime.processes import Process, start, wait_until
from backfill_assets.adapters.runtime.tcp_ports import HOST, accepts, free_port
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["start_broker", "wait_for_broker"]

_START_LIMIT = 60.0
_HEAP = ("-Xms128m", "-Xmx384m")
_LOG = "broker.log"
# Relative to the broker's folder: a properties file is in Latin-1, which a path need not be.
_DATA = "data"
_SERVER_FILE = "server.properties"
_LOG4J_FILE = "log4j2.properties"

_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""

_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=BROKER://{host}:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={data}

# Topics are made on purpose, with a number of partitions that someone chose.
auto.create.topics.enable=false

# One node: one replica of everything, and few partitions for the broker's own topics.
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0

# A broker that was killed may register again only when its last session has run out (9 s by default).
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=1000

# A small heap: the cleaner's buffer is 128 MB by default.
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4

# History stays until a topic says otherwise; a topic that does is obeyed within seconds.
log.retention.ms=-1
log.retention.check.interval.ms=5000
log.cleaner.backoff.ms=1000
log.initial.task.delay.ms=1000
"""


def start_broker(folder: Path, *, port: int) -> Process:
    """Start the broker on `port`; its data in `folder` is created on the first start and then kept.

    Returns at once; `wait_for_broker` waits until it is ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = _SERVER.format(host=HOST, port=port, controller_port=free_port(other_than=[port]), data=_DATA)
    (folder / _SERVER_FILE).write_text(settings)
    (folder / _LOG4J_FILE).write_text(_LOG4J)
    if _cluster_id(folder) is None:
        _format(folder)
    return start([*_java(*_HEAP), "kafka.Kafka", _SERVER_FILE], folder=folder, log=folder / _LOG, environment=_clean())


def wait_for_broker(folder: Path, *, port: int, process: Process) -> None:
    """Wait until this broker (known by its cluster id) answers on `port`; errors as `wait_until`."""
    wait_until(
        lambda: accepts(port) and _answering_cluster(port) == _cluster_id(folder),
        process=process,
        name="The embedded Kafka broker",
        log=folder / _LOG,
        limit=_START_LIMIT,
    )


def _format(folder: Path) -> None:
    # A leading letter, because Kafka's tools mistake an id that begins with "-" for an option.
    cluster_id = "b" + urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    command = [*_java(), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", _SERVER_FILE]
    done = subprocess.run(command, cwd=folder, env=_clean(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentSetupError(
            f"The data folder of the embedded broker, {folder / _DATA}, could not be created: {done.stderr.strip()}",
            hint="If the disk is full, free some space; then run the same command again.",
        )


def _java(*options: str) -> list[str]:
    classes = os.pathsep.join(str(jar) for jar in kafka_jars())
    return [java_command(), *options, f"-Dlog4j2.configurationFile={_LOG4J_FILE}", "-cp", classes]


def _clean() -> dict[str, str]:
    return {**os.environ, "TZ": "UTC"}


def _cluster_id(folder: Path) -> str | None:
    """The id in the broker's data, which is written as the last step of formatting."""
    try:
        lines = (folder / _DATA / "meta.properties").read_text().splitlines()
    except FileNotFoundError:
        return None
    return dict(line.split("=", 1) for line in lines if "=" in line).get("cluster.id")


def _answering_cluster(port: int) -> str | None:
    try:
        admin = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        cluster_id: str | None = admin.list_topics(timeout=2.0).cluster_id
    except KafkaException:
        return None
    return cluster_id
