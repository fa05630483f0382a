"""What a run reports when it ends, however long it took."""

from backfill_assets.core.epoch.limits import Limits
from backfill_assets.core.epoch.run import KEPT_EPOCHS
from tests.support.one_source import SOURCE, make


def test_a_run_without_end_keeps_its_newest_epochs_and_what_all_come_to() -> None:
    world, rows = make(3 * KEPT_EPOCHS), 3 * KEPT_EPOCHS
    report = world.refresh(SOURCE, Limits(chunk_rows=1))
    totals = report.totals
    assert (report.offsets, totals.epochs, totals.rows_read, totals.rows_written) == (rows, rows, rows, rows)
    assert [each.epoch for each in report.epochs] == list(range(rows - KEPT_EPOCHS + 1, rows + 1))
    assert report.record == report.epochs[-1]
