"""How a change log is divided into what one read can take."""

from backfill_assets.core.epoch.ports import Commit
from backfill_assets.core.strategies.change_log import split_reads, within


def log(kinds: str) -> list[Commit]:
    """A version for each letter: in the feed, without one, or the first after the table was reshaped."""
    return [
        Commit(version=at, commit_ms=at, rows=1, feed=kind != "w", reshapes=kind == "r")
        for at, kind in enumerate(kinds, 1)
    ]


def test_a_read_ends_where_the_feed_was_turned_on_or_off_and_before_columns_went() -> None:
    parts = [[each.version for each in part] for part in split_reads(log("ffwwfrffrrf"))]
    assert parts == [[1, 2], [3, 4], [5], [6, 7, 8], [9], [10, 11]]
    assert not split_reads([])
    assert not within([], 5)


def test_what_fits_a_budget_ends_there_too() -> None:
    assert [each.version for each in within(log("ffrff"), 10)] == [1, 2]
    assert [each.version for each in within(log("rffff"), 3)] == [1, 2, 3]
