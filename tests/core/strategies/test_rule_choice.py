"""Which rule a view over whole tables takes, and why it is computed in full."""

from typing import get_args

import pytest

from backfill_assets.core.epoch.records import Rule, WhyFull
from backfill_assets.core.strategies.rule_choice import MOST_CHANGED, Changes, chosen_rule
from backfill_assets.declare.model import RefreshMode

ROWS = 10


def changes(
    *, rows: int = ROWS, held: int = MOST_CHANGED * ROWS, left_out: bool = False, lost: bool = False
) -> Changes:
    return Changes(rows=rows, held=held, left_out=left_out, readable=lambda: not lost)


CASES: list[tuple[Rule, RefreshMode, Changes, Rule, WhyFull]] = [
    ("linear", "auto", changes(), "linear", ""),
    ("linear", "auto", changes(held=MOST_CHANGED * ROWS - 1), "full", "many_changes"),
    ("linear", "incremental", changes(held=ROWS), "linear", ""),
    ("restricted", "incremental_strict", changes(held=ROWS), "restricted", ""),
    ("additive", "full", changes(), "full", "refresh_mode"),
    ("full", "auto", changes(), "full", "no_rule"),
    ("full", "incremental", changes(), "full", "no_rule"),
    ("linear", "auto", changes(rows=0), "full", "first"),
    ("linear", "incremental", changes(left_out=True), "full", "rows_left_out"),
    ("additive", "incremental", changes(lost=True), "full", "changes_lost"),
]


@pytest.mark.parametrize(("rule", "mode", "given", "chosen", "why"), CASES)
def test_a_rule_is_taken_if_nothing_stands_against_it(
    rule: Rule, mode: RefreshMode, given: Changes, chosen: Rule, why: WhyFull
) -> None:
    assert chosen_rule(rule, mode, given) == (chosen, why)


def test_every_reason_has_a_case() -> None:
    assert {why for *_, why in CASES} == set(get_args(WhyFull))
