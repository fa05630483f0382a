"""Every rule by which a view follows changes gives what the query gives: for random queries and changes, in another engine.

SQLite computes; what is bound to each occurrence, which rows go and which stay, is decided as the product decides it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, event, given, seed, settings
from hypothesis import strategies as st

from backfill_assets.query.key_classes import KeyClasses
from backfill_assets.query.relational import RelationalQuery
from backfill_assets.query.steps import Steps
from tests.support.drawn_queries import (
    changes,
    nested_queries,
    queries,
    queries_of_computed,
    queries_of_not_in,
    queries_of_parameters,
    tables,
)
from tests.support.exercised import CHANGES, Exercised, changes_of, first_seed, operators_of
from tests.support.rules_in_sqlite import (
    Engine,
    Row,
    after_changes,
    analyzed,
    followable,
    meets_nulls,
    of_table,
    values_of,
)
from tests.support.settings import examples

pytestmark = pytest.mark.drawn


def follow(
    data: st.DataObject,
    query: RelationalQuery,
    sets: Sequence[tuple[str, ...]],
    *,
    nulls: bool = True,
    seen: Exercised | None = None,
) -> Steps:
    """Let tables of one of these sets change, and compare a view that follows that with what its query gives."""
    changed = data.draw(st.sampled_from(sets), label="changed")
    before = data.draw(tables(nulls=nulls), label="before")
    after = data.draw(changes(before, changed, nulls=nulls), label="after")
    steps = query.steps(changed)
    if meets_nulls(query, steps, before, after) or values_of(query, steps, before) != values_of(query, steps, after):
        return Steps("full")
    if steps.rule == "additive":
        assert query.grouped is not None
        query = query.grouped.rows
    with closing(Engine(query)) as engine:
        held = Counter(engine.rows(of_table(before, query)))
        view = after_changes(engine, held, before, after, steps)
        expected = Counter(engine.rows(of_table(after, query)))
    assert view == expected, (query.text, steps, query.classes)
    if seen is not None:
        seen.note("rules", steps.rule)
        seen.note("operators", *operators_of(query.text))
        seen.note("changes", *{kind for name in changed for kind in changes_of(before[name], after[name])})
    return steps


def test_a_view_that_follows_changes_is_what_its_query_gives(record_property: Callable[[str, object], None]) -> None:
    first = first_seed()
    seen = Exercised(range(first, first + 1))

    @seed(first)
    @settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def follow_any(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries(), label="query"))
        sets = followable(query)
        assume(sets)
        follow(data, query, sets, seen=seen)

    follow_any()
    seen.show(record_property)
    seen.assert_all({
        "rules": ["linear", "additive", "restricted"],
        "changes": CHANGES,
        "operators": ["JOIN", "LEFT JOIN", "EXCEPT", "IN", "NOT IN", "EXISTS", "GROUP BY", "DISTINCT", "window"],
    })


def test_keys_may_be_computed() -> None:
    """By what is computed from a column, in groups, joins and windows, and of the columns of subqueries."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(40, 600), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def follow_computed(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries_of_computed(), label="query"))
        classes = (query.grouped.rows if query.grouped else query).classes
        sets = [some for some in followable(query) if computed_in(classes, query.steps(some))]
        assume(sets)
        seen[follow(data, query, sets).rule] += 1

    follow_computed()
    assert seen["restricted"], seen


def computed_in(classes: KeyClasses, steps: Steps) -> bool:
    return any(classes.classes[number].computed for number in steps.by_class)


def test_changes_of_places_without_a_key_lead_to_one() -> None:
    """By one step or more, for any changes at once, old rows and new."""
    seen: Counter[tuple[str, int]] = Counter()

    @settings(max_examples=examples(25, 400), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def lead(data: st.DataObject) -> None:
        query = analyzed(data.draw(st.one_of(queries(), nested_queries()), label="query"))
        rows = query.grouped.rows if query.grouped else query
        lifts = {rows.occurrences[at]: len(steps) for at, steps in rows.classes.lifts.items()}
        sets = [some for some in followable(query) if lifts.keys() & {*some}]
        assume(sets)
        seen[follow(data, query, sets).rule, max(lifts.values())] += 1

    lead()
    assert {rule for rule, _ in seen} >= {"restricted"}, seen
    assert {steps for _, steps in seen} >= {1, 2}, seen


def test_not_in_is_followed_where_no_null_is_compared() -> None:
    """What its subquery reads changes, too. Where the text says that nothing is null, rows of tables may be."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def leave(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries_of_not_in(), label="query"))
        sets = [some for some in followable(query) if "b" in some]
        assume(sets)
        asked = any(query.steps(some).nulls for some in sets)
        steps = follow(data, query, sets, nulls=data.draw(st.booleans(), label="nulls"))
        seen[f"{steps.rule}{', no nulls asked' if not asked else ''}"] += 1

    leave()
    assert min(seen["restricted"], seen["full"], seen["restricted, no nulls asked"]) > 0, seen


def test_subqueries_for_one_value_are_left_alone_while_it_stays() -> None:
    """Their tables change, too, and may be those whose rows are asked for."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(40), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def leave(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries_of_parameters(), label="query"))
        sets = [some for some in followable(query) if query.steps(some).parameters]
        assume(sets)
        seen[follow(data, query, sets).rule] += 1

    leave()
    assert min(seen["full"], seen["linear"], seen["restricted"]) > 0, seen


@settings(max_examples=examples(25, 400), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_chunks_of_the_tables_that_drive_a_query_give_together_what_it_gives(data: st.DataObject) -> None:
    query = analyzed(data.draw(queries(), label="query"))
    held = data.draw(tables(), label="tables")
    driving = query.driving({name: len(rows) for name, rows in held.items()})
    assume(driving)
    rows_of = query.grouped.rows if query.grouped else query
    chunks = data.draw(st.integers(1, 3), label="chunks")
    whole = of_table(held, query)
    view: Counter[Row] = Counter()
    with closing(Engine(rows_of)) as engine:
        for place, chunk in product(driving, range(chunks)):
            parts = rows_of.linearity.parts
            bound = [rows if parts[at] == parts[place] else [] for at, rows in enumerate(whole)]
            bound[place] = whole[place][chunk::chunks]
            view.update(engine.rows(bound))
        assert view == Counter(engine.rows(whole)), (query.text, driving)


@settings(max_examples=examples(25, 400), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_columns_that_a_query_does_not_use_change_nothing(data: st.DataObject) -> None:
    query = analyzed(data.draw(queries(), label="query"))
    held = data.draw(tables(), label="tables")
    unused = {name: [each.name not in query.used[name] for each in query.columns[name]] for name in query.upstreams}
    event("some column is not used" if any(map(any, unused.values())) else "every column is used")
    other = {
        name: [tuple(-99 if free else value for value, free in zip(row, unused[name], strict=True)) for row in rows]
        for name, rows in held.items()
        if name in unused
    }
    with closing(Engine(query)) as engine:
        assert Counter(engine.rows(of_table(other, query))) == Counter(engine.rows(of_table(held, query))), query.text
