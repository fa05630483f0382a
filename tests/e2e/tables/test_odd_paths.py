"""Tables and files whose paths Spark could take for patterns."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets import delta_table, materialized_view
from backfill_assets.adapters.compute.parquet_files import parquet_files
from tests.support.lake import Lake
from tests.support.settings import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


def test_just_the_named_files_are_read_and_each_once(tmp_path: Path, spark: "SparkSession") -> None:
    for number, folder in enumerate(("t[1] {v,w}*?", "t1 v", "t1 w1", r"t\[1]")):
        spark.range(10 * number, 10 * number + 4, 1, 2).write.parquet(str(tmp_path / folder))
    for number, folder in enumerate(("t[1] {v,w}*?", "t1 v")):
        place = tmp_path / folder
        files = [str(each) for each in place.glob("*.parquet")]
        assert len(files) == 2
        for paths, schema in ((files, "id BIGINT"), ([str(place)], None)):
            rows = parquet_files(spark, paths, schema).collect()
            assert sorted(row["id"] for row in rows) == list(range(10 * number, 10 * number + 4))


@pytest.mark.full
def test_a_table_is_read_where_its_path_looks_like_a_pattern(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    path = str(lake.root / "t[1] {v,w}*?")
    other = str(lake.root / "t1 v")
    for place, first in ((path, 0), (other, 100)):
        lake.spark.range(first, first + 5).selectExpr("id", "id % 3 AS v").write.format("delta").save(place)
    table = delta_table("base", path=path, primary_key="id")
    lake.project.declare(
        materialized_view("plain", query="SELECT id, v FROM base", upstreams=[table]),
        materialized_view("pairs", query="SELECT a.id, b.v FROM base a JOIN base b ON a.v = b.id", upstreams=[table]),
    )
    lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    for step in (f"INSERT INTO delta.`{path}` VALUES (7, 1)", f"DELETE FROM delta.`{path}` WHERE id = 2"):
        for view in ("plain", "pairs"):
            lake.project.refresh(view)
        lake.spark.sql(step)
    for view in ("plain", "pairs"):
        lake.project.refresh(view)
        rows = lake.spark.read.format("delta").load(path)
        rows.createOrReplaceTempView("base")
        expected = sorted(map(tuple, lake.spark.sql(lake.declared(view).text).collect()))
        assert sorted(lake.found(view, ["id", "v"]).elements()) == expected
        assert expected
        for check in CHECKS:
            assert lake.project.check(view, check).passed
