"""A whole world in memory: topics, bronze tables, views, ledger and the work of Spark, driven by the real core.

Each source has a view `<source>_view` from the start; `add_view` declares others. Views hold the rows of their sources
unchanged.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.lives import begin_life, end_life
from backfill_assets.core.epoch.parts import Parts
from backfill_assets.core.epoch.ports import BronzeState, Decider, LogRecord, OnStep, Output, TopicState
from backfill_assets.core.epoch.records import Plan, Staged, TableState, fingerprint
from backfill_assets.core.epoch.run import RunReport, create_if_missing, run
from backfill_assets.core.epoch.skips import Offsets, OffsetSkip, left_out_of
from backfill_assets.core.progress.positions import IngestPosition, OffsetRange, SnapshotPosition, ViewPosition
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead
from backfill_assets.core.strategies.ingest import IngestDecider
from backfill_assets.core.strategies.source import SourceDecider, SourceUpstream
from backfill_assets.errors import ComputeError, UpstreamChangedError
from backfill_assets.testing.manual_clock import ManualClock
from backfill_assets.testing.simulated_ledger import LedgerStore, SimulatedLedger
from backfill_assets.testing.simulated_table import SimulatedOutput, SimulatedTable
from backfill_assets.testing.simulated_topic import Row, SimulatedTopic
from backfill_assets.testing.world_settings import Operator, SourceSettings

__all__ = ["POISON", "Operator", "SourceSettings", "World"]

ISOLATION = "read_committed"
POISON = "poison"
"""A value on which every view's query fails."""


def _nothing(_step: str) -> None:
    return None


class World:
    """Everything that sources, views and their runs touch; implements `ports.Upstreams`.

    Args:
        *topics: The topics; each is a source of the same name.
        settings: How the sources are declared.

    Examples:
        >>> orders = SimulatedTopic("orders", partitions=2)
        >>> orders.append(0, ["a", "b"])
        >>> world = World(orders)
        >>> reports = [world.refresh("sources/orders"), world.refresh("views/orders_view")]
        >>> world.table("views/orders_view").rows == world.expected("views/orders_view")
        True
    """

    def __init__(self, *topics: SimulatedTopic, settings: SourceSettings | None = None) -> None:
        self.settings = settings or SourceSettings()
        self.topics = {topic.source: topic for topic in topics}
        self.views: dict[str, tuple[str, ...]] = {f"{name}_view": (name,) for name in self.topics}
        self.tables: dict[str, SimulatedTable] = {}
        self.ledger = LedgerStore()
        self.clock = ManualClock()
        self.fingerprint = fingerprint(query="SELECT *", schema="value STRING")
        self.skips: dict[str, set[OffsetSkip]] = {}
        self._ids = count(1)

    def add_view(self, name: str, sources: tuple[str, ...]) -> str:
        """Declare a view.

        Args:
            name: The view's name.
            sources: The names of its sources.

        Returns:
            The view's target, `views/<name>`.
        """
        self.views[name] = sources
        return f"views/{name}"

    def table(self, target: str) -> SimulatedTable:
        """A table of the world.

        Args:
            target: `sources/<name>` or `views/<name>`.

        Returns:
            The table, whether it was created already or not.
        """
        return self.tables.setdefault(target, SimulatedTable(target))

    def topic(self, source: str) -> TopicState:
        """What a consumer sees of a topic.

        Args:
            source: The source's name.

        Returns:
            The topic's state.
        """
        return self.topics[source].offer()

    def starts(self, source: str, offer: TopicState) -> Mapping[int, int]:  # noqa: ARG002  (ports.Upstreams)
        """The declared start as offsets.

        Args:
            source: The source's name.
            offer: The state of its topic.

        Returns:
            The first offset of each partition.

        Raises:
            ValueError: The declared start is not simulated.
        """
        match self.settings.start:
            case "earliest":
                return {partition: held.start for partition, held in offer.partitions.items()}
            case "latest":
                return {partition: held.end for partition, held in offer.partitions.items()}
            case str():
                raise ValueError(f"start {self.settings.start!r} is not simulated: use 'earliest', 'latest' or offsets")
            case starts:
                return starts

    def diverged(self, source: str, read: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Partitions whose log is no longer the one that was read.

        Args:
            source: The source's name.
            read: For each partition, the next offset to read and the leader epoch of what was read.

        Returns:
            For each partition that diverged, where the log of that epoch ends.
        """
        return self.topics[source].diverged(read)

    def last_records(self, source: str, ranges: Mapping[int, OffsetRange]) -> Mapping[int, LogRecord]:
        """The last record of each range.

        Args:
            source: The source's name.
            ranges: An offset range for each partition.

        Returns:
            For each partition, the last record; partitions without any are missing.
        """
        return self.topics[source].last_records(ranges)

    def bronze(self, source: str, *, again: bool = True) -> BronzeState:  # noqa: ARG002
        """The state of a source's bronze table.

        Args:
            source: The source's name.
            again: Nothing, as asking costs nothing here.

        Returns:
            Its incarnation, version and position.

        Raises:
            UpstreamChangedError: The table does not exist.
        """
        look = self.table(f"sources/{source}").look()
        if not look.exists:
            raise UpstreamChangedError(f"source {source!r} was dropped or never created", hint="create it")
        return _offered(look)

    def create_bronze(self, source: str) -> BronzeState:
        """The state of a source's bronze table, which is created if it does not exist.

        Args:
            source: The source's name.

        Returns:
            Its incarnation, version and position.
        """
        return _offered(self.create(f"sources/{source}"))

    def decider(self, target: str) -> Decider[Any]:
        """The real decider of a table's epochs.

        Args:
            target: `sources/<name>` or `views/<name>`.

        Returns:
            The decider.
        """
        kind, _, name = target.partition("/")
        if kind == "sources":
            return IngestDecider(
                source=name,
                topic=name,
                isolation=ISOLATION,
                keep_history=self.settings.keep_history,
                fingerprint=self.fingerprint,
                upstreams=self,
            )
        sources = tuple(SourceUpstream(name=each, topic=each, isolation=ISOLATION) for each in self.views[name])
        return SourceDecider(
            view=name,
            sources=sources,
            fingerprint=self.fingerprint,
            upstreams=self,
            skips=lambda: tuple(self.skips.get(target, ())),
        )

    def parts(self, target: str, *, on_step: OnStep = _nothing, output: Output | None = None) -> Parts[Any]:
        """The objects of a new run of a table; only the world is shared with other runs.

        Args:
            target: `sources/<name>` or `views/<name>`.
            on_step: Called at each step of the protocol, for example a `CrashPoint`.
            output: Replaces the run's access to the table, for example by an `UnreliableOutput`.

        Returns:
            What `refresh` takes as `parts`.
        """
        return Parts(
            decider=self.decider(target),
            output=output or SimulatedOutput(self.table(target)),
            ledger=SimulatedLedger(self.ledger),
            compute=SimulatedSpark(self),
            clock=self.clock,
            new_id=lambda: f"{next(self._ids):08x}",
            on_step=on_step,
        )

    def create(self, target: str, parts: Parts[Any] | None = None) -> TableState:
        """Create a table if it does not exist, and look at it.

        Args:
            target: `sources/<name>` or `views/<name>`.
            parts: The run's objects; new ones by default.

        Returns:
            The table's state.
        """
        return create_if_missing(parts or self.parts(target), self.table(target))

    def refresh(
        self,
        target: str,
        limits: Limits | None = None,
        *,
        operator: Operator | None = None,
        parts: Parts[Any] | None = None,
    ) -> RunReport:
        """One run of a table, until it has caught up or something stops it.

        Args:
            target: `sources/<name>` or `views/<name>`.
            limits: Limits of the run.
            operator: What the run checks between its epochs.
            parts: The run's objects; new ones by default.

        Returns:
            What the run did.
        """
        mine = parts or self.parts(target)
        look = self.create(target, mine)
        return run(mine, look, limits or Limits(), operator or Operator())

    def reset(self, target: str) -> None:
        """Begin a new incarnation of a table.

        Args:
            target: `sources/<name>` or `views/<name>`.
        """
        parts = self.parts(target)
        begin_life(parts, parts.output.look(), parts.decider.begin(), incarnation=parts.new_id())

    def drop(self, target: str) -> None:
        """Drop a table.

        Args:
            target: `sources/<name>` or `views/<name>`.
        """
        parts = self.parts(target)
        end_life(parts, parts.output.look())

    def expected(self, target: str) -> Counter[Row]:
        """What a table must hold at the position of its newest commit: the oracle of every simulation.

        Args:
            target: `sources/<name>` or `views/<name>`.

        Returns:
            The rows, with their number.

        Raises:
            AssertionError: The table is a view over Delta tables, which this world does not have.
        """
        record = self.table(target).commits[-1]
        match record.position:
            case IngestPosition() as held:
                return self.topics[target.partition("/")[2]].ever(held.begin, held.next)
            case ViewPosition(sources=sources):
                rows: Counter[Row] = Counter()
                for name, each in sources.items():
                    begin = {partition: state.start for partition, state in each.partitions.items()}
                    end = {partition: state.next for partition, state in each.partitions.items()}
                    ever = self.topics[name].ever(begin, end)
                    rows += Counter({row: n for row, n in ever.items() if not _among(row, each.skipped)})
                return rows
            case SnapshotPosition():
                raise AssertionError("the simulated world holds no Delta tables")


@dataclass(frozen=True)
class SimulatedSpark:
    """Carries out a plan's reads on the world as it is at that moment; implements `ports.Compute`."""

    world: World

    def stage(self, plan: Plan, attempt: str, *, at: int) -> Staged:  # noqa: ARG002  (rows are only ever added)
        """Read exactly what the plan says and stage it."""
        left_out = left_out_of(plan.after)
        rows = [
            row
            for read in plan.offset_reads
            for row in self._rows(plan, read)
            if not _among(row, left_out.get(read.source, {}))
        ]
        if isinstance(plan.after, ViewPosition) and (poison := [row for row in rows if row.value == POISON]):
            raise ComputeError(f"{plan.target}: {poison[0]} cannot be computed", hint="leave it out")
        files = self.world.table(plan.target).stage(f"{plan.incarnation}-{plan.epoch}-{attempt}", rows)
        return Staged(files=files, rows_read=len(rows), rows_written=len(rows))

    def _rows(self, plan: Plan, read: KafkaRead | BronzeRead) -> list[Row]:
        if isinstance(read, KafkaRead):
            return self.world.topics[read.source].read(read.ranges)
        table = self.world.table(f"sources/{read.source}")
        look = table.look()
        if look.life != (read.incarnation, True) or look.version < read.version:
            raise UpstreamChangedError(
                f"{plan.target}: source {read.source!r}: expected incarnation {read.incarnation} at version "
                f"{read.version} or later, found {look.life[0]} at version {look.version}"
            )
        ranges = read.ranges
        return [
            row
            for row in table.rows.elements()
            if row.partition in ranges and ranges[row.partition].start <= row.offset < ranges[row.partition].end
        ]


def _among(row: Row, offsets: Offsets) -> bool:
    return row.offset in offsets.get(row.partition, ())


def _offered(look: TableState) -> BronzeState:
    assert look.record is not None
    assert isinstance(look.record.position, IngestPosition)
    return BronzeState(incarnation=look.record.incarnation, version=look.version, position=look.record.position)
