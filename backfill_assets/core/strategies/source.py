"""Strategy `source`: history directly from Kafka while bronze keeps growing, with one exact seam per partition.

An epoch first reads how far bronze has moved (live rows always come first). Then it reads live rows of finished
partitions from bronze, and history of backfilling partitions from Kafka. What Kafka has lost, or may have compacted
away, is read from bronze if bronze has it. The transitions of a partition are in `positions.PartitionState`. They are
those of a shared-source backfill in a streaming database, applied to ranges of offsets instead of single rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from backfill_assets.core.epoch.ports import BronzeState, InitialState, NextEpoch, PlannedEpoch, TopicState, Upstreams
from backfill_assets.core.epoch.records import CommitRecord, Fingerprint, UpstreamColumns
from backfill_assets.core.epoch.skips import Skips, consumed_of, left_out_of, no_skips, offsets_left_out, offsets_of
from backfill_assets.core.progress.order import Order, waits_for
from backfill_assets.core.progress.positions import (
    LogMark,
    OffsetRange,
    PartitionState,
    Phase,
    SourcePosition,
    ViewPosition,
    allocate,
)
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead, Read, size_of
from backfill_assets.core.strategies.ingest import check_log, check_topic, consumed_log, kafka_holds
from backfill_assets.core.strategies.truncation import ConsumedLog, mark, narrowed
from backfill_assets.errors import OffsetsLostError, UpstreamChangedError

__all__ = ["SourceDecider", "SourceUpstream", "begin_source", "partition_budget", "plan_source"]

Ranges = dict[int, OffsetRange]


@dataclass(frozen=True, kw_only=True)
class SourceUpstream:
    """A Kafka source, as seen by a view."""

    name: str
    topic: str
    isolation: str


@dataclass(frozen=True, kw_only=True)
class SourceDecider:
    """Decides the epochs of one view over Kafka sources. `skips` returns what to leave out when an epoch is planned."""

    view: str
    sources: tuple[SourceUpstream, ...]
    fingerprint: Fingerprint
    upstreams: Upstreams
    order: Order = field(default_factory=dict)
    skips: Skips = no_skips

    @property
    def kind(self) -> type[ViewPosition]:
        return ViewPosition

    @property
    def target(self) -> str:
        return f"views/{self.view}"

    def begin(self) -> InitialState[ViewPosition]:
        positions = {}
        for source in self.sources:
            bronze = self.upstreams.create_bronze(source.name)
            topic = self.upstreams.topic(source.name)
            check_topic(source.name, bronze.position, topic)
            check_log(consumed_log(source.name, bronze.position, topic, self.upstreams))
            positions[source.name] = begin_source(source.name, bronze, topic)
        position = self._with_skips(ViewPosition(sources=positions))
        left = sum(_history_left(partition) for each in positions.values() for partition in each.partitions.values())
        return InitialState(position=position, total=left, live=_caught_up(position))

    def columns(self) -> UpstreamColumns:
        return {}  # the columns of a topic are declared, so they are in the fingerprint

    def redefines(self, record: CommitRecord) -> bool:  # noqa: ARG002  (what a topic held may be gone)
        return False

    def next(
        self,
        position: ViewPosition,
        *,
        live: bool,
        budget: int,
        anew: bool = False,  # noqa: ARG002  (asked for where a declaration redefines its table)
    ) -> NextEpoch[ViewPosition] | None:
        position = self._with_skips(position)
        offers = {source.name: self._offers(source, position.sources[source.name]) for source in self.sources}
        step = self._step(position, offers, live=live, budget=budget)
        for name, each in offers.items():
            self._check_logs(name, position.sources[name], each, always=step is not None)
        if step is None:
            return None
        sources = {
            name: self._marked(name, position.sources[name], after, offers[name], step)
            for name, after in step.after.sources.items()
        }
        return replace(step, after=ViewPosition(sources=sources))

    def _step(
        self, position: ViewPosition, offers: "Mapping[str, Offers]", *, live: bool, budget: int
    ) -> NextEpoch[ViewPosition] | None:
        def planned(source: SourceUpstream, share: int) -> tuple[tuple[Read, ...], SourcePosition]:
            return plan_source(self.view, source, position.sources[source.name], offers[source.name], budget=share)

        unfinished = [name for name, each in position.sources.items() if not each.backfilled]
        wanted = {
            index: _offsets(planned(source, budget)[0])
            for index, source in enumerate(self.sources)
            if not waits_for(self.order, source.name, unfinished)
        }
        shares = allocate(budget, wanted)
        plans = {source.name: planned(source, shares.get(index, 0)) for index, source in enumerate(self.sources)}
        reads = tuple(read for each, _ in plans.values() for read in each)
        moved = ViewPosition(sources={name: after for name, (_, after) in plans.items()})
        now_live = live or _caught_up(moved)
        if not reads and now_live == live:
            return None
        return NextEpoch(reads=reads, after=moved, live=now_live)

    def _with_skips(self, position: ViewPosition) -> ViewPosition:
        """The position, with the rows that an epoch planned now leaves out."""
        wanted = self.skips()
        sources = {
            name: each.model_copy(
                update={"skipped": offsets_left_out(each.skipped, offsets_of(wanted, name), consumed_of(each))}
            )
            for name, each in position.sources.items()
        }
        return ViewPosition(sources=sources)

    def _offers(self, source: SourceUpstream, position: SourcePosition) -> "Offers":
        bronze = self.upstreams.bronze(source.name)
        check_bronze(self.view, source.name, position, bronze)
        topic = None if position.backfilled and position.log == LogMark() else self.upstreams.topic(source.name)
        if topic is not None:
            check_topic(source.name, bronze.position, topic)
        return Offers(bronze=bronze, topic=topic)

    def _check_logs(self, name: str, position: SourcePosition, offers: "Offers", *, always: bool) -> None:
        """Refuse a topic that lost records that its bronze table or this view has read."""
        if offers.topic is None:
            return
        bronze = consumed_log(name, offers.bronze.position, offers.topic, self.upstreams)
        if always or bronze.elected:
            check_log(bronze)
        mine = self._consumed(name, position, offers.topic)
        if always or mine.elected:
            mine.check(
                f"view {self.view!r}: source {name!r}",
                hint=f"The source's table has none of them. `backfill reset {self.view}` rebuilds the view",
            )

    def _consumed(self, name: str, position: SourcePosition, topic: TopicState) -> ConsumedLog:
        """What this view has read of a topic beyond its bronze table."""
        known = position.log.epochs.keys() | position.log.witnesses.keys()
        read = {partition: state.next for partition, state in position.partitions.items() if partition in known}
        return ConsumedLog(source=name, read=read, mark=position.log, offer=topic, upstreams=self.upstreams)

    def _marked(
        self, name: str, before: SourcePosition, after: SourcePosition, offers: "Offers", step: NextEpoch[ViewPosition]
    ) -> SourcePosition:
        """The position, with the mark of the partitions that it has read beyond bronze."""
        ahead = {partition for partition, state in after.partitions.items() if state.next > state.live}
        if offers.topic is None or not ahead:
            return after.model_copy(update={"log": LogMark()})
        reads = [read.ranges for read in step.reads if isinstance(read, KafkaRead) and read.source == name]
        ranges = {partition: each for read in reads for partition, each in read.items() if partition in ahead}
        log = mark(narrowed(before.log, ahead), offers.topic, ranges, source=name, upstreams=self.upstreams)
        return after.model_copy(update={"log": narrowed(log, ahead)})

    def waits(self, position: ViewPosition, *, live: bool) -> bool:
        offers = {source.name: self._offers(source, position.sources[source.name]) for source in self.sources}
        return self._step(position, offers, live=live, budget=1) is not None

    def confirm(self, plan: PlannedEpoch[ViewPosition]) -> None:
        for read in plan.reads:
            bronze = self.upstreams.bronze(read.source)
            check_bronze(self.view, read.source, plan.after.sources[read.source], bronze)
            if isinstance(read, KafkaRead):
                topic = self.upstreams.topic(read.source)
                check_topic(read.source, bronze.position, topic)
                offers = Offers(bronze=bronze, topic=topic)
                self._check_logs(read.source, plan.before.sources[read.source], offers, always=False)

    def resumable(self, plan: PlannedEpoch[ViewPosition]) -> bool:  # noqa: ARG002  (all that was planned is)
        return True

    def readable(self, plan: PlannedEpoch[ViewPosition]) -> bool:
        if left_out_of(self._with_skips(plan.before)) != left_out_of(plan.after):
            return False
        after = plan.after.sources
        return all(self._kafka_has(read, after[read.source]) for read in plan.reads if isinstance(read, KafkaRead))

    def _kafka_has(self, read: KafkaRead, after: SourcePosition) -> bool:
        topic, bronze = self.upstreams.topic(read.source), self.upstreams.bronze(read.source)
        if topic.compacted and _in_bronze(bronze, read.ranges):
            return False
        logs = (
            consumed_log(read.source, bronze.position, topic, self.upstreams),
            self._consumed(read.source, after, topic),
        )
        return kafka_holds(topic, read.ranges) and not any(log.replaced() for log in logs)

    def done(self, position: ViewPosition) -> int:
        return sum(
            partition.next - partition.start
            for each in position.sources.values()
            for partition in each.partitions.values()
        )

    def offsets(self, position: ViewPosition) -> Mapping[str, int]:
        return {
            f"{name}/{partition}": state.next
            for name, source in position.sources.items()
            for partition, state in sorted(source.partitions.items())
        }

    def lag(self, position: ViewPosition) -> Mapping[str, int]:
        lags = {}
        for name, source in position.sources.items():
            bronze = self.upstreams.bronze(name, again=False).position
            for partition, state in sorted(source.partitions.items()):
                ahead = max(bronze.next.get(partition, 0), state.target if state.phase is Phase.BACKFILLING else 0)
                lags[f"{name}/{partition}"] = max(0, ahead - state.next)
            for partition in sorted(bronze.next.keys() - source.partitions.keys()):
                lags[f"{name}/{partition}"] = bronze.next[partition] - bronze.begin[partition]
        return lags


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The state of one source for one epoch; the topic is requested only while a partition is backfilling."""

    bronze: BronzeState
    topic: TopicState | None


def begin_source(name: str, bronze: BronzeState, topic: TopicState) -> SourcePosition:
    """The position of a view that was just created: all history of the source's partitions still has to be read."""
    held = bronze.position
    partitions = {}
    for partition, start in sorted(held.history.items()):
        if partition not in topic.partitions:
            raise OffsetsLostError(
                f"source {name!r}: topic {topic.topic!r} has no partition {partition} any more, expected to read it "
                f"from {start}",
                hint="a topic does not lose partitions; check that the broker is the right one",
            )
        partitions[partition] = PartitionState.begin(
            start=start, live=held.next[partition], end=topic.partitions[partition].end
        )
    return SourcePosition(incarnation=bronze.incarnation, version=bronze.version, partitions=partitions)


def check_bronze(view: str, source: str, position: SourcePosition, bronze: BronzeState) -> None:
    """Refuse a bronze table with another life than in the view's position, or one that was restored to an earlier state."""
    went_back = sorted(
        partition
        for partition, state in position.partitions.items()
        if bronze.position.next.get(partition, -1) < state.live
    )
    same_life = position.incarnation == bronze.incarnation
    if same_life and not went_back:
        return
    found = f"partitions {went_back} went back" if same_life else f"found incarnation {bronze.incarnation}"
    raise UpstreamChangedError(
        f"view {view!r}: source {source!r} was reset, recreated or restored: expected incarnation "
        f"{position.incarnation} at version {position.version} or later, {found}",
        hint=f"`backfill reset {view}` rebuilds the view over the source as it is now",
        expected=position.incarnation,
        found=bronze.incarnation,
    )


def plan_source(
    view: str, source: SourceUpstream, position: SourcePosition, offers: Offers, *, budget: int
) -> tuple[tuple[Read, ...], SourcePosition]:
    """What a view reads from one source in its next epoch, and its position after that.

    At most `budget` offsets are read. If both live rows and history wait, history gets at least half, so that a busy topic
    never starves it.
    """
    bronze = offers.bronze
    partitions = _see_bronze(position, bronze)
    live_wants = {p: s.live - s.next for p, s in partitions.items() if s.phase is Phase.FINISHED and s.live > s.next}
    old_wants = {p: s.target - s.next for p, s in partitions.items() if s.phase is Phase.BACKFILLING}
    for_live, for_history = partition_budget(budget, sum(live_wants.values()), sum(old_wants.values()))
    from_bronze: Ranges = {}
    from_kafka: Ranges = {}
    for partition, share in allocate(for_live, live_wants).items():
        state = partitions[partition]
        from_bronze[partition] = OffsetRange(start=state.next, end=state.next + share)
        partitions[partition] = state.read_live(state.next + share)
    for partition, share in allocate(for_history, old_wants).items():
        state = partitions[partition]
        wanted = OffsetRange(start=state.next, end=state.next + share)
        held, reach = _where(view, source.name, partition, wanted, offers)
        (from_bronze if held == "bronze" else from_kafka)[partition] = reach
        partitions[partition] = state.read_history(reach.end)
    reads: list[Read] = []
    if from_bronze:
        reads.append(
            BronzeRead(source=source.name, incarnation=bronze.incarnation, version=bronze.version, ranges=from_bronze)
        )
    if from_kafka:
        reads.append(KafkaRead(source=source.name, topic=source.topic, isolation=source.isolation, ranges=from_kafka))
    seen = {"incarnation": bronze.incarnation, "version": bronze.version}
    return tuple(reads), position.model_copy(update={**seen, "partitions": partitions})


def partition_budget(budget: int, live: int, history: int) -> tuple[int, int]:
    """Divide a budget between live rows, which come first, and history, which gets at least half of it."""
    for_live = min(live, max(budget - history, budget // 2))
    return for_live, min(history, budget - for_live)


def _see_bronze(position: SourcePosition, bronze: BronzeState) -> dict[int, PartitionState]:
    partitions = dict(position.partitions)
    for partition, live in sorted(bronze.position.next.items()):
        if partition in partitions:
            partitions[partition] = partitions[partition].see_live(live)
        else:
            partitions[partition] = PartitionState.join(start=bronze.position.begin[partition], live=live)
    return partitions


def _where(view: str, source: str, partition: int, wanted: OffsetRange, offers: Offers) -> tuple[str, OffsetRange]:
    """Where a range of history is read from, and how much of it can be read there."""
    assert offers.topic is not None
    held = offers.topic.partitions.get(partition)
    ingested = offers.bronze.position
    in_bronze = ingested.begin[partition] <= wanted.start < ingested.next[partition]
    lost = held is None or not held.start <= wanted.start < held.end
    if in_bronze and (lost or offers.topic.compacted):
        return "bronze", OffsetRange(start=wanted.start, end=min(wanted.end, ingested.next[partition]))
    if held is None or lost:
        earliest = held.start if held else None
        raise OffsetsLostError(
            f"view {view!r}: history of source {source!r}, partition {partition}, must be read from offset {wanted.start}, "
            f"but the earliest offset that Kafka still has is {earliest}, and the source's table has none of these offsets",
            hint=f"nothing was skipped. `backfill reset {source}` begins the source again with what Kafka still has, "
            f"then `backfill reset {view}`; or keep history in the source with bronze='all' and longer retention",
            partition=partition,
            expected=wanted.start,
            earliest=earliest,
        )
    end = min(wanted.end, held.end)
    if offers.topic.compacted and wanted.start < ingested.begin[partition]:
        end = min(end, ingested.begin[partition])
    return "kafka", OffsetRange(start=wanted.start, end=end)


def _in_bronze(bronze: BronzeState, ranges: Mapping[int, OffsetRange]) -> bool:
    """Whether bronze has any of these offsets."""
    held = bronze.position
    return any(
        max(held.begin[partition], each.start) < min(held.next[partition], each.end)
        for partition, each in ranges.items()
    )


def _offsets(reads: tuple[Read, ...]) -> int:
    return sum(size_of(read) for read in reads)


def _history_left(partition: PartitionState) -> int:
    return max(0, partition.target - partition.start)


def _caught_up(position: ViewPosition) -> bool:
    """Whether the view equals its query over the newest records: no history is left, and no live row waits."""
    return all(
        each.backfilled and all(s.phase is not Phase.FINISHED or s.next >= s.live for s in each.partitions.values())
        for each in position.sources.values()
    )
