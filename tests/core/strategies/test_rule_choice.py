"""Which rule a view over whole tables takes, and why it is computed in full."""

from dataclasses import replace
from typing import get_args

import pytest

from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Rule, WhyFull
from backfill_assets.core.progress.positions import SnapshotPosition, TablePosition
from backfill_assets.core.strategies.rule_choice import (
    LARGE,
    MOST_CHANGED,
    MOST_CHANGED_UNREAD,
    Changes,
    chosen_rule,
    expected_seconds,
    is_replaced,
    often_in_full,
    reach_of_changes,
)
from backfill_assets.declare.model import RefreshMode

ROWS = 10


def changes(
    *, rows: int = ROWS, held: int = MOST_CHANGED * ROWS, left_out: bool = False, lost: bool = False, reach: float = 1.0
) -> Changes:
    return Changes(rows=rows, held=held, left_out=left_out, readable=lambda: not lost, reach=reach)


CASES: list[tuple[Rule, RefreshMode, Changes, Rule, WhyFull]] = [
    ("linear", "auto", changes(), "linear", ""),
    ("linear", "auto", changes(held=MOST_CHANGED * ROWS - 1), "full", "many_changes"),
    ("linear", "incremental", changes(held=ROWS), "linear", ""),
    ("restricted", "auto", changes(held=MOST_CHANGED * ROWS * 4, reach=4), "restricted", ""),
    ("restricted", "auto", changes(held=MOST_CHANGED * ROWS * 4, reach=4.1), "full", "keys_reach_many"),
    ("restricted", "incremental", changes(reach=100), "restricted", ""),
    ("restricted", "incremental_strict", changes(held=ROWS), "restricted", ""),
    ("additive", "full", changes(), "full", "refresh_mode"),
    ("full", "auto", changes(), "full", "no_rule"),
    ("full", "incremental", changes(), "full", "no_rule"),
    ("linear", "auto", changes(rows=0), "full", "first"),
    ("linear", "incremental", changes(left_out=True), "full", "rows_left_out"),
    ("additive", "incremental", changes(lost=True), "full", "changes_lost"),
    ("restricted", "incremental", replace(changes(), nulls=lambda: True), "full", "nulls"),
    ("linear", "auto", replace(changes(), moved=True), "full", "parameters"),
    ("linear", "incremental", replace(changes(), moved=True), "linear", ""),
    ("linear", "auto", replace(changes(), lacking=True), "full", "first_rows"),
    ("linear", "incremental", replace(changes(), lacking=True), "linear", ""),
]


@pytest.mark.parametrize(("rule", "mode", "given", "chosen", "why"), CASES)
def test_a_rule_is_taken_if_nothing_stands_against_it(
    rule: Rule, mode: RefreshMode, given: Changes, chosen: Rule, why: WhyFull
) -> None:
    assert chosen_rule(rule, mode, given) == (chosen, why)


UNREAD = replace(changes(rows=LARGE // MOST_CHANGED_UNREAD, held=LARGE), is_read=False)
"""As many changes as are followed where no other view reads this one."""


@pytest.mark.parametrize(
    ("given", "why", "is_whole"),
    [
        (UNREAD, "", False),
        (replace(UNREAD, rows=UNREAD.rows + 1), "many_changes", True),
        (replace(UNREAD, rows=UNREAD.rows + 1, is_read=True), "", False),
        (replace(UNREAD, rows=LARGE // 2, is_read=True), "many_changes", False),
        (replace(UNREAD, reach=1.1), "keys_reach_many", True),
        (replace(UNREAD, held=LARGE - 1), "", False),
        (replace(UNREAD, seconds=lambda: (9.1, 9.0)), "many_changes", True),
        (replace(UNREAD, rows=LARGE, reach=9.0, seconds=lambda: (9.0, 9.0)), "", False),
        (replace(UNREAD, is_read=True, seconds=lambda: (9.1, 9.0)), "", False),
        (replace(UNREAD, held=LARGE - 1, rows=LARGE // 2), "many_changes", False),
    ],
)
def test_a_large_view_that_nobody_reads_is_replaced_where_many_rows_changed(
    given: Changes, why: WhyFull, is_whole: bool
) -> None:
    assert chosen_rule("linear", "auto", given) == ("full" if why else "linear", why)
    assert is_replaced(why, given) is is_whole
    assert chosen_rule("linear", "incremental", given) == ("linear", "")
    assert not any(
        is_replaced(each, given) for each in get_args(WhyFull) if each not in {"many_changes", "keys_reach_many"}
    )


def record(
    epoch: int, *, keys: int = 1, reached: int = 0, rows: int = 1, why_full: WhyFull = "", **versions: int
) -> CommitRecord:
    """A commit after which tables were read up to these versions."""
    tables = {
        name: TablePosition(table_id=name, pinned=0, version=at, commit_ms=0, buckets={})
        for name, at in versions.items()
    }
    return CommitRecord(
        kind=CommitKind.EPOCH, target="views/v", incarnation="1", epoch=epoch, attempt="", plan_hash="", fingerprint={},
        position=SnapshotPosition(tables=tables), live=True, rows_read=rows, keys_touched=keys, rows_reached=reached,
        why_full=why_full,
        started_at=0, finished_at=0, created_at=0,
    )  # fmt: skip


def test_what_keys_reach_is_learned_from_epochs_with_changes_of_just_the_same_tables() -> None:
    records = [
        record(6, reached=9_000, rows=3, a=5, b=3),  # a: 3,000 for each row
        record(5, reached=50, rows=10, a=4, b=3),  # b: 5
        record(4, reached=700, rows=7, a=4, b=2),  # both
        record(3, reached=20, rows=10, a=3, b=1),  # a: 2
        record(2, keys=0, reached=10**9, a=2, b=1),  # by no key
        record(1, a=1, b=1),
    ]
    assert reach_of_changes(records, ["a"]) == (3_000 + 2) / 2
    assert reach_of_changes(records, ["b"]) == 5
    assert reach_of_changes(records, ["b", "a"]) == 100
    assert reach_of_changes(records, ["c"]) == 1
    assert reach_of_changes(records[:1], ["a"]) == 1


def test_an_epoch_of_another_life_teaches_nothing() -> None:
    first, second = record(1, a=1), record(2, reached=900, a=2)
    assert reach_of_changes([second, first], ["a"]) == 900
    assert reach_of_changes([second.model_copy(update={"incarnation": "2"}), first], ["a"]) == 1
    assert reach_of_changes([second.model_copy(update={"kind": CommitKind.CREATE}), first], ["a"]) == 1


def test_keys_that_reach_less_than_what_changed_count_as_what_changed() -> None:
    assert reach_of_changes([record(2, reached=1, rows=10, a=2), record(1, a=1)], ["a"]) == 1


def test_every_reason_has_a_case() -> None:
    # Of values, only Spark knows; of added columns, the plan.
    assert {why for *_, why in CASES} == set(get_args(WhyFull)) - {"definition", "values"}


@pytest.mark.parametrize(
    ("last", "reasons", "moves"),
    [
        (4, ["parameters", "parameters", "parameters"], True),
        (4, ["parameters", "parameters", ""], False),
        (4, ["", "parameters", "parameters"], False),
        (5, ["", "parameters", "parameters", "parameters"], True),
        (4, ["parameters", "parameters", "no_rule"], False),
        (3, ["parameters", "parameters"], False),
        (9, ["parameters", "parameters", "parameters"], False),
    ],
)
def test_values_that_moved_in_each_epoch_are_expected_to_move_again(
    last: int, reasons: list[WhyFull], moves: bool
) -> None:
    whys: list[WhyFull] = ["", *reasons]
    first = last - len(reasons)
    records = [record(first + at, why_full=why, a=first + at, b=1) for at, why in enumerate(whys)][::-1]
    assert often_in_full(records, ["a"], "parameters") == moves
    assert not often_in_full(records, ["b"], "parameters")
    assert not often_in_full(records, ["a", "b"], "parameters")
    assert not often_in_full(records, ["a"], "first_rows")


def taken(epoch: int, rule: Rule, rows: int, seconds: float, versions: tuple[int, int]) -> CommitRecord:
    """The same of an epoch that took so long, and the versions of tables `a` and `b` after it."""
    made = record(epoch, rows=rows, a=versions[0], b=versions[1])
    return made.model_copy(
        update={"rule": rule, "rows_written": rows, "started_at": 100.0, "finished_at": 100 + seconds}
    )


def test_seconds_are_learned_from_the_largest_epoch_by_a_rule_and_the_newest_in_full() -> None:
    records = [
        taken(8, "linear", 600, 2.4, (7, 2)),
        taken(7, "linear", 1_000, 3.0, (6, 2)),
        taken(6, "full", 0, 0.1, (5, 2)),  # nothing but versions moved
        taken(5, "linear", 10, 1.0, (5, 2)),
        taken(4, "linear", 9_000, 1.0, (4, 2)),  # both tables
        taken(3, "full", 50, 8.0, (3, 1)),
        taken(2, "full", 70, 9.0, (2, 1)),
        taken(1, "linear", 10**6, 70.0, (1, 1)),  # of what changed then nothing is known
    ]
    assert expected_seconds(records, ["a"], 2_000) == (6.0, 8.0)
    assert expected_seconds(records, ["a"], 100) == (0.3, 8.0)
    assert expected_seconds(records, ["a"], 20_000) == (60.0, 8.0)
    assert expected_seconds(records, ["a"], 20_001) is None, "too many more rows"
    assert expected_seconds(records, ["a", "b"], 9_000) == (1.0, 8.0)
    assert expected_seconds(records, ["b"], 1) is None, "no epoch by a rule"
    assert expected_seconds([taken(9, "linear", 500, 1.0, (8, 2)), *records], ["a"], 1_000) == (2.0, 8.0)
    assert expected_seconds(records[:5], ["a"], 9) is None, "no epoch in full that wrote something"
