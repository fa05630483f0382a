"""Whether the records below a position are still those that were read: a log can lose its end and be filled again.

Offsets do not tell. Leader epochs do, the numbers of a split's leaders: what was read up to the position was written in the
epoch of that time or before, so the log is asked where it ends for that epoch. Where that is below the position, another
leader wrote what lies between. Only splits that have another leader than before are asked for.

A cluster that is restored as a whole, with its metadata, gives the same epochs out again. All its splits then go back to
one moment, so a few records that were read last are remembered, too, and looked at before anything more is read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from backfill_assets.core.epoch.ports import LogRecord, TopicOffer, Upstreams
from backfill_assets.core.progress.positions import LogMark, OffsetRange, Witness
from backfill_assets.errors import LogTruncatedError

__all__ = ["LOOKED_BACK", "WITNESSES", "ConsumedLog", "mark", "narrowed", "truncated"]

WITNESSES = 16
"""So many records are remembered at the most, whatever the number of splits."""
LOOKED_BACK = 8
"""Within so many offsets below a position a record is looked for; transactions' markers and what was aborted are none."""
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class ConsumedLog:
    """What was read of a source's topic, up to `read` (exclusive) of each split and known by `mark`, and its log of now."""

    source: str
    read: Mapping[int, int]
    mark: LogMark
    offer: TopicOffer
    upstreams: Upstreams

    @cached_property
    def elected(self) -> dict[int, int]:
        """The epochs of the mark, of those splits that are in another one now."""
        now = self.offer.epochs
        return {
            split: epoch
            for split, epoch in self.mark.epochs.items()
            if now.get(split, epoch) != epoch and self.read.get(split)
        }

    def check(self, reader: str, *, hint: str) -> None:
        """Refuse a log whose records below the position are not those that were read: `LogTruncatedError`.

        `reader` begins the message, `hint` follows `nothing was written`.
        """
        replaced = self.replaced()
        if replaced:
            raise truncated(f"{reader}: topic {self.offer.topic!r}", replaced, hint=hint)

    def replaced(self) -> dict[int, OffsetRange]:
        """By split, the offsets below the position whose records are gone, or may be others than those that were read."""
        seen, begins = self._witnesses()
        now = self.offer.epochs
        went_back = {split for split, epoch in self.elected.items() if now[split] < epoch}
        later = {
            split: (self.read[split], epoch)
            for split, epoch in self.elected.items()
            if now[split] > epoch and split in self._held
        }
        starts: list[Mapping[int, int]] = [
            {split: held.end for split, held in self._held.items() if held.end < self.read[split]},
            {split: self._held[split].start for split in went_back - seen if split in self._held},
            begins,
            self.upstreams.diverged(self.source, later) if later else {},
        ]
        splits = sorted({split for each in starts for split in each})
        return {
            split: OffsetRange(start=min(each[split] for each in starts if split in each), end=self.read[split])
            for split in splits
        }

    @cached_property
    def _held(self) -> dict[int, OffsetRange]:
        """What is held of the splits that still have something of what was read."""
        return {
            split: held
            for split, held in self.offer.splits.items()
            if split in self.read and held.start < self.read[split]
        }

    def _witnesses(self) -> tuple[set[int], Mapping[int, int]]:
        """The splits of which there is a record where one is remembered, and from where on others have another log, at the
        latest."""
        wanted = {
            split: OffsetRange(start=each.offset, end=each.offset + 1)
            for split, each in self.mark.witnesses.items()
            if split in self._held and self._held[split].start <= each.offset < self._held[split].end
        }
        found = self.upstreams.last_records(self.source, wanted) if wanted else {}
        other = {split: each for split, each in found.items() if each.digest != self.mark.witnesses[split].digest}
        return set(found), self._begins(other)

    def _begins(self, records: Mapping[int, LogRecord]) -> dict[int, int]:
        """Where the leaders began that wrote these records; where that is not told, the first offset that is held."""
        asked = {split: (each.offset + 1, each.epoch - 1) for split, each in records.items() if each.epoch}
        found = self.upstreams.diverged(self.source, asked) if asked else {}
        return {split: found.get(split, self._held[split].start) for split in records}


def mark(
    before: LogMark, offer: TopicOffer, ranges: Mapping[int, OffsetRange], *, source: str, upstreams: Upstreams
) -> LogMark:
    """The mark of a position that was `before`, found to be right in the topic of now, and moves on by these ranges."""
    longest = sorted(ranges, key=lambda split: (-len(ranges[split]), split))[:WITNESSES]
    ends = {split: max(ranges[split].start, ranges[split].end - LOOKED_BACK) for split in longest}
    wanted = {split: OffsetRange(start=start, end=ranges[split].end) for split, start in ends.items()}
    found = upstreams.last_records(source, wanted) if wanted else {}
    taken = {split: Witness(offset=each.offset, digest=each.digest) for split, each in found.items()}
    kept = {split: each for split, each in before.witnesses.items() if split not in taken}
    return LogMark(
        epochs={**before.epochs, **offer.epochs},
        witnesses=dict([*taken.items(), *kept.items()][:WITNESSES]),
    )


def narrowed(whole: LogMark, splits: Collection[int]) -> LogMark:
    """A mark of these splits alone."""
    return LogMark(
        epochs={split: each for split, each in whole.epochs.items() if split in splits},
        witnesses={split: each for split, each in whole.witnesses.items() if split in splits},
    )


def truncated(topic: str, replaced: Mapping[int, OffsetRange], *, hint: str) -> LogTruncatedError:
    """The error that names these ranges; `topic` begins its message."""
    named = [f"{each.start} to {each.end} of split {split}" for split, each in list(replaced.items())[:_NAMED]]
    more = f" and of {len(replaced) - _NAMED} more splits" if len(replaced) > _NAMED else ""
    return LogTruncatedError(
        f"{topic} lost the end of its log (an unclean leader election, a broker restored from a backup): offsets "
        f"{', '.join(named)}{more} (ends exclusive) were read, and hold other records now, or none",
        hint=f"nothing was written. {hint}",
        ranges={split: (each.start, each.end) for split, each in replaced.items()},
    )
