"""Undamaged views of all kinds over Delta tables, and one over Kafka, with what a test needs to damage a copy of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets import delta_table, kafka_source, materialized_view
from backfill_assets.app.table_checks import CHECKS, Outcome
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.records import Position
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition, ViewPosition
from backfill_assets.declare.model import KafkaSource
from tests.support.lake import FEED, Lake
from tests.support.project import Project

__all__ = [
    "CONTENT",
    "IN_GATE",
    "LIVE",
    "OVER_TABLES",
    "PARTLY",
    "VALUES",
    "append",
    "assert_sound",
    "backfill_views",
    "change_tables",
    "changed",
    "outcomes_of",
    "rows",
    "set_back",
    "table_of",
]

LIVE = ("keyed", "added", "totals", "child", "clicked")
"""A view by key over a table, one without a key, groups of a table, a view over those, groups of a Kafka source."""
IN_GATE = ("keyed", "totals")
"""Those that tests of the gate damage."""

PARTLY = "partly"
"""A view whose snapshot is being read."""

OVER_TABLES = ("keyed", "added", "totals", "child", PARTLY)
VALUES = {"keyed": "twice", "added": "amount", "totals": "amount", "child": "n", "clicked": "amount", PARTLY: "amount"}
GROUPS = "SELECT name, count(*) AS n, sum(amount) AS amount, max(amount) AS most FROM {} GROUP BY name"
CONTENT = ("unique_key", "rows_conserved", "exactly_once")
HALVES = Limits(chunk_rows=20)
ONE_CHUNK = Limits(chunk_rows=15, max_rows=15)


def rows(start: int, end: int) -> list[dict[str, Any]]:
    return [{"id": at, "name": f"n{at % 10}", "amount": at} for at in range(start, end)]


def append(project: Project, name: str, start: int, end: int) -> None:
    made = pa.Table.from_pylist(rows(start, end))
    write_deltalake(str(project.root / "lake" / name), made, mode="append", configuration=FEED)


def refresh_all(project: Project, names: Sequence[str], limits: Limits) -> None:
    for name in (*(["clicks"] if "clicked" in names else []), *names):
        assert project.refresh(name, limits).report.record.live, name


def assert_sound(project: Project, *names: str) -> None:
    """Every check passes, and each has something to check."""
    for name in names:
        outcomes = {check: project.check(name, check) for check in CHECKS}
        assert all(outcome.passed for outcome in outcomes.values()), (name, outcomes)
        assert outcomes["exactly_once"].facts["rows_found"] > 1
        assert outcomes["unique_key"].facts["rows"] == outcomes["rows_conserved"].facts["rows"] > 1
        assert ("no key" in outcomes["unique_key"].summary) == (name == "added")
        for check in ("positions_contiguous", "ledger_matches_table"):
            assert outcomes[check].facts["epochs"] > 1, "a step was looked at"


def backfill_views(broker: str, root: Path, names: Sequence[str]) -> Project:
    """Some of the live views after their backfill; the snapshot of `partly` has not begun."""
    project = Project(root=root, servers=broker)
    for start in range(0, 40, 10):
        append(project, "orders", start, start + 10)
        append(project, "events", start, start + 10)
    topic = project.topic(partitions=2)
    project.produce(topic, rows(0, 40))
    orders = delta_table("orders", path="lake/orders", primary_key="id")
    events = delta_table("events", path="lake/events")
    log = delta_table("log", path="lake/events", primary_key="id")
    clicks = kafka_source("clicks", topic=topic, schema="id LONG, name STRING, amount LONG")
    totals = materialized_view("totals", query=GROUPS.format("orders"), upstreams=[orders])
    project.declare(
        clicks,
        totals,
        materialized_view(
            "keyed", query="SELECT id, amount * 2 AS twice FROM orders WHERE amount > 3", upstreams=[orders]
        ),
        materialized_view("added", query="SELECT name, amount FROM events WHERE amount > 3", upstreams=[events]),
        materialized_view("child", query="SELECT n, upper(name) AS name FROM totals WHERE n > 1", upstreams=[totals]),
        materialized_view("clicked", query=GROUPS.format("clicks"), upstreams=[clicks]),
        materialized_view(PARTLY, query="SELECT id, amount FROM log", upstreams=[log]),
    )
    refresh_all(project, names, HALVES)
    return project


def change_tables(project: Project, names: Sequence[str]) -> Project:
    """These views after changes of all kinds, and one whose snapshot has been read in part."""
    source = project.declared["clicks"]
    assert isinstance(source, KafkaSource)
    append(project, "orders", 100, 110)
    append(project, "events", 100, 110)
    Lake(project.root).sql(
        "orders",
        "UPDATE {t} SET amount = amount + 50, name = 'new' WHERE id % 5 = 0",
        "DELETE FROM {t} WHERE id % 7 = 0",
    )
    project.produce(source.topic, rows(100, 110))
    refresh_all(project, names, Limits())
    for name in {"keyed", "totals", "child"} & {*names}:
        assert project.record(name).rows_deleted or project.record(name).rows_updated, "a change log was followed"
    assert not project.refresh(PARTLY, ONE_CHUNK).report.record.live
    return project


def outcomes_of(project: Project, name: str, *checks: str) -> dict[str, Outcome]:
    """The outcomes of the checks that failed."""
    found = {check: project.check(name, check) for check in checks or CHECKS}
    return {check: outcome for check, outcome in found.items() if not outcome.passed}


def table_of(position: Position) -> tuple[str, TablePosition]:
    """The only table of a position."""
    assert isinstance(position, SnapshotPosition)
    ((name, table),) = position.tables.items()
    return name, table


def changed(position: Position, **changes: Any) -> SnapshotPosition:
    name, table = table_of(position)
    return SnapshotPosition(tables={name: table.model_copy(update=changes)})


def set_back(position: Position) -> Position:
    """The position one version, one file or some offsets earlier."""
    if isinstance(position, ViewPosition):
        ((name, source),) = position.sources.items()
        partitions = {
            **source.partitions,
            0: source.partitions[0].model_copy(update={"next": source.partitions[0].next - 3}),
        }
        return ViewPosition(sources={name: source.model_copy(update={"partitions": partitions})})
    _, table = table_of(position)
    if table.backfilled:
        return changed(position, version=table.version - 1)
    bucket = next(number for number, each in table.buckets.items() if each.next)
    before = table.buckets[bucket].model_copy(update={"next": 0, "rows": 0})
    return changed(position, buckets={**table.buckets, bucket: before})


# These two are first, because the project continues between them.
