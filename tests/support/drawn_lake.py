"""Real Delta tables whose values are at the edges of their types, and their random changes, told by a seed."""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import deltalake
import pyarrow as pa
from pyspark.sql import DataFrame

from tests.support.lake import Lake
from tests.support.wide_queries import Schema

__all__ = ["SCHEMA", "TYPES", "DrawnLake"]

Row = tuple[object, ...]
SCHEMA: Schema = {
    "a": {"id": "k", "k": "k", "v": "n", "s": "s", "f": "f", "d": "d"},
    "b": {"id": "k", "k": "k", "v": "n", "s": "s", "f": "f", "d": "d"},
    "c": {"id": "k", "k": "k", "w": "n", "s": "s", "f": "f", "d": "d"},
}
TYPES = {"k": "BIGINT", "n": "BIGINT", "s": "STRING", "f": "DOUBLE", "d": "DECIMAL(38, 2)"}
_TYPES = {"k": pa.int64(), "n": pa.int64(), "s": pa.string(), "f": pa.float64(), "d": pa.decimal128(38, 2)}
_MOST = Decimal("9" * 36 + ".99")
_VALUES: dict[str, tuple[object, ...]] = {
    "k": (None, 0, 1, 1, 2, 2, 3, 2**63 - 1, -(2**63)),
    "n": (None, 0, 1, 2, 3),
    "s": (None, "", " ", "a", "a", "A", "a ", "b"),
    "f": (None, math.nan, math.nan, 0.0, -0.0, 1.5, math.inf),
    "d": (None, Decimal("0.00"), Decimal("1.00"), Decimal("1.00"), Decimal("0.10"), _MOST, _MOST.copy_negate()),
}
_KINDS = ("insert", "insert", "delete", "update", "key move", "key move", "null key", "duplicate", "empty")


class DrawnLake:
    """Tables `a`, `b` and `c`, and views over them. The rows of a table have numbers in `id`, maybe the same ones."""

    def __init__(self, root: Path, random: Random) -> None:
        self.lake = Lake(root)
        self.random = random
        for name in SCHEMA:
            self.append(name, [self._row(name) for _ in range(random.randint(3, 7))])

    def view(self, name: str, query: str) -> None:
        """Declare a view that follows changes whenever a rule allows it."""
        tables = [self.lake.table(each, None) for each in SCHEMA if f" {each} " in query]
        self.lake.view(name, query, *tables, refresh_mode="incremental")

    def append(self, name: str, rows: Sequence[Row]) -> None:
        """Write rows into a table."""
        columns = zip(*rows, strict=True)
        kinds = SCHEMA[name].values()
        arrays = [pa.array(each, _TYPES[kind]) for each, kind in zip(columns, kinds, strict=True)]
        self.lake.append(name, pa.table(arrays, names=list(SCHEMA[name])))

    def rows(self, name: str) -> list[Row]:
        """The rows of a table, in a form that can be compared."""
        found = deltalake.DeltaTable(self.lake.path(name)).to_pyarrow_table(columns=list(SCHEMA[name])).to_pylist()
        return [comparable(row.values()) for row in found]

    def change(self, name: str) -> None:
        """One or two changes of a table, each a commit."""
        for _ in range(self.random.randint(1, 2)):
            table = deltalake.DeltaTable(self.lake.path(name))
            held = table.to_pyarrow_table(columns=list(SCHEMA[name])).to_pylist()
            kind = self.random.choice(_KINDS)
            if not held or kind == "insert":
                self.append(name, [self._row(name) for _ in range(self.random.randint(1, 2))])
            elif kind == "duplicate":
                self.append(name, [tuple(self.random.choice(held).values())])
            elif kind in {"delete", "empty"}:
                table.delete(f"id = {self.random.choice(held)['id']}" if kind == "delete" else None)
            else:
                table.update(updates=self._moved(name, kind), predicate=f"id = {self.random.choice(held)['id']}")

    def _moved(self, name: str, kind: str) -> dict[str, str]:
        """The columns that an update changes, in SQL."""
        number = list(SCHEMA[name])[2]
        column = {"update": number, "null key": "k"}.get(kind, self.random.choice("kksfd"))
        value = None if kind == "null key" else self.random.choice(_VALUES[SCHEMA[name][column]])
        said = "NULL" if value is None else f"'{value}'"
        return {column: f"CAST({said} AS {TYPES[SCHEMA[name][column]]})"}

    def _row(self, name: str) -> Row:
        kinds = list(SCHEMA[name].values())[1:]
        return (self.random.randrange(9), *(self.random.choice(_VALUES[kind]) for kind in kinds))

    def bind(self) -> None:
        """Let queries in Spark name the tables as they are now, read by delta-rs."""
        for name in SCHEMA:
            self.lake.rows(self.lake.path(name)).createOrReplaceTempView(name)

    def expected(self, query: str) -> Counter[Row]:
        """What the user's own text gives over what `bind` has bound."""
        return _multiset(self.lake.spark.sql(query))

    def found(self, view: str) -> Counter[Row]:
        """What a view shows."""
        rows = self.lake.rows(self.lake.location(view))
        return _multiset(rows.select(*(f"`{each}`" for each in rows.columns if not each.startswith("__"))))


def comparable(values: object) -> Row:
    """A row as Spark groups it: NaN is equal to itself, and -0.0 to 0.0."""
    assert hasattr(values, "__iter__")
    return tuple("NaN" if isinstance(each, float) and math.isnan(each) else each for each in values)


def _multiset(rows: DataFrame) -> Counter[Row]:
    return Counter(comparable(row) for row in rows.collect())
