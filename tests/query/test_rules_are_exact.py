"""Every rule by which a view follows changes gives what the query gives: for random queries and changes, in another engine.

SQLite computes; what is bound to each occurrence, which rows go and which stay, is decided here as the product decides it.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import combinations, product
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from backfill_assets.query.ddl import Column
from backfill_assets.query.key_classes import KeyClass, KeyClasses, Lookup
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from backfill_assets.query.steps import Steps
from tests.support.drawn_queries import (
    COLUMNS,
    Rows,
    changes,
    nested_queries,
    queries,
    queries_of_computed,
    queries_of_not_in,
    queries_of_parameters,
    tables,
)
from tests.support.settings import examples

Row = tuple[Any, ...]


class Engine:
    """Runs a query with other rows in each of its places."""

    def __init__(self, query: RelationalQuery) -> None:
        self.query = query
        self.database = sqlite3.connect(":memory:")
        # The hash of a value stands for the value: here it is the value, with one spelling for null.
        self.database.create_function("xxhash64", 1, lambda value: "null" if value is None else value)

    def close(self) -> None:
        self.database.close()

    def rows(self, bound: Sequence[Iterable[Row]]) -> list[Row]:
        self.bind(bound)
        return self.ask(self.query.template)

    def bind(self, bound: Sequence[Iterable[Row]]) -> None:
        for at, (name, rows) in enumerate(zip(self.query.occurrences, bound, strict=True)):
            columns = [column.name for column in self.query.columns[name]]
            self.database.execute(f"DROP TABLE IF EXISTS place_{at}")
            self.database.execute(f"CREATE TABLE place_{at} ({', '.join(columns)})")
            self.database.executemany(f"INSERT INTO place_{at} VALUES ({', '.join('?' * len(columns))})", rows)

    def ask(self, template: str) -> list[Row]:
        places = {f"occurrence_{at}": f"place_{at}" for at in range(len(self.query.occurrences))}
        cursor = self.database.execute(template.format(**places))
        self.names = [column[0] for column in cursor.description]
        return list(cursor)

    def value(self, row: Row, carrier: str) -> object:
        """What SQL over a row of the view gives."""
        named = ", ".join(f"? AS `{name}`" for name in self.names)
        return self.database.execute(f"SELECT {carrier} FROM (SELECT {named})", row).fetchone()[0]


def of_table(rows: Rows, query: RelationalQuery) -> list[list[Row]]:
    return [list(rows[name]) for name in query.occurrences]


Touched = dict[int, set[object]]


def followed(engine: Engine, before: Rows, after: Rows, steps: Steps) -> Counter[Row]:
    """The view after changes, by the steps that the query has for them: rows of touched values are replaced."""
    query = engine.query
    touched = _touched(query, before, after, steps)
    held = Counter(engine.rows(of_table(before, query)))
    for row, kind in _linear(engine, before, after, steps, ()):
        if not _is_touched(engine, touched, row):
            held[row] += kind
    view = Counter({row: count for row, count in held.items() if count and not _is_touched(engine, touched, row)})
    seen: Touched = {}
    for number, values in touched.items():
        rows = engine.rows(_restricted(query, number, steps, values, of_table(after, query)))
        view.update(row for row in rows if not _is_touched(engine, seen, row))
        seen[number] = values
    return view


def signed(engine: Engine, before: Rows, after: Rows, steps: Steps) -> Counter[Row]:
    """The same where no row tells its values: rows of touched values come as they are, and go as they were."""
    query = engine.query
    view = Counter(engine.rows(of_table(before, query)))
    later = [place for places in steps.by_class.values() for place in places]
    for row, kind in _linear(engine, before, after, steps, later):
        view[row] += kind
    for number, values in _touched(query, before, after, steps).items():
        places = steps.by_class[number]
        for kind, old in ((-1, later), (1, [place for place in later if place not in places])):
            bound = [list((before if at in old else after)[name]) for at, name in enumerate(query.occurrences)]
            for row in engine.rows(_restricted(query, number, steps, values, bound)):
                view[row] += kind
        later = [place for place in later if place not in places]
    return Counter({row: count for row, count in view.items() if count})


def _touched(query: RelationalQuery, before: Rows, after: Rows, steps: Steps) -> Touched:
    """The values of each class that stand in changed rows, old and new."""
    return {
        number: {
            value
            for place in places
            for value in _values(query, query.classes.classes[number], *_leading(query, before, after, place))
        }
        for number, places in steps.by_class.items()
    }


def _leading(query: RelationalQuery, before: Rows, after: Rows, place: int) -> tuple[int, list[Row]]:
    """The changed rows of a place, or those of another one to which they lead."""
    rows = list(_changed(before, after, query.occurrences[place]))
    for step in query.classes.lifts.get(place, ()):
        values = _values(query, step.key, place, rows)
        (place,) = step.others
        name = query.occurrences[place]
        rows = [*after[name], *_changed(before, after, name, -1)]
        rows = [row for row in rows if told(query, step.key, place, row) in values]
    return place, rows


def _values(query: RelationalQuery, key: KeyClass, place: int, rows: Iterable[Row]) -> set[object]:
    return {told(query, key, place, row) for row in rows}


def _linear(engine: Engine, before: Rows, after: Rows, steps: Steps, later: Sequence[int]) -> Iterator[tuple[Row, int]]:
    """What changed rows alone do to the result, place by place."""
    query, parts = engine.query, engine.query.linearity.parts
    for number, kind in product(steps.linear, (1, -1)):
        old = {*later, *(at for at in steps.linear if at > number)}
        bound = [list((before if at in old else after)[name]) for at, name in enumerate(query.occurrences)]
        bound = [rows if parts[at] == parts[number] else [] for at, rows in enumerate(bound)]
        changed = list(_changed(before, after, query.occurrences[number]))
        for at, rows in _partners(query, number, changed, bound).items():
            bound[at] = rows
        bound[number] = list(_changed(before, after, query.occurrences[number], kind))
        yield from ((row, kind) for row in engine.rows(bound))


def _partners(
    query: RelationalQuery, number: int, changed: list[Row], bound: Sequence[list[Row]]
) -> dict[int, list[Row]]:
    """The rows of other places that have to do with changed rows of a place."""
    known = {number: changed}
    for step in query.lookups(number):
        values = _values(query, step.key, step.known, known[step.known])
        for at in step.others:
            known[at] = [row for row in bound[at] if told(query, step.key, at, row) in values]
    return {at: rows for at, rows in known.items() if at != number}


def _restricted(
    query: RelationalQuery, number: int, steps: Steps, values: set[object], bound: list[list[Row]]
) -> list[list[Row]]:
    key = query.classes.classes[number]
    found = [
        [row for row in rows if at not in key.columns or told(query, key, at, row) in values]
        for at, rows in enumerate(bound)
    ]
    for at, lifts in query.classes.lifts.items():
        asks = at not in steps.by_class[number] and any(step.nulls for step in lifts)
        if lifts[-1].others[0] in key.columns and not asks:
            found[at] = _back(query, lifts, found[lifts[-1].others[0]], bound)
    return found


def _back(query: RelationalQuery, lifts: Sequence[Lookup], rows: list[Row], bound: list[list[Row]]) -> list[Row]:
    """The rows of a place that lead to these."""
    for step in reversed(lifts):
        values = _values(query, step.key, step.others[0], rows)
        rows = [row for row in bound[step.known] if told(query, step.key, step.known, row) in values]
    return rows


def _changed(before: Rows, after: Rows, name: str, kind: int = 0) -> Iterator[Row]:
    come, go = Counter(after[name]) - Counter(before[name]), Counter(before[name]) - Counter(after[name])
    yield from come.elements() if kind >= 0 else ()
    yield from go.elements() if kind <= 0 else ()


def _at(query: RelationalQuery, place: int, column: str) -> int:
    return [each.name for each in query.columns[query.occurrences[place]]].index(column)


def told(query: RelationalQuery, key: KeyClass, place: int, row: Row) -> object:
    """The value of a key in a row of a place."""
    names = [each.name for each in query.columns[query.occurrences[place]]]
    return value_of(key.columns[place] if place in key.computed else f"`{key.columns[place]}`", tuple(names), row)


@cache
def value_of(text: str, names: tuple[str, ...], row: Row) -> object:
    """What SQL over the columns of a row gives."""
    with closing(sqlite3.connect(":memory:")) as database:
        named = ", ".join(f"? AS `{name}`" for name in names)
        (value,) = database.execute(f"SELECT {text} FROM (SELECT {named})", row).fetchone()
    return "null" if value is None else value


def _is_touched(engine: Engine, touched: Touched, row: Row) -> bool:
    classes = engine.query.classes.classes
    return any(engine.value(row, classes[number].carrier) in values for number, values in touched.items())


def analyzed(text: str) -> RelationalQuery:
    used = {name: columns for name, columns in COLUMNS.items() if f" {name} " in text}
    return analyze_relational(
        text, {name: tuple(Column(each, "BIGINT") for each in every) for name, every in used.items()}
    )


def meets_nulls(query: RelationalQuery, steps: Steps, *tables: Rows) -> bool:
    """Whether a column is null in a row of tables where steps allow none."""
    return any(
        row[_at(query, place, column)] is None
        for rows in tables
        for place, column in steps.nulls
        for row in rows[query.occurrences[place]]
    )


def values_of(query: RelationalQuery, steps: Steps, rows: Rows) -> list[Row]:
    """The values of the parameters that steps count on."""
    with closing(Engine(query)) as engine:
        engine.bind(of_table(rows, query))
        return [row for at in steps.parameters for row in engine.ask(query.parameters[at].template)]


def followable(query: RelationalQuery) -> list[tuple[str, ...]]:
    """The tables of a query of which any may change together so that there is a rule for it."""
    sets = [some for size in range(1, 4) for some in combinations(query.upstreams, size)]
    return [some for some in sets if query.steps(some).rule != "full"]


def follow(
    data: st.DataObject, query: RelationalQuery, sets: Sequence[tuple[str, ...]], *, nulls: bool = True
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
        view = (signed if steps.rule == "additive" else followed)(engine, before, after, steps)
        expected = Counter(engine.rows(of_table(after, query)))
    assert view == expected, (query.text, steps, query.classes)
    return steps


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_view_that_follows_changes_is_what_its_query_gives(data: st.DataObject) -> None:
    query = analyzed(data.draw(queries(), label="query"))
    sets = followable(query)
    assume(sets)
    event(follow(data, query, sets).rule)


def test_keys_may_be_computed() -> None:
    """By what is computed from a column, in groups, joins and windows, and of the columns of subqueries."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), print_blob=True)
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

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), print_blob=True)
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

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), print_blob=True)
    @given(st.data())
    def leave(data: st.DataObject) -> None:
        query = analyzed(data.draw(queries_of_parameters(), label="query"))
        sets = [some for some in followable(query) if query.steps(some).parameters]
        assume(sets)
        seen[follow(data, query, sets).rule] += 1

    leave()
    assert min(seen["full"], seen["linear"], seen["restricted"]) > 0, seen


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
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


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
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
