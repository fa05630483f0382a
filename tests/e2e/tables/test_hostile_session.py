"""A Spark whose settings have all been changed by others: views are right and all checks pass, or the run refuses."""

import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_assets.adapters.local.servers import down, spark_token, up
from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.spark.session import Remote, _settings
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.app.table_checks import CHECKS
from tests.support.hostile import KAFKA_ROWS, RECORDS, TABLE_QUERIES, Teller, change, declare, hostile, prepare
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import FULL, SPARK, one_in_gate

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
WITHOUT_DELTA = """
from pyspark.sql import SparkSession

SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

from backfill_assets.adapters.spark.resource import SparkResource
from backfill_assets.adapters.storage.warehouse import Warehouse

SparkResource().runner(Warehouse(uri="/w")).run(lambda spark: spark.range(1).count())
"""


def started_with(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which Spark is started with settings of others, as clusters have them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}" for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("\n".join(lines))
    return {"SPARK_CONF_DIR": str(folder)}


@pytest.fixture(scope="module", params=one_in_gate("in-process", "connect"))
def hostile_spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teller]:
    """A process whose Spark was started with hostile settings: in the process, or as a server."""
    folder = tmp_path_factory.mktemp("hostile")
    settings = hostile(Lake(folder).spark)
    assert len(settings) > 500, "Spark's own list of settings was found"
    with contextlib.ExitStack() as after:
        if request.param == "in-process":
            environment = started_with(settings, folder / "conf")
        else:
            started_with(settings, folder / ".backfill" / "spark" / "conf")
            address = up(folder, kafka=False).spark_remote
            assert address is not None
            after.callback(down, folder)
            environment = {"SPARK_REMOTE": Remote(url=address, token=spark_token(folder)).full}
        teller = Teller(environment)
        after.callback(teller.close)
        assert teller.tell(Lake(folder), next(iter(TABLE_QUERIES)), "", "started") == 1
        yield teller


@pytest.mark.full
def test_a_view_over_kafka_is_right_and_all_checks_agree(project: Project, hostile_spark: Teller) -> None:
    topic = project.topic()
    project.produce(topic, RECORDS)
    lake = Lake(project.root, project.servers)
    declare(lake, "large", topic)
    hostile_spark.tell(lake, "large", topic, "refreshed")
    assert lake.project.rows("large", "id", "third", "day", "minute", "tags", "text") == Counter(KAFKA_ROWS)
    assert hostile_spark.tell(lake, "large", topic, "checked") == {
        "passed": 2 * len(CHECKS),
        "failed": [],
    }


@pytest.fixture(scope="module", params=one_in_gate(*TABLE_QUERIES))
def declared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, hostile_spark: Teller
) -> tuple[Teller, Lake, str]:
    """A Spark, a table, and a view over it that the tests of this Spark share."""
    lake, view = Lake(tmp_path_factory.mktemp("declared")), str(request.param)
    prepare(lake)
    declare(lake, view, "")
    return hostile_spark, lake, view


@pytest.mark.full
def test_a_first_build_over_a_table_is_right(declared: tuple[Teller, Lake, str]) -> None:
    spark, lake, view = declared
    spark.tell(lake, view, "", "refreshed")
    is_equal_to_its_query(lake, view)


@pytest.mark.full
def test_changes_of_a_table_are_followed_and_all_checks_agree(declared: tuple[Teller, Lake, str]) -> None:
    spark, lake, view = declared
    spark.tell(lake, view, "", "refreshed")
    change(lake)
    assert spark.tell(lake, view, "", "followed") == {view: "spark"}
    is_equal_to_its_query(lake, view)
    assert spark.tell(lake, view, "", "checked") == {"passed": len(CHECKS) if FULL else 2, "failed": []}


def is_equal_to_its_query(lake: Lake, view: str) -> None:
    columns = [name for name in lake.rows(lake.location(view)).columns if not name.startswith("__")]
    assert lake.found(view, columns) == lake.expected(view, TABLE_QUERIES[view], "base") != Counter()


@pytest.mark.full
def test_a_spark_that_others_have_started_without_delta_is_refused_by_the_names_of_what_it_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DELTA], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    refusal = done.stderr[done.stderr.index("EnvironmentSetupError") :]
    assert "spark.sql.extensions: expected io.delta.sql.DeltaSparkSessionExtension, found none" in refusal
    assert "spark.sql.catalog.spark_catalog: expected" in refusal


def test_settings_of_a_session_are_read_as_they_are(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.of.others", "a -> b\nc = 'd', {e}\tf")
    session.conf.set("spark.sql.of.nobody", "")
    assert _settings(session) == session.conf.getAll
    assert _settings(session)["spark.sql.of.others"] == "a -> b\nc = 'd', {e}\tf"


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
