"""Which files of a bronze table are opened for ranges of offsets: all that may have such a row, by their statistics."""

from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.progress.bronze_files import BronzeFile, files_of_ranges
from backfill_assets.core.progress.positions import OffsetRange

FEW = st.integers(0, 6)
BOUNDS = st.tuples(FEW, FEW).map(lambda pair: (min(pair), max(pair)))
FILES = st.lists(st.tuples(st.none() | BOUNDS, st.none() | BOUNDS), max_size=8).map(
    lambda told: [BronzeFile(path=f"{at}", partitions=one, offsets=two) for at, (one, two) in enumerate(told)]
)
RANGES = st.dictionaries(FEW, st.builds(lambda start, rows: OffsetRange(start=start, end=start + rows), FEW, FEW))


@given(FILES, RANGES)
def test_a_file_is_opened_unless_its_statistics_exclude_every_requested_offset(
    files: list[BronzeFile], ranges: dict[int, OffsetRange]
) -> None:
    offsets = [(partition, offset) for partition, each in ranges.items() for offset in range(each.start, each.end)]

    def may_hold(file: BronzeFile) -> bool:
        if file.partitions is None or file.offsets is None:
            return True
        (first, last), (low, high) = file.partitions, file.offsets
        return any(first <= partition <= last and low <= offset <= high for partition, offset in offsets)

    assert files_of_ranges(files, ranges) == [file for file in files if may_hold(file)]


def test_files_of_ranges_are_found_quickly_among_ten_thousand_partitions_and_files() -> None:
    files = [BronzeFile(path=f"{at}", partitions=(0, 9_999), offsets=(10 * at, 10 * at + 9)) for at in range(10_000)]
    ranges = {partition: OffsetRange(start=50_000 + partition % 3, end=50_020) for partition in range(10_000)}
    assert files_of_ranges(files, ranges) == files[5000:5002]
    lagging = {**ranges, 7: OffsetRange(start=5, end=6)}
    assert files_of_ranges(files, lagging) == [files[0], *files[5000:5002]]
