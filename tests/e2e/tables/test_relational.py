"""Views over queries of any shape, on real tables that change: equal to the query after every refresh."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from backfill_assets.app.proofs import CHECKS
from backfill_assets.errors import DuplicateKeyError
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.queries_world import QUERIES, churn, fill, order, results, tables_of
from tests.support.settings import FULL

pytestmark = pytest.mark.e2e

GATE = ("three_way", "no_groups", "window")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("queries"))
    fill(lake, seed=1)
    return lake


def assert_right(lake: Lake, view: str, query: str, checks: Iterable[str] = CHECKS) -> None:
    names = tables_of(query)
    columns = lake.rows(lake.location(view)).columns
    found = lake.found(view, [f"`{each}`" for each in columns if not each.startswith("__")])
    assert found == lake.expected(view, query, *names)
    assert found.total() > 0
    for check in checks:
        outcome = lake.project.check(view, check)
        assert outcome.passed, (check, outcome.summary)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in GATE else [pytest.mark.full]) for each in QUERIES]
)
def test_a_view_is_equal_to_its_query_whatever_its_shape(lake: Lake, name: str) -> None:
    query = QUERIES[name]
    lake.view(f"view_{name}", query, *(lake.table(each) for each in tables_of(query)))
    assert lake.project.refresh(f"view_{name}").report.record.live
    assert_right(lake, f"view_{name}", query, checks=())
    churn(lake, Random(name), 100 * (list(QUERIES).index(name) + 1))
    report = lake.project.refresh(f"view_{name}").report
    assert len(report.epochs) == 1
    assert_right(lake, f"view_{name}", query)
    assert lake.project.refresh(f"view_{name}").report.epochs == []


LINEAR = ("duplicates", "self_join", "joins_together", "exploded", "two_joins", "cross_join", "natural", "left_join")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tables, and views that follow their changes wherever a rule allows."""
    lake = Lake(tmp_path_factory.mktemp("followed"))
    fill(lake, seed=2)
    for name in LINEAR:
        tables = [lake.table(each) for each in tables_of(QUERIES[name])]
        lake.view(name, QUERIES[name], *tables, refresh_mode="incremental")
    return lake


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in LINEAR[:3] else [pytest.mark.full]) for each in LINEAR]
)
def test_a_query_that_is_linear_in_what_changed_is_kept_by_the_changes_alone(followed: Lake, name: str) -> None:
    lake, query, random = followed, QUERIES[name], Random(name)
    assert lake.project.refresh(name).report.record.rule == "full"
    first = 100 * (LINEAR.index(name) + 1)
    for step in range(2 if FULL else 1):
        churn(lake, random, first + 10 * step)
        record = lake.project.refresh(name).report.record
        assert record.rule == ("full" if name == "left_join" else "linear")
        assert_right(lake, name, query, checks=())
    lake.append("customers", [{"id": first + step, "name": "new", "region": 1} for step in range(2)])
    record = lake.project.refresh(name).report.record
    assert record.rule == "linear" or "customers" not in tables_of(query)
    assert_right(lake, name, query)


def test_a_view_with_a_key_of_its_own_is_merged_by_it_and_refuses_two_rows_of_one(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    fill(lake, seed=3)
    query = "SELECT o.id, c.name, o.amount FROM orders o LEFT JOIN customers c ON o.customer = c.id"
    lake.view("keyed", query, lake.table("orders"), lake.table("customers"), primary_key="id")
    lake.project.refresh("keyed")
    lake.sql("orders", "UPDATE {t} SET amount = 9 WHERE id = 3")
    record = lake.project.refresh("keyed").report.record
    assert (record.rows_updated, record.rows_written, record.rows_deleted) == (1, 1, 0)
    assert_right(lake, "keyed", query)
    lake.append("customers", [{"id": 1, "name": "again", "region": 0}])
    lake.append("orders", [{**order(Random(1), 50), "customer": 1}])
    with pytest.raises(DuplicateKeyError):
        lake.project.refresh("keyed")
    assert lake.project.record("keyed").epoch == record.epoch


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_every_query_gives_the_same_over_spark_connect(remote: str) -> None:
    here = results()
    assert all(here.values())
    assert over_connect(remote, results) == here
