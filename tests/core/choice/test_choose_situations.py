"""The choice in constructed situations: small and large tables, few and many changes, all kinds of retention."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from backfill_assets.core.epoch.costs import Costs, Strategy, TableFacts
from tests.support.choose_world import DAY, GIB, HOUR, MILLION, MINUTE, appended, chosen, table, topic

LARGE = 1000 * MILLION


class Situation(NamedTuple):
    """Upstreams and limits of the machine, and the right choice (None: nothing is safe)."""

    name: str
    expected: Strategy | None
    facts: tuple[TableFacts, ...]
    limits: Mapping[str, Any] = MappingProxyType({})


STILL: dict[str, Any] = {"changes_per_second": 0.0, "versions_per_second": 0.0, "change_bytes_per_second": 0.0}
SHORT_LOG: dict[str, Any] = {"rows": LARGE, "log_retention_seconds": 20 * MINUTE}
SHORT_FILES: dict[str, Any] = {"rows": LARGE, "file_retention_seconds": 10 * MINUTE}
CHURN: dict[str, Any] = {"rows": 100 * MILLION, "changes_per_second": 10_000.0, "change_bytes_per_second": 500_000.0}

SITUATIONS = [
    Situation("an empty table", "snapshot", (table(rows=0, files=0),)),
    Situation("a thousand rows", "snapshot", (table(rows=1000),)),
    Situation("half a chunk", "snapshot", (table(rows=MILLION // 2),)),
    Situation("two chunks", "snapshot_once", (table(rows=2 * MILLION),)),
    Situation("ten chunks that fit the memory", "snapshot_once", (table(),)),
    Situation("a view instead of a table", "snapshot_once", (table(kind="view"),)),
    Situation("ten chunks in one file, which is never cut", "snapshot", (table(files=1),)),
    Situation("chunks as large as the table", "snapshot", (table(),), {"chunk_rows": 10 * MILLION}),
    Situation("ten chunks of wide rows", "snapshot", (table(bytes=10 * GIB),)),
    Situation("ten chunks and little memory", "snapshot", (table(),), {"memory_bytes": GIB // 2}),
    Situation("a thousand chunks", "snapshot", (table(rows=LARGE),)),
    Situation("a thousand chunks and all the memory", "snapshot_once", (table(rows=LARGE),), {"memory_bytes": 200 * GIB}),
    Situation(
        "hours of reading, where a kill costs half of it",
        "snapshot",
        (table(rows=LARGE),),
        {"memory_bytes": 200 * GIB, "costs": Costs(snapshot_rows_per_second=50_000.0, kills_per_hour=0.5)},
    ),
    Situation("a still table without retention", "snapshot_once", (table(**STILL, file_retention_seconds=0.0),)),
    Situation("a large still table of old", "snapshot", (table(rows=LARGE, **STILL, newest_commit_age_seconds=90 * DAY),)),
    Situation("small and append-only", "snapshot_once", (appended(),)),
    Situation("large and append-only", "snapshot", (appended(rows=LARGE),)),
    Situation("large, append-only and clustered", "snapshot", (appended(rows=LARGE, keyed=True, clustering=0.001),)),
    Situation("large, append-only, clustered; short files", "arrangement",
              (appended(**SHORT_FILES, keyed=True, clustering=0.001),)),
    Situation("large, append-only, short files, not clustered", None, (appended(**SHORT_FILES, keyed=True, clustering=1.0),)),
    Situation("large, append-only, short files, no key", None, (appended(**SHORT_FILES),)),
    Situation("large with a log of 20 minutes", "rearranged", (table(**SHORT_LOG),)),
    Situation("the same without a key", "rearranged", (table(**SHORT_LOG, keyed=False),)),
    Situation("the same with a small spool", "arrangement", (table(**SHORT_LOG),), {"spool_bytes": MILLION}),
    Situation("the same with neither", None, (table(**SHORT_LOG, keyed=False),), {"spool_bytes": MILLION}),
    Situation("a log of 20 minutes that 20 million rows do not need", "snapshot_once",
              (table(rows=20 * MILLION, log_retention_seconds=20 * MINUTE),)),
    Situation("appended, a log of a minute, clustered", "arrangement",
              (appended(rows=100 * MILLION, keyed=True, clustering=0.01, log_retention_seconds=MINUTE),)),
    Situation("appended, a log of a minute, not clustered", "rearranged",
              (appended(rows=100 * MILLION, keyed=True, clustering=1.0, log_retention_seconds=MINUTE),)),
    Situation("large with files of a quarter of an hour", "arrangement",
              (table(rows=LARGE, file_retention_seconds=16 * MINUTE),)),
    Situation("large with files and log of a minute", None,
              (table(rows=LARGE, file_retention_seconds=MINUTE, log_retention_seconds=MINUTE),)),
    Situation("vacuumed at once", None, (table(file_retention_seconds=0.0),)),
    Situation("a pinned commit about to be cleaned", "rearranged",
              (table(rows=LARGE, newest_commit_age_seconds=30 * DAY - 10 * MINUTE),)),
    Situation("churning", "snapshot", (table(**CHURN),)),
    Situation("churning and fitting the memory", "snapshot_once", (table(**CHURN),), {"memory_bytes": 20 * GIB}),
    Situation("churning faster than it can be merged", None, (table(**{**CHURN, "changes_per_second": 100_000.0}),)),
    Situation("the same in larger epochs", "snapshot", (table(**{**CHURN, "changes_per_second": 100_000.0}),),
              {"chunk_rows": 20 * MILLION}),
    Situation("hundreds of versions each second", None, (table(versions_per_second=300.0),)),
    Situation("no change feed", None, (table(has_feed=False),)),
    Situation("two tables", "snapshot_once", (table(), table("items", rows=20 * MILLION))),
    Situation("two large tables", "snapshot", (table(rows=LARGE), table("items", rows=LARGE))),
    Situation("two tables, one with a short log", "rearranged",
              (table(rows=LARGE), table("items", log_retention_seconds=15 * MINUTE))),
    Situation("two tables, one without a feed", None, (table(), table("items", has_feed=False))),
    Situation("two tables with short files, one without a key", None,
              (table(**SHORT_FILES), table("items", key_sortable=False))),
    Situation("a topic", "source", (topic(),)),
    Situation("two topics", "source", (topic(), topic("views"))),
    Situation("a topic kept for ever", "source", (topic(rows=LARGE, log_retention_seconds=None),)),
    Situation("a topic that expires faster than it is read", "source", (topic(rows=LARGE, log_retention_seconds=HOUR),)),
    Situation(
        "a topic at rest that expires faster than it is read",
        "source",
        (topic(rows=LARGE, log_retention_seconds=HOUR, changes_per_second=0.0),),
    ),
    Situation("a topic that grows faster than it is read", "source", (topic(changes_per_second=10.0**6),)),
]  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_the_choice_is_the_expected_one(situation: Situation) -> None:
    choice = chosen(*situation.facts, **situation.limits)
    assert choice.chosen == situation.expected, choice.words


def test_there_are_enough_situations_for_every_strategy_and_for_none() -> None:
    expected = [situation.expected for situation in SITUATIONS]
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) >= 30
    assert all(
        expected.count(each) >= 3 for each in ("source", "snapshot", "snapshot_once", "rearranged", "arrangement", None)
    )
