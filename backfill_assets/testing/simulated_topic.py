"""A simulated Kafka topic that behaves like a real one as far as consumers can see.

Not every offset has a record: the records of an aborted transaction, the control record at the end of every transaction,
and records that compaction removed each take an offset that delivers nothing.
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
    """A record as tables store it.

    Attributes:
        source: The source's name.
        partition: The partition.
        offset: The offset.
        value: The record's value.

    Examples:
        >>> Row("orders", 0, 7, "a").offset
        7
    """

    source: str
    partition: int
    offset: int
    value: str


class SimulatedTopic:
    """A topic in memory, as a `read_committed` consumer sees it.

    Every partition has leader epochs. Every write has a serial number of its own, so that a test can tell two records at
    the same offset apart.

    Args:
        source: The source's name; also the topic's.
        partitions: The number of partitions.
        compacted: The declared clean-up policy. `compact` works on any topic, as the policy may have changed.

    Examples:
        >>> topic = SimulatedTopic("orders")
        >>> topic.append(0, ["a", "b"])
        >>> topic.read({0: OffsetRange(start=1, end=2)})
        [Row(source='orders', partition=0, offset=1, value='b')]
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
        """Kafka's id of the topic; another one after `recreate`."""
        return f"{self.source}-{self._lives}"

    @property
    def partitions(self) -> list[int]:
        """All partitions, in order."""
        return sorted(self._logs)

    def recreate(self, *, partitions: int) -> None:
        """Delete the topic and create it again, empty, with a new id.

        Args:
            partitions: The number of partitions.
        """
        self._lives += 1
        self._logs = {partition: [] for partition in range(partitions)}
        self._serials = {partition: [] for partition in self._logs}
        self._leaders = {partition: [(0, 0)] for partition in self._logs}
        self._low = dict.fromkeys(self._logs, 0)
        self._ever = []

    def add_partition(self) -> int:
        """Add a partition, and return its number."""
        partition = len(self._logs)
        self._logs[partition] = []
        self._serials[partition] = []
        self._leaders[partition] = [(0, 0)]
        self._low[partition] = 0
        return partition

    def append(self, partition: int, values: Iterable[str]) -> None:
        """Produce records without a transaction.

        Args:
            partition: The partition.
            values: The values of the records.
        """
        for value in values:
            self._ever.append(Row(self.source, partition, len(self._logs[partition]), value))
            self._write(partition, value)

    def commit(self, partition: int, values: Iterable[str]) -> None:
        """Produce records in a transaction; a control record takes the offset after them.

        Args:
            partition: The partition.
            values: The values of the records.
        """
        self.append(partition, values)
        self._write(partition, None)

    def abort(self, partition: int, records: int) -> None:
        """Produce records in a transaction that is aborted: offsets without records, and a control record.

        Args:
            partition: The partition.
            records: The number of aborted records.
        """
        for _ in range(records + 1):
            self._write(partition, None)

    def _write(self, partition: int, value: str | None) -> None:
        self._written += 1
        self._logs[partition].append(value)
        self._serials[partition].append(self._written)

    def compact(self, partition: int, offsets: Iterable[int]) -> None:
        """Remove records as log compaction does: their offsets remain, and deliver nothing.

        Args:
            partition: The partition.
            offsets: The offsets of the removed records.
        """
        for offset in offsets:
            self._logs[partition][offset] = None

    def retain(self, partition: int, low: int) -> None:
        """Remove records as retention does: earlier offsets can no longer be read.

        Args:
            partition: The partition.
            low: The first offset that remains.
        """
        self._low[partition] = max(self._low[partition], min(low, len(self._logs[partition])))

    def elect(self, partition: int) -> None:
        """Elect another leader that has all records.

        Args:
            partition: The partition.
        """
        self._leaders[partition].append((self._leaders[partition][-1][0] + 1, self.end(partition)))

    def truncate(self, partition: int, end: int) -> None:
        """Lose records at the end of the log, as an unclean leader election does.

        Args:
            partition: The partition.
            end: The first offset that is lost.
        """
        epoch = self._leaders[partition][-1][0] + 1
        del self._logs[partition][end:]
        del self._serials[partition][end:]
        self._leaders[partition] = [*(each for each in self._leaders[partition] if each[1] < end), (epoch, end)]
        self._low[partition] = min(self._low[partition], end)
        self._ever = [row for row in self._ever if row.partition != partition or row.offset < end]

    def restore(self, backup: "SimulatedTopic", *, restarts: int = 1) -> None:
        """Restore a copy of the topic with Kafka's metadata; leader epochs continue from those of the copy.

        Args:
            backup: The copy.
            restarts: How many leader elections follow.
        """
        written = self._written
        vars(self).update(deepcopy(vars(backup)))
        self._written = written
        for _ in range(restarts):
            for partition in self.partitions:
                self.elect(partition)

    def serials(self, partition: int) -> list[int]:
        """The serial number of the write at each offset.

        Args:
            partition: The partition.

        Returns:
            The numbers, in order of offset.
        """
        return list(self._serials[partition])

    def end(self, partition: int) -> int:
        """The end of a partition.

        Args:
            partition: The partition.

        Returns:
            The next offset to be written.
        """
        return len(self._logs[partition])

    def offer(self) -> TopicState:
        """What a consumer sees of the topic."""
        partitions = {
            partition: OffsetRange(start=self._low[partition], end=len(log)) for partition, log in self._logs.items()
        }
        epochs = {partition: leaders[-1][0] for partition, leaders in self._leaders.items()}
        return TopicState(
            topic=self.source, topic_id=self.topic_id, partitions=partitions, epochs=epochs, compacted=self.compacted
        )

    def diverged(self, read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Partitions whose log of a leader epoch ends below an offset that was read; implements `ports.Upstreams`.

        Args:
            read: For each partition, the next offset to read and the leader epoch of what was read.

        Returns:
            For each partition that diverged, where the log of that epoch ends.
        """
        ends = {partition: self._end_of(partition, epoch) for partition, (_, epoch) in read.items()}
        return {partition: end for partition, end in ends.items() if end < read[partition][0]}

    def _end_of(self, partition: int, epoch: int) -> int:
        return next((start for each, start in self._leaders[partition] if each > epoch), self.end(partition))

    def last_records(self, ranges: Mapping[int, OffsetRange]) -> dict[int, LogRecord]:
        """The last record of each range; implements `ports.Upstreams`.

        Args:
            ranges: An offset range for each partition.

        Returns:
            For each partition, the last record; partitions without any are missing.
        """
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
        """The records of exactly these offsets.

        Args:
            ranges: An offset range for each partition.

        Returns:
            The records, in order of partition and offset.

        Raises:
            OffsetsLostError: The topic no longer has all of the offsets, or not yet.
        """
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
        """All records that were ever committed in a range, whether or not compaction or retention removed them since.

        Args:
            begin: The first offset of each partition.
            end: The end of each partition, exclusive.

        Returns:
            The records, with their number: what a table that has read this range must hold.
        """
        return Counter(
            row
            for row in self._ever
            if row.partition in end and begin[row.partition] <= row.offset < end[row.partition]
        )
