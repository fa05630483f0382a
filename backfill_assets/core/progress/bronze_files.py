"""Which data files of a bronze table may have rows of the offsets to read, according to the files' statistics."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["BronzeFile", "files_of_ranges"]


@dataclass(frozen=True, kw_only=True)
class BronzeFile:
    """A data file, the lowest and highest partition and offset of its rows, and their number; None if it does not say."""

    path: str
    partitions: tuple[int, int] | None
    offsets: tuple[int, int] | None
    rows: int | None = None


def files_of_ranges(files: Iterable[BronzeFile], ranges: Mapping[int, OffsetRange]) -> list[BronzeFile]:
    """The files that may have a row of the ranges, by partition; files without statistics are included.

    Ranges are compared in the order of their starts, up to the last that begins within a file. For a file that is older
    than most ranges, these are few; and a range that a file was written for is found early.
    """
    wanted = sorted((each.start, each.end, partition) for partition, each in ranges.items() if len(each))
    starts = [start for start, _, _ in wanted]
    beyond = max((end for _, end, _ in wanted), default=0)

    def may_hold(file: BronzeFile) -> bool:
        if file.partitions is None or file.offsets is None:
            return True
        (first, last), (low, high) = file.partitions, file.offsets
        begun = islice(wanted, bisect_right(starts, high))
        return low < beyond and any(end > low and first <= partition <= last for _, end, partition in begun)

    return [file for file in files if may_hold(file)]
