"""What happens to records: every part arrives unchanged, records that cannot be parsed are kept with the reason, and
views get the others."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer

from backfill_assets import kafka_source, materialized_view
from backfill_assets.app.lifecycle import reset
from backfill_assets.errors import UpstreamChangedError
from tests.support.project import SECONDS, Project

pytestmark = pytest.mark.e2e

WHEN = datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def send(project: Project, topic: str, value: bytes | None, **parts: Any) -> None:
    producer = Producer({"bootstrap.servers": project.servers})
    producer.produce(topic, value, partition=0, **parts)
    assert producer.flush(SECONDS) == 0


def proved(project: Project, *names: str) -> None:
    for name in names:
        for check in ("exactly_once", "unique_key", "rows_conserved", "positions_contiguous"):
            outcome = project.check(name, check)
            assert outcome.passed, (name, check, outcome)


@pytest.mark.full
def test_every_part_of_a_record_arrives_unchanged_and_bad_ones_keep_value_and_reason(project: Project) -> None:
    topic = project.topic(partitions=2, config={"message.timestamp.type": "CreateTime", "retention.ms": "-1"})
    headers = [("a", b"1"), ("a", b"\xff\x00"), ("none", None), ("", b"")]
    when = int(WHEN.timestamp() * 1000)
    send(project, topic, b'{"id": 1}', key=b"\x00key\xff", headers=headers, timestamp=when)
    send(project, topic, b'{"id": 2}', key=b"")
    send(project, topic, None, key=b"gone")  # a tombstone
    send(project, topic, b"")
    send(project, topic, b"not json \xff")
    send(project, topic, b'{"id": "many"}')
    send(project, topic, b'{"id": null}')
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    raw = kafka_source("raw", topic=topic, schema="body BINARY", format="raw")
    text = kafka_source("text", topic=topic, schema="body STRING", format="raw")
    query = "SELECT id, _key AS k, _timestamp AS at, _headers AS h FROM orders"
    view = materialized_view("good", query=query, upstreams=[orders])
    project.declare(orders, raw, text, view)
    for name in ("good", "orders", "raw", "text"):
        project.refresh(name)

    kept = tuple((("key", name), ("value", value)) for name, value in headers)
    (first,) = [row for row in project.rows("good", "id", "k", "at", "h") if row[0] == 1]
    assert first == (1, b"\x00key\xff", WHEN, kept)
    assert project.rows("good", "id", "k") == Counter([(1, b"\x00key\xff"), (2, b""), (None, None)])
    bad = {row[0]: row[1:] for row in project.rows("orders", "_offset", "_value", "_error", "_key", "id")}
    assert bad[0][:2] == (None, None)
    assert bad[6][:2] == (None, None)
    assert (bad[2][0], bad[2][2]) == (None, b"gone")
    assert [bad[offset][0] for offset in (3, 4, 5)] == [b"", b"not json \xff", b'{"id": "many"}']
    assert all(bad[offset][1] and bad[offset][3] is None for offset in (2, 3, 4, 5))
    bodies = project.rows("raw", "_offset", "body")
    assert bodies[4, b"not json \xff"] == bodies[3, b""] == bodies[2, None] == 1
    texts = project.rows("text", "_offset", "body", "_value")
    assert texts[4, None, b"not json \xff"] == texts[0, '{"id": 1}', None] == 1
    proved(project, "orders", "raw", "text", "good")


@pytest.mark.full
def test_views_share_sources_and_read_each_of_them_as_often_as_they_name_it(project: Project) -> None:
    one, two = project.topic(partitions=2), project.topic(partitions=1)
    numbers = [{"id": number} for number in range(8)]
    project.produce(one, numbers[:4])
    orders = kafka_source("orders", topic=one, schema="id LONG")
    clicks = kafka_source("clicks", topic=two, schema="id INT", bronze="new")
    small = "SELECT id FROM orders WHERE id < 3 UNION ALL SELECT id + 100 AS id FROM orders"
    before = materialized_view("before", query=small, upstreams=[orders])
    mixed = "SELECT id FROM orders UNION ALL SELECT id FROM clicks"
    during = materialized_view("during", query=mixed, upstreams=[orders, clicks])
    none = materialized_view("none", query="SELECT id FROM orders WHERE 1 = 0", upstreams=[orders])
    project.declare(orders, clicks, before, during, none)

    project.refresh("before")
    project.refresh("orders")
    project.produce(one, numbers[4:6])
    project.produce(two, numbers[:2])
    project.refresh("clicks")  # created now, so its bronze table has nothing older
    project.refresh("during")
    project.produce(one, numbers[6:])
    project.produce(two, numbers[2:4])
    for name in ("orders", "clicks", "before", "during", "none"):
        project.refresh(name)

    eight = [(number,) for number in range(8)]
    assert project.rows("before", "id") == Counter(eight[:3] + [(number + 100,) for (number,) in eight])
    assert project.rows("during", "id") == Counter(eight + eight[:4])
    assert project.rows("none") == Counter()
    assert project.rows("clicks", "id") == Counter(eight[2:4])
    proved(project, "orders", "clicks", "before", "during", "none")


@pytest.mark.full
def test_an_empty_topic_gives_live_tables_and_a_reset_source_stops_its_views(project: Project) -> None:
    topic = project.topic(partitions=2)
    orders = kafka_source("orders", topic=topic, schema="id LONG")
    project.declare(orders, materialized_view("copy", query="SELECT id FROM orders", upstreams=[orders]))
    assert project.refresh("copy").first_live
    assert project.refresh("orders").first_live
    assert not project.refresh("orders").first_live
    project.produce(topic, [{"id": 1}], partition=1)
    project.refresh("orders")
    project.refresh("copy")
    assert project.rows("copy", "id") == Counter([(1,)])

    reset(project.workspace(), "orders")
    held = project.workspace().table(project.declared["copy"]).output.look().version
    with pytest.raises(UpstreamChangedError, match="source 'orders' was reset") as caught:
        project.refresh("copy")
    assert "reset copy" in caught.value.hint
    assert project.workspace().table(project.declared["copy"]).output.look().version == held
    project.refresh("orders")
    reset(project.workspace(), "copy")
    project.refresh("copy")
    assert project.rows("copy", "id") == project.rows("orders", "id") == Counter([(1,)])
    proved(project, "orders", "copy")
