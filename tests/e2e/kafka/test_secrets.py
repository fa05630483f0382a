"""Secrets of Kafka clients are in nothing that Spark shows or stores: UI, REST answers, events, logs, plans, errors."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from backfill_assets.adapters.local import servers, spark_programs
from backfill_assets.adapters.local.servers import down, spark_token, up
from backfill_assets.adapters.runtime.spark_conf import spark_conf
from backfill_assets.adapters.runtime.tcp_ports import free_port
from backfill_assets.adapters.spark.session import Remote
from tests.support.project import Project
from tests.support.settings import one_in_gate
from tests.support.watched import KEY, PASSWORD, kept_in

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
VERBOSE = spark_programs._LOG4J.replace("rootLogger.level = warn", "rootLogger.level = info")


@pytest.fixture
def ui() -> int:
    return free_port()


@pytest.fixture(params=one_in_gate("connect", "in-process"))
def environment(
    request: pytest.FixtureRequest, project: Project, ui: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mapping[str, str]]:
    """How a run gets a Spark that shows and stores as much as it can, as on a cluster."""
    settings = kept_in(project.root, ui)
    if request.param == "in-process":
        yield {"WATCHED_CONFIG": json.dumps(settings)}
        return
    monkeypatch.setattr(servers, "spark_conf", lambda **given: {**spark_conf(**given), **settings})
    monkeypatch.setattr(spark_programs, "_LOG4J", VERBOSE)
    address = up(project.root, kafka=False).spark_remote
    assert address is not None
    yield {"SPARK_REMOTE": Remote(url=address, token=spark_token(project.root)).full, "WATCHED_CONFIG": "{}"}
    down(project.root)


@pytest.mark.full
def test_no_secret_is_shown_or_kept_by_spark(project: Project, ui: int, environment: Mapping[str, str]) -> None:
    topic = project.topic(partitions=1)
    project.produce(topic, [{"id": number} for number in range(4)])
    (project.root / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    (project.root / "key.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.watched", str(project.root), project.servers, topic, f"http://127.0.0.1:{ui}"],
        cwd=ROOT, env={**os.environ, **environment, "WATCHED_PASSWORD": PASSWORD},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    texts = {str(path): path.read_text(errors="replace") for path in project.root.rglob("*") if path.is_file()}
    texts = {name: text for name, text in texts.items() if not name.endswith("key.pem")} | {"its own": done.stderr}
    assert any("PlainLoginModule" in text or "kafka" in text.lower() for name, text in texts.items() if "shown" in name)
    assert any("SparkListenerSQLExecutionStart" in text for name, text in texts.items() if "events" in name)
    assert [name for name, text in texts.items() if PASSWORD in text or KEY in text] == []
