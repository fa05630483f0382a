"""The rules by which views follow changes, in SQLite: an engine that runs a query with other rows in each of its places.

What is bound to each place, which rows go and which stay, is decided here as the product decides it.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import combinations, product
from typing import Any

import sqlglot

from backfill_assets.query.ddl import Column
from backfill_assets.query.key_classes import KeyClass, Lookup
from backfill_assets.query.relational import RelationalQuery, analyze_relational
from backfill_assets.query.steps import Steps
from tests.support.drawn_queries import COLUMNS, Rows

__all__ = [
    "Engine",
    "Row",
    "after_changes",
    "analyzed",
    "followable",
    "meets_nulls",
    "of_table",
    "runs",
    "told",
    "value_of",
    "values_of",
]

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
        cursor = self.database.execute(_in_sqlite(template.format(**places)))
        self.names = [column[0] for column in cursor.description]
        return list(cursor)

    def value(self, row: Row, carrier: str) -> object:
        """What SQL over a row of the view gives."""
        named = ", ".join(f"? AS `{name}`" for name in self.names)
        return self.database.execute(f"SELECT {carrier} FROM (SELECT {named})", row).fetchone()[0]


@cache
def _in_sqlite(text: str) -> str:
    """A query for SQLite, which has neither LEFT SEMI JOIN nor LEFT ANTI JOIN: they become EXISTS and NOT EXISTS."""
    if " SEMI JOIN " in text or " ANTI JOIN " in text:
        (text,) = sqlglot.transpile(text, read="spark", write="sqlite")
    return text


def of_table(rows: Rows, query: RelationalQuery) -> list[list[Row]]:
    return [list(rows[name]) for name in query.occurrences]


Touched = dict[int, set[object]]


def after_changes(engine: Engine, held: Counter[Row], before: Rows, after: Rows, steps: Steps) -> Counter[Row]:
    """What a view holds after changes, by the steps that the query has for them, if it held these rows."""
    return (_signed if steps.rule == "additive" else _followed)(engine, held, before, after, steps)


def _followed(engine: Engine, held: Counter[Row], before: Rows, after: Rows, steps: Steps) -> Counter[Row]:
    """Rows of touched values are replaced."""
    query = engine.query
    touched = _touched(query, before, after, steps)
    held = Counter(held)
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


def _signed(engine: Engine, held: Counter[Row], before: Rows, after: Rows, steps: Steps) -> Counter[Row]:
    """The same where no row tells its values: rows of touched values come as they are, and go as they were."""
    query = engine.query
    view = Counter(held)
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


def runs(query: RelationalQuery) -> bool:
    """Whether SQLite answers a query: it refuses some that have a RIGHT JOIN in a subquery, and lets wrong rows through a
    condition on a UNION ALL of which a part has one (in 3.40.1, 4 meets `x % 3 = x`)."""
    if "union all" in query.text and "right join" in query.text:
        return False
    kept = query.grouped.rows if query.grouped else query
    for each in (query, kept):
        with closing(Engine(each)) as engine:
            try:
                engine.rows([[] for _ in each.occurrences])
            except sqlite3.OperationalError:
                return False
    return True


def followable(query: RelationalQuery) -> list[tuple[str, ...]]:
    """The tables of a query of which any may change together so that there is a rule for it."""
    sets = [some for size in range(1, 4) for some in combinations(query.upstreams, size)]
    return [some for some in sets if query.steps(some).rule != "full"]
