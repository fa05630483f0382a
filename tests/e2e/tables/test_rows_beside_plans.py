"""Many rows that this process gives to Spark are no part of its plans; what is kept stays kept where a text names it."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from backfill_assets.adapters.compute import broadcast_memory, selectable_rows
from backfill_assets.adapters.compute.changes import kept
from backfill_assets.adapters.compute.selectable_rows import part_of
from backfill_assets.adapters.sql.broadcasts import Memory
from backfill_assets.adapters.sql.sql_over import sql_over
from tests.support.lake import Lake
from tests.support.processes import Processes
from tests.support.runner import order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"

ROWS = pa.table({
    "id": pa.array([3, 1, 2, 2, None]),
    "price": pa.array(
        [Decimal("1.50"), None, Decimal("-99999999999999999.99"), Decimal("0.00"), None], pa.decimal128(19, 2)
    ),
    "text": pa.array(["a", "a ", "A", None, ""], pa.large_string()),
    "list": pa.array([[{"x": 1.5}], [], None, [None], [{"x": float("nan")}]]),
})


@pytest.mark.parametrize("most", [4, 5], ids=["beside the plan", "in the plan"])
def test_rows_are_the_same_in_a_plan_and_beside_it(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: int
) -> None:
    threshold = spark.conf.get(THRESHOLD)
    found = {}
    for limit in (most, 100):
        monkeypatch.setattr(selectable_rows, "_ROWS_OF_PLAN", limit)
        part = part_of(spark, ROWS)
        assert part.few
        assert part.frame.rdd.getNumPartitions() == 1
        found[limit] = (part.frame.schema, list(map(str, part.frame.collect())))
        if limit == most:
            part.frame.explain()
            assert ("LocalTableScan" in capsys.readouterr().out) is (most == len(ROWS))
    assert found[most] == found[100]
    assert spark.conf.get(THRESHOLD) == threshold


@pytest.mark.parametrize("room", [0, 2**20])
def test_rows_beside_a_plan_are_broadcast_if_there_is_room(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], room: int
) -> None:
    monkeypatch.setattr(selectable_rows, "_ROWS_OF_PLAN", 0)
    monkeypatch.setattr(broadcast_memory, "_memory", lambda _spark: Memory(heap=8 * room, collect=room, threshold=0))
    many = spark.range(100_000_000)
    joined = sql_over(
        spark, "SELECT m.id FROM {many} m JOIN {some} s ON s.id = m.id", many=many, some=part_of(spark, ROWS).frame
    )
    joined.explain()
    shown = capsys.readouterr().out
    assert ("BroadcastHashJoin" in shown) is bool(room)
    assert ("SortMergeJoin" in shown) is not bool(room)


def test_what_is_kept_stays_kept_where_a_text_names_it(spark: "SparkSession") -> None:
    with kept(spark.range(3).selectExpr("id", "id * 2 AS twice")) as once:
        for rows in (once, once.select("id", "twice"), once.select("id")):
            assert sql_over(spark, "WITH r AS (SELECT * FROM {rows}) SELECT id FROM r", rows=rows).count() == 3
            assert once.storageLevel.useMemory
    assert not once.storageLevel.useMemory


def test_many_rows_are_kept_by_a_server(tmp_path: Path, processes: Processes) -> None:
    """As it is asked about several plans that have them."""
    lake = Lake(tmp_path)
    lake.append("base", pa.table({"id": range(40_000), "v": [each // 4 for each in range(40_000)]}))
    query = "SELECT b.id, b.v, o.v AS other FROM base b JOIN base o ON o.id = b.v"
    job = {"refresh": "large", "chunk_rows": 100_000, "query": query, "mode": "incremental"}
    lake.view("large", query, lake.table("base"))
    for statement in ("", "UPDATE {t} SET v = v + 1 WHERE id >= 10000 AND id < 30000"):
        if statement:
            lake.sql("base", statement, spark=True)
        code, _ = processes.run(order_of(lake.project), job)
        assert code == 0
        assert lake.shown("large") == lake.expected("large", query, "base") != Counter()
    record = lake.project.record("large")
    assert (record.epoch, record.rule) == (2, "linear")
