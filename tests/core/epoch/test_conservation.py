"""What follows from the number of rows that Spark has read of an upstream."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.core.epoch.conservation import (
    FEW_ROWS,
    MANY_FILES,
    MOST_ALONE,
    MOST_PER_ROW,
    CountedRead,
    Found,
    Judgement,
    MergedRows,
    Scan,
    check_merged,
    is_worth_counting,
    judged,
    mismatch,
    scan_of,
    scan_of_version,
    total_rows,
)
from backfill_assets.core.epoch.records import Staged
from backfill_assets.core.progress.positions import OffsetRange
from backfill_assets.core.progress.reads import (
    BronzeRead,
    ChangesRead,
    FullRead,
    KafkaRead,
    KeyRead,
    SnapshotRead,
    SpoolRead,
)
from backfill_assets.errors import ReadMismatchError

ROWS = st.integers(0, MOST_ALONE)
RANGES = {0: OffsetRange(start=0, end=4), 3: OffsetRange(start=7, end=9)}
KEYS = KeyRead(source="s", table_id="t", version=7, ranges=RANGES, keys=(), rows=6)
KAFKA = KafkaRead(source="s", topic="clicks", isolation="read_committed", ranges=RANGES)
READS: dict[str, CountedRead] = {
    "its files in version 7": SnapshotRead(source="s", table_id="t", version=7, buckets=1, ranges=RANGES, rows=6),
    "the changes of versions 2 to 7": ChangesRead(source="s", table_id="t", first=2, last=7, rows=6),
    "the captured changes of versions 2 to 7": SpoolRead(
        source="s", table_id="t", first=2, last=7, segments=(2,), rows=6
    ),
    "the files that may have its keys, in version 7,": KEYS,
    "version 7": FullRead(source="s", table_id="t", first=2, last=7, rows=6, held=9),
    "the files with its offsets, at version 7 or later,": BronzeRead(
        source="s", incarnation="i", version=7, ranges=RANGES
    ),
}


def scan(rows: int, *, implied: bool = False) -> Scan:
    return Scan(table="t", what="version 1", least=rows, most=rows, implied=implied)


@given(st.lists(st.integers(0, 1000), min_size=1), st.data())
def test_rows_of_any_file_that_are_not_read_are_missed(files: list[int], data: st.DataObject) -> None:
    expected = total_rows(files)
    assert expected is not None
    read = [data.draw(st.integers(0, rows)) for rows in files]
    right = sum(read) == expected
    assert (judged(scan(expected), Found(rows=sum(read))) is Judgement.RIGHT) == right
    assert (judged(scan(expected), Found(rows=sum(read))) is Judgement.WRONG) == (not right)


@given(st.integers(1, MOST_ALONE))
def test_a_single_row_that_is_not_read_is_missed(rows: int) -> None:
    assert judged(scan(rows), Found(rows=rows - 1)) is Judgement.WRONG
    assert judged(scan(rows), Found(rows=rows - 1), alone=True) is Judgement.WRONG


@given(ROWS, st.integers(1, 5))
def test_what_is_read_twice_is_counted_alone_and_then_has_to_be_right(rows: int, more: int) -> None:
    assert judged(scan(rows), Found(rows=rows + more)) is Judgement.COUNT_ALONE
    assert judged(scan(rows), Found(rows=rows + more), alone=True) is Judgement.WRONG
    assert judged(scan(rows), Found(rows=rows), alone=True) is Judgement.RIGHT


@given(st.integers(1, 1000), st.integers(2, 4))
def test_rows_that_are_read_again_prove_nothing_however_many_they_are(rows: int, times: int) -> None:
    there = scan(rows * times)
    assert judged(there, Found(rows=rows * times, again=True)) is Judgement.COUNT_ALONE
    assert judged(there, Found(rows=rows), alone=True) is Judgement.WRONG
    assert judged(there, Found(rows=rows * times), alone=True) is Judgement.RIGHT


@given(st.integers(1, MOST_ALONE))
def test_what_may_end_early_is_counted_alone_where_it_seems_to_lack_rows(rows: int) -> None:
    limited = replace(scan(rows), ends_early=True)
    assert judged(limited, Found(rows=rows - 1)) is Judgement.COUNT_ALONE
    assert judged(limited, Found(rows=rows - 1), alone=True) is Judgement.WRONG
    assert judged(limited, Found(rows=rows)) is judged(limited, Found(rows=rows), alone=True) is Judgement.RIGHT


@given(ROWS, st.booleans())
def test_what_spark_left_out_is_counted_alone_unless_nothing_is_read_for_it(rows: int, implied: bool) -> None:
    wanted = Judgement.RIGHT if implied or not rows else Judgement.COUNT_ALONE
    assert judged(scan(rows, implied=implied), None) is wanted
    assert judged(scan(MOST_ALONE + 1), None) is Judgement.RIGHT, "it takes too long"


CHANGES = st.dictionaries(st.integers(0, 9), st.sampled_from(["write", "delete"]))


@given(st.lists(st.sets(st.integers(0, 9))), CHANGES, st.sets(st.integers(0, 9)))
def test_a_merge_adds_up_only_if_all_rows_were_read(
    files: list[set[int]], changes: dict[int, str], hidden: set[int]
) -> None:
    table = [file - set().union(*files[:at]) for at, file in enumerate(files)]  # each key once
    held = set().union(*table)
    changes = {key: change for key, change in changes.items() if change == "write" or key in held}
    staged = Staged(
        rows_written=sum(each == "write" for each in changes.values()),
        rows_updated=sum(key in held and each == "write" for key, each in changes.items()),
        rows_deleted=sum(each == "delete" for each in changes.values()),
        key=("id",),
    )

    def merged(find: list[set[int]], read: list[set[int]]) -> MergedRows:
        touched = [at for at, rows in enumerate(find) if rows & changes.keys()]
        rows = [key for at in touched for key in read[at]]
        fed = sum(
            2 if key in rows and change == "write" else 1
            for key, change in changes.items()
            if key in rows or change == "write"
        )
        added = sum(key not in changes for key in rows) + staged.rows_written
        return MergedRows(removed=sum(len(table[at]) for at in touched), added=added, fed=fed)

    check_merged("views/v", staged, merged(table, table))
    short = [rows - hidden for rows in table]
    for found in (merged(table, short), merged(short, table), merged(short, short)):
        if found != merged(table, table):
            with pytest.raises(ReadMismatchError, match="views/v: a merge put"):
                check_merged("views/v", staged, found)


@given(st.lists(st.integers(0, 1000) | st.none()))
def test_the_rows_of_files_are_known_if_those_of_each_are(stated: list[int | None]) -> None:
    assert total_rows(stated) == (None if None in stated else sum(each or 0 for each in stated))


@pytest.mark.parametrize("what", READS)
def test_all_rows_of_a_table_have_to_be_read(what: str) -> None:
    assert scan_of(READS[what], 6) == Scan(table="s", what=what, least=6, most=6)
    assert scan_of_version("s", 7, 6) == scan_of(READS["version 7"], 6)


@pytest.mark.parametrize(
    ("stated", "worth"),
    [
        ([FEW_ROWS], True),
        ([FEW_ROWS, 1], False),
        ([1] * MANY_FILES, True),
        ([1] * (MANY_FILES + 1), False),
        ([1, None], False),
        ([], False),
    ],
)
def test_ranges_of_a_key_are_counted_where_that_takes_no_much_larger_read(
    stated: list[int | None], worth: bool
) -> None:
    assert is_worth_counting(KEYS, stated) is worth
    many = KEYS.model_copy(update={"rows": FEW_ROWS})
    assert is_worth_counting(many, [FEW_ROWS * MOST_PER_ROW])
    assert not is_worth_counting(many, [FEW_ROWS * MOST_PER_ROW + 1])


def test_offsets_of_a_topic_limit_how_many_records_there_are() -> None:
    found = scan_of(KAFKA, 6)
    assert (found.least, found.most) == (0, 6)
    assert [judged(found, Found(rows=rows)) for rows in (0, 6)] == [Judgement.RIGHT, Judgement.RIGHT]
    assert judged(found, Found(rows=7), alone=True) is Judgement.WRONG
    assert judged(found, None) is Judgement.RIGHT


def test_the_error_says_what_was_expected_and_found_of_which_versions() -> None:
    error = mismatch("views/v", 3, scan_of(READS["the changes of versions 2 to 7"], 8), 6)
    assert str(error).startswith(
        "[READ_MISMATCH] views/v: epoch 3: Spark read 6 rows of the changes of versions 2 to 7 of 's', expected 8\n"
        "  What to do: nothing was committed."
    )
    assert error.facts == {"table": "s", "expected": (8, 8), "found": 6}
    assert "expected 0 to 6" in mismatch("sources/s", 1, scan_of(KAFKA, 6), 7).message
