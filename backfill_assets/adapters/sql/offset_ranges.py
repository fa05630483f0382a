"""Ranges of offsets as a condition in Spark SQL, one text for ten thousand partitions as for one.

The range of a partition is looked up in two arrays by the partition's number. A comparison for each partition would make an
expression as deep as there are partitions: Spark Connect's client takes some fifty, a session in-process a few hundred, and
each row would go through all of them. What holds for all partitions is said once more by itself: by that, Parquet and Delta
leave out what cannot hold such a row.
"""

from collections.abc import Iterable, Mapping, Sequence

from backfill_assets.core.progress.positions import OffsetRange

__all__ = ["among", "within"]

_NOTHING = OffsetRange(start=0, end=0)


def within(partition: str, offset: str, ranges: Mapping[int, OffsetRange]) -> str:
    """SQL for whether the offset in one column lies in the range of the partition in another; null where either is null.

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

    Both are looked up as one text, in one set, however many partitions there are.
    """
    named = [f"'{number}:{each}'" for number, some in sorted(offsets.items()) for each in some]
    if not named:
        return "FALSE"
    return f"concat_ws(':', CAST({partition} AS STRING), CAST({offset} AS STRING)) IN ({', '.join(named)})"


def _array(numbers: Iterable[int]) -> str:
    """An array as one literal text, which Spark reads once: thousands of literals would be parsed one by one."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"
