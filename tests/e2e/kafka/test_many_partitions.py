"""Topics of many partitions, on both kinds of Spark: reading and proving take one expression, for any number of them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.proof.rows import Proof, _inside
from backfill_assets.adapters.spark.resource import SparkRunner
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.progress.positions import OffsetRange
from tests.support.many_partitions import make_bronze, results, results_without_broadcasts, wanted
from tests.support.over_connect import over_connect
from tests.support.processes import Processes
from tests.support.project import Project
from tests.support.runner import declared, order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

PARTITIONS = 64


@pytest.fixture(scope="module")
def bronze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bronze")
    make_bronze(folder)
    return folder


def test_ranges_of_ten_thousand_partitions_are_read_and_left_out_exactly_in_process(
    bronze: Path, spark: "SparkSession"
) -> None:
    runner = SparkRunner(lambda: spark)
    assert results(runner, bronze) == wanted()
    runner.close()


def test_a_row_without_partition_or_offset_is_in_no_range(spark: "SparkSession") -> None:
    ranges = {0: {0: OffsetRange(start=0, end=5)}}
    proof = Proof(
        table=TableLocation(uri="/"), version=0, partition_column="_partition", offset_column="_offset", left_out=ranges
    )
    keys = [(0, 4), (0, 5), (1, 0), (0, None), (None, 4), (None, None)]
    rows = spark.createDataFrame(keys, "_partition INT, _offset BIGINT")
    left = rows.where(f"NOT {_inside(proof, ranges)}").collect()
    assert Counter(map(tuple, left)) == Counter(keys[1:])


def test_ranges_of_one_part_leave_out_no_row_of_another(spark: "SparkSession") -> None:
    ranges = {0: {0: OffsetRange(start=0, end=5)}, 1: {0: OffsetRange(start=5, end=9)}}
    proof = Proof(
        table=TableLocation(uri="/"),
        version=0,
        partition_column="_partition",
        offset_column="_offset",
        left_out=ranges,
        branch_column="_branch",
    )
    inside, outside = [(0, 0, 4), (1, 0, 5)], [(0, 0, 5), (1, 0, 4), (2, 0, 4), (None, 0, 4)]
    rows = spark.createDataFrame(inside + outside, "_branch INT, _partition INT, _offset BIGINT")
    left = rows.where(f"NOT {_inside(proof, ranges)}").collect()
    assert Counter(map(tuple, left)) == Counter(outside)


@pytest.mark.full
def test_ranges_of_ten_thousand_partitions_are_read_and_left_out_exactly_over_spark_connect(
    bronze: Path, remote: str
) -> None:
    assert over_connect(remote, results_without_broadcasts, bronze) == wanted()


@pytest.mark.full
def test_a_topic_of_many_partitions_reaches_a_view_and_is_proved_over_spark_connect(
    project: Project, processes: Processes
) -> None:
    topic = project.topic(partitions=PARTITIONS)
    events = [{"id": number, "amount": number / 4} for number in range(5 * PARTITIONS)]
    project.produce(topic, events[: 3 * PARTITIONS])
    project.declare(*declared(topic))
    order = order_of(project, topic)
    assert processes.run(order, {"refresh": "large"}, {"refresh": "orders"})[0] == 0
    project.produce(topic, events[3 * PARTITIONS :])
    code, said = processes.run(
        order,
        *({"refresh": name} for name in ("orders", "large")),
        *({"verify": name} for name in ("orders", "large")),
    )
    assert (code, said[2:]) == (0, [dict.fromkeys(CHECKS, True)] * 2)
    assert project.rows("large", "id", "twice") == Counter((each["id"], each["amount"] * 2) for each in events)
