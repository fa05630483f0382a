"""Values that LATERAL computes from a row alone, which Spark's analyzer cannot have twice in a plan."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.adapters.compute import tasks
from backfill_assets.query.ddl import parse_schema
from backfill_assets.query.relational import analyze_relational
from tests.support.followed_frames import Tables, after, frames, visible
from tests.support.lake import Lake
from tests.support.over_connect import over_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

SCHEMA = "id BIGINT, v BIGINT"
QUERY = "SELECT * FROM orders JOIN LATERAL (SELECT id + v AS most) ON v <= most"


def compared_in_full(root: str) -> int:
    """How many rows a view has after a refresh that writes only the rows that differ."""
    lake = Lake(Path(root))
    lake.append("orders", [{"id": number, "v": number % 5} for number in range(60)])
    doubled = lake.view("doubled", QUERY, lake.table("orders", None), refresh_mode="full")
    lake.view("reads_it", "SELECT id, most FROM doubled", doubled)  # so that the view is not replaced
    lake.project.refresh("doubled")
    lake.sql("orders", "UPDATE {t} SET v = 9 WHERE id = 20", "DELETE FROM {t} WHERE id = 50", spark=False)
    lake.append("orders", [{"id": 7, "v": 9}, {"id": 99, "v": None}])
    lake.project.refresh("doubled")
    shown = lake.shown("doubled")
    assert shown == lake.expected("doubled", QUERY, "orders")
    lake.passes("doubled", ["exactly_once"])
    return shown.total()


def test_a_view_of_them_is_compared_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "FILES_OF_TASK", -1)  # with more rows, parts are compared first: so all are read twice
    assert compared_in_full(str(tmp_path)) == 60


@pytest.mark.full
def test_a_view_of_them_is_compared_in_full_over_connect(tmp_path: Path, remote: str) -> None:
    assert over_connect(remote, compared_in_full, tmp_path) == 60


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(QUERY, marks=pytest.mark.full),
        "SELECT o.id, e.x FROM orders o JOIN LATERAL explode(array(id, v)) e(x) ON o.v > e.x",
    ],
)
def test_a_view_of_them_follows_changes(spark: "SparkSession", text: str) -> None:
    query = analyze_relational(text, {"orders": parse_schema(SCHEMA)})
    before: Tables = {"orders": [(1, 2), (2, 3), (2, 3), (4, None)]}
    then: Tables = {"orders": [(1, 2), (2, 3), (3, 5), (-4, 9)]}
    with frames(spark, before, {"orders": SCHEMA}) as old, frames(spark, then, {"orders": SCHEMA}) as new:
        assert after(query, old, new, ["orders"]) == visible(query, new) != visible(query, old)
