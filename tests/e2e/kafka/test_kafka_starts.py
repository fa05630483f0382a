"""Where history begins: each form of `start` is resolved once, when the source is created, and stored."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource

from backfill_assets import kafka_source, materialized_view
from backfill_assets.core.progress.positions import IngestPosition
from backfill_assets.declare.arguments import Start
from backfill_assets.errors import OffsetsLostError
from tests.support.broker import delete_before
from tests.support.project import SECONDS, Project

pytestmark = pytest.mark.e2e

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
MINUTE = 60_000


def test_the_local_broker_keeps_history_until_a_topic_says_otherwise(project: Project) -> None:
    asked = ConfigResource(ConfigResource.Type.TOPIC, project.topic())
    (found,) = [each.result(SECONDS) for each in project.admin.describe_configs([asked]).values()]
    assert found["retention.ms"].value == "-1"


def send_by_the_minute(project: Project, topic: str, first: int, last: int) -> None:
    """Record n goes to partition 0 at n minutes after noon; partition 1 stays empty."""
    producer = Producer({"bootstrap.servers": project.servers})
    for number in range(first, last):
        when = int(NOON.timestamp() * 1000) + number * MINUTE
        producer.produce(topic, b'{"id": %d}' % number, partition=0, timestamp=when)
    assert producer.flush(SECONDS) == 0


def start_of(project: Project, name: str) -> dict[int, int]:
    position = project.record(name).position
    assert isinstance(position, IngestPosition)
    return position.history


STARTS: dict[str, tuple[Start, dict[int, int]]] = {
    "earliest": ("earliest", {0: 2, 1: 0}),
    "latest": ("latest", {0: 8, 1: 0}),
    "at_five": (NOON.replace(minute=5), {0: 5, 1: 0}),
    "between": (NOON.replace(minute=4, second=1), {0: 5, 1: 0}),
    "long_ago": (datetime(1999, 1, 1, tzinfo=UTC), {0: 2, 1: 0}),
    "some_day": (datetime(2999, 1, 1, tzinfo=UTC), {0: 8, 1: 0}),
    "named": ({0: 6, 1: 0}, {0: 6, 1: 0}),
    "at_the_end": ({0: 8, 1: 0}, {0: 8, 1: 0}),
}


def test_every_form_of_start_is_resolved_once_and_holds_for_views_too(project: Project) -> None:
    topic = project.topic(partitions=2, config={"message.timestamp.type": "CreateTime", "retention.ms": "-1"})
    send_by_the_minute(project, topic, 0, 8)
    delete_before(project, topic, 2)
    for name, (start, _) in STARTS.items():
        source = kafka_source(name, topic=topic, schema="id LONG", start=start)
        project.declare(source)
    workspace = project.workspace()
    for name in STARTS:
        workspace.sources.create_bronze(name)
    send_by_the_minute(project, topic, 8, 10)
    assert {name: start_of(project, name) for name in STARTS} == {name: held for name, (_, held) in STARTS.items()}

    five, latest = workspace.registry.source("at_five"), workspace.registry.source("latest")
    query = "SELECT id FROM at_five UNION ALL SELECT id FROM latest"
    project.declare(materialized_view("both", query=query, upstreams=[five, latest]))
    project.refresh("both")
    assert project.rows("both", "id") == Counter([(number,) for number in (5, 6, 7, 8, 9, 8, 9)])
    project.refresh("latest")
    project.refresh("at_five")
    assert project.rows("latest", "id") == Counter([(8,), (9,)])
    assert project.refresh("both").progress.lag_rows == 0
    assert sum(project.rows("both").values()) == 7
    assert start_of(project, "latest") == {0: 8, 1: 0}


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({0: 1, 1: 0}, "start offset 1 of partition 0 is not in topic .* which has 2 .earliest. to 8"),
        ({0: 9, 1: 0}, "start offset 9 of partition 0 is not in topic"),
        ({0: 8, 1: 1}, "start offset 1 of partition 1 is not in topic .* which has 0"),
        ({0: 8, 1: 0, 2: 0}, r"start names partitions \[0, 1, 2\], but topic .* has \[0, 1\]"),
        ({0: 8}, r"start names partitions \[0\], but topic .* has \[0, 1\]"),
    ],
)
def test_a_start_that_the_topic_does_not_have_is_refused_and_nothing_is_created(
    project: Project, start: dict[int, int], said: str
) -> None:
    topic = project.topic(partitions=2)
    send_by_the_minute(project, topic, 0, 8)
    delete_before(project, topic, 2)
    orders = kafka_source("orders", topic=topic, schema="id LONG", start=start)
    project.declare(orders, materialized_view("copy", query="SELECT id FROM orders", upstreams=[orders]))
    for name in ("orders", "copy"):
        with pytest.raises(OffsetsLostError, match=said) as caught:
            project.refresh(name)
        assert caught.value.hint
    assert not (project.root / "warehouse" / "sources").exists()
    assert not (project.root / "warehouse" / "views").exists()
