"""Columns of one name over three tables: after a join that may lose its left side they are of another table, in each rule."""

from itertools import product
from random import Random

import pytest

from tests.query.test_histories_are_exact import follow
from tests.support.exercised import Exercised
from tests.support.rules_in_sqlite import analyzed, followable, runs

SIDES = ("", "LEFT ", "RIGHT ", "FULL ")
SHAPES = [
    "SELECT l.id AS x, m.id AS y, r.id AS z FROM {}",
    "SELECT k, count(*) AS n FROM {} GROUP BY k",
    "SELECT DISTINCT k, l.id FROM {}",
    "SELECT k, count(DISTINCT r.id) AS n FROM {} GROUP BY k",
    "SELECT l.id, count(*) OVER (PARTITION BY k) AS n FROM {}",
    "SELECT l.k AS x, m.k AS y, r.k AS z FROM {} WHERE m.id > 0",
    "SELECT l.k, count(DISTINCT r.id) AS n FROM {} GROUP BY l.k",
    "SELECT DISTINCT l.k, m.id FROM {}",
    "SELECT l.id FROM {} WHERE k = 1",
    "SELECT l.id FROM {} WHERE r.k = 1",
]


@pytest.mark.drawn
@pytest.mark.parametrize("shape", SHAPES)
def test_views_follow_changes_of_three_tables_with_one_name(shape: str) -> None:
    seen = Exercised(range(2))
    for first, second in product(SIDES, repeat=2):
        query = analyzed(shape.format(f"a l {first}JOIN b m USING (k) {second}JOIN c r USING (k)"))
        sets = followable(query)
        for seed in seen.seeds if sets and runs(query) else ():
            follow(query, sets, Random(seed), seen, seed)
    assert seen.counts["results"]["other rows"] > 0
