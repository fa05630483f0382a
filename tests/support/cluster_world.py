"""Tables that are refreshed on a cluster: a source, a row-wise view, an aggregate, and a view that joins both.

What has to be in them is computed by plain Python."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backfill_assets import materialized_view
from tests.support.project import Project
from tests.support.runner import declared

__all__ = ["NAMES", "assert_exact", "declare", "events", "job"]

JOIN = "SELECT l.id, l.twice, s.n FROM large l JOIN sums s ON l.id % 3 = s.third"
UPSTREAMS = ("large", "sums")
NAMES = ("orders", "large", "sums", "joined")


def events(first: int, end: int) -> list[dict[str, float]]:
    """Events whose amounts are exact as floats, and so are their sums."""
    return [{"id": number, "amount": number / 4} for number in range(first, end)]


def declare(project: Project, topic: str) -> None:
    """Declare the tables in this process."""
    project.declare(*declared(topic))
    read = [project.declared[name] for name in UPSTREAMS]
    project.declare(materialized_view("joined", query=JOIN, upstreams=read))


def job(name: str, **more: Any) -> dict[str, Any]:
    """A job that refreshes a table, or does what else is said with it, in a process of its own."""
    extra: Mapping[str, Any] = {"query": JOIN, "upstreams": UPSTREAMS} if name == "joined" else {}
    return {"refresh": name, **extra, **more}


def assert_exact(project: Project, sent: Sequence[Mapping[str, float]], names: Sequence[str] = NAMES) -> None:
    """Each of these tables has exactly the rows that follow from what was sent."""
    amounts: dict[float, list[float]] = {}
    for each in sent:
        amounts.setdefault(each["id"] % 3, []).append(each["amount"])
    expected: dict[str, tuple[Sequence[str], Iterable[tuple[float, ...]]]] = {
        "orders": (("id", "amount"), [(each["id"], each["amount"]) for each in sent]),
        "large": (("id", "twice"), [(each["id"], each["amount"] * 2) for each in sent]),
        "sums": (("third", "n", "total"), [(third, len(found), sum(found)) for third, found in amounts.items()]),
        "joined": (
            ("id", "twice", "n"),
            [(each["id"], each["amount"] * 2, len(amounts[each["id"] % 3])) for each in sent],
        ),
    }
    for name in names:
        columns, rows = expected[name]
        assert project.rows(name, *columns) == Counter(rows), name
