"""Queries over whole tables read the tables of Kafka sources, together with Delta tables: all good records, and no
others."""

from collections import Counter

import pytest

from backfill_assets import kafka_source, materialized_view
from backfill_assets.errors import UpstreamNotLiveError
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

NAMED = "SELECT o.id, o.customer, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id"
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer HAVING count(*) > 1"
NAMES = {0: "Ada", 1: "Ben"}


def records(*numbers: int) -> list[dict[str, int]]:
    return [{"id": at, "customer": at % 3, "amount": at} for at in numbers]


def named(*numbers: int) -> Counter[tuple[object, ...]]:
    return Counter((at, at % 3, NAMES.get(at % 3)) for at in numbers)


def totals(*numbers: int) -> Counter[tuple[object, ...]]:
    groups = {key: [at for at in numbers if at % 3 == key] for key in range(3)}
    return Counter((key, len(found), sum(found)) for key, found in groups.items() if len(found) > 1)


def test_a_topic_is_joined_with_a_table_and_grouped_and_bad_records_are_in_neither(project: Project) -> None:
    topic, lake = project.topic(partitions=2), Lake(project.root, project.servers)
    lake.append("customers", [{"id": key, "name": name} for key, name in NAMES.items()])
    orders = kafka_source("orders", topic=topic, schema="id LONG, customer LONG, amount LONG")
    project.declare(
        orders,
        materialized_view(
            "named", query=NAMED, upstreams=[orders, lake.table("customers")], refresh_mode="incremental"
        ),
        materialized_view("totals", query=TOTALS, upstreams=[orders]),
    )
    with pytest.raises(UpstreamNotLiveError, match="waits for source 'orders', which was never created"):
        project.refresh("named")
    project.produce(topic, records(*range(5)))
    project.produce(topic, [b"no json"])
    for name in ("orders", "named", "totals"):
        project.refresh(name)
    assert project.rows("named", "id", "customer", "name") == named(*range(5))
    assert project.rows("totals", "customer", "n", "total") == totals(*range(5))
    project.produce(topic, records(*range(5, 9)))
    lake.sql("customers", "UPDATE {t} SET name = 'Ben' WHERE id = 1")
    for name in ("orders", "named", "totals"):
        project.refresh(name)
    assert project.rows("named", "id", "customer", "name") == named(*range(9))
    assert project.rows("totals", "customer", "n", "total") == totals(*range(9))
    failed = [
        (name, check) for name in ("named", "totals") for check in CHECKS if not project.check(name, check).passed
    ]
    assert failed == []
    project.produce(topic, records(9))
    project.refresh("orders")
    assert project.refresh("named").report.record.rule == "linear"
    assert project.rows("named", "id", "customer", "name") == named(*range(10))
