"""Which plans may meet rows with keys that the view has already."""

from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.core.progress.positions import OffsetRange, SnapshotPosition, TablePosition
from backfill_assets.core.progress.reads import ChangesRead, KeyRead, SkipRead, SnapshotRead, SpoolRead, TableRead
from backfill_assets.core.strategies.table_plans import may_meet_old_rows

OF: dict[str, Any] = {"source": "t", "table_id": "id"}
FILES = SnapshotRead(version=3, buckets=1, ranges={0: OffsetRange(start=0, end=1)}, rows=1, **OF)
AT_PINNED, LATER = (KeyRead(version=version, ranges={}, keys=(), rows=1, **OF) for version in (3, 4))


@pytest.mark.parametrize(
    ("reads", "may"),
    [
        ([FILES], False),
        ([AT_PINNED], False),
        ([LATER], True),
        ([AT_PINNED, LATER], True),
        ([FILES, ChangesRead(first=4, last=4, rows=1, **OF)], True),
        ([SpoolRead(first=4, last=4, segments=(4,), rows=1, **OF)], True),
        ([SkipRead(before=3, after=4, **OF)], True),
    ],
)
def test_only_rows_of_the_pinned_version_are_new_for_certain(reads: list[TableRead], may: bool) -> None:
    table = TablePosition(table_id="id", pinned=3, version=3, commit_ms=0, buckets={})
    plan: Any = SimpleNamespace(before=SnapshotPosition(tables={"t": table}), consumed=reads)
    assert may_meet_old_rows(plan) == may
