"""Keys of many columns, and keys that are cut into many ranges, over Spark Connect, which does not accept deep
expressions."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.compute.key_ranges import in_ranges
from backfill_assets.adapters.compute.staged_rows import bytes_of
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.costs import TableStrategy
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.progress.positions import KeyRange
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.settings import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

KEY = [f"k{number}" for number in range(80)]
ROWS, RANGES = 60, 100


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def rows(first: int) -> list[dict[str, int]]:
    return [{**dict.fromkeys(KEY, number), "v": number} for number in range(first, first + ROWS)]


def follow(root: str, strategy: TableStrategy) -> list[object]:
    """Read the history of a table with many key columns, then changes of all kinds; returns the number of rows, and the
    failures."""
    lake = Lake(Path(root))
    lake.append("base", rows(0))
    lake.view("large", f"SELECT v FROM base WHERE {KEY[0]} >= 0", lake.table("base", key=KEY), strategy=strategy)
    lake.project.refresh("large", Limits(chunk_rows=20))
    lake.append("base", rows(ROWS))
    table = DeltaTable(lake.path("base"))
    table.update({"v": "v + 1000"}, predicate="v < 10")
    table.delete("v >= 100 AND v < 110")
    lake.project.refresh("large")
    failed = [check for check in CHECKS if not lake.project.check("large", check).passed]
    return [sum(lake.project.rows("large").values()), failed]


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["snapshot", "arrangement"])
def test_a_key_of_many_columns_is_followed_over_spark_connect(lake: Lake, remote: str, strategy: str) -> None:
    assert over_connect(remote, follow, lake.project.root, strategy) == [2 * ROWS - 10, []]


def in_many_ranges(root: str) -> list[int]:
    """The rows of a table whose key is in one of many ranges: those with `a` from 3 to 6 modulo 10."""
    lake = Lake(Path(root))
    lake.append("many", ({"a": number, "b": f"'{number}\\", "c": date(2024, 1, 1)} for number in range(10 * RANGES)))
    upstream = DeltaUpstream(name="many", location=TableLocation(uri=lake.path("many")), key=lambda: ("a", "b", "c"))
    ranges = [
        KeyRange(after=(str(at + 2), f"'{at + 2}\\", "2024-01-01"), upto=(str(at + 6), f"'{at + 6}\\", "2024-01-01"))
        for at in range(0, 10 * RANGES, 10)
    ]

    def read(spark: "SparkSession") -> list[int]:
        found = in_ranges(spark.read.format("delta").load(lake.path("many")), upstream, ranges).select("a")
        return sorted(row.a for row in found.collect())

    return lake.project.workspace().runner.run(read)


def test_rows_of_many_key_ranges_are_read_exactly_over_spark_connect(lake: Lake, remote: str) -> None:
    wanted = [number for number in range(10 * RANGES) if 3 <= number % 10 <= 6]
    assert over_connect(remote, in_many_ranges, lake.project.root) == wanted


def test_the_bytes_of_rows_with_a_thousand_columns_are_counted(spark: "SparkSession") -> None:
    columns = [(f"c{number}", "string") for number in range(1_000)]
    rows = spark.range(1).selectExpr(*(f"'ab' AS {name}" for name, _ in columns))
    assert [row.n for row in rows.selectExpr(f"{bytes_of(columns)} AS n").collect()] == [18_000]


@pytest.mark.full
def test_a_join_of_tables_with_hundreds_of_columns_is_followed(lake: Lake) -> None:
    columns = [f"c{number}" for number in range(300)]
    for name in ("a", "b"):
        lake.append(name, ({"id": at, **{each: f"{name} {each} {at}" for each in columns}} for at in range(4)))
    others = ", ".join(f"b.{each} AS b_{each}" for each in columns)
    lake.view("wide", f"SELECT a.*, {others} FROM a LEFT JOIN b ON a.id = b.id + 1", lake.table("a"), lake.table("b"))
    lake.project.refresh("wide")
    DeltaTable(lake.path("b")).update({"c7": "'new'"}, predicate="id = 2")
    lake.project.refresh("wide")
    there = {1: "b c7 0", 2: "b c7 1", 3: "new", 0: None}
    assert lake.project.rows("wide", "id", "c299", "b_c7") == Counter(
        (at, f"a c299 {at}", there[at]) for at in range(4)
    )
    assert lake.project.check("wide").passed
