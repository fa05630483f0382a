"""What the command line prints for people: tables of status, plans and runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from rich.console import Group
from rich.table import Table

if TYPE_CHECKING:
    from backfill_assets.adapters.local.servers import Endpoints
    from backfill_assets.app.dry_run import Planned
    from backfill_assets.app.replacing import Replacement
    from backfill_assets.app.status import Status
    from backfill_assets.cli.summary import RunSummary
    from backfill_assets.core.epoch.skips import LeftOut
    from backfill_assets.core.progress.reads import FullRead, HashRead, LookupRead, Read

__all__ = ["left_out_text", "plan_text", "replaced_text", "run_text", "servers_text", "status_text"]

_RULES = {
    "additive": "added to the groups that they touch (additive)",
    "full": "the query is computed in full, and what differs is committed (full)",
    "linear": "joined with the other tables as they are (linear)",
    "restricted": "the values of a key that they touch are computed again (restricted)",
}
"""By which rule a view over whole tables follows changes of an upstream."""

MAX_ROWS = 20
"""How many of the rows that are left out are named."""


def servers_text(found: "Endpoints") -> str:
    """The address of each server."""
    lines = [f"Kafka: {found.bootstrap_servers or 'down'}", f"Spark: {found.spark_remote or 'down'}"]
    if found.spark_master:
        lines.append(f"Spark cluster: {found.spark_master}")
    if found.s3_endpoint:
        lines.append(f"S3: {found.s3_endpoint} (`set -a; . .backfill/s3/environment` makes it this shell's warehouse)")
    return "\n".join(lines)


def status_text(found: "Sequence[Status]", *, partitions: bool) -> Group:
    """One line for each table, and one for each partition if requested; empty columns are left out."""
    more = {name: cell for name, cell in _MORE.items() if any(map(cell, found))}
    table = _table("name", "state", "phase", "epoch", "done", "of", "percent", "rows/s", "ETA s", "lag", *more)
    for each in found:
        table.add_row(each.name, each.state, *_numbers(each), *(cell(each) for cell in more.values()))
    parts: list[Any] = [table]
    if partitions:
        detail = _table("source", "partition", "phase", "next offset", "lag")
        for line in (line for each in found for line in each.partitions):
            detail.add_row(line.source, str(line.partition), line.phase, f"{line.next_offset:,}", f"{line.lag_rows:,}")
        if detail.row_count:
            parts.append(detail)
        upstreams = _table("upstream", "phase", "version", "of", "files", "lag", "lag s", "problem")
        for at in (at for each in found for at in each.tables):
            upstreams.add_row(
                at.upstream,
                at.phase,
                str(at.version),
                str(at.newest),
                f"{at.files_read:,}/{at.files:,}",
                f"{at.lag_rows:,}",
                f"{at.lag_seconds:,.0f}",
                f"waits for {', '.join(at.awaits)}"
                if at.awaits
                else ""
                if at.retention_risk == "safe"
                else at.forecast,
            )
        if upstreams.row_count:
            parts.append(upstreams)
        if any(each.left_out for each in found):
            parts.append(left_out_text([row for each in found for row in each.left_out]))
    return Group(*parts)


def _rule(of: "Status") -> str:
    """By which rule the newest epoch followed changes, or why it was computed in full."""
    progress = of.progress
    return "" if progress is None else " ".join(filter(None, (progress.rule, progress.why_full)))


def _left_out(of: "Status") -> str:
    return f"{sum(row.is_out for row in of.left_out):,}" if of.left_out else ""


def _throttle(of: "Status") -> str:
    return "" if of.controls.rows_per_second is None else f"{of.controls.rows_per_second:g}"


_MORE: "Mapping[str, Callable[[Status], str]]" = {
    "rule": _rule,
    "left out": _left_out,
    "throttle": _throttle,
    "problem": lambda of: of.problem,
}
"""Columns that are shown where some table has something to tell there."""


def left_out_text(rows: "Sequence[LeftOut]") -> Group:
    """A line for each row that a view leaves out or will leave out; only the first ones."""
    table = _table("left out", "status")
    for row in rows[:MAX_ROWS]:
        table.add_row(row.words, row.status)
    more = len(rows) - MAX_ROWS
    return Group(table, *([f"… and {more} more; --json names them all"] if more > 0 else []))


def plan_text(name: str, planned: "Planned") -> str:
    """What the next epoch would do, in a few sentences; for a view that does not exist yet, its strategy and why."""
    record, step = planned.record, planned.step
    lines = []
    if record is None:
        lines.append(f"{name} is not created yet: the first refresh creates it and reads its history.")
    elif step is None:
        lines.append(f"{name} is at epoch {record.epoch} and has nothing to read.")
    else:
        lines.append(f"{name} is at epoch {record.epoch}. Epoch {record.epoch + 1} would read:")
        lines += [f"  {line}" for read in step.reads for line in _read_lines(read)]
        lines.append(
            f"  in about {planned.expected_seconds:.1f} s{'' if record.live or not step.live else ', and then be live'}."
        )
    if planned.adds_columns:
        lines.append(
            "The query gives more columns: the epoch computes all rows again, and adds the columns to the view."
        )
    if planned.choice is not None and record is None:
        lines.append(planned.choice.words)
    if planned.query:
        lines.append(f"The query: {planned.query}")
        for upstream, rule in planned.rules.items():
            unless = ", unless NOT IN compares a null" if upstream in planned.asked else ""
            unless += ", unless a subquery gives another value" if upstream in planned.parameters else ""
            unless += ", unless too few of the first rows are left" if upstream in planned.first else ""
            lines.append(f"  changes of {upstream}: {_RULES[rule]}{unless}")
    return "\n".join(lines)


def run_text(result: "RunSummary") -> Group:
    """What a run did to its tables, what its checks found, and its errors."""
    parts: list[Any] = [f"run {result.run_id}: {'success' if result.success else 'failed'}"]
    if result.tables:
        table = _table("name", "stopped", "epochs", "rows written", "lag", "phase")
        for name, found in result.tables.items():
            shown = ("stopped_reason", "epochs", "rows_written", "lag_rows", "phase")
            table.add_row(name, *(str(found.get(each, "")) for each in shown))
        parts.append(table)
    if result.checks:
        checks = _table("name", "check", "passed", "")
        for check in result.checks:
            passed = "yes" if check.passed else "not proved" if check.unproved else "NO"
            checks.add_row(check.name, check.check, passed, check.summary)
        parts.append(checks)
    parts.extend(result.errors)
    return Group(*parts)


def _table(*columns: str) -> Table:
    """A table whose columns are not shortened, because names are read and copied."""
    table = Table(box=None)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in {"", "problem"})
    return table


def _numbers(status: "Status") -> list[str]:
    numbers = status.progress
    if numbers is None:
        return [""] * 8
    return [
        numbers.phase,
        str(numbers.epoch),
        f"{numbers.rows_done:,}",
        f"{numbers.rows_total:,}",
        f"{numbers.backfill_percent:g}",
        f"{numbers.rows_per_second:,.0f}",
        "" if numbers.eta_seconds is None else f"{numbers.eta_seconds:,.0f}",
        "?" if numbers.lag_rows is None else f"{numbers.lag_rows:,}",
    ]


def _read_lines(read: "Read") -> list[str]:
    from backfill_assets.core.progress.reads import (
        BronzeRead,
        CaptureRead,
        ChangesRead,
        FullRead,
        HashRead,
        KafkaRead,
        KeyRead,
        LookupRead,
        SkipRead,
        SnapshotRead,
        SpoolRead,
    )

    match read:
        case KafkaRead():
            origin = f"topic {read.topic}"
        case BronzeRead():
            origin = f"table sources/{read.source} at version {read.version}"
        case SnapshotRead() | KeyRead():
            parts = sum(len(each) for each in read.ranges.values())
            kind = "files with" if isinstance(read, SnapshotRead) else "key ranges with about"
            return [f"{read.source} at version {read.version}: {parts:,} {kind} {read.rows:,} rows"]
        case FullRead() | LookupRead() | HashRead():
            whole = f"{read.source} at version {read.version} in full: about {read.held:,} rows"
            return [whole + _use_of_all(read)]
        case SkipRead():
            keys = f"{len(read.out):,} that are left out from now on, {len(read.back):,} that are taken in again"
            return [f"{read.source}: the rows of keys, {keys}"]
        case ChangesRead() | CaptureRead() | SpoolRead():
            found = f"{read.source}: versions {read.first} to {read.last}, about {read.rows:,} changed rows"
            if isinstance(read, ChangesRead):
                more = "" if read.within is None else ", as far as their keys have been read"
            else:
                more = f", {'into' if isinstance(read, CaptureRead) else 'from'} the spool"
            return [found + more]
        case _:
            assert_never(read)
    return [
        f"{origin}, partition {partition}: offsets {each.start:,} to {each.end:,}"
        for partition, each in sorted(read.ranges.items())
    ]


def _use_of_all(read: "FullRead | LookupRead | HashRead") -> str:
    """What all rows of a table are read for, if that is not plain."""
    match read.kind:
        case "lookup":
            return ", to join the chunk with"
        case "hashes":
            return f", of which those in {sum(map(len, read.ranges.values()))} of {read.parts} parts of a key are taken"
        case "full":
            changes = f"about {read.rows:,} changed rows since version {read.first - 1}"
            return f", instead of {changes}" if read.first <= read.last else ""


def replaced_text(name: str, done: "Replacement") -> str:
    """Whether a view was replaced, and how to go on."""
    report = done.report
    if not done.switched:
        why = f"{report.stopped.value} ({report.detail})" if report.detail else report.stopped.value
        return (
            f"{name} is read as before: its replacement has not caught up yet: {why}; `backfill replace {name}` goes on"
        )
    back = f"; `backfill replace {name} --undo` goes back" if done.kept else ""
    return f"{name} is replaced: {report.record.rows_total} rows{back}"
