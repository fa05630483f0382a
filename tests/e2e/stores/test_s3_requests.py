"""Few rows are written to an object store by this process: what it takes in requests, and that nothing else differs."""

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.few_rows import staged_rows
from tests.support.over_connect import over_connect
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of
from tests.support.s3_proxy import S3Proxy, before
from tests.support.servers import FOLDER

pytestmark = pytest.mark.e2e

MOST = {"orders": 51, "large": 78, "sums": 92}
"""Requests of a refresh with one epoch of 1,000 records, in a process of its own, on young logs."""


@pytest.fixture
def counted(on_s3: Project, s3: dict[str, str]) -> Iterator[tuple[Project, S3Proxy]]:
    """A project that reaches its warehouse through a proxy, as Spark does: in a bucket of its own, as a Spark server keeps
    the address at which it has reached a bucket first."""
    bucket = f"counted-{uuid.uuid4().hex}"
    Path(os.environ[FOLDER], ".backfill", "s3", "data", bucket).mkdir()
    with before(s3["AWS_ENDPOINT_URL"]) as proxy:
        storage = {**on_s3.storage, "endpoint": proxy.endpoint}
        yield replace(on_s3, warehouse=f"s3://{bucket}/warehouse", storage=storage), proxy


@pytest.mark.parametrize("names", [["orders"], pytest.param([*MOST], marks=pytest.mark.full)], ids=["source", "views"])
def test_a_refresh_of_a_thousand_records_takes_few_requests(
    counted: tuple[Project, S3Proxy], remote: str, names: list[str]
) -> None:
    project, proxy = counted
    runs = Processes(remote)
    topic = project.topic()
    project.declare(*declared(topic))
    order = order_of(project, topic)
    took: dict[str, int] = {}
    for first in (0, 1000):
        project.produce(topic, [{"id": number, "amount": number / 4} for number in range(first, first + 1000)])
        for name in names:
            proxy.requests()
            assert runs.run(order, {"refresh": name, "chunk_rows": 10_000})[0] == 0
            took[name] = len(proxy.requests())
    runs.close()
    assert project.rows("orders", "id") == Counter((number,) for number in range(2000))
    assert "sums" not in took or project.rows("sums", "n") == Counter([(667,), (667,), (666,)])
    assert all(took[name] <= MOST[name] for name in names), took


def test_rows_are_staged_alike_by_spark_and_by_this_process(on_s3: Project, remote: str) -> None:
    place = on_s3.workspace().store.place
    found = over_connect(remote, staged_rows, place.uri, json.dumps(dict(place.storage_options)))
    assert found["few"]["by"] == ["part-"] * 3
    assert found["much"]["by"] == ["part-00000-"] * 3
    for kind in ("few", "much"):
        assert found[kind]["counts"] == {"insert": 4, "update": 2, "delete": 1, "odd": 3, "bytes": 5}
        assert found[kind]["rows"] == found[kind]["wanted"]
    assert found["none"] == {"insert": 0, "files": 0}
