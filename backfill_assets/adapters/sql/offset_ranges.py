"""Ranges of offsets as one condition in Spark SQL, for any number of partitions.

The range of a partition is looked up in two arrays by the partition's number. With one comparison for each partition,
the expression would be as deep as the number of partitions: Spark Connect's client allows some fifty levels, a session
in-process a few hundred, and each row would be tested against all of them. The bounds over all partitions are added as
a separate condition, because Parquet and Delta skip data by it.
"""

from collections.abc import Iterable, Mapping, Sequence

from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["among", "within"]

_NOTHING = OffsetRange(start=0, end=0)


def within(partition: str, offset: str, ranges: Mapping[int, OffsetRange]) -> str:
    """SQL for whether the offset in one column is in the range of the partition in another; null if either is null.

    Partitions are numbered from 0, as in Kafka: the arrays are as long as the highest number.
    """
    wanted = {number: each for number, each in ranges.items() if len(each)}
    if not wanted:
        return "FALSE"
    by_number = [wanted.get(number, _NOTHING) for number in range(max(wanted) + 1)]
    first, end = min(each.start for each in wanted.values()), max(each.end for each in wanted.values())
    parts = (
        f"{partition} BETWEEN {min(wanted)} AND {max(wanted)}",
        f"{offset} >= {first}",
        f"{offset} < {end}",
        f"{offset} >= get({_array(each.start for each in by_number)}, {partition})",
        f"{offset} < get({_array(each.end for each in by_number)}, {partition})",
    )
    return f"({' AND '.join(parts)})"


def among(partition: str, offset: str, offsets: Mapping[int, Sequence[int]]) -> str:
    """SQL for whether the offset in one column is one of those named for the partition in another; never null.

    Both are looked up as one string, in one set, for any number of partitions.
    """
    named = [f"'{number}:{each}'" for number, some in sorted(offsets.items()) for each in some]
    if not named:
        return "FALSE"
    return f"concat_ws(':', CAST({partition} AS STRING), CAST({offset} AS STRING)) IN ({', '.join(named)})"


def _array(numbers: Iterable[int]) -> str:
    """An array as one literal string, which Spark parses once: thousands of literals would be parsed one by one."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"
