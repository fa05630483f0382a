"""The tables of Nexmark with few rows, and what happens to them: an auction house whose tables change in every way.

Keys, times and texts may be null, rows of all tables but `bid` are there twice, and keys name what does not exist. Bids are
equal but for their number, and come in bursts of seconds, so that windows hold several. Each step changes some tables: rows
are inserted, deleted, updated and inserted again, keys move, and events turn out to have happened at another time.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from backfill_assets.query.ddl import parse_schema
from tests.support.lake import Lake
from tests.support.nexmark import COLUMNS
from tests.support.statements import updated

__all__ = ["STEPS", "change", "fill", "is_lone"]

_KINDS: Final = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us", tz="UTC")}
_ID: Final = {"person": "id", "auction": "id", "bid": "number", "side_input": "key"}
"""The column that tells which row is meant. It is unique in `bid` alone."""

STEPS: Final[Sequence[Sequence[str]]] = (
    ("person", "auction", "bid", "side_input"),
    ("bid",),
    ("person", "auction"),
    ("auction", "side_input"),
    ("bid", "person"),
    ("side_input", "person"),
    ("person", "auction", "bid", "side_input"),
)
"""The tables that change in each step."""

_LONE: Final = 1
"""The step after which one bid alone has no auction; after others, many have none."""

_FIRST: Final = {"person": 14, "auction": 16, "bid": 120, "side_input": 5}
_PEOPLE: Final = 12
_AUCTIONS: Final = 14
_BEGIN: Final = datetime(2026, 7, 15, tzinfo=UTC)
_PRICES: Final = (100, 5_000, 9_999, 10_000, 45_000, 999_999, 1_000_000, 30_000_000)
_CHANNELS: Final = ("apple", "Google", "channel-1", "channel-2")
_URLS: Final = (
    "https://www.nexmark.com/abc/def/item.htm?query=1",
    "https://www.nexmark.com/abc/item.htm?query=1&channel_id=77",
    "https://www.nexmark.com/x/y/z?channel_id=5",
)
_TEXTS: Final = ("abc", "cc", "occasion", "")


def fill(lake: Lake, random: Random) -> None:
    """Make the tables with their first rows."""
    for table, rows in _FIRST.items():
        lake.append(table, _frame(table, [_row(table, random, at) for at in range(rows)]))
    for table in ("person", "auction", "side_input"):
        _add(lake, table, [row for row in _rows(lake, table) if row[_ID[table]] in {1, 2}])
    _leave_without_auction(lake, 9)


def change(lake: Lake, random: Random, step: int) -> None:
    """Change the tables of a step, each in several commits."""
    for table in STEPS[step]:
        _change(lake, table, random, step)
    if "bid" in STEPS[step]:
        _leave_without_auction(lake, 1 if step == _LONE else 9)


def _change(lake: Lake, table: str, random: Random, step: int) -> None:
    """Rows go, some of them come back with the same values, keys and times move, and values change, also to null."""
    key, stored = _ID[table], DeltaTable(lake.path(table))
    gone, back, moved, late = random.sample(range(7), 4)
    stored.delete(f"{key} % 7 = {gone}")
    there = {row[key] for row in _rows(lake, table)}
    first = [row for row in _rows(lake, table, 0) if row[key] is not None and row[key] not in there]
    _add(lake, table, [row for row in first if row[key] % 2 == 0 or row[key] % 7 == back])
    for updates in _updates(table, random):
        stored.update_incremental()
        updated(stored, updates, f"{key} % 7 = {moved}")
    if table != "side_input":
        delay = random.choice((3, 7, 3600))
        lake.sql(table, f"UPDATE {{t}} SET date_time = date_time + INTERVAL '{delay}' SECOND WHERE {key} % 7 = {late}")
    if table != "bid":
        again = random.randrange(8)
        _add(lake, table, [row for row in _rows(lake, table) if row[key] == again])
    _add(lake, table, [_row(table, random, 1_000 * (step + 1) + at) for at in range(6)])


def _updates(table: str, random: Random) -> Sequence[dict[str, str]]:
    """What is assigned to rows, as SQL: another key, another value, nothing."""
    match table:
        case "person":
            moved = {"id": str(random.randrange(_PEOPLE)), "state": f"'{random.choice(('OR', 'CA'))}'"}
            return {"city": "NULL", "name": "'renamed'"}, moved
        case "auction":
            seller = random.choice(("NULL", str(random.randrange(_PEOPLE))))
            return {"seller": seller, "category": "10"}, {
                "id": str(random.randrange(_AUCTIONS)),
                "item_name": "'renamed'",
            }
        case "bid":
            return {"auction": str(random.randrange(_AUCTIONS))}, {
                "price": f"price + {random.choice(_PRICES)}",
                "bidder": "3",
            }
        case _:
            return {"value": f"'changed {random.randrange(9)}'"}, {"key": str(random.randrange(4))}


def is_lone(step: int) -> bool:
    """Whether one bid alone has no auction after a step."""
    return max((each for each in range(step + 1) if "bid" in STEPS[each]), default=-1) == _LONE


def _leave_without_auction(lake: Lake, several: int) -> None:
    """Have so many bids that name no auction: by one among few, NOT IN refuses every row."""
    DeltaTable(lake.path("bid")).delete("auction IS NULL")
    last = max(row["number"] for row in _rows(lake, "bid"))
    begin = _BEGIN + timedelta(hours=7)
    texts = {"channel": "apple", "url": _URLS[0], "extra": "none"}
    _add(
        lake,
        "bid",
        [
            {"number": last + at, "auction": None, "bidder": at, "price": 5_000 * at, "date_time": begin, **texts}
            for at in range(1, several + 1)
        ],
    )


def _rows(lake: Lake, table: str, version: int | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(lake.path(table), version=version).to_pyarrow_table().to_pylist()
    return sorted(found, key=str)


def _add(lake: Lake, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        lake.append(table, _frame(table, rows))


def _frame(table: str, rows: Sequence[dict[str, object]]) -> pa.Table:
    kinds = [(column.name, _KINDS[column.type]) for column in parse_schema(COLUMNS[table])]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(kinds))


def _row(table: str, random: Random, at: int) -> dict[str, object]:
    """A row, in which any value but the number of a bid may be missing."""
    row = _values(table, random, at)
    return {name: None if name != "number" and random.random() < 0.04 else value for name, value in row.items()}


def _values(table: str, random: Random, at: int) -> dict[str, object]:
    match table:
        case "person":
            return _person(random, at)
        case "auction":
            return _auction(random, at)
        case "bid":
            return _bid(random, at)
        case _:
            return {"key": at % 4, "value": random.choice(_TEXTS)}


def _person(random: Random, at: int) -> dict[str, object]:
    return {
        "id": at % _PEOPLE,
        "name": random.choice(("Peter Jones", "Vicky Noris", "Kate Abrams")),
        "email_address": f"mail{at}@example.com",
        "credit_card": str(random.randrange(10**4)),
        "city": random.choice(("Portland", "Bend")),
        "state": random.choice(("OR", "ID", "CA", "AZ")),
        "date_time": _moment(random),
        "extra": random.choice(_TEXTS),
    }


def _auction(random: Random, at: int) -> dict[str, object]:
    begin = _moment(random)
    return {
        "id": at % _AUCTIONS,
        "item_name": f"item {at % 5}",
        "description": random.choice(_TEXTS),
        "initial_bid": random.choice(_PRICES),
        "reserve": random.choice(_PRICES),
        "date_time": begin,
        "expires": begin + random.choice((timedelta(seconds=20), timedelta(days=2), timedelta(days=3))),
        "seller": random.randrange(_PEOPLE),
        "category": random.choice((10, 10, 11, 12)),
        "extra": random.choice(_TEXTS),
    }


def _bid(random: Random, at: int) -> dict[str, object]:
    return {
        "number": at,
        "auction": random.randrange(_AUCTIONS + 1),
        "bidder": random.randrange(_PEOPLE),
        "price": random.choice(_PRICES),
        "channel": random.choice(_CHANNELS),
        "url": random.choice(_URLS),
        "date_time": _moment(random, 5),
        "extra": random.choice(_TEXTS),
    }


def _moment(random: Random, bursts: int = 2) -> datetime:
    """A time in one of the first bursts of twenty seconds; people register and sell in the first two."""
    day, hour = random.choice(((0, 3), (0, 7), (0, 12), (1, 12), (1, 19))[:bursts])
    return _BEGIN + timedelta(days=day, hours=hour, milliseconds=500 * random.randrange(40))
