"""What each strategy would need for given upstreams: time, reading, retention, memory and spool. Only arithmetic.

History takes H seconds. Meanwhile a change log of H seconds accumulates. It is applied in epochs of at most `chunk_rows`
changes, which are `window` seconds of log. The end is the first epoch of changes that takes everything that waits. So a log
that fits into one window is one epoch, and a longer one shrinks by a window minus the time that a full epoch takes. A view
whose history is one epoch is live earlier; the changes that arrived meanwhile are counted in the same way for all strategies.

    snapshot       chunks of history, then the log since the pin; of a query over several tables, chunks of those that
                   drive it, with all rows of the others
    snapshot_once  one epoch of history, then the log since the pin
    rearranged     chunks of history, each with a capture of the log into the spool, then the spool
    arrangement    chunks of history by key, with the changes of each chunk's time in the next one
    source         chunks of a topic, then what arrived meanwhile

The view is assumed to be as large as what it reads, and changes to be spread over all of its files.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple

from backfill_assets.core.choice.expiry import NEVER, Resource, limits
from backfill_assets.core.choice.reasons import Risk
from backfill_assets.core.epoch.costs import Costs, Strategy, TableFacts
from backfill_assets.core.progress.value import Value

__all__ = ["Estimate", "Workload", "estimate"]

_STEPS = 200
"""The maximum number of epochs of an arrangement that are simulated."""


class Estimate(Value):
    """What one strategy would need until the view is live and has the changes that arrived while history was read.

    Times are seconds of one run at full speed.

    `cost_seconds` is `eta_seconds` plus the work that has to be repeated after kills. `rows_read` counts only history, and
    `passes` how often the data is read for it. `retention_needed_seconds` says how long each resource must be kept, and
    `headroom_seconds` how much longer retention keeps it, at the worst upstream (negative: lost, None: kept for ever).
    `memory_bytes` is the memory for the rows of the largest epoch of history, `spool_bytes` everything that is captured. A
    strategy that does not `converge` never catches up, and its times are `NEVER`.
    """

    strategy: Strategy
    cost_seconds: float
    eta_seconds: float
    epochs: int
    rows_read: int
    passes: float
    retention_needed_seconds: dict[Resource, float]
    headroom_seconds: float | None
    memory_bytes: int
    spool_bytes: int
    busy: float
    """The share of time that full epochs of changes take; if it is 1 or more, changes arrive faster than they are applied."""
    risks: tuple[Risk, ...] = ()

    @property
    def converges(self) -> bool:
        """Whether changes are applied faster than they arrive."""
        return self.busy < 1


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The upstreams of one view and what may be used to read them: rows of one epoch, memory and spool in bytes.

    `whole`: the query is computed over whole tables. Of those that are `driving`, chunks can be joined with the others: of
    files, or, if there are `parts`, of so many parts of the hashes of a key, for each of which all rows are read.
    """

    facts: tuple[TableFacts, ...]
    costs: Costs
    chunk_rows: int
    memory_bytes: int
    spool_bytes: int
    whole: bool = False
    driving: frozenset[str] = frozenset()
    parts: int = 0

    @property
    def in_chunks(self) -> bool:
        """Whether history can be read in parts."""
        return not self.whole or bool(self.driving)

    @cached_property
    def rows(self) -> int:
        """Rows of all upstreams."""
        return sum(table.rows for table in self.facts)

    @cached_property
    def chunks(self) -> int:
        """Epochs of history if chunks can be cut anywhere."""
        return max(1, -(-self.rows // self.chunk_rows))

    @cached_property
    def whole_files(self) -> int:
        """Epochs of history if files are never cut."""
        return max(1, min(self.chunks, sum(table.files for table in self.facts)))

    @cached_property
    def moves(self) -> bool:
        """Whether any upstream changes while it is read."""
        return any(table.moves for table in self.facts)

    @cached_property
    def window(self) -> float:
        """Seconds of change log that one epoch holds."""
        changes = sum(table.changes_per_second for table in self.facts)
        return min(NEVER, self.chunk_rows / changes) if changes else NEVER

    @cached_property
    def captured(self) -> float:
        """Bytes in the spool for each second of the change logs."""
        return sum(
            max(table.change_bytes_per_second, table.changes_per_second * self.costs.row_bytes / self.costs.expansion)
            for table in self.facts
        )

    @cached_property
    def load(self) -> float:
        """Seconds of work for each second of change log, without the fixed time of an epoch and without rewriting."""
        return sum(
            table.changes_per_second / self._applied(table) + table.versions_per_second * self.costs.version_seconds
            for table in self.facts
        )

    def history_seconds(self, epochs: int, per_second: float) -> float:
        """Seconds to read and write all rows once in a number of epochs."""
        return epochs * self.costs.epoch_seconds + self.rows / per_second

    def applying(self, log: float, *, grown: float = 1.0) -> float:
        """Seconds of an epoch that applies `log` seconds of change log to a view grown to a part of its size."""
        churning = [table for table in self.facts if not table.only_grows]
        rewritten = sum(
            min(table.rows * grown, table.changes_per_second * log * table.rows / max(1, table.files))
            for table in churning
        )
        least = self.costs.merge_seconds if churning else self.costs.epoch_seconds
        return least + log * self.load + rewritten / self.costs.rewrite_rows_per_second

    def memory(self, rows: float) -> int:
        """Bytes in memory for this number of rows."""
        stored = sum(table.bytes for table in self.facts)
        return ceil(rows * max(self.costs.row_bytes, stored * self.costs.expansion / max(1, self.rows)))

    def largest_chunk(self, epochs: int) -> int:
        """Rows of the largest epoch of a history with this number of epochs."""
        return max(min(self.rows, self.chunk_rows), -(-self.rows // epochs))

    def _applied(self, table: TableFacts) -> float:
        if table.kind == "topic":
            return self.costs.source_rows_per_second
        return self.costs.snapshot_rows_per_second if table.only_grows else self.costs.merge_rows_per_second


def estimate(strategy: Strategy, work: Workload) -> Estimate:
    """The estimate of one strategy, whether or not it could be used."""
    match strategy:
        case "source":
            return _chunked(work, strategy, work.chunks, work.costs.source_rows_per_second)
        case "snapshot" if work.driving:
            return _joined(work)
        case "snapshot":
            return _chunked(work, strategy, work.whole_files, work.costs.snapshot_rows_per_second)
        case "snapshot_once":
            return _chunked(work, strategy, 1, work.costs.snapshot_rows_per_second)
        case "rearranged":
            return _rearranged(work)
        case "arrangement":
            return _arrangement(work)


class _CaughtUp(NamedTuple):
    """Catching up: seconds of the first epoch and of all, their number, and the share of time that a full epoch takes."""

    first: float
    seconds: float
    epochs: int
    busy: float


class _Capture(NamedTuple):
    """Capturing into a spool beside an epoch: `fixed` seconds, and `share` for each second of the epoch before."""

    fixed: float = 0.0
    share: float = 0.0


_NO_CAPTURE = _Capture()


def _catch_up(work: Workload, behind: float, *, capture: _Capture = _NO_CAPTURE, before: float = 0.0) -> _CaughtUp:
    """Catching up with `behind` seconds of log, where the last epoch of history took `before` seconds."""
    if not work.moves:
        return _CaughtUp(0.0, 0.0, 0, 0.0)
    full = (work.applying(work.window) + capture.fixed) / max(1e-12, 1 - capture.share)
    busy = max(capture.share, full / work.window)
    if busy >= 1:
        return _CaughtUp(min(full, NEVER), NEVER, 1, busy)
    gained = work.window - full
    more = max(0, ceil((behind - work.window) / gained))
    last = work.applying(max(0.0, behind - more * gained)) + capture.fixed + capture.share * (full if more else before)
    return _CaughtUp(full if more else last, more * full + last, more + 1, busy)


def _chunked(work: Workload, strategy: Strategy, chunks: int, per_second: float) -> Estimate:
    history = work.history_seconds(chunks, per_second)
    after = _catch_up(work, history)
    behind = history + after.first
    needed: dict[Resource, float] = {"files": behind, "log": behind}
    if strategy == "snapshot":
        needed["pinned"] = history
    if strategy == "source":
        needed = {"log": history}
    return _made(
        work,
        strategy,
        parts=_Parts(history=history, chunks=chunks, after=after, rows=work.rows, spool=0.0),
        needed=needed,
    )


def _joined(work: Workload) -> Estimate:
    """Each chunk of the driving tables also reads all rows of the others; of all tables, if it is a part of hashes."""
    driving = [table for table in work.facts if table.name in work.driving]
    driven = sum(table.rows for table in driving)
    most = work.parts or sum(table.files for table in driving)
    chunks = max(1, min(-(-driven // work.chunk_rows), most))
    again = (work.rows - (0 if work.parts else driven)) * (chunks - 1)
    history = (
        work.history_seconds(chunks, work.costs.snapshot_rows_per_second) + again / work.costs.scan_rows_per_second
    )
    after = _catch_up(work, history)
    behind = history + after.first
    made = _made(
        work,
        "snapshot",
        parts=_Parts(history=history, chunks=chunks, after=after, rows=work.rows + again, spool=0.0),
        needed={"files": behind, "log": behind, "pinned": history},
    )
    largest = max(min(driven, work.chunk_rows), -(-driven // chunks)) + work.rows - driven
    return made.model_copy(update={"memory_bytes": work.memory(largest)})


def _rearranged(work: Workload) -> Estimate:
    """A capture beside every epoch slows history and draining alike. Captures are at most two epochs apart."""
    chunks = work.whole_files
    capture = (
        _Capture(work.costs.capture_seconds, work.captured / work.costs.spool_bytes_per_second)
        if work.moves
        else _NO_CAPTURE
    )
    alone = work.history_seconds(chunks, work.costs.snapshot_rows_per_second) + chunks * capture.fixed
    history, last = _with_captures(alone, chunks, capture.share) if capture.share < 1 else (NEVER, NEVER)
    after = _catch_up(work, history, capture=capture, before=last)
    two_epochs = last + max(last, after.first)
    return _made(
        work,
        "rearranged",
        parts=_Parts(
            history=history,
            chunks=chunks,
            after=after,
            rows=work.rows,
            spool=work.captured * min(NEVER, history + after.seconds),
        ),
        needed={"files": max(history, two_epochs), "log": max(two_epochs, 2 * after.first)},
    )


def _with_captures(alone: float, chunks: int, share: float) -> tuple[float, float]:
    """The seconds of all epochs, and of the last one, if each also takes a share of the time of the epoch before."""
    last = alone / chunks * (1 - share**chunks) / (1 - share)
    return (alone - share * last) / (1 - share), last


def _arrangement(work: Workload) -> Estimate:
    """Every pass but the first only reads. Changes wait for at most two epochs, and need only the newest version.

    Changes behind the cursor are merged into the part of the view that exists; those ahead of it are read again at the
    same cost.
    """
    rows_read = sum(table.rows * _passes(table, work.chunk_rows) for table in work.facts)
    chunks = work.chunks
    history = work.history_seconds(chunks, work.costs.snapshot_rows_per_second)
    history += max(0.0, rows_read - work.rows) / work.costs.scan_rows_per_second
    busy = _catch_up(work, 0.0).busy
    seconds, two_epochs = _with_changes(work, history / chunks) if busy < 1 else (NEVER, NEVER)
    return _made(
        work,
        "arrangement",
        parts=_Parts(
            history=min(NEVER, seconds),
            chunks=chunks,
            after=_CaughtUp(0.0, 0.0, int(work.moves), busy),
            rows=ceil(rows_read),
            spool=0.0,
        ),
        needed={"files": two_epochs, "log": two_epochs},
    )


def _passes(table: TableFacts, chunk_rows: int) -> float:
    """How often the table is read: its ranges times the share of files each touches, one more to find unknown ranges."""
    ranges = max(1, -(-table.rows // chunk_rows))
    return ranges + 1.0 if table.clustering is None else max(1.0, ranges * table.clustering)


def _with_changes(work: Workload, alone: float) -> tuple[float, float]:
    """The seconds of all epochs, and of the longest two in a row, if each chunk takes `alone` seconds by itself.

    Each epoch also applies what arrived during the one before; the last one does nothing else. The epochs are simulated
    one by one, but for large numbers of chunks, one epoch stands for several similar ones.
    """
    steps = min(work.chunks, _STEPS)
    before = longest = alone
    total = alone * work.chunks / steps
    if not work.moves:
        return alone * work.chunks, 0.0
    for step in range(1, steps + 1):
        applying = work.applying(before, grown=step / steps)
        epoch, alike = (alone + applying, work.chunks / steps) if step < steps else (applying, 1)
        longest = max(longest, before + epoch)
        total += epoch * alike
        before = epoch
    return total, longest


class _Parts(NamedTuple):
    """The parts of an estimate: seconds and epochs of history, what follows it, rows read, bytes captured."""

    history: float
    chunks: int
    after: _CaughtUp
    rows: int
    spool: float


def _made(work: Workload, strategy: Strategy, *, parts: _Parts, needed: dict[Resource, float]) -> Estimate:
    eta = min(NEVER, parts.history + parts.after.seconds)
    again = parts.history / parts.chunks / 2 * parts.history * work.costs.kills_per_hour / 3600
    known: dict[Resource, float] = {resource: min(NEVER, seconds) for resource, seconds in needed.items()}
    headrooms = [limit.headroom for limit in limits(work.facts, known) if limit.left is not None]
    return Estimate(
        strategy=strategy,
        cost_seconds=min(NEVER, eta + again),
        eta_seconds=eta,
        epochs=parts.chunks + parts.after.epochs,
        rows_read=parts.rows,
        passes=parts.rows / work.rows if work.rows else 1.0,
        retention_needed_seconds=known if any(table.expires for table in work.facts) else dict.fromkeys(known, 0.0),
        headroom_seconds=min(headrooms, default=None),
        memory_bytes=work.memory(work.largest_chunk(parts.chunks)),
        spool_bytes=ceil(parts.spool),
        busy=parts.after.busy,
    )
