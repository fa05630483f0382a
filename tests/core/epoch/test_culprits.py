"""Rows that cannot be computed are found by bisection: all of them if the effort is sufficient, and never a good one."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.culprits import MAX_TRIES, Places, culprits
from backfill_assets.core.epoch.skips import OffsetSkip
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import BronzeRead, KafkaRead


class Rows:
    """This many rows, some of which are bad; counts the ranges that were tried."""

    def __init__(self, *bad: int) -> None:
        self.bad, self.tries = bad, 0

    def fails(self, start: int, end: int) -> str:
        assert start < end
        self.tries += 1
        return next((f"row {row}" for row in self.bad if start <= row < end), "")


@given(size=st.integers(0, 300), bad=st.sets(st.integers(0, 299), max_size=6))
def test_all_bad_rows_are_found_and_no_other(size: int, bad: set[int]) -> None:
    rows = Rows(*sorted(row for row in bad if row < size))
    found = culprits(size, rows.fails, tries=10_000)
    assert found.found == tuple((row, f"row {row}") for row in rows.bad)
    assert found.complete


@given(bad=st.sets(st.integers(0, 999), max_size=40), most=st.integers(1, 12), tries=st.integers(1, 200))
def test_effort_is_bounded_and_what_is_found_is_right(bad: set[int], most: int, tries: int) -> None:
    rows = Rows(*sorted(bad))
    found = culprits(1000, rows.fails, most=most, tries=tries)
    assert len(found.found) <= most
    assert rows.tries <= tries
    numbers = [number for number, _ in found.found]
    assert numbers == sorted(bad)[: len(numbers)], "the first ones"
    assert len(numbers) == len(bad) or not found.complete


def test_one_row_of_a_thousand_million_is_found() -> None:
    rows = Rows(123_456_789)
    assert culprits(10**9, rows.fails).found == ((123_456_789, "row 123456789"),)
    assert rows.tries < MAX_TRIES


def test_offsets_are_numbered_over_reads_and_partitions() -> None:
    kafka = KafkaRead(
        source="a",
        topic="t",
        isolation="read_committed",
        ranges={1: OffsetRange(start=5, end=7), 0: OffsetRange(start=2, end=5), 3: OffsetRange(start=4, end=4)},
    )
    bronze = BronzeRead(source="b", incarnation="1", version=1, ranges={0: OffsetRange(start=0, end=2)})
    places = Places.of([kafka, bronze])
    assert len(places) == 7
    named = [(each.source, each.partition, each.offset) for each in map(places.at, range(7))]
    assert named == [("a", 0, 2), ("a", 0, 3), ("a", 0, 4), ("a", 1, 5), ("a", 1, 6), ("b", 0, 0), ("b", 0, 1)]
    assert places.between(2, 6) == {
        "a": {0: OffsetRange(start=4, end=5), 1: OffsetRange(start=5, end=7)},
        "b": {0: OffsetRange(start=0, end=1)},
    }
    assert places.at(0) == OffsetSkip(source="a", partition=0, offset=2)
