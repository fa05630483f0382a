"""Views whose queries read the clock, on real tables: each refresh computes them for a time that is recorded and proved."""

import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from backfill_assets.app.table_checks import CHECKS
from backfill_assets.core.progress.positions import micros
from backfill_assets.query.clock import at_time
from tests.support.lake import Lake
from tests.support.queries_world import churn, fill, tables_of
from tests.support.settings import FULL
from tests.support.timed_queries import called, found_and_expected, instant_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


def test_a_view_is_computed_and_proved_for_the_time_of_each_refresh(tmp_path: Path) -> None:
    lake, query = Lake(tmp_path), "SELECT id, {now} AS seen, {day} AS day FROM base WHERE v < {seconds}"
    lake.append("base", ({"id": at, "v": at % 4} for at in range(20)))
    lake.view("timed", called(query), lake.table("base"), refresh_mode="full")
    instants = []
    for epoch in (1, 2):
        began = micros(time.time())
        assert [each.epoch for each in lake.project.refresh("timed").report.epochs] == [epoch]
        instants.append(instant_of(lake, "timed"))
        assert began <= instants[-1] <= micros(time.time())
        found, expected = found_and_expected(lake, "timed", query, "base")
        assert found == expected
        assert found.total() == 20
    parts, record = lake.project.workspace().table(lake.declared("timed")).parts, lake.project.record("timed")
    assert not parts.decider.waits(parts.position(record), live=record.live), "a sensor waits for new data"
    for check in CHECKS if FULL else ("exactly_once", "positions_contiguous"):
        assert lake.project.check("timed", check).passed


QUERIES = {
    "groups": "SELECT customer, count(*) AS n, sum(amount) FILTER (WHERE at < {now}) AS total, {day} AS day FROM orders "
    "GROUP BY customer",
    "one_group": "SELECT count(*) AS n, {seconds} AS s FROM orders WHERE at < {now}",
    "by_time": "SELECT {day} AS day, {seconds} AS s, count(*) AS n FROM orders GROUP BY {day}, {seconds}",
    "join": "SELECT o.id, c.name, datediff({day}, date(o.at)) AS age FROM orders o "
    "LEFT JOIN customers c ON o.customer = c.id",
    "window": "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY at < {now}, id) AS n FROM orders",
    "with": "WITH late AS (SELECT id, {local} AS seen FROM orders) SELECT l.id, l.seen, i.price FROM late l JOIN items i "
    "ON i.id = l.id",
    "union": "SELECT id, {now} AS at FROM items UNION SELECT id, at FROM orders",
    "limit": "SELECT id, unix_seconds({now}) - unix_seconds(at) AS age FROM orders ORDER BY abs(3 - {seconds}), 2 LIMIT 7",
    "never_new": "SELECT id FROM orders WHERE at < {now}",
}


@pytest.mark.full
@pytest.mark.parametrize("name", QUERIES)
def test_every_shape_of_query_is_equal_to_itself_at_the_recorded_time(tmp_path: Path, name: str) -> None:
    lake, query = Lake(tmp_path), QUERIES[name]
    fill(lake, seed=4)
    names = tables_of(query)
    lake.view(name, called(query), *map(lake.table, names), refresh_mode="full")
    for step in range(3):
        report = lake.project.refresh(name).report
        assert [each.rule for each in report.epochs] == ["full"]
        found, expected = found_and_expected(lake, name, query, *names)
        assert found == expected
        assert found.total() > 0
        for check in CHECKS:
            outcome = lake.project.check(name, check)
            assert outcome.passed, (check, outcome)
        if step == 0:
            churn(lake, Random(name), 100)
    if name in {"never_new", "with"}:
        assert (name == "never_new") == (report.record.rows_written == 0), "only rows that differ are committed"


@pytest.mark.full
@pytest.mark.parametrize(
    "call", ["now()", "current_timestamp", "current_date", "curdate()", "localtimestamp()", "unix_timestamp()"]
)
def test_a_time_in_the_text_has_the_type_and_the_meaning_of_the_call(spark: "SparkSession", call: str) -> None:
    began = micros(time.time())
    written = at_time(f"SELECT {call} AS a", began)
    assert call not in written
    assert spark.sql(written).schema["a"].dataType == spark.sql(f"SELECT {call} AS a").schema["a"].dataType
    value = spark.sql(f"SELECT {call} AS a").first()
    assert value is not None
    first, last = (spark.sql(at_time(f"SELECT {call} AS a", at)).first() for at in (began, micros(time.time())))
    assert first is not None
    assert last is not None
    assert first.a <= value.a <= last.a
