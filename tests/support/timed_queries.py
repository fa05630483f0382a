"""Queries that read the clock, and the same for a recorded time, written independently of the product."""

from collections import Counter

from backfill_assets.core.progress.positions import SnapshotPosition
from tests.support.lake import Lake

__all__ = ["called", "found_and_expected", "instant_of"]


def called(query: str) -> str:
    """A query in which functions of the clock stand for `{now}`, `{day}`, `{local}` and `{seconds}`."""
    return query.format(now="now()", day="current_date", local="localtimestamp()", seconds="unix_timestamp()")


def instant_of(lake: Lake, view: str) -> int:
    """The time for which a view was computed, in microseconds since 1970."""
    position = lake.project.record(view).position
    assert isinstance(position, SnapshotPosition)
    assert position.instant is not None
    return position.instant


def found_and_expected(
    lake: Lake, view: str, query: str, *names: str
) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    """The rows of a view, and those of its query for the recorded time."""
    moment = f"timestamp_micros({instant_of(lake, view)})"
    text = query.format(
        now=moment, day=f"date({moment})", local=f"CAST({moment} AS TIMESTAMP_NTZ)", seconds=f"unix_seconds({moment})"
    )
    columns = [f"`{name}`" for name in lake.rows(lake.location(view)).columns if not name.startswith("__")]
    return lake.found(view, columns), lake.expected(view, text, *names)
