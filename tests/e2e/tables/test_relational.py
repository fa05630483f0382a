"""Views over queries of any shape, on real tables that change: equal to the query after every refresh."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.errors import DuplicateKeyError, QueryError
from tests.support.lake import Lake
from tests.support.over_connect import over_connect
from tests.support.queries_world import QUERIES, churn, fill, order, results, tables_of
from tests.support.settings import CHECKS, FULL

pytestmark = pytest.mark.e2e


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


@pytest.mark.full
@pytest.mark.parametrize("name", QUERIES)
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


RULES = {
    "linear": "cross_join duplicates exploded joins_together natural self_join two_joins using whole_rows",
    "additive": "by_name grouped_join kept_rows left_groups nested of_all three_way",
    "restricted": "anti_join collected correlated distinct except exists filter firsts full_join group_by_all having in "
    "intersect_all left_join listed not_in percentile qualify right_join semi_join star two_keys union whole_window "
    "window with",
}
"""The rule that keeps a view where all its tables changed, by the names of queries."""
FOLLOWED = {name: rule for rule, names in RULES.items() for name in names.split()}
FOLLOWED_IN_GATE = ("self_join", "correlated")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tables, and views that follow their changes whenever a rule allows it."""
    lake = Lake(tmp_path_factory.mktemp("followed"))
    fill(lake, seed=2)
    return lake


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in FOLLOWED_IN_GATE else [pytest.mark.full]) for each in FOLLOWED]
)
def test_a_view_follows_what_changed_by_the_rule_for_its_query(followed: Lake, name: str) -> None:
    lake, query, random = followed, QUERIES[name], Random(name)
    tables = [lake.table(each) for each in tables_of(query)]
    lake.view(name, query, *tables, refresh_mode="incremental")
    assert lake.project.refresh(name).report.record.rule == "full"
    first = 100 * (list(FOLLOWED).index(name) + 1)
    for step in range(3 if FULL else 1):
        churn(lake, random, first + 10 * step)
        assert lake.project.refresh(name).report.record.rule == FOLLOWED[name]
        assert_right(lake, name, query, checks=())
    lake.append("customers", [{"id": first + step, "name": "new", "region": 1} for step in range(2)])
    record = lake.project.refresh(name).report.record
    assert record.rule != "full" or "customers" not in tables_of(query)
    assert_right(lake, name, query, checks=CHECKS if FULL else ())


@pytest.mark.full
def test_parts_of_a_union_may_have_tables_with_different_keys_or_none(followed: Lake) -> None:
    lake, query = followed, "SELECT id, region AS n FROM customers UNION ALL SELECT item, amount FROM orders"
    lake.view("mixed", query, lake.table("customers", "name"), lake.table("orders", None))
    lake.project.refresh("mixed")
    for step in range(2):
        churn(lake, Random(f"mixed {step}"), 20_000 + 10 * step)
        assert lake.project.refresh("mixed").report.record.rule in {"linear", "full"}
        assert_right(lake, "mixed", query)


@pytest.mark.full
def test_parts_of_a_union_may_have_views_with_different_keys(followed: Lake) -> None:
    lake = followed
    rows = lake.view("known", "SELECT name, region FROM customers WHERE region > 0", lake.table("customers"))
    groups = lake.view("totals", "SELECT item, count(*) AS n FROM orders GROUP BY item", lake.table("orders"))
    pairs = QUERIES["self_join"]
    joined = lake.view("pairs_of", pairs, *(lake.table(each) for each in tables_of(pairs)))
    query = (
        "SELECT name, region AS n FROM known UNION ALL SELECT CAST(item AS STRING), n FROM totals "
        "UNION ALL SELECT 'pair', 1 FROM pairs_of"
    )
    lake.view("all_of_them", query, rows, groups, joined, refresh_mode="incremental")
    for step in range(3):
        for name in ("known", "totals", "pairs_of"):
            lake.project.refresh(name)
        record = lake.project.refresh("all_of_them").report.record
        assert (step == 0) is (record.rule == "full")
        found = lake.found("all_of_them", ["name", "n"])
        assert found == lake.expected("all_of_them", query, "known", "totals", "pairs_of")
        assert len(found) > 1
        lake.passes("all_of_them", CHECKS)
        churn(lake, Random(f"views {step}"), 25_000 + 10 * step)
    lake.view("named", "SELECT DISTINCT __count AS n FROM totals", groups)
    with pytest.raises(QueryError, match="__count"):
        lake.project.refresh("named")  # what a view hides is not for its readers


@pytest.mark.full
def test_sums_of_intervals_are_kept_by_their_groups(followed: Lake) -> None:
    lake, random = followed, Random("sums")
    since = "at - TIMESTAMP '2026-01-01'"
    given = f"sum({since}) > INTERVAL 1 HOUR AS late, CAST(max({since}) AS STRING) AS longest"
    query = f"SELECT item, {given} FROM orders GROUP BY item"
    lake.view("averages", query, lake.table("orders"))
    for step in range(3):
        lake.project.refresh("averages")
        assert_right(lake, "averages", query)
        churn(lake, random, 30_000 + 10 * step)


@pytest.mark.full
def test_columns_of_a_table_may_begin_as_hidden_ones_do(tmp_path: Path) -> None:
    lake, random = Lake(tmp_path), Random("captured")

    def captured(first: int, rows: int) -> None:
        """Rows as a capture of changes names their columns."""
        deleted = ("true", "false", "false")
        lake.append(
            "t",
            [
                {
                    "id": at,
                    "k": at % 5,
                    "__deleted": random.choice(deleted),
                    "__op": random.choice("cud"),
                    "__value": at,
                }
                for at in range(first, first + rows)
            ],
        )

    lake.append("names", [{"id": at, "name": f"n{at}"} for at in range(5)])
    table, names = lake.table("t"), lake.table("names")
    queries = {
        "joined": "SELECT t.id, t.__op AS op, n.name FROM t JOIN names AS n ON n.id = t.k WHERE t.__deleted = 'false'",
        "counted": "SELECT count(*) AS n FROM t WHERE __deleted = 'false'",
        "last": "SELECT id, k, __op AS op FROM t WHERE __deleted = 'false' "
        "QUALIFY row_number() OVER (PARTITION BY k ORDER BY __value DESC, id) = 1",
        "by_value": "SELECT n.name, t.__value AS v FROM names AS n LEFT JOIN t ON n.id = t.__value",
    }
    captured(0, 40)
    for name, query in queries.items():
        lake.view(name, query, table, *([names] if "names" in query else []), refresh_mode="incremental")
    for step in range(3):
        for name, query in queries.items():
            record = lake.project.refresh(name).report.record
            assert (record.rule == "full") is (step == 0)
            found = lake.shown(name)
            assert found == lake.expected(name, query, "t", *(["names"] if "names" in query else []))
            assert found
            lake.passes(name, CHECKS)
        captured(100 + 10 * step, 10)
        lake.sql("t", f"UPDATE {{t}} SET __deleted = 'true', k = k + 1 WHERE id % 7 = {step}", spark=True)


def test_many_changes_are_followed_by_spark_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, query = Lake(tmp_path), QUERIES["self_join"]
    fill(lake, seed=4)
    lake.view("pairs", query, *(lake.table(each) for each in tables_of(query)), refresh_mode="incremental")
    lake.project.refresh("pairs")
    monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    churn(lake, Random("many"), 100)
    assert lake.project.refresh("pairs").report.record.rule == FOLLOWED["self_join"]
    assert_right(lake, "pairs", query, checks=())


@pytest.mark.full
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
def test_tables_without_a_change_feed_are_followed_until_rows_go_and_then_computed_in_full(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for name in ("a", "b"):
        lake.append(name, ({"id": at, "k": at % 3} for at in range(9)), configuration={})
    joined, plain = "SELECT a.id, b.k FROM a JOIN b ON a.k = b.id", "SELECT id, k + 1 AS more FROM a WHERE k > 0"
    tables = [lake.table(each, None) for each in ("a", "b")]
    lake.view("joined", joined, *tables)
    lake.view("copied", plain, tables[0], refresh_mode="full")
    for view in ("joined", "copied"):
        assert lake.project.refresh(view).report.record.rule == "full"
    lake.append("a", [{"id": 9, "k": 1}], configuration={})
    assert lake.project.refresh("joined").report.record.rule == "linear"
    assert lake.project.refresh("copied").report.record.rule == "full"
    lake.sql("a", "UPDATE {t} SET k = 2 WHERE id = 9")
    for view, query, names in (("joined", joined, ("a", "b")), ("copied", plain, ("a",))):
        assert lake.project.refresh(view).report.record.rule == "full"
        columns = [each for each in lake.rows(lake.location(view)).columns if not each.startswith("__")]
        assert lake.found(view, columns) == lake.expected(view, query, *names)
        assert all(lake.project.check(view, check).passed for check in CHECKS)


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_every_query_gives_the_same_over_spark_connect(remote: str) -> None:
    here = results()
    assert all(here.values())
    assert over_connect(remote, results) == here
