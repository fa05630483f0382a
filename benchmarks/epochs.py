"""Two thousand small epochs: what planning, ledger, commit and tidying cost, first against last. It must stay flat.

Once with a log that is kept as long as it is by default, so that all of it is still there at the end, and once with one
that is kept for a second, so that what lies behind is expired by the run itself as it would be after a month.

Everything is the real thing (tables, ledger, leases, control, compaction) except that the topic is made up and the rows
are written by pyarrow, so that Spark's own time does not hide what grows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import mean
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.app.refresh import refresh
from backfill_assets.app.wiring.sources import Sources
from backfill_assets.app.wiring.table import Table
from backfill_assets.app.workspace import Workspace
from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.ports import LogRecord, OnStep, TopicState
from backfill_assets.core.epoch.protocol import STEPS
from backfill_assets.core.epoch.records import Plan, Staged
from backfill_assets.core.epoch.staged_folders import StagedFolder
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.declare.model import Declared
from benchmarks.measure import Comparison
from benchmarks.world import PARTITIONS, World, declared_over

__all__ = ["made_up", "run"]

ROWS = 8
"""Of one epoch."""


def run(world: World, *, epochs: int = 2_000, window: int = 100) -> Iterator[Comparison]:
    """The first `window` epochs are the peer of the last ones; the seconds of one epoch each."""
    for kept in ("30 days", "1 second"):
        steps = _steps(world, epochs, kept)
        seconds = [sum(each.values()) for each in steps]
        yield Comparison(
            benchmark="epochs",
            case=f"the last {window} of {epochs:,}, log kept for {kept}",
            peer=f"the first {window}",
            rows=ROWS,
            ours=tuple(seconds[-window:]),
            theirs=tuple(seconds[:window]),
            details=_means("first", steps[:window]) | _means("last", steps[-window:]),
        )


def _steps(world: World, epochs: int, kept: str) -> list[dict[str, float]]:
    """The seconds of each step of so many epochs, of a table whose log is kept for so long."""
    marks: list[tuple[str, float]] = []
    with world.folder() as folder:
        base = world.workspace(folder, declared_over("made-up"))
        workspace = made_up(
            base,
            partitions=PARTITIONS,
            rows=epochs * ROWS,
            on_step=lambda step: marks.append((step, perf_counter())),
        )
        refresh(workspace, "orders", Limits(max_rows=0), run_id="creates")
        table = folder / "warehouse" / "sources" / "orders"
        DeltaTable(table).alter.set_table_properties({"delta.logRetentionDuration": f"interval {kept}"})
        marks.clear()
        done = refresh(workspace, "orders", Limits(chunk_rows=ROWS), run_id="epochs")
        workspace.runner.close()
        assert done.report.totals.epochs == epochs
        assert world.content(table, "_partition", "_offset")[0] == workspace.rows
    return list(_epochs(marks))


def made_up(base: Workspace, *, partitions: int, rows: int, on_step: OnStep = lambda _step: None) -> "_MadeUp":
    """A workspace whose one topic holds as many records as are asked for, and whose rows are computed without Spark."""
    made = _MadeUp(declared=base.declared, store=base.store, kafka=base.kafka, spark=base.spark, on_step=on_step)
    made.partitions, made.rows = partitions, rows
    return made


class _MadeUp(Workspace):
    rows: int = 0
    partitions: int = PARTITIONS

    @cached_property
    def sources(self) -> Sources:
        """The made-up sources."""
        made = _MadeUpSources(registry=self.registry, kafka=self.kafka, catalog=self)
        made.rows, made.partitions = self.rows, self.partitions
        return made

    def table(self, declared: Declared) -> Table:
        """The table with its compute replaced."""
        table = super().table(declared)
        return replace(table, parts=replace(table.parts, compute=_TinyCompute(table.output.location)))


class _MadeUpSources(Sources):
    """Sources of as many records as are asked for."""

    rows: int = 0
    partitions: int = PARTITIONS

    def topic(self, source: str) -> TopicState:
        """The made-up topic."""
        end = self.rows // self.partitions
        ends = {partition: OffsetRange(start=0, end=end) for partition in range(self.partitions)}
        return TopicState(topic=self.registry.source(source).topic, topic_id=None, partitions=ends)

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:  # noqa: ARG002
        """None: there is no log."""
        return {}


@dataclass(frozen=True)
class _TinyCompute:
    """`ports.Compute`: a row for each offset, of which only partition and offset are filled."""

    output: TableLocation

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (rows are only ever added)
        """Write one small file."""
        (read,) = plan.reads
        assert isinstance(read, KafkaRead)
        found = [
            (partition, offset) for partition, each in read.ranges.items() for offset in range(each.start, each.end)
        ]
        columns = {
            "_partition": pa.array([partition for partition, _ in found], pa.int32()),
            "_offset": pa.array([offset for _, offset in found], pa.int64()),
        }
        table = self.output.load()
        assert table is not None
        schema = pa.schema(table.schema().to_arrow())
        rows = pa.table(
            {each.name: columns.get(each.name, pa.nulls(len(found), each.type)) for each in schema}, schema=schema
        )
        folder = StagedFolder(incarnation=plan.incarnation, epoch=plan.epoch, attempt=attempt).name
        Path(self.output.child(folder)).mkdir()
        pq.write_table(rows, self.output.child(f"{folder}/part-0.parquet"))
        files = collect(self.output, folder)
        return Staged(files=files, rows_read=len(found), rows_written=len(found))


def _epochs(marks: list[tuple[str, float]]) -> Iterator[dict[str, float]]:
    """The seconds of each step of each epoch; what follows the commit (look, tidying, control) is `committed`."""
    taken: dict[str, float] = {}
    for (step, at), (_, until) in pairwise(marks):
        if step == "looked" and taken:
            yield taken
            taken = {}
        taken[step] = until - at
    yield taken


def _means(which: str, steps: list[dict[str, float]]) -> dict[str, float]:
    return {f"{which}_{name}": mean(each.get(name, 0.0) for each in steps) for name in STEPS}
