"""Joins by key on real Spark: the same rows with both kinds of join, and the chosen one is used."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute import broadcast_memory
from backfill_assets.adapters.compute.broadcast_memory import fit_in, key_bytes, touched_fit
from backfill_assets.adapters.sql.broadcasts import Keys, Memory
from backfill_assets.adapters.sql.semi_join import semi_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

ROOM = 20_000


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session in which keys may take 20 kB."""
    room = Memory(heap=8 * ROOM, collect=ROOM, threshold=0)
    monkeypatch.setattr(broadcast_memory, "_memory", lambda _spark: room)


def test_the_rows_of_keys_are_the_same_by_broadcast_and_by_sorting(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.sql("SELECT id % 5 AS a, IF(id % 3 = 0, NULL, 'x') AS `b``c`, id FROM range(30)")
    keys = spark.sql("SELECT * FROM VALUES (1L, NULL), (2L, 'x'), (2L, 'x'), (9L, 'x') AS t(k, m)")
    found = {}
    for few, way in ((True, "BroadcastHashJoin"), (False, "SortMergeJoin")):
        joined = semi_join(rows, keys, {"a": "k", "b`c": "m"}, few=few)
        joined.explain()
        assert way in capsys.readouterr().out
        found[few] = Counter(row["id"] for row in joined.collect())
    assert found[True] == found[False] == Counter(dict.fromkeys((2, 6, 7, 17, 21, 22), 1))


def test_a_session_limits_broadcasts_and_can_forbid_them(spark: "SparkSession") -> None:
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    assert fit_in(spark, Keys(rows=1000, columns=1))
    assert not fit_in(spark, Keys(rows=1000, columns=1, bytes=2**40))
    spark.conf.set(threshold, "-1")
    try:
        assert not fit_in(spark, Keys(rows=1, columns=1))
        assert not touched_fit(spark.range(1), most=1)
    finally:
        spark.conf.unset(threshold)


@pytest.mark.usefixtures("little_room")
def test_groups_that_may_be_too_many_are_counted_and_measured(spark: "SparkSession") -> None:
    texts = spark.range(1000).selectExpr("repeat('x', 2000) || id % 4 AS g")
    assert touched_fit(texts, most=1000), "four texts"
    assert not touched_fit(spark.range(1000).selectExpr("repeat('x', 2000) || id AS g"), most=1000)
    assert not touched_fit(spark.range(100).selectExpr("repeat('x', 2000) || id AS g"), most=100), "few, but wide"
    assert not touched_fit(spark.range(1000), most=1000)
    assert touched_fit(spark.range(1000).selectExpr("id % 9 AS g"), most=1000)


def test_keys_are_measured_where_they_are_written(spark: "SparkSession") -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES ('insert', 'four', 1L), ('insert', NULL, 2L), ('delete', 'longer', 3L) AS t(__op, k, n)"
    )
    (row,) = rows.selectExpr(f"{key_bytes(rows, ['k', 'n'])} AS bytes").collect()
    assert row["bytes"] == len("four" + "longer")


def test_a_broadcast_takes_little_of_a_small_heap_though_a_query_may_have_many(spark: "SparkSession") -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.org.apache.spark.SparkEnv.get().memoryManager().pageSizeBytes() == 2 * 2**20
