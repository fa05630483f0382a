"""A Spark whose settings others have turned round: views are right and all checks agree, or the run refuses."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backfill_assets.resources.embedded import down, spark_token, up
from backfill_assets.resources.session import Remote
from backfill_assets.resources.spark import SparkResource
from backfill_assets.resources.warehouse import Warehouse
from tests.support.hostile import KAFKA_ROWS, RECORDS, TABLE_QUERIES, change, declare, hostile, prepare
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import SPARK, one_in_gate

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
WITHOUT_DELTA = """
from pyspark.sql import SparkSession

SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

from backfill_assets.resources.spark import SparkResource
from backfill_assets.resources.warehouse import Warehouse

SparkResource().runner(Warehouse(uri="/w")).run(lambda spark: spark.range(1).count())
"""


def started_with(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which Spark is started with settings of others, as clusters have them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}" for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("\n".join(lines))
    return {"SPARK_CONF_DIR": str(folder)}


@pytest.fixture(params=one_in_gate("in-process", "connect"))
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """How a run finds its Spark, which was started with hostile settings: in its own process, or on a server."""
    settings = hostile(Lake(tmp_path).spark)
    assert len(settings) > 500, "Spark's own list of settings was found"
    if request.param == "in-process":
        yield started_with(settings, tmp_path / "conf")
        return
    root = tmp_path / "server"
    started_with(settings, root / ".backfill" / "spark" / "conf")
    address = up(root, kafka=False).spark_remote
    assert address is not None
    yield {"SPARK_REMOTE": Remote(url=address, token=spark_token(root)).full}
    down(root)


def test_views_are_right_and_all_checks_agree(project: Project, environment: dict[str, str]) -> None:
    lake = Lake(project.root, project.servers)
    topic = project.topic()
    project.produce(topic, RECORDS)
    prepare(lake)
    declare(lake, topic)
    assert tell(lake, topic, environment, "refreshed")
    assert lake.project.rows("large", "id", "third", "day", "minute", "tags", "text") == Counter(KAFKA_ROWS)
    are_equal_to_their_queries(lake)
    change(lake)
    told = tell(lake, topic, environment, "followed")
    are_equal_to_their_queries(lake)
    assert {each["table"] for each in told if each.get("engine") == "spark"} == TABLE_QUERIES.keys()
    checks = [each for each in told if "check" in each]
    assert len(checks) == 20
    assert [each for each in checks if not each["passed"]] == []


def are_equal_to_their_queries(lake: Lake) -> None:
    for view, query in TABLE_QUERIES.items():
        assert lake.found(view, view_columns(lake, view)) == lake.expected(view, query, "base"), view


def view_columns(lake: Lake, view: str) -> list[str]:
    return [name for name in lake.rows(lake.location(view)).columns if not name.startswith("__")]


def tell(lake: Lake, topic: str, environment: Mapping[str, str], part: str) -> list[dict[str, Any]]:
    """Tell a part of the story in a process of its own; what it says of each thing that it did."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile", str(lake.project.root), lake.project.servers, topic, part],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_spark_that_others_have_started_without_delta_is_refused_by_the_names_of_what_it_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DELTA], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    refusal = done.stderr[done.stderr.index("EnvironmentSetupError") :]
    assert "spark.sql.extensions: expected io.delta.sql.DeltaSparkSessionExtension, found none" in refusal
    assert "spark.sql.catalog.spark_catalog: expected" in refusal


def test_a_session_is_nobody_elses(spark: SparkSession) -> None:
    theirs = SparkSession.builder.getOrCreate()
    theirs.conf.set("spark.sql.caseSensitive", "true")
    theirs.createDataFrame([(1,)], "a INT").createOrReplaceTempView("theirs")
    ours = SparkResource(config=SPARK).runner(Warehouse(uri="/w")).run(lambda session: session)
    ours.conf.set("spark.sql.shuffle.partitions", "3")
    assert ours.sql("SELECT A FROM (SELECT 1 AS a)").count() == 1
    assert not ours.catalog.tableExists("theirs")
    assert theirs.conf.get("spark.sql.caseSensitive") == "true"
    assert theirs.conf.get("spark.sql.shuffle.partitions") == spark.conf.get("spark.sql.shuffle.partitions") != "3"
    theirs.catalog.dropTempView("theirs")
    theirs.conf.unset("spark.sql.caseSensitive")
