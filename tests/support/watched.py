"""A scenario during which everything that Spark shows is collected: all pages and REST answers of its UI, events, logs,
plans.

It runs in a process of its own, `python -m tests.support.watched ROOT SERVERS TOPIC UI`. What Spark's UI at the address
UI shows afterwards is stored in the folder `ROOT/shown`.
"""

import contextlib
import io
import json
import os
import re
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from backfill_assets import kafka_source, materialized_view
from backfill_assets.adapters.compute.source_compute import kafka_rows
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.declare.model import KafkaSource
from tests.support.project import Project
from tests.support.settings import SPARK

__all__ = ["KEY", "PASSWORD", "kept_in"]

PASSWORD = "PassWord-4711"
KEY = "KeyOfTheClient4712"
CLIENT = {
    "sasl.mechanism": "PLAIN",
    "sasl.username": "reader",
    "sasl.password": "env:WATCHED_PASSWORD",
    "ssl.key.password": "env:WATCHED_PASSWORD",
}
"""A broker without security requires no secrets, but Spark gets all of them."""

REFUSED = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.request.timeout.ms": "2000",
    "kafka.default.api.timeout.ms": "2000",
}
"""Options with which Spark's client fails at a broker without security."""

REST = (
    "environment",
    "sql?details=true&planDescription=true&length=1000",
    "jobs",
    "stages?details=true",
    "storage/rdd",
)
PAGES = ("environment", "jobs", "stages", "storage", "executors", "SQL", "connect")
LINK = re.compile(r"""href=["'](/(?:SQL/execution|jobs/job|stages/stage|connect/session)/[^"'#]*)""")


def kept_in(folder: Path, ui: int) -> dict[str, str]:
    """Settings of a Spark that shows as much as possible, at a port, and stores it in a folder."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    return {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.log.level": "INFO",
    }


def source_of(root: Path, topic: str) -> KafkaSource:
    """A source with all kinds of secrets."""
    certificate = {"ssl.certificate.location": str(root / "cert.pem"), "ssl.key.location": str(root / "key.pem")}
    return kafka_source(
        "orders", topic=topic, schema="value BINARY", format="raw", client_config={**CLIENT, **certificate}
    )


def told(workspace: Workspace, topic: str) -> Iterator[str]:
    """The plans, and the error of a client that the broker refuses."""
    reader = workspace.reader(workspace.registry.source("orders"))
    ranges = {0: OffsetRange(start=0, end=2)}
    read = KafkaRead(source="orders", topic=topic, isolation="read_committed", ranges=ranges)
    rows = workspace.runner.run(lambda spark: kafka_rows(spark, read, reader))
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        with contextlib.redirect_stdout(io.StringIO()) as plan:
            rows.explain(mode=mode)
        yield plan.getvalue()
    refused = replace(reader, kafka_options=lambda: {**reader.kafka_options(), **REFUSED})
    try:
        workspace.runner.run(lambda spark: kafka_rows(spark, read, refused).collect())
    except Exception as error:
        yield "".join(traceback.format_exception(error))
    else:
        raise AssertionError("a broker without security took a client that logs in")


def shown(ui: str) -> Iterator[str]:
    """Every page and every REST answer of Spark's UI."""

    def get(path: str) -> str:
        with urllib.request.urlopen(f"{ui}/{path}", timeout=30) as answer:
            return str(answer.read().decode())

    (application,) = json.loads(get("api/v1/applications"))
    for path in REST:
        yield get(f"api/v1/applications/{application['id']}/{path}")
    pages = [get(f"{path}/") for path in PAGES]
    yield from pages
    for link in sorted({link.replace("&amp;", "&") for page in pages for link in LINK.findall(page)}):
        yield get(link.removeprefix("/"))


class Watched(Project):
    """A project whose Spark, if it is in this process, is configured by `WATCHED_CONFIG`."""

    def workspace(self, on_step: Callable[[str], None] = lambda _step: None) -> Workspace:
        """Unchanged, except for Spark's settings."""
        config = {**SPARK, **json.loads(os.environ["WATCHED_CONFIG"])}
        return replace(super().workspace(on_step), spark=SparkResource(root=str(self.root), config=config))


def main(root: str, servers: str, topic: str, ui: str) -> None:
    """Run the scenario, and store what was shown."""
    project = Watched(root=Path(root), servers=servers)
    source = source_of(project.root, topic)
    project.declare(source, materialized_view("large", query="SELECT value FROM orders", upstreams=[source]))
    for name in ("large", "orders"):
        project.refresh(name)
    assert project.check("large").passed
    workspace = project.workspace()
    texts = [*told(workspace, topic), *shown(ui)]
    (project.root / "shown").mkdir()
    for number, text in enumerate(texts):
        (project.root / "shown" / str(number)).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
