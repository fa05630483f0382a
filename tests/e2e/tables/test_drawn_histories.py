"""Views over random queries on real Delta tables, refreshed by the product after each of several changes: each holds what the
user's own text gives. Values are at the edges of their types. What was tried is counted."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from backfill_assets.adapters.compute import selectable_rows
from backfill_assets.query.ddl import Column
from backfill_assets.query.query import analyze
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.rowwise import RowwiseQuery
from tests.support.drawn_lake import SCHEMA, TYPES, DrawnLake
from tests.support.exercised import CHANGES, Exercised, changes_of, first_seed, operators_of
from tests.support.wide_queries import wide_query

pytestmark = pytest.mark.e2e

Show = Callable[[str, object], None]
COLUMNS = {name: tuple(Column(each, TYPES[kind]) for each, kind in some.items()) for name, some in SCHEMA.items()}
NAMES = ["WITH", "WITH, read twice"]
OF_SPARK = ["INTERSECT ALL", "EXCEPT ALL", "grouping sets", "LEFT SEMI JOIN", "LEFT ANTI JOIN", *NAMES]
IN_GATE = (8, 20, 25)
OF_PLAN = (10_000, 0)
LAKES = 10
RULES = ["linear", "additive", "restricted", "full"]


def test_views_follow_a_history_of_tables_in_the_products_refresh(
    tmp_path: Path, record_property: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few views and steps, of seeds that follow changes by keys and by changed rows alone; of every second one rows are
    given to Spark as many are."""
    seen = Exercised(IN_GATE)
    for number, seed in enumerate(seen.seeds):
        monkeypatch.setattr(selectable_rows, "_ROWS_OF_PLAN", OF_PLAN[number % 2])
        _follow(DrawnLake(tmp_path / str(seed), Random(seed)), seen, views=2, steps=2)
    seen.show(record_property)
    seen.assert_all({"rules": ["linear", "restricted"], "changes": CHANGES})


@pytest.fixture(scope="module")
def tried() -> Exercised:
    """What all lakes of the full proof try together."""
    first = first_seed()
    return Exercised(range(first, first + LAKES))


@pytest.mark.full
@pytest.mark.parametrize("number", range(LAKES))
def test_views_of_many_queries_follow_long_histories(
    tmp_path: Path, tried: Exercised, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """In every third lake Spark finds the rows, as it does of many; in every third it gets found ones as it gets many."""
    if number % 3 == 0:
        monkeypatch.setattr(selectable_rows, "MOST_LOCAL", 0)
    if number % 3 == 1:
        monkeypatch.setattr(selectable_rows, "_ROWS_OF_PLAN", 0)
    drawn = DrawnLake(tmp_path, Random(tried.seeds[number]))
    _follow(drawn, tried, views=3, steps=5, word=OF_SPARK[number % len(OF_SPARK)])
    tried.note("lakes", "followed")


@pytest.mark.full
def test_the_histories_have_tried_every_rule_and_kind_of_change(tried: Exercised, record_property: Show) -> None:
    tried.show(record_property)
    if "lakes" not in tried.counts or tried.counts["lakes"]["followed"] < LAKES:
        pytest.skip("not all lakes were followed in this run")
    tried.assert_all({"rules": RULES, "changes": CHANGES, "operators": OF_SPARK, "results": ["rows"]})


def _follow(drawn: DrawnLake, seen: Exercised, *, views: int, steps: int, word: str = "") -> None:
    """Keep views through some steps; one of their queries has an operator, if a `word` names it."""
    random = drawn.random
    queries = {f"view_{at}": _query(random, "" if at else word) for at in range(views)}
    for name, query in queries.items():
        drawn.view(name, query)
    _refresh(drawn, queries, seen)
    for _ in range(steps):
        before = {name: drawn.rows(name) for name in SCHEMA}
        for name in random.sample(sorted(SCHEMA), random.randint(1, 2)):
            drawn.change(name)
        seen.note("changes", *{kind for name in SCHEMA for kind in changes_of(before[name], drawn.rows(name))})
        _refresh(drawn, queries, seen)
    for query in queries.values():
        seen.note("operators", *operators_of(query))


def _query(random: Random, word: str) -> str:
    """A query with an operator, or one that most often has a rule for changes of all its tables: others are computed in full
    whatever changes. Rows of one table are followed by its key, and tables have none here."""
    while True:
        text = wide_query(random, SCHEMA, spark=True, named=word in NAMES)
        used = {name: columns for name, columns in COLUMNS.items() if f" {name} " in text}
        query = analyze(text, used, dict.fromkeys(used, ()))
        if isinstance(query, RowwiseQuery) or (word and word not in operators_of(text)):
            continue
        followed = not isinstance(query, RelationalQuery) or query.steps(query.upstreams).rule != "full"
        if word or followed or random.random() < 0.04:
            return text


def _refresh(drawn: DrawnLake, queries: dict[str, str], seen: Exercised) -> None:
    drawn.bind()
    for name, query in queries.items():
        report = drawn.lake.project.refresh(name).report
        expected = drawn.expected(query)
        assert drawn.found(name) == expected, (seen.seeds, name, query, {each: drawn.rows(each) for each in SCHEMA})
        seen.note("rules", *(epoch.rule or "rows or groups" for epoch in report.epochs))
        seen.note("in full", *(epoch.why_full for epoch in report.epochs if epoch.why_full))
        seen.note("results", "rows" if expected else "no rows")
