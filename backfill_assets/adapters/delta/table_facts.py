"""Facts about a Delta table from its log and properties, for the choice of a strategy. Reads no data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from backfill_assets.adapters.delta.commits import commits_of, committed_at
from backfill_assets.adapters.delta.key_statistics import sortable_key, spans
from backfill_assets.adapters.delta.logged_changes import changed_rows
from backfill_assets.adapters.delta.upstream import APPEND_ONLY, FEED, DeltaUpstream
from backfill_assets.core.epoch.costs import TableFacts
from backfill_assets.core.strategies.key_cuts import clustering
from backfill_assets.errors import UpstreamRefusedError
from backfill_assets.query.ddl import Column

__all__ = ["rate_span", "table_facts"]

DAY, HOUR = 86_400.0, 3_600.0
MAX_COMMITS = 200
"""At most this many commits of the last day are read for the rates."""
AT_REST = 10
"""A table that has not changed for this many times its mean interval is at rest: what came before was a load, or has
ended."""


class _Recent(NamedTuple):
    at: float
    rows: int
    inserts: int
    bytes: int


def table_facts(upstream: DeltaUpstream, *, kind: Literal["table", "view"], chunk_rows: int, now: float) -> TableFacts:
    """The facts of one upstream at `now` (seconds since 1970)."""
    table = upstream.loaded()
    configuration = table.metadata().configuration
    version = table.version()
    files = upstream.version(version).files
    found = list(_recent(upstream, version, now))
    key = _key(upstream)
    known = spans(upstream, version, key[0]) if key else None
    file_retention, log_retention = upstream.retention()
    span = rate_span([each.at for each in found], now=now)
    # A commit that is larger than all others is assumed to be the initial load, which does not happen again.
    changes = sorted(found, key=lambda each: each.rows)[:-1]
    return TableFacts(
        name=upstream.name,
        kind=kind,
        rows=sum(upstream.rows(version)),
        bytes=sum(int(each.action["size"]) for each in files),
        files=len(files),
        append_only=configuration.get(APPEND_ONLY) == "true",
        has_feed=configuration.get(FEED) == "true",
        keyed=bool(upstream.key()),
        key_sortable=bool(key),
        clustering=None if known is None else clustering(known, chunk_rows=chunk_rows),
        file_retention_seconds=file_retention,
        log_retention_seconds=log_retention,
        changes_per_second=sum(each.rows for each in changes) / span,
        inserts_per_second=sum(each.inserts for each in changes) / span,
        versions_per_second=len(changes) / span,
        change_bytes_per_second=sum(each.bytes for each in changes) / span,
        newest_commit_age_seconds=max(0.0, now - found[0].at) if found else 0.0,
    )


def rate_span(times: Sequence[float], *, now: float) -> float:
    """The number of seconds for a rate over the commits made at these times (newest first).

    This is the time since the oldest of them, but at least an hour: a few commits show no rate in a shorter time. If
    there are so many commits that older ones were not read, it is the time that these took; if the table is at rest
    since then, it is a day.
    """
    if len(times) < 2:
        return DAY
    if now - times[0] > AT_REST * (times[0] - times[-1]) / (len(times) - 1) and now - times[0] > AT_REST:
        return DAY
    taken = now - times[-1]
    return max(1.0, taken) if len(times) >= MAX_COMMITS else max(HOUR, taken)


def _key(upstream: DeltaUpstream) -> Sequence[Column]:
    """The key, if it exists and can be sorted."""
    try:
        return sortable_key(upstream)
    except UpstreamRefusedError:
        return ()


def _recent(upstream: DeltaUpstream, version: int, now: float) -> Iterator[_Recent]:
    """The newest commits that are still in the log, newest first."""
    for seen, (number, actions) in enumerate(commits_of(upstream.location, version)):
        at = committed_at(upstream.location, number, actions) / 1000
        if seen and (seen >= MAX_COMMITS or now - at > DAY):
            return
        rows = changed_rows(actions)
        removes = any("remove" in each and each["remove"].get("dataChange", True) for each in actions)
        yield _Recent(at, rows, 0 if removes else rows, sum(map(_size, actions)))


def _size(action: Mapping[str, Any]) -> int:
    return int((action.get("cdc") or action.get("add") or {}).get("size") or 0)
