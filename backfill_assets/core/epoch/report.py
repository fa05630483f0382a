"""Numbers about the progress of a table: pure arithmetic on its newest commits and its lag.

The total is frozen when a life begins, and the part that is done only grows, so the percentage never goes backwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.core.epoch.records import CommitRecord, Position, Rule, WhyFull
from backfill_assets.core.progress.lag import CountBound, converging, converging_commits
from backfill_assets.core.progress.positions import IngestPosition, SnapshotPosition, ViewPosition

__all__ = ["PartitionProgress", "Progress", "TableProgress", "lag_numbers", "partitions_of", "progress_of"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a table. Rows are offsets of its upstreams; None means not known (or, of `eta_seconds`, done).

    Of the newest epoch of a view over whole tables: its rule, why it was computed in full if it was, and what it touched."""

    phase: str
    epoch: int
    rows_done: int
    rows_total: int
    backfill_percent: float
    rows_per_second: float
    eta_seconds: float | None
    lag_rows: int | None
    rule: Rule = ""
    why_full: WhyFull = ""
    keys_touched: int = 0
    rows_reached: int = 0


@dataclass(frozen=True, kw_only=True)
class PartitionProgress:
    """The progress of one partition."""

    source: str
    partition: int
    phase: str
    next_offset: int
    lag_rows: int


@dataclass(frozen=True, kw_only=True)
class TableProgress:
    """The progress of a view in one Delta table. `version` is the last consumed version, `newest` the newest one.

    `awaits`: the upstreams whose history is read first, as long as this one waits for them.

    `lag_seconds` is how far the view is behind in commit time. If changes are captured, it is how far the capture is behind:
    it includes version `captured`, and `spool_bytes` still have to be applied. `retention_risk` and `forecast` say whether
    what the view still has to read will last, despite VACUUM and log clean-up, and `headroom_seconds` by how much (None:
    unknown, or nothing is left to read).
    """

    upstream: str
    phase: str
    version: int
    newest: int
    files_read: int
    files: int
    lag_rows: int
    lag_seconds: float
    captured: int | None = None
    spool_bytes: int = 0
    retention_risk: str = "safe"
    headroom_seconds: float | None = None
    forecast: str = ""
    awaits: Sequence[str] = ()


def lag_numbers(records: Sequence[CommitRecord]) -> dict[str, float | bool]:
    """For a view over Delta tables: its lag and bound, and whether the lag shrinks over the epochs of one run.

    The bound and the pace are in seconds, or in commits if the strategy counts these.
    """
    followed = [
        (each.finished_at, each.position)
        for each in sorted(records, key=lambda each: each.epoch)
        if isinstance(each.position, SnapshotPosition) and each.position.bound.max_lag is not None
    ]
    if not followed:
        return {}
    _, newest = followed[-1]
    if isinstance(newest.bound, CountBound):
        counted = converging_commits([(_consumed(each), each.lag_commits) for _, each in followed])
        return {
            "lag_seconds": newest.lag_ms / 1000,
            "lag_commits": newest.lag_commits,
            "lag_bound_commits": newest.bound.max_lag or 0,
            "converging": counted.converging,
            "lag_shrinks_by_commits_per_epoch": counted.shrinks_by_per_epoch,
        }
    found = converging([(at, position.lag_ms) for at, position in followed])
    return {
        "lag_seconds": newest.lag_ms / 1000,
        "lag_bound_seconds": (newest.bound.max_lag or 0) / 1000,
        "converging": found.converging,
        "lag_shrinks_by_seconds_per_epoch": found.shrinks_by_per_epoch / 1000,
    }


def progress_of(records: Sequence[CommitRecord], lag: Mapping[str, int] | None) -> Progress:
    """Progress from the newest commits (newest first, of one life; at least one) and the lag by partition, if known."""
    newest = records[0]
    rate = _rate([each for each in records if each.incarnation == newest.incarnation])
    behind = None if lag is None else sum(lag.values())
    return Progress(
        phase="live" if newest.live else "backfilling",
        epoch=newest.epoch,
        rows_done=newest.done,
        rows_total=newest.total,
        backfill_percent=_percent(newest),
        rows_per_second=round(rate, 1),
        eta_seconds=round(behind / rate, 1) if behind and rate > 0 else None,
        lag_rows=behind,
        rule=newest.rule,
        why_full=newest.why_full,
        keys_touched=newest.keys_touched,
        rows_reached=newest.rows_reached,
    )


def partitions_of(position: Position, lag: Mapping[str, int], *, source: str = "") -> list[PartitionProgress]:
    """A line for each partition of Kafka sources; `source` names the source of an ingest position."""
    match position:
        case IngestPosition():
            return [
                PartitionProgress(
                    source=source,
                    partition=partition,
                    phase="live",
                    next_offset=offset,
                    lag_rows=lag.get(f"{source}/{partition}", 0),
                )
                for partition, offset in sorted(position.next.items())
            ]
        case SnapshotPosition():
            return []
        case ViewPosition():
            return [
                PartitionProgress(
                    source=name,
                    partition=partition,
                    phase=state.phase.value,
                    next_offset=state.next,
                    lag_rows=lag.get(f"{name}/{partition}", 0),
                )
                for name, each in sorted(position.sources.items())
                for partition, state in sorted(each.partitions.items())
            ]


def _consumed(position: SnapshotPosition) -> int:
    """How many commits of its tables a view has consumed since its life began."""
    return sum(table.version - table.pinned for table in position.tables.values())


def _percent(record: CommitRecord) -> float:
    if record.live:
        return 100.0
    return min(99.99, round(100.0 * record.done / record.total, 2)) if record.total else 99.99


def _rate(records: Sequence[CommitRecord]) -> float:
    """Offsets per second over the given epochs, counting only the time spent on them."""
    epochs = [each for each in records if each.epoch > 0]
    if len(epochs) < 1:
        return 0.0
    seconds = sum(each.finished_at - each.started_at for each in epochs)
    oldest = min(epochs, key=lambda each: each.epoch)
    before = next((each.done for each in records if each.epoch == oldest.epoch - 1), None)
    offsets = max(each.done for each in epochs) - (before if before is not None else oldest.done - oldest.rows_read)
    return offsets / seconds if seconds > 0 else 0.0
