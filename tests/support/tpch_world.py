"""The tables of TPC-H with few rows, and what happens to them.

Any value may be null but the keys of suppliers, which become null later; rows of all tables without a key are there twice;
keys name what does not exist. Each step changes tables in several commits: rows are deleted, inserted again with the same
values, updated, moved to other keys, copied, and new ones come. The last step changes no line, and keeps the values that
subqueries give.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from tests.support.lake import Lake
from tests.support.statements import updated
from tests.support.tpch import COLUMNS, KEYS

__all__ = ["STEPS", "change", "changed_rows", "fill", "rows_of"]

Row = tuple[object, ...]

STEPS: Final[Sequence[Sequence[str]]] = (
    tuple(COLUMNS),
    tuple(COLUMNS),
    tuple(name for name in COLUMNS if name != "lineitem"),
)
"""The tables that change in each step."""

_QUIET: Final = 2
"""The step after which subqueries for one value give what they gave before."""

_SIZES: Final = {
    "region": 3,
    "nation": 6,
    "supplier": 9,
    "customer": 30,
    "part": 10,
    "partsupp": 45,
    "orders": 24,
    "lineitem": 140,
}
_RANGES: Final = {
    "c_custkey": 24,
    "regionkey": 3,
    "nationkey": 6,
    "suppkey": 7,
    "custkey": 16,
    "partkey": 8,
    "orderkey": 20,
}
"""How many values keys have, by the ends of their names. A third of the customers have no orders."""

_NUMBERED: Final = {"region": 3, "nation": 6, "supplier": 7, "customer": 24, "part": 8, "orders": 20}
"""The tables whose own keys are numbers in turn, and how many of them."""

_TEXTS: Final = {
    "r_name": ("ASIA", "EUROPE"),
    "n_name": ("NATION 0", "NATION 1", "NATION 2", "NATION 3", "NATION 4"),
    "name": ("green", "red", "pink"),
    "phone": ("11-1", "12-2", "13-3", "14-4", "15-5"),
    "segment": ("AUTO", "BUILDING", "MACHINERY"),
    "brand": ("Brand#1", "Brand#2", "Brand#3"),
    "p_type": ("PROMO TIN", "MEDIUM NICKEL", "PLATED TIN", "SMALL BRASS"),
    "priority": ("1-URGENT", "5-LOW"),
    "orderstatus": ("F", "F", "O"),
    "flag": ("R", "A"),
    "mode": ("MAIL", "SHIP", "AIR"),
    "s_comment": ("Customer Complaints", "plain", "plain", "plain"),
    "comment": ("special", "plain", "plain"),
}
_NEVER_NULL: Final = {"r_regionkey", "n_nationkey", "s_suppkey", "ps_suppkey"}

_MOVED: Final = {
    "region": ("r_name",),
    "nation": ("n_name", "n_regionkey"),
    "supplier": ("s_nationkey", "s_acctbal", "s_comment"),
    "customer": ("c_nationkey", "c_acctbal", "c_phone"),
    "part": ("p_partkey", "p_brand", "p_size", "p_type"),
    "partsupp": ("ps_suppkey", "ps_supplycost"),
    "orders": ("o_custkey", "o_orderdate", "o_totalprice"),
    "lineitem": ("l_orderkey", "l_partkey", "l_quantity", "l_receiptdate"),
}
"""The columns that get other values."""

_MOVED_QUIETLY: Final = {
    "region": ("r_name",),
    "nation": ("n_regionkey",),
    "supplier": ("s_name", "s_phone", "s_acctbal"),
    "customer": ("c_nationkey", "c_phone", "c_name"),
    "part": ("p_name", "p_brand", "p_size", "p_type"),
    "partsupp": ("ps_partkey",),
    "orders": ("o_custkey", "o_orderdate"),
}

_LOST: Final[Sequence[Mapping[str, Mapping[str, str]]]] = (
    {
        "nation": {"n_regionkey": "NULL"},
        "supplier": {"s_nationkey": "NULL"},
        "customer": {"c_custkey": "NULL"},
        "part": {"p_partkey": "NULL"},
        "partsupp": {"ps_partkey": "NULL"},
        "orders": {"o_custkey": "NULL"},
        "lineitem": {"l_suppkey": "CASE WHEN l_linenumber % 4 = 0 THEN NULL ELSE l_suppkey END"},
    },
    {
        "region": {"r_name": "NULL"},
        "supplier": {"s_suppkey": "NULL", "s_comment": "'plain'"},
        "customer": {"c_nationkey": "NULL"},
        "partsupp": {"ps_suppkey": "NULL"},
        "orders": {"o_orderkey": "NULL"},
        "lineitem": {"l_orderkey": "CASE WHEN l_linenumber % 4 = 0 THEN NULL ELSE l_orderkey END"},
    },
    {},
)
"""What becomes null in each step: keys, by which queries join or ask whether a row is there. NOT IN would refuse every row
for a supplier without a key who has complaints."""


def fill(lake: Lake, random: Random) -> None:
    """Make the tables with their first rows."""
    for table in COLUMNS:
        _add(lake, table, rows_of(table, random))
        if table not in KEYS:
            _add(lake, table, _rows(lake, table)[:2])


def change(lake: Lake, random: Random, step: int) -> None:
    """Change the tables of a step, each in several commits."""
    for table in STEPS[step]:
        stored, key, many = DeltaTable(lake.path(table)), _id(table), _modulus(table)
        gone = [row for row in _rows(lake, table) if row[0] is not None and row[0] % many == (2 - step) % many]
        stored.delete(f"{key} % {many} = {(2 - step) % many}")
        if step == _QUIET:
            _add(lake, table, gone)
        else:
            _come(lake, table, random, step)
        moved = _MOVED_QUIETLY if step == _QUIET else _MOVED
        values = {name: _literal(_other(table, name, random)) for name in moved[table]}
        which = f"{key} % 3 = 1" if step == _QUIET else f"{key} % {many} = {3 * step % many}"
        for updates, predicate in ((values, which), (_LOST[step].get(table, {}), f"{key} % {many} = {step + 1}")):
            stored.update_incremental()
            if updates:
                updated(stored, updates, predicate)


def rows_of(table: str, random: Random) -> list[Row]:
    """The first rows of a table, whose keys meet those of others."""
    return [_row(table, random, at) for at in range(_SIZES[table])]


def changed_rows(table: str, rows: Sequence[Row], random: Random) -> list[Row]:
    """The rows after some of them went and others came."""
    left = [row for row in rows if random.random() > 0.12]
    return left + [_row(table, random, random.randrange(100)) for _ in range(random.randrange(1, 4))]


def _come(lake: Lake, table: str, random: Random, step: int) -> None:
    """First rows that are not there any more come back, others come twice, and there are new ones."""
    now = {row[0] for row in _rows(lake, table)}
    back = [row for row in _rows(lake, table, 0) if row[0] not in now and row[0] is not None]
    _add(lake, table, back if step else [])
    if table in KEYS:
        _add(lake, table, [(100 + step, *_row(table, random, step)[1:])])
        return
    _add(lake, table, random.sample(_rows(lake, table), 2))
    _add(lake, table, [_row(table, random, 7 * step + at) for at in range(1 + _SIZES[table] // 20)])


def _id(table: str) -> str:
    return _names(table)[0]


def _names(table: str) -> list[str]:
    return [name for name, _ in _kinds(table)]


def _kinds(table: str) -> list[tuple[str, str]]:
    return [(each.split(" ")[0], each.split(" ")[1]) for each in re.split(r", (?=[a-z])", COLUMNS[table])]


def _modulus(table: str) -> int:
    return min(7, _NUMBERED.get(table, 7))


def _row(table: str, random: Random, at: int) -> Row:
    """A row, in which any value but a supplier's key may be missing."""
    row = {name: _value(name, kind, random) for name, kind in _kinds(table)}
    if table in _NUMBERED:
        row[_id(table)] = at % _NUMBERED[table]
    if table == "nation":
        row |= {"n_name": f"NATION {at % 5}", "n_regionkey": at % 3}
    if table == "region" and at % 3 == 2:
        row["r_name"] = "MIDDLE EAST"
    if table == "lineitem":
        row["l_receiptdate"] = row["l_commitdate"] + timedelta(days=random.randrange(-20, 10))
    return tuple(None if name not in _NEVER_NULL and random.random() < 0.03 else each for name, each in row.items())


def _value(name: str, kind: str, random: Random) -> Any:
    for ends, many in _RANGES.items():
        if name.endswith(ends):
            return random.randrange(many)
    match kind:
        case "STRING":
            found = [texts for ends, texts in _TEXTS.items() if name.endswith(ends)]
            return random.choice(found[0] if found else ("a", "b"))
        case "DATE":
            return date(1992, 1, 1) + timedelta(days=random.randrange(2500))
        case "INT":
            return random.randrange(9 if name == "p_size" else 400)
    if "discount" in name or "tax" in name:
        return Decimal(random.randrange(10)) / 100
    return Decimal(random.randrange(-1000 if "acctbal" in name else 1, 5000)) / 100


def _other(table: str, name: str, random: Random) -> object:
    return _value(name, dict(_kinds(table))[name], random)


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str | date) else str(value)


def _rows(lake: Lake, table: str, version: int | None = None) -> list[Any]:
    found = DeltaTable(lake.path(table), version=version).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def _add(lake: Lake, table: str, rows: Sequence[Row]) -> None:
    if rows:
        types = {"BIGINT": pa.int64(), "STRING": pa.string(), "INT": pa.int32(), "DATE": pa.date32()}
        schema = pa.schema([(name, types.get(kind, pa.decimal128(12, 2))) for name, kind in _kinds(table)])
        lake.append(
            table, pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        )
