"""Whether the records below a position are still those that were read: a log can lose its end and be filled again.

Offsets do not show it. Leader epochs do, which number the leaders of a partition: everything up to the position was written
in the epoch of that time or earlier, so Kafka is asked where the log ends for that epoch. If that is below the position,
another leader wrote what is in between. Only partitions that have another leader than before are checked.

A cluster that is restored as a whole, with its metadata, issues the same epochs again. All its partitions then go back to
one moment, so a few of the records that were read last are remembered too, and compared before anything more is read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from backfill_assets.core.epoch.ports import LogRecord, TopicState, Upstreams
from backfill_assets.core.progress.positions import LogMark, OffsetRange, Witness
from backfill_assets.errors import LogTruncatedError

__all__ = ["LOOKED_BACK", "WITNESSES", "ConsumedLog", "mark", "narrowed", "truncated"]

WITNESSES = 16
"""The maximum number of remembered records, whatever the number of partitions."""
LOOKED_BACK = 8
"""How many offsets below a position are searched for a record; transaction markers and aborted records do not count."""
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class ConsumedLog:
    """What was read of a source's topic, up to `read` (exclusive) of each partition, with its `mark`; and its present log."""

    source: str
    read: Mapping[int, int]
    mark: LogMark
    offer: TopicState
    upstreams: Upstreams

    @cached_property
    def elected(self) -> dict[int, int]:
        """The epochs in the mark, for partitions that are in another epoch now."""
        now = self.offer.epochs
        return {
            partition: epoch
            for partition, epoch in self.mark.epochs.items()
            if now.get(partition, epoch) != epoch and self.read.get(partition)
        }

    def check(self, reader: str, *, hint: str) -> None:
        """Refuse a log whose records below the position are not those that were read: `LogTruncatedError`.

        `reader` begins the message, `hint` follows `nothing was written`.
        """
        replaced = self.replaced()
        if replaced:
            raise truncated(f"{reader}: topic {self.offer.topic!r}", replaced, hint=hint)

    def replaced(self) -> dict[int, OffsetRange]:
        """By partition, the offsets below the position whose records are gone, or may differ from those that were read."""
        seen, begins = self._witnesses()
        now = self.offer.epochs
        went_back = {partition for partition, epoch in self.elected.items() if now[partition] < epoch}
        later = {
            partition: (self.read[partition], epoch)
            for partition, epoch in self.elected.items()
            if now[partition] > epoch and partition in self._held
        }
        starts: list[Mapping[int, int]] = [
            {partition: held.end for partition, held in self._held.items() if held.end < self.read[partition]},
            {partition: self._held[partition].start for partition in went_back - seen if partition in self._held},
            begins,
            self.upstreams.diverged(self.source, later) if later else {},
        ]
        partitions = sorted({partition for each in starts for partition in each})
        return {
            partition: OffsetRange(
                start=min(each[partition] for each in starts if partition in each), end=self.read[partition]
            )
            for partition in partitions
        }

    @cached_property
    def _held(self) -> dict[int, OffsetRange]:
        """The offsets that partitions have now, for those that still have some of what was read."""
        return {
            partition: held
            for partition, held in self.offer.partitions.items()
            if partition in self.read and held.start < self.read[partition]
        }

    def _witnesses(self) -> tuple[set[int], Mapping[int, int]]:
        """The partitions that still have the remembered record; for the others, from where on their log is another one."""
        wanted = {
            partition: OffsetRange(start=each.offset, end=each.offset + 1)
            for partition, each in self.mark.witnesses.items()
            if partition in self._held and self._held[partition].start <= each.offset < self._held[partition].end
        }
        found = self.upstreams.last_records(self.source, wanted) if wanted else {}
        other = {
            partition: each for partition, each in found.items() if each.digest != self.mark.witnesses[partition].digest
        }
        return set(found), self._begins(other)

    def _begins(self, records: Mapping[int, LogRecord]) -> dict[int, int]:
        """Where the leaders that wrote these records began; if that is unknown, the first offset that exists."""
        asked = {partition: (each.offset + 1, each.epoch - 1) for partition, each in records.items() if each.epoch}
        found = self.upstreams.diverged(self.source, asked) if asked else {}
        return {partition: found.get(partition, self._held[partition].start) for partition in records}


def mark(
    before: LogMark, offer: TopicState, ranges: Mapping[int, OffsetRange], *, source: str, upstreams: Upstreams
) -> LogMark:
    """The next mark of a position whose mark was `before`, agrees with the present topic, and advances by these ranges."""
    longest = sorted(ranges, key=lambda partition: (-len(ranges[partition]), partition))[:WITNESSES]
    ends = {partition: max(ranges[partition].start, ranges[partition].end - LOOKED_BACK) for partition in longest}
    wanted = {partition: OffsetRange(start=start, end=ranges[partition].end) for partition, start in ends.items()}
    found = upstreams.last_records(source, wanted) if wanted else {}
    taken = {partition: Witness(offset=each.offset, digest=each.digest) for partition, each in found.items()}
    kept = {partition: each for partition, each in before.witnesses.items() if partition not in taken}
    return LogMark(
        epochs={**before.epochs, **offer.epochs},
        witnesses=dict([*taken.items(), *kept.items()][:WITNESSES]),
    )


def narrowed(whole: LogMark, partitions: Collection[int]) -> LogMark:
    """A mark of only these partitions."""
    return LogMark(
        epochs={partition: each for partition, each in whole.epochs.items() if partition in partitions},
        witnesses={partition: each for partition, each in whole.witnesses.items() if partition in partitions},
    )


def truncated(topic: str, replaced: Mapping[int, OffsetRange], *, hint: str) -> LogTruncatedError:
    """The error that names these ranges; `topic` begins its message."""
    named = [
        f"{each.start} to {each.end} of partition {partition}" for partition, each in list(replaced.items())[:_NAMED]
    ]
    more = f" and of {len(replaced) - _NAMED} more partitions" if len(replaced) > _NAMED else ""
    return LogTruncatedError(
        f"{topic} lost the end of its log (an unclean leader election, or a broker restored from a backup): offsets "
        f"{', '.join(named)}{more} (ends exclusive) were read, and now have other records, or none",
        hint=f"nothing was written. {hint}",
        ranges={partition: (each.start, each.end) for partition, each in replaced.items()},
    )
