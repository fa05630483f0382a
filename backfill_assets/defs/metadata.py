"""What Dagster shows of epochs and refreshes: numbers under stable names, and tables."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from backfill_assets.app.dry_run import Planned
from backfill_assets.app.refresh import Refresh
from backfill_assets.core.epoch.limits import Stop
from backfill_assets.core.epoch.records import CommitRecord
from backfill_assets.core.epoch.report import PartitionProgress, TableProgress, lag_numbers
from backfill_assets.core.epoch.skips import left_out_words
from backfill_assets.errors import LeaseHeldError, UpstreamNotLiveError

__all__ = ["epoch_metadata", "held_metadata", "plan_metadata", "refresh_metadata", "summary_line"]


def epoch_metadata(record: CommitRecord) -> dict[str, Any]:
    """Metadata of one epoch, while the run continues."""
    percent = 100.0 if record.live else min(99.99, 100.0 * record.done / max(1, record.total))
    return {
        "epoch": record.epoch,
        "rows_written": record.rows_written,
        "rows_total": record.rows_total,
        "backfill_percent": round(percent, 2),
        "phase": "live" if record.live else "backfilling",
        **_rule(record),
    }


def _rule(record: CommitRecord) -> dict[str, Any]:
    """By which rule a query over whole tables was computed, why in full if it was, and what it touched."""
    if not record.rule:
        return {}
    why = {"why_full": record.why_full} if record.why_full else {}
    touched = {"keys_touched": record.keys_touched, "rows_reached": record.rows_reached}
    return {"rule": record.rule, **why, **touched}


def refresh_metadata(done: Refresh) -> dict[str, Any]:
    """Metadata of one refresh; Dagster plots numeric values."""
    report, progress = done.report, done.progress
    return {
        "phase": progress.phase,
        "backfill_percent": progress.backfill_percent,
        "lag_rows": progress.lag_rows,
        "rows_written": report.totals.rows_written,
        "rows_read": report.totals.rows_read,
        "rows_bad": report.totals.rows_bad,
        "rows_total": report.record.rows_total,
        **_rule(report.record),
        "rows_left_out": sum(row.is_out for row in done.left_out),
        "rows_per_second": progress.rows_per_second,
        "seconds": round(report.seconds, 3),
        "epoch_seconds": round(report.totals.seconds, 3),
        "expected_seconds": round(report.totals.expected_seconds, 3),
        "epoch": progress.epoch,
        "epochs": report.totals.epochs,
        "incarnation": report.record.incarnation,
        "stopped_reason": report.stopped.value,
        **({"stopped_detail": report.detail} if report.detail else {}),
        **lag_numbers(report.epochs),
        **({"left_out": left_out_words(done.left_out)} if any(row.is_out for row in done.left_out) else {}),
        **({"partitions": split_table(done.partitions)} if done.partitions else {}),
        **(_upstream_metadata(done.tables) if done.tables else {}),
    }


def held_metadata(error: LeaseHeldError | UpstreamNotLiveError) -> dict[str, Any]:
    """Metadata of a refresh that could not begin: another run is creating the table, or an upstream is not live."""
    reason = Stop.LEASE_HELD if isinstance(error, LeaseHeldError) else Stop.WAITING
    return {"stopped_reason": reason.value, "stopped_detail": error.message, "epochs": 0, "rows_written": 0}


def summary_line(done: Refresh) -> str:
    """One line for a run's log."""
    report = done.report
    detail = f" ({report.detail})" if report.detail else ""
    return (
        f"{done.target}: {report.stopped}{detail} at epoch {done.progress.epoch} after {report.totals.epochs} epochs, "
        f"{report.totals.rows_written} rows written"
    )


def _upstream_metadata(tables: list[TableProgress]) -> dict[str, Any]:
    """A row for each Delta table that a view reads, and the smallest headroom of what still has to be read."""
    columns = {
        "upstream": "string",
        "phase": "string",
        "version": "int",
        "newest": "int",
        "files_read": "int",
        "files": "int",
        "lag_rows": "int",
        "lag_seconds": "float",
        "spool_bytes": "int",
        "retention_risk": "string",
        "forecast": "string",
        "awaits": "string",
    }
    lines = [{name: getattr(each, name) for name in columns} | {"awaits": ", ".join(each.awaits)} for each in tables]
    shown = dg.MetadataValue.table(
        records=[dg.TableRecord(line) for line in lines],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, kind) for name, kind in columns.items()]),
    )
    spare = [each.headroom_seconds for each in tables if each.headroom_seconds is not None]
    return {"upstreams": shown, **({"retention_headroom_seconds": min(spare)} if spare else {})}


def split_table(partitions: list[PartitionProgress]) -> dg.TableMetadataValue:
    """A row for each partition."""
    columns = {"source": "string", "partition": "int", "phase": "string", "next_offset": "int", "lag_rows": "int"}
    return dg.MetadataValue.table(
        records=[dg.TableRecord({name: getattr(each, name) for name in columns}) for each in partitions],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, kind) for name, kind in columns.items()]),
    )


def plan_metadata(planned: Planned) -> Mapping[str, Any]:
    """Metadata of a dry run: what the next epoch would read, and which strategy a new life would use."""
    document = planned.document()
    choice = document["choice"]
    shown: dict[str, Any] = {"stopped_reason": Stop.DRY_RUN.value}
    if choice is not None:
        shown |= {
            "strategy": choice["chosen"] or "none",
            "why": choice["words"],
            "choice": dg.MetadataValue.json(choice),
        }
    if planned.record is None:
        return {**shown, "next": "create the table, then read its history"}
    if planned.adds_columns:
        shown["adds_columns"] = True
    return {
        **shown,
        "epoch": planned.record.epoch + (1 if planned.step else 0),
        "next": "nothing to do" if planned.step is None else f"{len(document['reads'])} reads",
        "expected_seconds": planned.expected_seconds,
        "reads": dg.MetadataValue.json(document["reads"]),
    }
