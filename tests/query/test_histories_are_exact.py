"""A view that follows one change after the other is what its query gives after each of them: for random queries of some depth
and random histories, in another engine. What was tried is counted, and everything that is listed has to be.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from random import Random

import pytest

from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.steps import Steps
from tests.support.drawn_queries import COLUMNS, Rows
from tests.support.exercised import CHANGES, Exercised, changes_of, first_seed, operators_of
from tests.support.rules_in_sqlite import (
    Engine,
    Row,
    after_changes,
    analyzed,
    followable,
    meets_nulls,
    of_table,
    runs,
    values_of,
)
from tests.support.settings import FULL
from tests.support.table_histories import first_rows, next_rows
from tests.support.wide_queries import wide_query

SCHEMA = {name: {each: "k" if each in {"id", "k"} else "n" for each in columns} for name, columns in COLUMNS.items()}
WIDTHS = {name: len(columns) for name, columns in COLUMNS.items()}
STEPS = 10
OPERATORS = [
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "CROSS JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "USING",
    "NATURAL",
    "EXISTS",
    "NOT EXISTS",
    "IN",
    "NOT IN",
    "UNION",
    "UNION ALL",
    "EXCEPT",
    "INTERSECT",
    "GROUP BY",
    "HAVING",
    "FILTER",
    "DISTINCT",
    "count(DISTINCT)",
    "window",
    "value of a subquery",
    "subquery in FROM",
    "WITH",
    "WITH, read twice",
    "group in FROM",
    "group of groups",
    "depth 1",
    "depth 2",
    "depth 3",
    "depth 4",
]
RULES = [
    "linear",
    "additive",
    "restricted",
    "linear beside restricted",
    "by two keys",
    "by a computed key",
    "by a hidden key",
    "led to a key",
    "nulls asked",
    "values asked",
    "not followed",
]


@pytest.mark.drawn
def test_a_view_that_follows_one_change_after_the_other_is_what_its_query_gives(
    record_property: Callable[[str, object], None],
) -> None:
    first = first_seed()
    seen = Exercised(range(first, first + (2400 if FULL else 120)))
    for seed in seen.seeds:
        follow_drawn(seed, seen)
    seen.show(record_property)
    assert seen.counts["queries"]["that SQLite refuses"] * 20 < len(seen.seeds), str(seen)
    seen.assert_all({"operators followed": OPERATORS, "rules": RULES, "changes": CHANGES, "results": ["other rows"]})


@pytest.mark.parametrize(("seed", "queries"), [(338, "without a rule"), (799, "followed 10 times")])
def test_seeds_that_have_found_faults_of_joins_find_none(seed: int, queries: str) -> None:
    seen = Exercised(range(seed, seed + 1))
    follow_drawn(seed, seen)
    assert seen.counts["queries"][queries] == 1


def follow_drawn(seed: int, seen: Exercised) -> None:
    """Keep a view of a random query, if it has a rule."""
    random = Random(seed)
    query = analyzed(wide_query(random, SCHEMA, named=seed % 2 == 0))
    sets = followable(query)
    if not sets:
        seen.note("queries", "without a rule")
    elif not runs(query):
        seen.note("queries", "that SQLite refuses")
    else:
        follow(query, sets, random, seen, seed)


def follow(query: RelationalQuery, sets: list[tuple[str, ...]], random: Random, seen: Exercised, seed: int) -> None:
    """Keep a view through some changes, and compare it after each."""
    nulls = random.random() < 0.7
    now = first_rows(random, WIDTHS, nulls=nulls)
    kept = query.grouped.rows if query.grouped else query
    with closing(Engine(query)) as engine, closing(Engine(kept)) as rows_engine:
        held = {each: Counter(each.rows(of_table(now, query))) for each in (engine, rows_engine)}
        followed = 0
        for step in range(STEPS):
            changed = random.choice(sets)
            after = next_rows(random, now, changed, nulls=nulls)
            steps = query.steps(changed)
            stays = _holds(query, steps, now, after)
            taken = rows_engine if steps.rule == "additive" else engine
            view = after_changes(taken, held[taken], now, after, steps) if stays else None
            expected = {each: Counter(each.rows(of_table(after, query))) for each in held}
            assert _as_written(query, after) in (None, _visible(expected[engine], query)), (
                seed,
                step,
                query.text,
                after,
            )
            assert view in (None, expected[taken]), (seed, step, query.text, now, after, steps)
            _note(seen, taken.query, steps if stays else Steps("full"), changed, (now, after))
            seen.note("results", "other rows" if expected[taken] != held[taken] else "the same rows")
            followed += stays
            held, now = {**expected, taken: view if view is not None else expected[taken]}, after
    seen.note("queries", f"followed {followed} times")
    if followed:
        seen.note("operators followed", *operators_of(query.text))


def _as_written(query: RelationalQuery, rows: Rows) -> Counter[Row] | None:
    """What a query with WITH gives as its author wrote it; None for others."""
    if query.written is None:
        return None
    own = replace(query, template=query.written.template, occurrences=query.written.occurrences)
    with closing(Engine(own)) as engine:
        return Counter(engine.rows(of_table(rows, own)))


def _visible(rows: Counter[Row], query: RelationalQuery) -> Counter[Row]:
    """Rows without hidden columns."""
    seen: Counter[Row] = Counter()
    for row, count in rows.items():
        seen[row[: len(query.output_columns)]] += count
    return seen


def _holds(query: RelationalQuery, steps: Steps, before: Rows, after: Rows) -> bool:
    """Whether the steps may be taken, by what they ask of rows."""
    asked = values_of(query, steps, before) == values_of(query, steps, after)
    return asked and not meets_nulls(query, steps, before, after)


def _note(
    seen: Exercised, query: RelationalQuery, steps: Steps, changed: tuple[str, ...], rows: tuple[Rows, Rows]
) -> None:
    if steps.rule == "full":
        seen.note("rules", "not followed")
        return
    keys = [query.classes.classes[number] for number in steps.by_class]
    places = {*chain.from_iterable(steps.by_class.values())}
    traits = {
        steps.rule: True,
        "linear beside restricted": bool(steps.linear and steps.by_class),
        "by two keys": len(keys) > 1,
        "by a computed key": any(key.computed for key in keys),
        "by a hidden key": any(key.is_hidden for key in keys),
        "led to a key": bool(places & query.classes.lifts.keys()),
        "nulls asked": bool(steps.nulls),
        "values asked": bool(steps.parameters),
    }
    seen.note("rules", *(name for name, holds in traits.items() if holds))
    before, after = rows
    seen.note("changes", *{kind for name in changed for kind in changes_of(before[name], after[name])})
