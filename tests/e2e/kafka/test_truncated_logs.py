"""A broker whose log is replaced by an older copy and filled again: the lost records are noticed, and a mere restart is
not reported."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.kafka.connector import KafkaClient
from backfill_assets.adapters.kafka.log import LogReader
from backfill_assets.adapters.local.servers import down, up
from backfill_assets.core.epoch.ports import TopicState
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import BackfillError, LogTruncatedError
from tests.support.broker import abort, commit, end_of, wait_until
from tests.support.project import Project

pytestmark = pytest.mark.e2e


@dataclass
class Broker:
    """A broker for one test, which may stop it and restore its data."""

    root: Path

    @property
    def data(self) -> Path:
        """The folder of its logs and its metadata."""
        return self.root / ".backfill" / "kafka" / "data"

    def start(self) -> str:
        """Start it; returns its address, which stays the same."""
        servers = up(self.root, spark=False).bootstrap_servers
        assert servers is not None
        return servers

    def stop(self) -> None:
        """Stop it."""
        down(self.root)

    def restore_backup(self, copy: Path, name: str = "") -> None:
        """Replace its data, or one folder of it, by a copy."""
        shutil.rmtree(self.data / name)
        shutil.copytree(copy, self.data / name)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "broker")
    made.root.mkdir()
    yield made
    made.stop()


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def ids(*numbers: int) -> Counter[tuple[int]]:
    return Counter((number,) for number in numbers)


def declare(project: Project, **topics: str) -> None:
    for name, topic in topics.items():
        source = kafka_source(name, topic=topic, schema="id LONG")
        project.declare(source, materialized_view(f"{name}_view", query=f"SELECT id FROM {name}", upstreams=[source]))


def refused(project: Project, name: str, *ranges: dict[int, tuple[int, int]]) -> None:
    """A refresh that fails, names one of these ranges, and writes nothing."""
    before = project.workspace().table(project.declared[name]).output.location.load()
    with pytest.raises(LogTruncatedError, match="lost the end of its log") as caught:
        project.refresh(name)
    after = project.workspace().table(project.declared[name]).output.location.load()
    assert caught.value.facts["ranges"] in ranges
    assert "backfill reset lost" in caught.value.hint
    assert before is None or (after is not None and after.version() == before.version())


def offered(client: KafkaClient, topic: str) -> TopicState:
    """The contents of a topic, as soon as its new leader knows them."""
    found: list[TopicState] = []

    def answered() -> bool:
        try:
            found.append(client.offer(topic, isolation="read_committed"))
        except BackfillError:
            return False
        return True

    wait_until(answered)
    return found[-1]


def test_a_log_restored_and_filled_again_is_refused_and_a_restart_is_not(broker: Broker, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", broker.start())
    kept, lost = project.topic(partitions=1), project.topic(partitions=1)
    declare(project, kept=kept, lost=lost)
    project.produce(kept, rows(1, 2, 3))
    project.produce(lost, rows(1, 2, 3))
    shutil.copytree(broker.data / f"{lost}-0", tmp_path / "copy")
    project.produce(lost, rows(4, 5, 6))
    for name in ("kept", "lost"):
        project.refresh(name)
    client = project.workspace().sources.client(project.workspace().registry.source("lost"))
    log = LogReader(client, isolation="read_committed")
    (before,) = offered(client, lost).epochs.values()
    (last,) = log.last_records(lost, {0: OffsetRange(start=4, end=6)}).values()
    assert (last.offset, log.diverged(lost, {0: (6, before)})) == (5, {})

    broker.stop()
    broker.restore_backup(tmp_path / "copy", f"{lost}-0")
    broker.start()
    project = Project(project.root, project.servers, project.declared)
    (now,) = offered(client, lost).epochs.values()
    project.produce(lost, rows(14, 15, 16, 17))
    project.produce(kept, rows(4))

    assert now > before
    for _ in range(2):  # a consumer that has checked before checks just as thoroughly
        assert log.diverged(lost, {0: (6, before)}) == {0: 3}
        assert log.diverged(lost, {0: (3, before)}) == log.diverged(lost, {0: (7, now)}) == {}
    assert log.last_records(lost, {0: OffsetRange(start=5, end=6)})[0].digest != last.digest
    refused(project, "lost", {0: (3, 6)})
    refused(project, "lost_view", {0: (3, 6)})
    assert project.rows("lost", "id") == ids(1, 2, 3, 4, 5, 6)
    project.refresh("kept")
    assert project.rows("kept", "id") == ids(1, 2, 3, 4)


@pytest.mark.full
def test_a_cluster_restored_with_its_metadata_is_refused_though_it_gives_epochs_out_again(
    broker: Broker, tmp_path: Path
) -> None:
    project = Project(tmp_path / "project", broker.start())
    topic = project.topic(partitions=1)
    declare(project, lost=topic)
    commit(project, topic, *rows(1, 2, 3))
    broker.stop()
    shutil.copytree(broker.data, tmp_path / "copy")

    def go_on(*transactions: Callable[[Project], None]) -> Project:
        broker.start()
        new = Project(project.root, project.servers, project.declared)
        client = new.workspace().sources.client(new.workspace().registry.source("lost"))
        offered(client, topic)
        for each in transactions:
            each(new)
        return new

    project = go_on(lambda new: commit(new, topic, *rows(4, 5)), lambda new: abort(new, topic, *rows(-1)))
    wait_until(lambda: end_of(project, topic) >= 9)  # a broker that has just started may write a marker twice
    project.refresh("lost")
    project.refresh("lost_view")
    end = end_of(project, topic)
    broker.stop()
    broker.restore_backup(tmp_path / "copy")
    project = go_on(lambda new: commit(new, topic, *rows(14, 15, 16, 17, 18, 19)))

    # Both brokers may have written a marker again when they started, the same at the same offset.
    refused(project, "lost", {0: (4, end)}, {0: (5, end)})
    assert project.rows("lost", "id") == project.rows("lost_view", "id") == ids(1, 2, 3, 4, 5)
