"""A simulated Kafka topic, as far as consumers can tell it from a real one.

Offsets are never dense: an aborted transaction, the control record that ends any transaction, and a record that
compaction removed each take an offset that delivers nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import NamedTuple

from backfill_assets.core.epoch.ports import LogRecord, TopicOffer
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.errors import OffsetsLostError

__all__ = ["Row", "SimulatedTopic"]


class Row(NamedTuple):
    """A record as tables hold it."""

    source: str
    split: int
    offset: int
    value: str


class SimulatedTopic:
    """An in-memory topic of one source. All records are as a `read_committed` consumer sees them.

    `compacted` is the topic's declared clean-up policy; `compact` works on any topic, as a changed policy would. Every
    split has its leader epochs, and every offset a serial number that no other one ever has, whatever lies at it.
    """

    def __init__(self, source: str, *, splits: int = 1, compacted: bool = False) -> None:
        self.source = source
        self.compacted = compacted
        self._lives = 0
        self._written = 0
        self._logs: dict[int, list[str | None]] = {}
        self._serials: dict[int, list[int]] = {}
        self._leaders: dict[int, list[tuple[int, int]]] = {}
        self._low: dict[int, int] = {}
        self._ever: list[Row] = []
        self.recreate(splits=splits)

    @property
    def topic_id(self) -> str:
        """Kafka's id of this life of the topic."""
        return f"{self.source}-{self._lives}"

    @property
    def splits(self) -> list[int]:
        """All splits, in order."""
        return sorted(self._logs)

    def recreate(self, *, splits: int) -> None:
        """Delete the topic and create it again, empty, with a new id."""
        self._lives += 1
        self._logs = {split: [] for split in range(splits)}
        self._serials = {split: [] for split in self._logs}
        self._leaders = {split: [(0, 0)] for split in self._logs}
        self._low = dict.fromkeys(self._logs, 0)
        self._ever = []

    def add_split(self) -> int:
        """Add a split; its number."""
        split = len(self._logs)
        self._logs[split] = []
        self._serials[split] = []
        self._leaders[split] = [(0, 0)]
        self._low[split] = 0
        return split

    def append(self, split: int, values: Iterable[str]) -> None:
        """Produce records without a transaction."""
        for value in values:
            self._ever.append(Row(self.source, split, len(self._logs[split]), value))
            self._write(split, value)

    def commit(self, split: int, values: Iterable[str]) -> None:
        """Produce records in a transaction: the last offset is then a control record."""
        self.append(split, values)
        self._write(split, None)

    def abort(self, split: int, records: int) -> None:
        """Produce records in a transaction that is aborted: offsets without records, and a control record."""
        for _ in range(records + 1):
            self._write(split, None)

    def _write(self, split: int, value: str | None) -> None:
        self._written += 1
        self._logs[split].append(value)
        self._serials[split].append(self._written)

    def compact(self, split: int, offsets: Iterable[int]) -> None:
        """Remove records as log compaction does: their offsets stay, and deliver nothing."""
        for offset in offsets:
            self._logs[split][offset] = None

    def retain(self, split: int, low: int) -> None:
        """Remove all records below `low` as retention does: earlier offsets cannot be read any more."""
        self._low[split] = max(self._low[split], min(low, len(self._logs[split])))

    def elect(self, split: int) -> None:
        """Give a split another leader, which has all of its records."""
        self._leaders[split].append((self._leaders[split][-1][0] + 1, self.end(split)))

    def truncate(self, split: int, end: int) -> None:
        """Lose the records from `end` on, as an unclean leader election does."""
        epoch = self._leaders[split][-1][0] + 1
        del self._logs[split][end:]
        del self._serials[split][end:]
        self._leaders[split] = [*(each for each in self._leaders[split] if each[1] < end), (epoch, end)]
        self._low[split] = min(self._low[split], end)
        self._ever = [row for row in self._ever if row.split != split or row.offset < end]

    def restore(self, backup: "SimulatedTopic", *, restarts: int = 1) -> None:
        """Put back a copy that was made of the topic, with Kafka's metadata: leaders' epochs go on from those of then."""
        written = self._written
        vars(self).update(deepcopy(vars(backup)))
        self._written = written
        for _ in range(restarts):
            for split in self.splits:
                self.elect(split)

    def serials(self, split: int) -> list[int]:
        """What lies at each offset of a split, by the number of its writing."""
        return list(self._serials[split])

    def end(self, split: int) -> int:
        """The end of a split, exclusive."""
        return len(self._logs[split])

    def offer(self) -> TopicOffer:
        """What consumers are told of the topic."""
        splits = {split: OffsetRange(start=self._low[split], end=len(log)) for split, log in self._logs.items()}
        epochs = {split: leaders[-1][0] for split, leaders in self._leaders.items()}
        return TopicOffer(
            topic=self.source, topic_id=self.topic_id, splits=splits, epochs=epochs, compacted=self.compacted
        )

    def diverged(self, read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """As `ports.Upstreams`: splits whose log of a leader epoch ends below an offset, and where."""
        ends = {split: self._end_of(split, epoch) for split, (_, epoch) in read.items()}
        return {split: end for split, end in ends.items() if end < read[split][0]}

    def _end_of(self, split: int, epoch: int) -> int:
        return next((start for each, start in self._leaders[split] if each > epoch), self.end(split))

    def last_records(self, ranges: Mapping[int, OffsetRange]) -> dict[int, LogRecord]:
        """As `ports.Upstreams`: the last record of each range."""
        found: dict[int, LogRecord] = {}
        for split, each in ranges.items():
            for offset in range(max(each.start, self._low[split]), min(each.end, self.end(split))):
                if self._logs[split][offset] is not None:
                    epoch = max(epoch for epoch, start in self._leaders[split] if start <= offset)
                    found[split] = LogRecord(offset=offset, epoch=epoch, digest=str(self._serials[split][offset]))
        return found

    def read(self, ranges: Mapping[int, OffsetRange]) -> list[Row]:
        """The records of exactly these offsets; `OffsetsLostError` where Kafka does not hold them all."""
        rows: list[Row] = []
        for split, each in sorted(ranges.items()):
            if split not in self._logs or each.start < self._low[split] or each.end > len(self._logs[split]):
                raise OffsetsLostError(f"topic {self.source!r}: split {split} does not hold {each}", split=split)
            found = self._logs[split][each.start : each.end]
            rows += [
                Row(self.source, split, offset, value)
                for offset, value in enumerate(found, start=each.start)
                if value is not None
            ]
        return rows

    def ever(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Counter[Row]:
        """All records ever committed at `begin` or later and below `end`, by split: what a table must hold then.

        Records that compaction or retention removed since are among them.
        """
        return Counter(
            row for row in self._ever if row.split in end and begin[row.split] <= row.offset < end[row.split]
        )
