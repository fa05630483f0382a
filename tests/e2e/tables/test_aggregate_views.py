"""Aggregate views on real parts: over a Delta table with changes of all kinds, over a view, and over a Kafka topic."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.errors import VersionsLostError
from tests.support.lake import Lake
from tests.support.project import Project
from tests.support.settings import CHECKS

pytestmark = pytest.mark.e2e

QUERY = (
    "SELECT name, count(*) AS orders, sum(amount) AS amount, avg(amount) AS mean, min(id) AS first, max(id) AS last "
    "FROM orders WHERE amount > 10 GROUP BY name"
)
COLUMNS = ("name", "orders", "amount", "mean", "first", "last")
BIG = "SELECT name, amount FROM totals WHERE orders > 50"


def check_all(project: Project, *views: str) -> None:
    for view in views:
        for check in CHECKS:
            outcome = project.check(view, check)
            assert outcome.passed, f"{check} of {view}: {outcome.summary}"


def test_braces_in_the_text_of_groups_are_their_authors(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    query = "SELECT odd, sum(CAST(name RLIKE '^[a-z]{2}1' AS INT)) AS n FROM base WHERE name <> '{0}' GROUP BY odd"
    lake.append(
        "base", [{"id": at, "name": name, "odd": at % 2} for at, name in enumerate(("ab1", "abc", "x1", "{0}"))]
    )
    lake.view("braces", query, lake.table("base"))
    lake.project.refresh("braces")
    lake.append("base", [{"id": 10, "name": "xy11", "odd": 1}, {"id": 11, "name": "{0}", "odd": 3}])
    lake.project.refresh("braces")
    assert lake.shown("braces") == {(0, 1): 1, (1, 1): 1}
    lake.passes("braces", ("exactly_once",))


@pytest.mark.full
def test_groups_follow_a_table_and_a_view_follows_the_groups(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    made = lake.spark.range(0, 600).selectExpr("id", "concat('n', id % 7) AS name", "CAST(id % 50 AS INT) AS amount")
    lake.write("orders", made.repartition(5))
    totals = materialized_view(
        "totals", query=QUERY, upstreams=[delta_table("orders", path=lake.path("orders"), primary_key="id")]
    )
    big = materialized_view("big", query=BIG, upstreams=[totals])
    lake.project.declare(totals, big)
    done = lake.project.refresh("totals", Limits(chunk_rows=200))
    assert len(done.report.epochs) > 2
    assert lake.found("totals", COLUMNS) == lake.expected("totals", QUERY, "orders")
    assert lake.project.refresh("big").report.record.live

    lake.sql("orders", "DELETE FROM {t} WHERE name = 'n3'")
    lake.sql("orders", "UPDATE {t} SET amount = amount + 7, name = 'new' WHERE id % 13 = 0")
    lake.sql("orders", "DELETE FROM {t} WHERE id > 590 OR id < 8")
    lake.write("orders", made.where("id < 20").selectExpr("id + 1000 AS id", "'n3' AS name", "amount"))
    lake.project.refresh("totals", Limits(chunk_rows=1))
    assert lake.found("totals", COLUMNS) == lake.expected("totals", QUERY, "orders")
    lake.project.refresh("big")
    wanted = Counter((row[0], row[2]) for row in lake.found("totals", COLUMNS).elements() if row[1] > 50)
    assert wanted
    assert lake.found("big", ("name", "amount")) == wanted
    check_all(lake.project, "totals", "big")


@pytest.mark.full
def test_groups_follow_a_topic_while_its_history_is_read(project: Project) -> None:
    topic = project.topic(partitions=2)
    rows: list[dict[str, Any]] = [
        {"id": number, "name": f"n{number % 5}", "amount": number % 50} for number in range(400)
    ]
    project.produce(topic, [*rows[:300], b"broken"])
    orders = kafka_source("orders", topic=topic, schema="id LONG, name STRING, amount INT")
    totals = materialized_view("totals", query=QUERY, upstreams=[orders], primary_key="name")
    project.declare(orders, totals)
    project.refresh("orders")
    project.refresh("totals", Limits(chunk_rows=120))
    project.produce(topic, rows[300:])
    project.refresh("orders")
    done = project.refresh("totals")
    assert done.report.record.live
    expected = Counter(
        (name, len(kept), sum(each["amount"] for each in kept), min(each["id"] for each in kept))
        for name in ("n0", "n1", "n2", "n3", "n4")
        for kept in [[each for each in rows if each["name"] == name and each["amount"] > 10]]
    )
    assert project.rows("totals", "name", "orders", "amount", "first") == expected
    check_all(project, "totals")


@pytest.mark.full
def test_older_files_of_the_upstream_are_needed_only_where_a_group_loses_its_extreme(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for part in (0, 10):
        lake.append("orders", [{"id": at, "parity": at % 2} for at in range(part, part + 10)])
    first, _ = sorted(Path(lake.path("orders")).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    counted, greatest = (
        f"SELECT parity, {call} AS found FROM orders GROUP BY parity" for call in ("count(*)", "max(id)")
    )
    lake.view("counted", counted, lake.table("orders"), refresh_mode="incremental")
    lake.view("greatest", greatest, lake.table("orders"), refresh_mode="incremental")
    for name in ("counted", "greatest"):
        assert lake.project.refresh(name).report.record.live
    content = first.read_bytes()
    lake.sql("orders", "DELETE FROM {t} WHERE id = 19")
    first.unlink()
    before = lake.project.record("greatest")
    with pytest.raises(VersionsLostError, match=first.name):
        lake.project.refresh("greatest", Limits(chunk_rows=1))
    assert lake.project.record("greatest") == before

    first.write_bytes(content)
    lake.sql("orders", "DELETE FROM {t} WHERE id = 8")
    first.unlink()  # the version between the two deletes still has it, and the newest one does not
    assert len(lake.project.refresh("counted", Limits(chunk_rows=1)).report.epochs) == 2
    lake.project.refresh("greatest", Limits(chunk_rows=1))
    for name, query in (("counted", counted), ("greatest", greatest)):
        assert lake.found(name, ["parity", "found"]) == lake.expected(name, query, "orders") != Counter()


def test_groups_of_which_only_nulls_are_left_are_proved(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append("base", [{"id": 1, "k": 1, "v": 5}, {"id": 2, "k": 1, "v": None}, {"id": 3, "k": 2, "v": 7}])
    sums = "SELECT a.k, count(*) AS n, sum(a.v) AS s, avg(a.v) AS m FROM base a{} GROUP BY a.k"
    lake.view("grouped", sums.format(""), lake.table("base"))
    lake.view("joined", sums.format(" JOIN base b ON a.id = b.id"), lake.table("base"), refresh_mode="incremental")
    for statement in ("", "UPDATE {t} SET v = NULL WHERE id = 1"):
        if statement:
            lake.sql("base", statement)
        for name in ("grouped", "joined"):
            lake.project.refresh(name)
            assert lake.shown(name) == lake.expected(name, lake.declared(name).text, "base")
            lake.passes(name, ["exactly_once"])
    assert (1, 2, None, None) in lake.shown("joined")
