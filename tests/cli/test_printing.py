"""What people read of servers, of the state of views, and of what the next epoch would read."""

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from backfill_assets.adapters.local.servers import Endpoints
from backfill_assets.app.dry_run import Planned
from backfill_assets.app.status import Status
from backfill_assets.cli.printing import plan_text, servers_text, status_text
from backfill_assets.core.epoch.ports import Controls, NextEpoch
from backfill_assets.core.epoch.report import TableProgress
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import (
    BronzeRead,
    CaptureRead,
    ChangesRead,
    FullRead,
    HashRead,
    KafkaRead,
    KeyRead,
    LookupRead,
    Read,
    SkipRead,
    SnapshotRead,
    SpoolRead,
)

OF: dict[str, Any] = {"source": "orders", "table_id": "t"}
SOME = {0: OffsetRange(start=1000, end=3500), 1: OffsetRange(start=0, end=2)}
KEY = (("id", "7"),)


def printed(text: RenderableType) -> str:
    with (console := Console(width=250)).capture() as shown:
        console.print(text)
    return shown.get()


def test_servers_are_named_with_their_addresses_and_what_is_down_as_such() -> None:
    assert servers_text(Endpoints(bootstrap_servers=None, spark_remote=None)) == "Kafka: down\nSpark: down"
    every = Endpoints(
        bootstrap_servers="b:1", spark_remote="sc://s:2", s3_endpoint="http://o:3", spark_master="spark://m:4"
    )
    kafka, spark, master, store = servers_text(every).split("\n")
    assert (kafka, spark, master) == ("Kafka: b:1", "Spark: sc://s:2", "Spark cluster: spark://m:4")
    assert store.startswith("S3: http://o:3 (")


def table(**given: Any) -> TableProgress:
    numbers: dict[str, Any] = {"version": 3, "newest": 1205, "files_read": 1200, "files": 4000, "lag_rows": 98765}
    return TableProgress(**{"upstream": "base", "phase": "backfilling", "lag_seconds": 61.4, **numbers, **given})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, ""),
        ({"forecast": "lasts for ever"}, ""),
        ({"retention_risk": "at_risk", "forecast": "vacuumed in 3 h"}, "vacuumed in 3 h"),
        ({"retention_risk": "at_risk", "forecast": "vacuumed in 3 h", "awaits": ("a", "b")}, "waits for a, b"),
    ],
)
def test_of_each_table_it_is_told_how_far_it_is_read_and_what_is_wrong(given: dict[str, Any], problem: str) -> None:
    found = Status(name="v", target="views/v", state="idle", controls=Controls(), tables=[table(**given)])
    assert "base" not in printed(status_text([found], partitions=False))
    line = next(each for each in printed(status_text([found], partitions=True)).split("\n") if "base" in each)
    numbers = ["base", "backfilling", "3", "1205", "1,200/4,000", "98,765", "61"]
    assert line.split() == [*numbers, *problem.split()]


READS: list[tuple[Read, list[str]]] = [
    (
        KafkaRead(source="orders", topic="o", isolation="read_committed", ranges=SOME),
        ["topic o, partition 0: offsets 1,000 to 3,500", "topic o, partition 1: offsets 0 to 2"],
    ),
    (
        BronzeRead(source="orders", incarnation="i", version=4, ranges=SOME),
        [
            "table sources/orders at version 4, partition 0: offsets 1,000 to 3,500",
            "table sources/orders at version 4, partition 1: offsets 0 to 2",
        ],
    ),
    (
        SnapshotRead(version=4, buckets=2, ranges=SOME, rows=9000, **OF),
        ["orders at version 4: 2,502 files with 9,000 rows"],
    ),
    (
        KeyRead(version=4, ranges=SOME, keys=(), rows=9000, **OF),
        ["orders at version 4: 2,502 key ranges with about 9,000 rows"],
    ),
    (
        ChangesRead(first=2, last=6, rows=1200, **OF),
        ["orders: versions 2 to 6, about 1,200 changed rows"],
    ),
    (
        ChangesRead(first=2, last=6, rows=1200, within=(), **OF),
        ["orders: versions 2 to 6, about 1,200 changed rows, as far as their keys have been read"],
    ),
    (
        CaptureRead(first=2, last=6, rows=1200, **OF),
        ["orders: versions 2 to 6, about 1,200 changed rows, into the spool"],
    ),
    (
        SpoolRead(first=2, last=6, segments=(2,), rows=1200, **OF),
        ["orders: versions 2 to 6, about 1,200 changed rows, from the spool"],
    ),
    (
        FullRead(first=2, last=6, rows=1200, held=5000, **OF),
        ["orders at version 6 in full: about 5,000 rows, instead of about 1,200 changed rows since version 1"],
    ),
    (
        FullRead(first=7, last=6, rows=0, held=5000, **OF),
        ["orders at version 6 in full: about 5,000 rows"],
    ),
    (
        LookupRead(version=6, held=5000, **OF),
        ["orders at version 6 in full: about 5,000 rows, to join the chunk with"],
    ),
    (
        HashRead(version=6, parts=64, ranges={0: OffsetRange(start=8, end=11)}, rows=1, held=5000, **OF),
        ["orders at version 6 in full: about 5,000 rows, of which those in 3 of 64 parts of a key are taken"],
    ),
    (
        SkipRead(before=4, after=6, out=(KEY, KEY), back=(KEY,), **OF),
        ["orders: the rows of keys, 2 that are left out from now on, 1 that are taken in again"],
    ),
]


def planned(*reads: Read, was: bool = True, live: bool = True, **given: Any) -> Planned:
    record: Any = SimpleNamespace(epoch=3, live=was)
    after: Any = None
    return Planned(
        record=record, step=NextEpoch(reads=reads, after=after, live=live), choice=None, expected_seconds=2.25, **given
    )


@pytest.mark.parametrize(("read", "lines"), READS, ids=[f"{each.kind}-{at}" for at, (each, _) in enumerate(READS)])
def test_each_read_of_the_next_epoch_is_told_in_words(read: Read, lines: list[str]) -> None:
    first, *told, last = plan_text("v", planned(read)).split("\n")
    assert first == "v is at epoch 3. Epoch 4 would read:"
    assert [each.strip() for each in told] == lines
    assert last == "  in about 2.2 s."


def test_it_is_told_whether_a_view_is_live_then() -> None:
    assert plan_text("v", planned(READS[0][0], was=False)).endswith("in about 2.2 s, and then be live.")
    assert plan_text("v", planned(READS[0][0], was=False, live=False)).endswith("in about 2.2 s.")


def test_a_view_that_has_read_everything_says_so() -> None:
    record: Any = SimpleNamespace(epoch=3, live=True)
    rest = Planned(record=record, step=None, choice=None, expected_seconds=0.0)
    assert plan_text("v", rest) == "v is at epoch 3 and has nothing to read."
