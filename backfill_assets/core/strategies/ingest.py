"""A shared source: which offsets of its topic become bronze next.

A partition begins at the resolved start (or, with `bronze="new"`, at the end that it had when the source was created). A
partition that is added later begins at its first offset. Offsets that are gone before they were read are an error, never a
gap.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from backfill_assets.core.epoch.ports import InitialState, NextEpoch, PlannedEpoch, TopicState, Upstreams
from backfill_assets.core.epoch.records import CommitRecord, Fingerprint, UpstreamColumns
from backfill_assets.core.progress.positions import IngestPosition, LogMark, OffsetRange, allocate
from backfill_assets.core.progress.reads import KafkaRead
from backfill_assets.core.strategies.truncation import ConsumedLog, mark, truncated
from backfill_assets.errors import OffsetsLostError, TopicRecreatedError

__all__ = [
    "IngestDecider",
    "begin_ingest",
    "check_log",
    "check_starts",
    "check_topic",
    "consumed_log",
    "plan_ingest",
]


@dataclass(frozen=True, kw_only=True)
class IngestDecider:
    """Decides the epochs of one source's bronze table."""

    source: str
    topic: str
    isolation: str
    keep_history: bool
    fingerprint: Fingerprint
    upstreams: Upstreams

    @property
    def kind(self) -> type[IngestPosition]:
        return IngestPosition

    @property
    def target(self) -> str:
        return f"sources/{self.source}"

    def begin(self) -> InitialState[IngestPosition]:
        offer = self.upstreams.topic(self.source)
        starts = self.upstreams.starts(self.source, offer)
        check_starts(self.source, offer, starts)
        position = self._marked(begin_ingest(offer, starts, keep_history=self.keep_history), offer)
        left = sum(offer.partitions[partition].end - begin for partition, begin in position.begin.items())
        return InitialState(position=position, total=left, live=left == 0)

    def _marked(self, position: IngestPosition, offer: TopicState) -> IngestPosition:
        """The position with the mark of the records below it, which views may read; new records are not part of it."""
        below = {
            partition: OffsetRange(start=held.start, end=position.begin[partition])
            for partition, held in offer.partitions.items()
            if held.start < position.begin[partition]
        }
        known = mark(position.log, offer, below, source=self.source, upstreams=self.upstreams)
        return position.model_copy(update={"log": known})

    def columns(self) -> UpstreamColumns:
        return {}  # the columns of a topic are declared, so they are in the fingerprint

    def redefines(self, record: CommitRecord) -> bool:  # noqa: ARG002  (what a topic held may be gone)
        return False

    def next(
        self,
        position: IngestPosition,
        *,
        live: bool,
        budget: int,
        anew: bool = False,  # noqa: ARG002  (asked for where a declaration redefines its table)
    ) -> NextEpoch[IngestPosition] | None:
        offer = self.upstreams.topic(self.source)
        check_topic(self.source, position, offer)
        planned = plan_ingest(self.source, position, offer, budget=budget)
        log = consumed_log(self.source, position, offer, self.upstreams)
        if planned is not None or log.elected:
            check_log(log)
        if planned is None:
            return None
        ranges, after = planned
        known = mark(position.log, offer, ranges, source=self.source, upstreams=self.upstreams)
        after = after.model_copy(update={"log": known})
        caught_up = all(after.next[partition] >= held.end for partition, held in offer.partitions.items())
        read = KafkaRead(source=self.source, topic=self.topic, isolation=self.isolation, ranges=ranges)
        return NextEpoch(reads=(read,) if ranges else (), after=after, live=live or caught_up)

    def waits(self, position: IngestPosition, *, live: bool) -> bool:  # noqa: ARG002  (ports.Decider)
        offer = self.upstreams.topic(self.source)
        check_topic(self.source, position, offer)
        return plan_ingest(self.source, position, offer, budget=1) is not None

    def confirm(self, plan: PlannedEpoch[IngestPosition]) -> None:
        offer = self.upstreams.topic(self.source)
        check_topic(self.source, plan.before, offer)
        log = consumed_log(self.source, plan.before, offer, self.upstreams)
        if log.elected:
            check_log(log)

    def resumable(self, plan: PlannedEpoch[IngestPosition]) -> bool:  # noqa: ARG002  (all that was planned is)
        return True

    def readable(self, plan: PlannedEpoch[IngestPosition]) -> bool:
        offer = self.upstreams.topic(self.source)
        planned = consumed_log(self.source, plan.after, offer, self.upstreams)
        held = all(kafka_holds(offer, read.ranges) for read in plan.reads if isinstance(read, KafkaRead))
        return held and not planned.replaced()

    def done(self, position: IngestPosition) -> int:
        return sum(offset - position.begin[partition] for partition, offset in position.next.items())

    def offsets(self, position: IngestPosition) -> Mapping[str, int]:
        return {f"{self.source}/{partition}": offset for partition, offset in sorted(position.next.items())}

    def lag(self, position: IngestPosition) -> Mapping[str, int]:
        offer = self.upstreams.topic(self.source)
        return {
            f"{self.source}/{partition}": max(0, held.end - position.next.get(partition, 0))
            for partition, held in sorted(offer.partitions.items())
        }


def kafka_holds(offer: TopicState, ranges: Mapping[int, OffsetRange]) -> bool:
    """Whether Kafka still has these offsets."""
    return all(
        partition in offer.partitions
        and offer.partitions[partition].start <= each.start
        and each.end <= offer.partitions[partition].end
        for partition, each in ranges.items()
    )


def check_starts(source: str, offer: TopicState, starts: Mapping[int, int]) -> None:
    """Refuse a start that names other partitions than the topic has, or offsets that it does not have."""
    if starts.keys() != offer.partitions.keys():
        raise OffsetsLostError(
            f"source {source!r}: start names partitions {sorted(starts)}, but topic {offer.topic!r} has "
            f"{sorted(offer.partitions)}",
            hint="give a start for each partition of the topic, or use 'earliest', 'latest' or a timestamp",
        )
    for partition, start in sorted(starts.items()):
        held = offer.partitions[partition]
        if not held.start <= start <= held.end:
            raise OffsetsLostError(
                f"source {source!r}: start offset {start} of partition {partition} is not in topic {offer.topic!r}, which "
                f"has {held.start} (earliest) to {held.end} (end, exclusive)",
                hint=f"start at {held.start} or later, at most {held.end}, or use 'earliest' or 'latest'",
                partition=partition,
                earliest=held.start,
                end=held.end,
            )


def check_topic(source: str, position: IngestPosition, offer: TopicState) -> None:
    """Refuse a topic that is not the one that the position belongs to."""
    known, found = position.topic_id, offer.topic_id
    if known is not None and found is not None and known != found:
        raise TopicRecreatedError(
            f"source {source!r}: topic {offer.topic!r} was deleted and created again: expected topic id {known}, "
            f"found {found}",
            hint=f"offsets mean other records now. `backfill reset {source}` reads the new topic from its start "
            "(reset the views over it after that), or declare the new topic as a source of another name",
            expected=known,
            found=found,
        )


def consumed_log(source: str, position: IngestPosition, offer: TopicState, upstreams: Upstreams) -> ConsumedLog:
    """The log that a source was read from, to be compared with its topic as it is now."""
    return ConsumedLog(source=source, read=position.next, mark=position.log, offer=offer, upstreams=upstreams)


def check_log(log: ConsumedLog) -> None:
    """Refuse a topic that lost records that the source has read: `LogTruncatedError`, with the choices."""
    log.check(f"source {log.source!r}", hint=_choices(log.source))


def _choices(source: str) -> str:
    return (
        f"`backfill reset {source}` begins again at the source's start with what Kafka has now (then reset the views over "
        "it). Or keep the source with the rows that it has read, and declare a source with another name that starts where "
        "these ranges begin: it reads the records that exist now, from there on"
    )


def begin_ingest(offer: TopicState, starts: Mapping[int, int], *, keep_history: bool) -> IngestPosition:
    """The position of a source that was just created."""
    begin = {partition: starts[partition] if keep_history else held.end for partition, held in offer.partitions.items()}
    return IngestPosition(
        topic=offer.topic,
        topic_id=offer.topic_id,
        history=dict(starts),
        begin=begin,
        next=dict(begin),
        log=LogMark(epochs=dict(offer.epochs)),
    )


def plan_ingest(
    source: str, position: IngestPosition, offer: TopicState, *, budget: int
) -> tuple[dict[int, OffsetRange], IngestPosition] | None:
    """The ranges to read next, at most `budget` offsets in total, and the position after them; None if there are none."""
    joined = {partition: 0 for partition in offer.partitions if partition not in position.next}
    known = {**position.next, **joined}
    for partition, offset in known.items():
        _check_held(source, offer, partition, offset)
    shares = allocate(
        budget, {partition: offer.partitions[partition].end - offset for partition, offset in known.items()}
    )
    ranges = {
        partition: OffsetRange(start=known[partition], end=known[partition] + share)
        for partition, share in sorted(shares.items())
    }
    if not ranges and not joined:
        return None
    after = position.model_copy(
        update={
            "history": {**position.history, **joined},
            "begin": {**position.begin, **joined},
            "next": {**known, **{partition: each.end for partition, each in ranges.items()}},
        }
    )
    return ranges, after


def _check_held(source: str, offer: TopicState, partition: int, offset: int) -> None:
    held = offer.partitions.get(partition)
    if held is not None and held.start <= offset <= held.end:
        return
    if held is not None and offset > held.end:
        lost = {partition: OffsetRange(start=held.end, end=offset)}
        raise truncated(f"source {source!r}: topic {offer.topic!r}", lost, hint=_choices(source))
    if held is None:
        found = f"topic {offer.topic!r} has no such partition any more"
    else:
        found = f"the earliest offset that topic {offer.topic!r} still has is {held.start}"
    raise OffsetsLostError(
        f"source {source!r}: partition {partition} must be read from offset {offset}, but {found}",
        hint=f"nothing was skipped. `backfill reset {source}` begins again at the source's start with what Kafka still "
        "has; declare a source with another name to keep the rows of this one; longer retention prevents this",
        partition=partition,
        expected=offset,
        earliest=held.start if held else None,
    )
