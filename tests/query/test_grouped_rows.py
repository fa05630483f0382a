"""Queries that group joined rows are cut in two: the rows, and their groups."""

import pytest

from backfill_assets.query.relational import analyze_relational
from backfill_assets.query.steps import Steps
from tests.support.three_tables import analyzed, columns_of


@pytest.mark.parametrize(
    ("query", "rows", "groups"),
    [
        (
            "SELECT b.S AS kind, sum(a.id) AS n FROM a JOIN b ON a.id = b.k WHERE a.k > 1 GROUP BY kind",
            "SELECT b.S AS __c0, a.id AS __c1, 1 AS __here "
            "FROM {occurrence_0} AS `a` JOIN {occurrence_1} AS `b` ON a.id = b.k WHERE a.k > 1",
            "select __c0 as kind, sum (__c1) as n from joined group by kind",
        ),
        (
            "SELECT b.s, count(*) AS k FROM a, b WHERE a.id = b.id GROUP BY b.s",
            "SELECT b.s AS __c0, 1 AS __here FROM {occurrence_0} AS `a`, {occurrence_1} AS `b` WHERE a.id = b.id",
            "select __c0 as s, count (*) as k from joined group by __c0",
        ),
        (
            "SELECT count(CASE WHEN a.k IS NOT DISTINCT FROM b.k THEN 1 END) AS n, b.s FROM a JOIN b USING (id) GROUP BY b.s",
            "SELECT b.s AS __c0, a.k AS __c1, b.k AS __c2, 1 AS __here "
            "FROM {occurrence_0} AS `a` JOIN {occurrence_1} AS `b` USING (id)",
            "select count (case when __c1 is not distinct from __c2 then 1 end) as n, __c0 as s from joined group by __c0",
        ),
        (
            "SELECT max(a.k) AS k FROM a JOIN b USING (id) GROUP BY id",
            "SELECT id AS __c0, a.k AS __c1, 1 AS __here FROM {occurrence_0} AS `a` JOIN {occurrence_1} AS `b` USING (id)",
            "select max (__c1) as k from joined group by __c0",
        ),
    ],
)
def test_groups_of_joined_rows_are_cut_from_the_rows(query: str, rows: str, groups: str) -> None:
    found = analyzed(query).grouped
    assert found is not None
    assert (found.rows.template, found.groups.text) == (rows, groups)
    assert analyzed(query).steps(["a", "b"]).rule == "additive"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, count(DISTINCT b.id) AS n FROM a JOIN b USING (id) GROUP BY a.k",
        "SELECT a.k, sum(a.at - b.at) AS n FROM a JOIN b USING (id) GROUP BY a.k",
        "SELECT a.k, count(*) AS n FROM a JOIN b USING (id) GROUP BY a.k HAVING count(*) > 1",
        "SELECT a.k, count(*) AS n FROM a JOIN b USING (id) GROUP BY ROLLUP (a.k)",
        "SELECT s.end AS x, count(*) AS n FROM (SELECT session_window(at, '1 hour') AS s FROM a) GROUP BY s",
        "SELECT 1 AS one FROM a JOIN b USING (id)",
    ],
)
def test_groups_that_no_sum_or_count_keeps_are_not_cut(query: str) -> None:
    assert analyzed(query).grouped is None


def test_one_group_of_all_rows_counts_a_row_of_nulls_for_nothing() -> None:
    found = analyzed("SELECT count(*) AS n, sum(a.k + 1) AS s FROM a JOIN b USING (id) WHERE b.k > 1").grouped
    assert found is not None
    assert found.of_all
    assert found.groups.arguments == ("CASE WHEN __here = 1 THEN __c0 + 1 END", "__here")
    assert {call.argument for call in found.groups.calls} == {0, 1}
    assert found.groups.key_columns == ("__group_0",)


def test_rows_that_follow_from_a_key_are_grouped_by_it_unless_they_hold_sums_of_floats() -> None:
    inner = "SELECT a.id, {} AS n FROM a LEFT JOIN b ON b.k = a.id GROUP BY a.id"
    exact = analyzed(f"SELECT n, count(*) AS m FROM ({inner.format('count(b.id)')}) GROUP BY n")
    assert exact.steps(["a", "b"]).rule == "additive"
    assert exact.steps(["a", "b"]).by_class == {0: [0, 1]}
    assert analyzed(f"SELECT n, count(*) AS m FROM ({inner.format('sum(b.f)')}) GROUP BY n").grouped is None


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("SELECT count(*) AS n, max(b.id) AS most FROM a LEFT JOIN b ON a.id > b.k", "b"),
        ("SELECT count(*) AS n, max(a.id) AS most FROM a RIGHT JOIN b ON a.id > b.k", "a"),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT k + 1 AS l FROM a)", "a"),
        ("SELECT count(*) AS n FROM (SELECT id FROM a UNION ALL SELECT count(*) FROM b)", "b"),
    ],
)
def test_groups_do_not_follow_changes_that_touch_rows_of_other_values(query: str, changed: str) -> None:
    assert analyzed(query).steps([changed]).rule == "full"


def test_groups_whose_rows_are_chosen_by_sums_of_floats_are_computed_again_for_touched_values() -> None:
    query = analyzed(
        "SELECT a.k, count(*) AS n FROM a WHERE a.f > (SELECT sum(b.f) FROM b WHERE b.k = a.k) GROUP BY a.k"
    )
    assert query.steps(["a"]) == Steps("additive", (0,))
    assert query.steps(["b"]) == Steps("restricted", (), {0: [1]})
    assert dict(query.classes.classes[0].columns) == {0: "k", 1: "k"}
    assert query.classes.classes[0].output == "k"


def test_groups_take_their_own_key_and_no_other() -> None:
    query = "SELECT b.s, a.k, count(*) AS n FROM a JOIN b USING (id) GROUP BY b.s, a.k"
    named = {name: columns_of(name) for name in "ab"}
    assert analyze_relational(query, named, ("k", "s")).key_columns == ("s", "k")
    assert analyze_relational(query, named, ("s",)).grouped is None
