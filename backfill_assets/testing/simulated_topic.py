"""A simulated Kafka topic, as far as consumers can tell it from a real one.

Offsets are never dense: an aborted transaction, the control record that ends any transaction, and a record that
compaction removed each take an offset that delivers nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import NamedTuple

from backfill_assets.core.epoch.ports import LogRecord, TopicState
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import OffsetsLostError

__all__ = ["Row", "SimulatedTopic"]


class Row(NamedTuple):
    """A record as tables hold it."""

    source: str
    partition: int
    offset: int
    value: str


class SimulatedTopic:
    """An in-memory topic of one source. All records are as a `read_committed` consumer sees them.

    `compacted` is the topic's declared clean-up policy; `compact` works on any topic, as a changed policy would. Every
    partition has its leader epochs, and every offset a serial number that no other one ever has, whatever lies at it.
    """

    def __init__(self, source: str, *, partitions: int = 1, compacted: bool = False) -> None:
        self.source = source
        self.compacted = compacted
        self._lives = 0
        self._written = 0
        self._logs: dict[int, list[str | None]] = {}
        self._serials: dict[int, list[int]] = {}
        self._leaders: dict[int, list[tuple[int, int]]] = {}
        self._low: dict[int, int] = {}
        self._ever: list[Row] = []
        self.recreate(partitions=partitions)

    @property
    def topic_id(self) -> str:
        """Kafka's id of this life of the topic."""
        return f"{self.source}-{self._lives}"

    @property
    def partitions(self) -> list[int]:
        """All partitions, in order."""
        return sorted(self._logs)

    def recreate(self, *, partitions: int) -> None:
        """Delete the topic and create it again, empty, with a new id."""
        self._lives += 1
        self._logs = {partition: [] for partition in range(partitions)}
        self._serials = {partition: [] for partition in self._logs}
        self._leaders = {partition: [(0, 0)] for partition in self._logs}
        self._low = dict.fromkeys(self._logs, 0)
        self._ever = []

    def add_partition(self) -> int:
        """Add a partition; its number."""
        partition = len(self._logs)
        self._logs[partition] = []
        self._serials[partition] = []
        self._leaders[partition] = [(0, 0)]
        self._low[partition] = 0
        return partition

    def append(self, partition: int, values: Iterable[str]) -> None:
        """Produce records without a transaction."""
        for value in values:
            self._ever.append(Row(self.source, partition, len(self._logs[partition]), value))
            self._write(partition, value)

    def commit(self, partition: int, values: Iterable[str]) -> None:
        """Produce records in a transaction: the last offset is then a control record."""
        self.append(partition, values)
        self._write(partition, None)

    def abort(self, partition: int, records: int) -> None:
        """Produce records in a transaction that is aborted: offsets without records, and a control record."""
        for _ in range(records + 1):
            self._write(partition, None)

    def _write(self, partition: int, value: str | None) -> None:
        self._written += 1
        self._logs[partition].append(value)
        self._serials[partition].append(self._written)

    def compact(self, partition: int, offsets: Iterable[int]) -> None:
        """Remove records as log compaction does: their offsets stay, and deliver nothing."""
        for offset in offsets:
            self._logs[partition][offset] = None

    def retain(self, partition: int, low: int) -> None:
        """Remove all records below `low` as retention does: earlier offsets cannot be read any more."""
        self._low[partition] = max(self._low[partition], min(low, len(self._logs[partition])))

    def elect(self, partition: int) -> None:
        """Give a partition another leader, which has all of its records."""
        self._leaders[partition].append((self._leaders[partition][-1][0] + 1, self.end(partition)))

    def truncate(self, partition: int, end: int) -> None:
        """Lose the records from `end` on, as an unclean leader election does."""
        epoch = self._leaders[partition][-1][0] + 1
        del self._logs[partition][end:]
        del self._serials[partition][end:]
        self._leaders[partition] = [*(each for each in self._leaders[partition] if each[1] < end), (epoch, end)]
        self._low[partition] = min(self._low[partition], end)
        self._ever = [row for row in self._ever if row.partition != partition or row.offset < end]

    def restore(self, backup: "SimulatedTopic", *, restarts: int = 1) -> None:
        """Put back a copy that was made of the topic, with Kafka's metadata: leaders' epochs go on from those of then."""
        written = self._written
        vars(self).update(deepcopy(vars(backup)))
        self._written = written
        for _ in range(restarts):
            for partition in self.partitions:
                self.elect(partition)

    def serials(self, partition: int) -> list[int]:
        """What lies at each offset of a partition, by the number of its writing."""
        return list(self._serials[partition])

    def end(self, partition: int) -> int:
        """The end of a partition, exclusive."""
        return len(self._logs[partition])

    def offer(self) -> TopicState:
        """What consumers are told of the topic."""
        partitions = {
            partition: OffsetRange(start=self._low[partition], end=len(log)) for partition, log in self._logs.items()
        }
        epochs = {partition: leaders[-1][0] for partition, leaders in self._leaders.items()}
        return TopicState(
            topic=self.source, topic_id=self.topic_id, partitions=partitions, epochs=epochs, compacted=self.compacted
        )

    def diverged(self, read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """As `ports.Upstreams`: partitions whose log of a leader epoch ends below an offset, and where."""
        ends = {partition: self._end_of(partition, epoch) for partition, (_, epoch) in read.items()}
        return {partition: end for partition, end in ends.items() if end < read[partition][0]}

    def _end_of(self, partition: int, epoch: int) -> int:
        return next((start for each, start in self._leaders[partition] if each > epoch), self.end(partition))

    def last_records(self, ranges: Mapping[int, OffsetRange]) -> dict[int, LogRecord]:
        """As `ports.Upstreams`: the last record of each range."""
        found: dict[int, LogRecord] = {}
        for partition, each in ranges.items():
            for offset in range(max(each.start, self._low[partition]), min(each.end, self.end(partition))):
                if self._logs[partition][offset] is not None:
                    epoch = max(epoch for epoch, start in self._leaders[partition] if start <= offset)
                    found[partition] = LogRecord(
                        offset=offset, epoch=epoch, digest=str(self._serials[partition][offset])
                    )
        return found

    def read(self, ranges: Mapping[int, OffsetRange]) -> list[Row]:
        """The records of exactly these offsets; `OffsetsLostError` where Kafka does not hold them all."""
        rows: list[Row] = []
        for partition, each in sorted(ranges.items()):
            if (
                partition not in self._logs
                or each.start < self._low[partition]
                or each.end > len(self._logs[partition])
            ):
                raise OffsetsLostError(
                    f"topic {self.source!r}: partition {partition} does not hold {each}", partition=partition
                )
            found = self._logs[partition][each.start : each.end]
            rows += [
                Row(self.source, partition, offset, value)
                for offset, value in enumerate(found, start=each.start)
                if value is not None
            ]
        return rows

    def ever(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Counter[Row]:
        """All records ever committed at `begin` or later and below `end`, by partition: what a table must hold then.

        Records that compaction or retention removed since are among them.
        """
        return Counter(
            row
            for row in self._ever
            if row.partition in end and begin[row.partition] <= row.offset < end[row.partition]
        )
