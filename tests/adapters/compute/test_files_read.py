"""In how many files the rows of an epoch are, so that it is known whether one task should read them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.compute.table_inputs import TableInputs
from backfill_assets.adapters.delta.upstream import DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import (
    ChangesRead,
    FullRead,
    HashRead,
    KeyRead,
    LookupRead,
    SkipRead,
    SnapshotRead,
    SpoolRead,
    TableRead,
)
from tests.support.statements import updated

OF: dict[str, Any] = {"source": "t", "table_id": "id"}


@pytest.fixture
def inputs(tmp_path: Path) -> TableInputs:
    """Three files of two rows, then a version that rewrites one of them, and one that drops another."""
    feed = {"delta.enableChangeDataFeed": "true"}
    for first in (0, 2, 4):
        rows = pa.table({"id": [first, first + 1]})
        write_deltalake(str(tmp_path), rows, mode="append", configuration=feed)
    updated(DeltaTable(str(tmp_path)), {"id": "id + 10"}, "id = 1")
    location = TableLocation(uri=str(tmp_path))
    return TableInputs(output=location, upstreams={"t": DeltaUpstream("t", location)}, query=lambda _plan: None)  # type: ignore[arg-type,return-value]


def changes(first: int, last: int) -> ChangesRead:
    return ChangesRead(first=first, last=last, rows=2, **OF)


def test_files_that_hold_just_the_rows_are_counted(inputs: TableInputs) -> None:
    history = SnapshotRead(version=2, buckets=1, ranges={0: OffsetRange(start=0, end=2)}, rows=4, **OF)
    assert inputs.files([history]) == 2
    assert inputs.files([changes(1, 2)]) == 2
    assert inputs.files([changes(1, 3), history]) == 5
    assert inputs.files([SpoolRead(first=1, last=9, segments=(1, 4, 7), rows=2, **OF)]) == 3
    assert inputs.files([]) == 0


def test_files_that_are_read_instead_of_an_incomplete_feed_are_counted(inputs: TableInputs) -> None:
    DeltaTable(inputs.output.uri).update({"id": "id + 10"}, predicate="id = 2")
    assert inputs.files([changes(4, 4)]) == 2


@pytest.mark.parametrize(
    "read",
    [
        KeyRead(version=2, ranges={}, keys=(), rows=1, **OF),
        FullRead(first=1, last=2, rows=1, held=6, **OF),
        LookupRead(version=2, held=6, **OF),
        HashRead(version=2, parts=2, ranges={}, rows=1, held=6, **OF),
        SkipRead(before=1, after=2, **OF),
    ],
    ids=lambda read: read.kind,
)
def test_rows_that_are_looked_for_may_be_in_any_file(inputs: TableInputs, read: TableRead) -> None:
    assert inputs.files([read]) is None
    assert inputs.files([changes(1, 2), read]) is None


def test_rows_that_files_hide_or_took_along_are_looked_for(inputs: TableInputs) -> None:
    write_deltalake(inputs.output.uri, pa.table({"id": [9]}), mode="overwrite")
    assert inputs.files([changes(4, 4)]) is None
    assert inputs.files([changes(3, 4)]) is None
