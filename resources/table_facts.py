"""What the log and properties of a Delta table tell of it, for the choice of a strategy. Reads no data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from backfill_assets.backfill.choose_costs import TableFacts
from backfill_assets.backfill.key_ranges import clustering
from backfill_assets.errors import UpstreamRefusedError
from backfill_assets.query.ddl import Column
from backfill_assets.resources.delta import commits_of
from backfill_assets.resources.key_ranges import sortable_key, spans
from backfill_assets.resources.tables import APPEND_ONLY, FEED, DeltaUpstream, changed_rows, committed_at

__all__ = ["table_facts"]

DAY, HOUR = 86_400.0, 3_600.0
MOST_COMMITS = 200
"""So many commits of the last day are looked at for the rates; a shorter time than an hour tells of no rate."""


class _Recent(NamedTuple):
    at_ms: int
    rows: int
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
    span = max(HOUR, now - min((each.at_ms for each in found), default=0) / 1000)
    # One commit that outweighs the others is the table's load, which does not come again.
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
        versions_per_second=len(changes) / span,
        change_bytes_per_second=sum(each.bytes for each in changes) / span,
        newest_commit_age_seconds=max(0.0, now - found[0].at_ms / 1000) if found else 0.0,
    )


def _key(upstream: DeltaUpstream) -> Sequence[Column]:
    """The key, if there is one that has an order."""
    try:
        return sortable_key(upstream)
    except UpstreamRefusedError:
        return ()


def _recent(upstream: DeltaUpstream, version: int, now: float) -> Iterator[_Recent]:
    """The newest commits that the log still has, newest first."""
    for seen, (number, actions) in enumerate(commits_of(upstream.location, version)):
        at_ms = committed_at(upstream.location, number, actions)
        if seen and (seen >= MOST_COMMITS or now - at_ms / 1000 > DAY):
            return
        yield _Recent(at_ms, changed_rows(actions), sum(map(_size, actions)))


def _size(action: Mapping[str, Any]) -> int:
    return int((action.get("cdc") or action.get("add") or {}).get("size") or 0)
