"""Maps with null values stay what they are, where rows are grouped by them and Spark compiles the plan, as in production."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from backfill_assets.adapters.sql.map_columns import grouped
from tests.support.lake import Lake
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
PLAIN = "map('x', 1.5D, 'y', CAST(NULL AS DOUBLE))"
KINDS = {
    "plain": PLAIN,
    "in a struct": f"named_struct('at', id, 'in it', {PLAIN})",
    "in an array": f"array({PLAIN})",
    "in a map": f"map('k', {PLAIN}, 'none', NULL)",
}


def values(rows: DataFrame) -> set[str]:
    return {row[0] for row in rows.selectExpr("to_json(struct(m))").collect()}


def test_rows_are_grouped_by_maps_with_null_values(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    for name, value in COMPILED.items():
        session.conf.set(name, value)
    for number, kind in enumerate(KINDS.values()):
        made = session.range(3, numPartitions=1).selectExpr(f"{kind} AS m")
        made.write.parquet(str(tmp_path / str(number)))
        read = session.read.parquet(str(tmp_path / str(number)))
        assert values(grouped(read, ["m"], F.count(F.lit(1)))) == values(made)
    turned = session.sql(f"SELECT {PLAIN} AS m UNION ALL SELECT map('y', CAST(NULL AS DOUBLE), 'x', 1.5D)")
    assert grouped(turned, ["m"], F.count(F.lit(1))).count() == 1, "entries have no order"


@pytest.mark.full
@pytest.mark.parametrize("query", ["SELECT id, m FROM base", "SELECT b.id, b.m FROM base b JOIN base c ON b.id = c.id"])
def test_a_view_keeps_null_values_of_maps(tmp_path: Path, query: str) -> None:
    lake = Lake(tmp_path)
    lake.write("base", lake.spark.range(20, numPartitions=1).selectExpr("id", "id AS v", f"{PLAIN} AS m"))
    lake.view("maps", query, lake.table("base"), refresh_mode="incremental", primary_key="id")
    lake.project.refresh("maps")
    for statement in ("UPDATE {t} SET m = map('y', NULL, 'z', 2.5D) WHERE id < 5", "DELETE FROM {t} WHERE id > 15"):
        lake.sql("base", statement)
        lake.project.refresh("maps")
    held = lake.rows(lake.location("maps")).selectExpr("id", "to_json(m) AS m").collect()
    wanted = '{"y":null,"z":2.5}', '{"x":1.5,"y":null}'
    assert {tuple(row) for row in held} == {(at, wanted[at >= 5]) for at in range(16)}
    for check in CHECKS:
        outcome = lake.project.check("maps", check, seed="maps")
        assert outcome.passed, outcome
