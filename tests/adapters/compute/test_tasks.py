"""When one task is enough."""

import pytest

from backfill_assets.adapters.compute.tasks import FILES_OF_TASK, ROWS_OF_TASK, fit_one_task


@pytest.mark.parametrize(
    ("rows", "files", "fit"),
    [
        (0, 0, True),
        (ROWS_OF_TASK, FILES_OF_TASK, True),
        (ROWS_OF_TASK + 1, 1, False),
        (1, FILES_OF_TASK + 1, False),
        (1, None, False),
    ],
)
def test_one_task_takes_few_rows_of_few_files(rows: int, files: int | None, fit: bool) -> None:
    assert fit_one_task(rows, files) is fit
