"""What an epoch touches by its keys is recorded, and decides whether the next changes of the same table are followed."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from backfill_assets.app.status import status
from backfill_assets.cli.printing import status_text
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.epoch.report import Progress
from backfill_assets.defs.metadata import refresh_metadata
from tests.support.lake import Lake
from tests.support.over_connect import over_connect

pytestmark = pytest.mark.e2e

JOINED = "SELECT c.id, c.name, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id"
GROUPED = "SELECT c.name, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.name"
VIEWS = {"joined": JOINED, "grouped": GROUPED}
ORDERS, CUSTOMERS = 120, 30
LARGE = 0
"""A customer with half of all orders. Each of the others has two or three."""


def filled(root: Path, names: Sequence[str]) -> Lake:
    lake = Lake(root)
    lake.append("customers", ({"id": at, "name": f"n{at}"} for at in range(CUSTOMERS)))
    lake.append("orders", (order(at, LARGE if at % 2 else 1 + at // 2 % (CUSTOMERS - 1)) for at in range(ORDERS)))
    for name in names:
        lake.view(name, VIEWS[name], lake.table("customers"), lake.table("orders"))
        lake.project.refresh(name)
    return lake


def order(at: int, customer: int) -> dict[str, object]:
    return {"id": at, "customer": customer, "amount": at}


def refreshed(lake: Lake, name: str, query: str) -> CommitRecord:
    """The newest epoch of a view that is equal to its query."""
    record = lake.project.refresh(name).report.record
    columns = [each for each in lake.rows(lake.location(name)).columns if not each.startswith("__")]
    assert lake.found(name, columns) == lake.expected(name, query, "customers", "orders")
    return record


def told(of: CommitRecord | Progress) -> tuple[str, str, int, int]:
    return of.rule, of.why_full, of.keys_touched, of.rows_reached


def reached(root: str, *names: str) -> list[tuple[str, str, int, int]]:
    """What epochs of views tell of themselves: two new orders of small customers, then two of the large one, several times.
    The first view is `joined`."""
    lake = filled(Path(root), names)
    found = [told(lake.project.record("joined"))]
    for step, customers in enumerate(((5, 6), (LARGE, LARGE), (LARGE, LARGE), (LARGE, LARGE)), 1):
        lake.append("orders", (order(1000 * step + at, customer) for at, customer in enumerate(customers)))
        found += [told(refreshed(lake, name, VIEWS[name])) for name in names]
    return found


def of_customers(*chosen: int) -> int:
    """How many orders of the first ones these customers have."""
    return sum((LARGE if at % 2 else 1 + at // 2 % (CUSTOMERS - 1)) in chosen for at in range(ORDERS))


EVERYTHING = CUSTOMERS + ORDERS
SMALL = 2 + 2 + of_customers(5, 6) + 2
"""Two changed orders reach two customers, and all orders of these: the new ones, too."""
MANY = 2 + 1 + of_customers(LARGE) + 2
EXPECTED = [
    ("full", "first", 0, EVERYTHING),
    ("restricted", "", 2, SMALL),
    ("additive", "", 2, SMALL),
    ("restricted", "", 1, MANY),
    ("additive", "", 1, MANY),
    ("restricted", "", 1, MANY + 2),
    ("additive", "", 1, MANY + 2),
    ("full", "keys_reach_many", 0, EVERYTHING + 8),
    ("full", "keys_reach_many", 0, EVERYTHING + 8),
]
"""The first build of joined rows; then these rows and groups, in turns."""


@pytest.mark.usefixtures("spark")
def test_what_keys_reach_is_counted_and_learned_from(tmp_path: Path) -> None:
    assert reached(str(tmp_path), "joined") == EXPECTED[:1] + EXPECTED[1::2]
    lake = Lake(tmp_path)
    lake.view("joined", JOINED, lake.table("customers"), lake.table("orders"))
    known = status(lake.project.workspace(), "joined")
    assert known.progress is not None
    assert told(known.progress) == EXPECTED[-2]
    printed = StringIO()
    Console(width=200, file=printed).print(status_text([known], partitions=False))
    assert "full keys_reach_many" in printed.getvalue()
    metadata = refresh_metadata(lake.project.refresh("joined"))
    assert {"rule": "full", "why_full": "keys_reach_many", "keys_touched": 0}.items() <= metadata.items()


@pytest.mark.full
def test_what_keys_reach_is_counted_over_spark_connect_too(tmp_path: Path, remote: str) -> None:
    assert list(map(tuple, over_connect(remote, reached, tmp_path, *VIEWS))) == EXPECTED
