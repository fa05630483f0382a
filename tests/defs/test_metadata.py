"""What Dagster shows of a dry run, and of the rows that a check found wrong."""

from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from backfill_assets.app.dry_run import Planned
from backfill_assets.app.table_checks import Outcome
from backfill_assets.core.epoch.ports import NextEpoch
from backfill_assets.core.progress.reads import LookupRead
from backfill_assets.defs.checks import _metadata
from backfill_assets.defs.metadata import plan_metadata

READ = LookupRead(source="base", table_id="t", version=3, held=7)
RECORD: Any = SimpleNamespace(epoch=4)


def step() -> NextEpoch[Any]:
    return NextEpoch(reads=(READ,), after=None, live=True)


def test_a_dry_run_shows_the_next_epoch_and_what_it_reads() -> None:
    planned = Planned(record=RECORD, step=step(), choice=None, expected_seconds=1.5, adds_columns=True)
    shown = dict(plan_metadata(planned))
    reads = shown.pop("reads")
    assert reads.value == [READ.model_dump(mode="json")]
    assert shown == {
        "stopped_reason": "dry_run",
        "adds_columns": True,
        "epoch": 5,
        "next": "1 reads",
        "expected_seconds": 1.5,
    }


def test_a_dry_run_says_that_there_is_nothing_to_do_or_no_table() -> None:
    shown = plan_metadata(Planned(record=RECORD, step=None, choice=None, expected_seconds=0.0))
    assert (shown["epoch"], shown["next"], shown["reads"].value) == (4, "nothing to do", [])
    assert "adds_columns" not in shown
    absent = plan_metadata(Planned(record=None, step=None, choice=None, expected_seconds=0.0))
    assert absent == {"stopped_reason": "dry_run", "next": "create the table, then read its history"}


def test_rows_that_a_check_found_are_shown_whatever_their_values_are() -> None:
    row = {"key": (1, None), "data": b"\xff\x00a", "when": date(2026, 1, 31), "sum": Decimal("1.50"), 3: [True, 0.5]}
    found = _metadata(Outcome(passed=False, summary="wrong", violations=[row, *({"at": at} for at in range(20))]))
    first, *rest = found["violations"].value  # type: ignore[misc]
    assert first == {
        "key": [1, None],
        "data": "\\xff\x00a",
        "when": "2026-01-31",
        "sum": "1.50",
        "3": [True, 0.5],
    }
    assert rest == [{"at": at} for at in range(9)]
