"""Upstreams as the choice of a strategy sees them, on a machine of 2 cores."""

from typing import Any

from backfill_assets.core.choice.choose import Choice, choose
from backfill_assets.core.choice.estimates import Estimate, Workload
from backfill_assets.core.epoch.costs import Costs, Strategy, TableFacts

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MILLION, GIB = 10**6, 2**30
CHUNK, MEMORY, SPOOL = MILLION, 4 * GIB, GIB


def table(name: str = "orders", *, rows: int = 10 * MILLION, **facts: Any) -> TableFacts:
    """A keyed table with a change feed under Delta's default retention, perfectly clustered, with a few changes."""
    chunks = max(1, -(-rows // CHUNK))
    defaults: dict[str, Any] = {
        "kind": "table",
        "bytes": 25 * rows,
        "files": max(1, rows // 500_000),
        "has_feed": True,
        "keyed": True,
        "key_sortable": True,
        "clustering": 1 / chunks,
        "file_retention_seconds": 7 * DAY,
        "log_retention_seconds": 30 * DAY,
        "changes_per_second": 100.0,
        "versions_per_second": 0.1,
        "change_bytes_per_second": 5_000.0,
        "newest_commit_age_seconds": 10.0,
    }
    return TableFacts(name=name, rows=rows, **{**defaults, **facts})


def appended(name: str = "events", *, rows: int = 10 * MILLION, **facts: Any) -> TableFacts:
    """An append-only table without a key or a change feed."""
    return table(
        name, rows=rows, **{"append_only": True, "has_feed": False, "keyed": False, "clustering": None, **facts}
    )


def topic(name: str = "clicks", *, rows: int = 10 * MILLION, **facts: Any) -> TableFacts:
    """A topic that keeps a week."""
    defaults: dict[str, Any] = {
        "bytes": 100 * rows,
        "append_only": True,
        "log_retention_seconds": 7 * DAY,
        "changes_per_second": 100.0,
    }
    return TableFacts(name=name, kind="topic", rows=rows, **{**defaults, **facts})


def chosen(*facts: TableFacts, requested: Strategy | None = None, **limits: Any) -> Choice:
    """The choice on that machine, with some of its limits changed."""
    defaults: dict[str, Any] = {
        "costs": Costs(),
        "chunk_rows": CHUNK,
        "memory_bytes": MEMORY,
        "spool_bytes": SPOOL,
    }
    return choose(facts, requested=requested, **{**defaults, **limits})


def estimate_of(choice: Choice, strategy: Strategy) -> Estimate:
    """The estimate of a strategy that reads this kind of upstream."""
    found = choice.estimate_of(strategy)
    assert found is not None
    return found


def workload(*facts: TableFacts, chunk_rows: int = CHUNK) -> Workload:
    """The input of estimates."""
    return Workload(facts=facts, costs=Costs(), chunk_rows=chunk_rows, memory_bytes=MEMORY, spool_bytes=SPOOL)
