"""Random queries of more depth and operators than those of `drawn_queries`, written from a `Random` and so told by a seed.

The columns of whatever is in FROM begin with its key, and most of what looks at rows together compares by that: otherwise few
queries would have a rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

__all__ = ["Schema", "wide_query"]

Schema = Mapping[str, Mapping[str, str]]
"""The kinds of columns, by table: `k` for whole numbers, `n` for small ones that may be added up; for Spark `s` for texts,
`f` for floats and `d` for decimals, too, each in a column of this name."""


class _Column(NamedTuple):
    sql: str
    kind: str


class _Rows(NamedTuple):
    """FROM with its joins, or a query, and the columns that it gives."""

    text: str
    columns: list[_Column]


_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
_SHAPES = ("rows", "rows", "groups", "groups", "distinct", "window", "value")
_SETS = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
_SETS_OF_SPARK = (*_SETS, "EXCEPT ALL", "INTERSECT ALL")
_OTHERS = ("s", "f", "d")
_CONSTANTS = {
    "k": "CAST(1 AS BIGINT)",
    "n": "1",
    "s": "'x'",
    "f": "CAST(1 AS DOUBLE)",
    "d": "CAST(1 AS DECIMAL(38, 2))",
}


def wide_query(random: Random, tables: Schema, *, spark: bool = False, named: bool = False) -> str:
    """A query whose result has the columns x0, x1, …; of `spark` with what SQLite cannot run, and with some of the queries in
    FROM `named` in WITH, and keys of more forms."""
    key = random.choice(("k", "k", "k", *_OTHERS)) if spark else "k"
    writer = _Writer(random, tables, key, spark=spark, named=named)
    query = writer.query(random.choice((1, 2, 2, 3, 3)), [key, *writer.some_kinds()])
    defined = ", ".join(f"{name} AS ({inner})" for name, inner, _ in writer.definitions)
    return f"WITH {defined} {query}" if defined else query


@dataclass
class _Writer:
    random: Random
    tables: Schema
    keyed: str
    spark: bool
    named: bool = False
    names: int = field(default=0)
    definitions: list[tuple[str, str, list[str]]] = field(default_factory=list)
    """The names of WITH, the query of each, and the kinds of its columns."""

    def some_kinds(self) -> list[str]:
        """The kinds of columns beside a key."""
        kinds = ("k", "n", "n", *(_OTHERS if self.spark else ()))
        return self.random.choices(kinds, k=self.random.randrange(3))

    def query(self, depth: int, kinds: Sequence[str]) -> str:
        """A query that gives columns of these kinds, with so many levels below it at most."""
        if depth and self.random.random() < 0.2:
            sets = _SETS_OF_SPARK if self.spark else _SETS
            left, right = self.select(depth - 1, kinds), self.select(depth - 1, kinds)
            return f"{left} {self.random.choice(sets)} {right}"
        return self.select(depth, kinds)

    def select(self, depth: int, kinds: Sequence[str]) -> str:
        """The same without set operations."""
        if self.random.random() < 0.12:
            return self.by_name(depth, kinds)
        source = self.sources(depth)
        few = self.random.choices((0, 1, 2), (4, 4, 1))[0]
        where = " AND ".join(self.condition(source.columns, depth) for _ in range(few))
        rows = f"{source.text}{f' WHERE {where}' if where else ''}"
        return self.shaped(self.random.choice(_SHAPES), _Rows(rows, source.columns), kinds)

    def shaped(self, shape: str, source: _Rows, kinds: Sequence[str]) -> str:
        """The SELECT list over what FROM and WHERE give, and what comes after these."""
        if shape == "groups":
            return self.groups(source, kinds)
        items = [self.key(source.columns), *(self.item(source.columns, each) for each in kinds[1:])]
        if shape == "window" and kinds[-1] == "n":
            over = f"PARTITION BY {self.key(source.columns)}"
            if self.random.random() < 0.5:
                over += f" ORDER BY {self.item(source.columns, 'n')}"
            called = self.random.choice((f"sum({self.item(source.columns, 'n')})", "count(*)", "rank()"))
            items[-1] = f"{called} OVER ({over if 'rank' not in called or 'ORDER' in over else over + ' ORDER BY 1'})"
        if shape == "value" and len(items) > 1:
            items[-1] = self.value(source.columns, kinds[-1])
        return f"SELECT {'DISTINCT ' if shape == 'distinct' else ''}{_named(items)} FROM {source.text}"

    def groups(self, source: _Rows, kinds: Sequence[str]) -> str:
        """Groups by a key, or by two."""
        keys = [self.key(source.columns) if self.random.random() < 0.8 else self.random.choice(source.columns).sql]
        if self.random.random() < 0.3:
            keys = list(dict.fromkeys((*keys, self.random.choice(source.columns).sql)))
        of_kind = {each.sql: each.kind for each in source.columns}
        first = [keys[0] if of_kind.get(keys[0], self.keyed) == kinds[0] else self.aggregate(source.columns, kinds[0])]
        items = [*first, *(self.aggregate(source.columns, each) for each in kinds[1:])]
        by = ", ".join(keys)
        if self.spark and self.random.random() < 0.1:
            by = self.random.choice((f"GROUPING SETS (({by}), ())", f"ROLLUP ({by})", f"CUBE ({by})"))
        having = f" HAVING {self.aggregate(source.columns, 'n')} > 1" if self.random.random() < 0.25 else ""
        return f"SELECT {_named(items)} FROM {source.text} GROUP BY {by}{having}"

    def aggregate(self, columns: Sequence[_Column], kind: str) -> str:
        """What is made of the rows of a group, of a kind."""
        if kind != "n":
            return f"{self.random.choice(('max', 'min'))}({self.item(columns, kind)})"
        any_column, number = self.random.choice(columns).sql, self.item(columns, "n")
        called = self.random.choice((
            "count(*)",
            f"count({any_column})",
            f"count(DISTINCT {any_column})",
            f"sum({number})",
            f"max({number})",
        ))
        if self.random.random() < 0.2:
            called += f" FILTER (WHERE {self.item(columns, 'n')} > {self.random.randrange(3)})"
        return called

    def sources(self, depth: int) -> _Rows:
        """FROM with its joins: half of them by the key."""
        text, columns = self.source(depth)
        for _ in range(self.random.choices((0, 1, 2), (3, 4, 1))[0]):
            join, other = self.random.choice(_JOINS), self.source(depth - 1)
            keyed = self.random.random() < 0.75
            left = columns[0].sql if keyed else self.key(columns)
            right = other.columns[0].sql if keyed else self.key(other.columns)
            on = f"{left} {'=' if keyed or self.random.random() < 0.5 else '<'} {right}"
            if self.random.random() < 0.15:
                join = self.random.choice(("LEFT SEMI JOIN", "LEFT ANTI JOIN"))
            text += f" {join} {other.text}" + ("" if join == "CROSS JOIN" else f" ON {on}")
            columns = columns if "SEMI" in join or "ANTI" in join else [*columns, *other.columns]
            if join == "RIGHT JOIN":
                columns = [*other.columns, *(each for each in columns if each not in other.columns)]
            if "SEMI" in join or "ANTI" in join:
                break
        return _Rows(text, columns)

    def source(self, depth: int) -> _Rows:
        """A table, or a query in FROM."""
        self.names += 1
        alias = f"t{self.names}"
        if self.definitions and self.random.random() < 0.3:
            name, _, kinds = self.random.choice(self.definitions)
            return _Rows(f"{name} {alias}", [_Column(f"{alias}.x{at}", kind) for at, kind in enumerate(kinds)])
        if depth > 0 and self.random.random() < 0.6:
            kinds = [self.keyed, *self.some_kinds()]
            text = f"({self.query(depth - 1, kinds)})"
            if self.named and self.random.random() < 0.7:
                self.definitions.append((f"w{len(self.definitions)}", text[1:-1], kinds))
                text = self.definitions[-1][0]
            return _Rows(f"{text} {alias}", [_Column(f"{alias}.x{at}", kind) for at, kind in enumerate(kinds)])
        name = self.random.choice(sorted(self.tables))
        columns = [_Column(f"{alias}.{column}", kind) for column, kind in self.tables[name].items()]
        keys = [at for at, each in enumerate(columns) if each.kind == self.keyed]
        first = keys[-1] if self.random.random() < 0.75 else keys[0]
        return _Rows(f"{name} {alias}", [columns[first], *columns[:first], *columns[first + 1 :]])

    def by_name(self, depth: int, kinds: Sequence[str]) -> str:
        """A SELECT over two tables that are joined by columns of one name, grouped or as they are."""
        self.names += 1
        left, right = f"l{self.names}", f"r{self.names}"
        one, two = (self.random.choice(sorted(self.tables)) for _ in range(2))
        side = self.random.choice(("", "", "LEFT ", "FULL "))
        if self.random.random() < 0.3:
            joined, shared = f"{one} {left} NATURAL {side}JOIN {two} {right}", self.keyed
        else:
            shared = self.random.choice(("id", "k")) if self.keyed == "k" else self.keyed
            joined = f"{one} {left} {side}JOIN {two} {right} USING ({shared})"
        columns = [_Column(shared, self.keyed)]
        if "NATURAL" not in joined:
            columns += [
                _Column(f"{alias}.{column}", kind)
                for alias, name in ((left, one), (right, two))
                for column, kind in self.tables[name].items()
                if column != shared
            ]
        where = f" WHERE {shared} IS NOT NULL" if self.random.random() < 0.3 else ""
        shape = self.random.choice(("rows", "groups", "distinct"))
        del depth
        return self.shaped(shape, _Rows(f"{joined}{where}", columns), kinds)

    def key(self, columns: Sequence[_Column]) -> str:
        """A column to compare rows by: most often the key, now and then what is computed from it."""
        chosen = columns[0].sql if self.random.random() < 0.7 else self.item(columns, self.keyed)
        if self.keyed != "k" or self.random.random() >= (0.2 if self.named else 0.06):
            return chosen
        forms = ("{} % 3", "coalesce({}, 0)", "CASE WHEN {} > 1 THEN 1 ELSE 0 END")
        return (self.random.choice(forms) if self.named else forms[0]).format(chosen)

    def item(self, columns: Sequence[_Column], kind: str) -> str:
        """A column of a kind; something else of the kind where there is none."""
        found = [each.sql for each in columns if each.kind == kind]
        if not found and self.keyed == "k" and kind == "n":
            return f"{columns[0].sql} % 5"
        return self.random.choice(found) if found else _CONSTANTS[kind]

    def value(self, columns: Sequence[_Column], kind: str) -> str:
        """One value of a table, of the rows that have the key, or of all."""
        self.names += 1
        inner = f"s{self.names}"
        name = self.random.choice(sorted(self.tables))
        of_table = [_Column(f"{inner}.{column}", each) for column, each in self.tables[name].items()]
        linked = f" WHERE {inner}.{self.keyed} = {self.key(columns)}" if self.random.random() < 0.8 else ""
        return f"(SELECT {self.aggregate(of_table, kind)} FROM {name} {inner}{linked})"

    def condition(self, columns: Sequence[_Column], depth: int) -> str:
        """A condition of WHERE."""
        key, number = self.key(columns), self.item(columns, "n")
        if self.random.random() < 0.45:
            return self.random.choice((
                f"{number} > {self.random.randrange(3)}",
                f"{key} IS NOT NULL",
                f"({key} IS NULL OR {number} <> 1)",
                f"{key} = {self.item(columns, self.keyed)}",
                f"{columns[0].sql} = {self.item(columns, self.keyed)}",
                f"{number} >= {self.value(columns, 'n')}",
            ))
        self.names += 1
        inner, word = f"e{self.names}", self.random.choice(("", "NOT "))
        if self.random.random() < 0.5:
            given = self.query(max(depth - 1, 0), [self.keyed]) if self.random.random() < 0.4 else ""
            given = f"SELECT {inner}.x0 FROM ({given}) {inner}" if given else self.keys_of(inner)
            return f"{key} {word}IN ({given})"
        name = self.random.choice(sorted(self.tables))
        return f"{word}EXISTS (SELECT 1 FROM {name} {inner} WHERE {inner}.{self.keyed} = {key})"

    def keys_of(self, alias: str) -> str:
        """A subquery that gives keys of a table."""
        name = self.random.choice(sorted(self.tables))
        where = self.random.choice(("", f" WHERE {alias}.{self.keyed} IS NOT NULL", f" WHERE {alias}.id > 1"))
        return f"SELECT {alias}.{self.keyed} FROM {name} {alias}{where}"


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS x{at}" for at, item in enumerate(items))
