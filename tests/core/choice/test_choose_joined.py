"""Queries over several tables: everything at once, or chunks of the tables that drive them."""

import pytest

from backfill_assets.core.choice.choose import Choice
from backfill_assets.core.choice.reasons import Code
from tests.support.choose_world import CHUNK, GIB, MILLION, chosen, estimate_of, table

LARGE, SMALL = table("facts", rows=40 * MILLION), table("names", rows=MILLION)


def joined(memory_bytes: int = 64 * GIB) -> Choice:
    return chosen(LARGE, SMALL, whole=True, driving=["facts"], memory_bytes=memory_bytes)


def test_each_chunk_of_the_driving_table_reads_all_rows_of_the_other() -> None:
    estimate = estimate_of(joined(), "snapshot")
    chunks = LARGE.rows // CHUNK
    assert estimate.rows_read == LARGE.rows + chunks * SMALL.rows
    assert estimate.epochs == chunks + 1
    at_once = estimate_of(joined(), "snapshot_once")
    assert estimate.memory_bytes == at_once.memory_bytes * (CHUNK + SMALL.rows) // (LARGE.rows + SMALL.rows)


def test_what_fits_into_memory_is_read_at_once_and_what_does_not_in_chunks() -> None:
    assert joined().chosen == "snapshot_once"
    in_chunks = joined(memory_bytes=GIB)
    assert in_chunks.chosen == "snapshot"
    assert {each.code for each in in_chunks.ruled_out if each.strategy == "snapshot_once"} == {Code.TOO_LARGE_AT_ONCE}


def test_of_equal_costs_the_one_without_chunks_is_taken() -> None:
    small = chosen(table("facts", rows=10), SMALL, whole=True, driving=["facts"])
    assert estimate_of(small, "snapshot").cost_seconds == estimate_of(small, "snapshot_once").cost_seconds
    assert small.chosen == "snapshot_once"


@pytest.mark.parametrize(
    ("driving", "remedy"), [(["facts"], "use `snapshot` or `snapshot_once`"), ([], "use `snapshot_once`")]
)
def test_the_other_strategies_are_ruled_out_with_those_that_can(driving: list[str], remedy: str) -> None:
    choice = chosen(LARGE, SMALL, whole=True, driving=driving)
    out = {each.strategy: each.remedy for each in choice.ruled_out if each.code is Code.WHOLE_TABLES}
    assert out.keys() == {"rearranged", "arrangement", *(() if driving else ("snapshot",))}
    assert set(out.values()) == {remedy}


def test_what_is_too_large_at_once_is_not_sent_to_a_strategy_that_cannot_read_it() -> None:
    choice = chosen(LARGE, SMALL, whole=True, memory_bytes=GIB)
    assert choice.chosen == "snapshot_once"
    (risk,) = [each for each in estimate_of(choice, "snapshot_once").risks if each.code is Code.TOO_LARGE_AT_ONCE]
    assert risk.message.endswith("; give Spark more memory")


def test_each_part_of_the_hashes_of_a_key_reads_all_rows() -> None:
    found = chosen(LARGE, SMALL, whole=True, driving=["facts"], parts=64, memory_bytes=64 * GIB)
    estimate, chunks = estimate_of(found, "snapshot"), LARGE.rows // CHUNK
    assert estimate.rows_read == chunks * (LARGE.rows + SMALL.rows)
    few = chosen(LARGE, SMALL, whole=True, driving=["facts"], parts=4, memory_bytes=64 * GIB)
    assert estimate_of(few, "snapshot").epochs == 5, "the last one follows what changed meanwhile"
    assert found.chosen == "snapshot_once"
