"""Queries of random shape over small tables, drawn by Hypothesis, in SQL that SQLite and Spark both understand."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

__all__ = [
    "COLUMNS",
    "Draw",
    "Rows",
    "changes",
    "nested_queries",
    "queries",
    "queries_of_computed",
    "queries_of_first",
    "queries_of_not_in",
    "queries_of_parameters",
    "tables",
]

COLUMNS = {"a": ("id", "k", "v"), "b": ("id", "k", "v"), "c": ("id", "k", "w")}
"""Three tables; their columns are whole numbers or null."""

Rows = dict[str, list[tuple[int | None, ...]]]
Draw = st.DrawFn

_JOINS = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN"]
if sqlite3.sqlite_version_info >= (3, 39):
    _JOINS += ["RIGHT JOIN", "FULL JOIN"]
_SET = st.integers(0, 4)
_VALUES = st.one_of(st.none(), _SET)


@dataclass(frozen=True)
class _From:
    """FROM with its joins, and the columns that it gives."""

    text: str
    columns: list[str]


@st.composite
def tables(draw: Draw, *, nulls: bool = True) -> Rows:
    """Rows of each table."""
    values = _VALUES if nulls else _SET
    return {name: draw(st.lists(st.tuples(*[values] * len(columns)), max_size=7)) for name, columns in COLUMNS.items()}


@st.composite
def changes(draw: Draw, rows: Rows, changed: Collection[str], *, nulls: bool = True) -> Rows:
    """The rows that tables have after some of them changed."""
    values = _VALUES if nulls else _SET
    after = dict(rows)
    for name in sorted(changed):
        stays = draw(st.lists(st.integers(0, 2), min_size=len(rows[name]), max_size=len(rows[name])))
        come = draw(st.lists(st.tuples(*[values] * len(COLUMNS[name])), max_size=3))
        after[name] = [row for row, stay in zip(rows[name], stays, strict=True) if stay] + come
    return after


@st.composite
def queries(draw: Draw, *, depth: int = 2) -> str:
    """A query whose result has the columns x0, x1, …"""
    return draw(_query(depth, draw(st.integers(1, 3))))


@st.composite
def nested_queries(draw: Draw) -> str:
    """A query whose innermost tables have to do with its rows only by tables between."""
    inner = "SELECT r.id FROM c r WHERE r.w > 1"
    if draw(st.booleans()):
        inner = "SELECT r.k FROM c r JOIN a p ON p.id = r.id WHERE p.v > 1"
    between = draw(st.sampled_from(["b s", "b s", "b s JOIN a t ON t.k = s.id", "b s LEFT JOIN a t ON t.k = s.id"]))
    has = draw(st.sampled_from(["s.v", "s.v", "s.k"]))
    condition = f"{draw(st.sampled_from(['x.k', 'x.id']))} IN (SELECT s.k FROM {between} WHERE {has} IN ({inner}))"
    if draw(st.integers(0, 2)) == 0:
        condition = f"EXISTS (SELECT 1 FROM {between} WHERE s.k = x.k AND {has} IN ({inner}))"
    text = f"FROM a x WHERE {condition}"
    shape = draw(st.sampled_from(["x.id, x.k", "DISTINCT x.k", "x.k, count(*)", "DISTINCT x.id"]))
    if draw(st.integers(0, 2)) == 0:
        text = f"FROM a x JOIN b s ON x.id = s.k JOIN c r ON r.id = s.v {draw(st.sampled_from(['', 'WHERE r.w > 1']))}"
    return f"SELECT {_named(shape.split(', '))} {text}{' GROUP BY x.k' if 'count' in shape else ''}"


@st.composite
def queries_of_computed(draw: Draw) -> str:
    """A query that compares rows by what is computed from their columns."""
    key = f"{draw(st.sampled_from(['x.id', 'x.k']))} % {draw(st.integers(2, 3))}"
    source = draw(
        st.sampled_from([
            "a x",
            "(SELECT s.k % 3 AS id, s.id AS k, s.v FROM a s) x",
            "(SELECT s.id, s.k, max(s.v) AS v FROM a s GROUP BY s.id, s.k) x",
            f"a x LEFT JOIN c y ON y.k % 2 = {key}",
            f"a x JOIN c y ON y.w = {key}",
        ])
    )
    inner = draw(
        st.sampled_from([f"{key} IN (SELECT s.k FROM b s)", f"EXISTS (SELECT 1 FROM b s WHERE s.v % 3 = {key})"])
    )
    where = draw(st.sampled_from(["", "", f" WHERE {inner}"]))
    shape = draw(st.sampled_from([f"{key}, count(DISTINCT x.v)", f"{key}, count(*)", f"DISTINCT {key}", "x.id, x.v"]))
    if draw(st.integers(0, 3)) == 0:
        shape = f"x.v, count(*) OVER (PARTITION BY {key})"
    grouped = f" GROUP BY {key}" if shape.startswith(f"{key}, count") else ""
    return f"SELECT {_named(shape.split(', '))} FROM {source}{where}{grouped}"


@st.composite
def queries_of_first(draw: Draw) -> str:
    """The first rows of a query."""
    width = draw(st.integers(1, 3))
    terms = [
        f"x{draw(st.integers(0, width - 1))}{draw(st.sampled_from(['', ' DESC', ' DESC NULLS FIRST', ' NULLS LAST']))}"
    ]
    return f"{draw(_query(2, width))} ORDER BY {', '.join(terms)} LIMIT {draw(st.integers(1, 5))}"


@st.composite
def queries_of_not_in(draw: Draw) -> str:
    """A query whose rows are those that NOT IN leaves."""
    compared = draw(st.sampled_from(["x.id", "x.k"]))
    joined = draw(st.sampled_from(["", "", " LEFT JOIN c y ON y.id = x.k", " JOIN c y ON y.id = x.k"]))
    inner = draw(st.sampled_from(["", " WHERE s.k IS NOT NULL", " WHERE s.v > 1", " GROUP BY s.k HAVING count(*) < 2"]))
    if draw(st.integers(0, 4)) == 0:
        inner = " WHERE s.id NOT IN (SELECT r.id FROM c r)"
    text = f"FROM a x{joined} WHERE {compared} NOT IN (SELECT s.k FROM b s{inner})"
    text += draw(st.sampled_from(["", "", f" AND {compared} IS NOT NULL"]))
    shape = draw(st.sampled_from(["x.id, x.v", "DISTINCT x.k", "x.k, count(*)", "DISTINCT x.id"]))
    return f"SELECT {_named(shape.split(', '))} {text}{' GROUP BY x.k' if 'count' in shape else ''}"


@st.composite
def queries_of_parameters(draw: Draw) -> str:
    """What is compared with, or gives, one value of a table: maybe of the one whose rows it asks for."""
    names = st.sampled_from(sorted(COLUMNS))
    rows, other, name = draw(names), draw(names), draw(names)
    called = draw(st.sampled_from(["max", "min", "count", "sum"]))
    few = draw(st.sampled_from(["", " WHERE id > 1", " WHERE k IS NOT NULL AND id < 3"]))
    value, compares = f"(SELECT {called}(k) FROM {name} AS z{few})", draw(st.sampled_from(["<", ">=", "="]))
    return draw(
        st.sampled_from([
            f"SELECT x.id AS c0, x.k AS c1 FROM {rows} AS x WHERE x.k {compares} {value}",
            f"SELECT x.id AS c0, coalesce({value}, 7) AS c1 FROM {rows} AS x WHERE x.id > 0",
            f"SELECT x.id AS c0, y.k FROM {rows} AS x LEFT JOIN {other} AS y ON y.id = x.id WHERE x.k {compares} {value}",
            f"SELECT x.k AS c0, count(*) AS c1 FROM {rows} AS x WHERE x.id {compares} {value} GROUP BY x.k",
            f"SELECT x.k AS c0, max(x.id) AS c1 FROM {rows} AS x GROUP BY x.k HAVING count(*) {compares} {value}",
            f"SELECT x.id AS c0 FROM {rows} AS x WHERE x.k {compares} {value} UNION ALL SELECT y.id FROM {other} AS y",
        ])
    )


@st.composite
def _query(draw: Draw, depth: int, width: int) -> str:
    kind = draw(st.sampled_from(["select"] * 5 + ["set"])) if depth else "select"
    if kind == "select":
        return draw(_select(depth, width))
    left, right = draw(_select(depth - 1, width)), draw(_select(depth - 1, width))
    return f"{left} {draw(st.sampled_from(['UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT']))} {right}"


@st.composite
def _select(draw: Draw, depth: int, width: int) -> str:
    source = draw(_sources(depth))
    where = draw(st.lists(_condition(source.columns), max_size=2))
    filtered = f"{source.text}{' WHERE ' + ' AND '.join(where) if where else ''}"
    shape = draw(st.sampled_from(["rows", "rows", "groups", "groups", "window", "distinct", "scalar"]))
    column = st.sampled_from(source.columns)
    if shape == "groups":
        keys = draw(st.lists(_key(source.columns), min_size=1, max_size=2, unique=True))
        items = [draw(st.one_of(st.sampled_from(keys), _aggregate(source.columns))) for _ in range(width)]
        having = draw(st.sampled_from(["", "", " HAVING count(*) > 1"]))
        return f"SELECT {_named(items)} FROM {filtered} GROUP BY {', '.join(keys)}{having}"
    items = [draw(_key(source.columns)) for _ in range(width)]
    if shape == "window":
        over = f"PARTITION BY {draw(_key(source.columns))}{draw(st.sampled_from(['', f' ORDER BY {draw(column)}']))}"
        items[-1] = f"{draw(st.sampled_from(['count(*)', f'sum({draw(column)})']))} OVER ({over})"
    if shape == "scalar":
        items[-1] = f"(SELECT {draw(_aggregate(['s.v']))} FROM b s WHERE s.k = {draw(column)})"
    return f"SELECT {'DISTINCT ' if shape == 'distinct' else ''}{_named(items)} FROM {filtered}"


@st.composite
def _sources(draw: Draw, depth: int) -> _From:
    first = draw(_source(depth, 0))
    text, columns = first.text, list(first.columns)
    for number in range(1, draw(st.integers(1, 3))):
        join, other = draw(st.sampled_from(_JOINS)), draw(_source(depth, number))
        compared = draw(st.sampled_from(["=", "=", "=", "<"]))
        on = f"{draw(_key(columns))} {compared} {draw(_key(other.columns))}"
        text += f" {join} {other.text}" + ("" if join == "CROSS JOIN" else f" ON {on}")
        columns += other.columns
    return _From(text, columns)


@st.composite
def _source(draw: Draw, depth: int, number: int) -> _From:
    if depth and draw(st.integers(0, 2)) == 0:
        width = draw(st.integers(1, 2))
        inner = draw(_query(depth - 1, width))
        return _From(f"({inner}) q{depth}{number}", [f"q{depth}{number}.x{at}" for at in range(width)])
    name = draw(st.sampled_from(sorted(COLUMNS)))
    alias = f"t{depth}{number}"
    return _From(f"{name} {alias}", [f"{alias}.{column}" for column in COLUMNS[name]])


@st.composite
def _key(draw: Draw, columns: Sequence[str]) -> str:
    """A column, or what is computed from one."""
    column = draw(st.sampled_from(columns))
    return f"{column} % {draw(st.integers(2, 3))}" if draw(st.integers(0, 4)) == 0 else column


@st.composite
def _condition(draw: Draw, columns: Sequence[str]) -> str:
    column, other = draw(st.sampled_from(columns)), draw(st.sampled_from(columns))
    inner = f"SELECT 1 FROM c s WHERE s.k = {column} AND s.w > {draw(st.integers(0, 3))}"
    choices = [
        f"{column} = {other}",
        f"{column} % 2 = {other}",
        f"{column} % 3 IN (SELECT s.k FROM a s WHERE s.v > 1)",
        f"{column} <> {draw(st.integers(0, 4))}",
        f"({column} IS NULL OR {other} > 1)",
        f"EXISTS ({inner})",
        f"NOT EXISTS ({inner})",
        f"{column} IN (SELECT s.k FROM a s WHERE s.v > 1)",
        f"{column} NOT IN (SELECT s.k FROM a s WHERE s.v > 1)",
        f"({column} IN (SELECT s.k FROM a s) OR {other} = 2)",
        f"{column} = (SELECT max(s.k) FROM b s)",
    ]
    return draw(st.sampled_from(choices))


@st.composite
def _aggregate(draw: Draw, columns: Sequence[str]) -> str:
    column = draw(st.sampled_from(columns))
    return draw(
        st.sampled_from([
            "count(*)",
            f"count({column})",
            f"sum({column})",
            f"max({column})",
            f"count(DISTINCT {column})",
        ])
    )


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS x{at}" for at, item in enumerate(items))
