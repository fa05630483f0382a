"""Groups of the records of a topic are proved like others: of all records, and of those that came since the last pass."""

import pytest

from backfill_assets import kafka_source, materialized_view
from tests.support.damage import first, recompact
from tests.support.project import Project

pytestmark = pytest.mark.e2e


def test_a_changed_value_is_found(project: Project) -> None:
    topic = project.topic(partitions=1)
    clicks = kafka_source("clicks", topic=topic, schema="id LONG")
    query = "SELECT id % 3 AS part, count(*) AS n FROM clicks GROUP BY id % 3"
    project.declare(clicks, materialized_view("parts", query=query, upstreams=[clicks]))
    project.produce(topic, ({"id": at} for at in range(12)), partition=0)
    project.refresh("parts")
    assert project.check("parts").passed
    recompact(project, "parts", first(lambda row: {"n": row["n"] + 1}))
    for full in (True, False):
        found = project.check("parts", full=full)
        assert (found.passed, found.facts["missing"], found.facts["unexpected"]) == (False, 1, 1)
