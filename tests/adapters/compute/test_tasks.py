"""When one task is enough."""

from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.adapters.compute import tasks
from backfill_assets.adapters.compute.tasks import FILES_OF_TASK, ROWS_OF_TASK, fit_one_task, tasks_of_machine


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


@pytest.mark.parametrize(
    ("master", "found"),
    [("local[2]", 2), ("local[*]", 2), ("spark://host:7077", 0), ("yarn", 0), ("k8s://https://host", 0), (None, 0)],
)
def test_a_cluster_may_run_more_tasks_than_it_runs_now(
    monkeypatch: pytest.MonkeyPatch, master: str | None, found: int
) -> None:
    monkeypatch.setattr(tasks, "parallelism", lambda _spark: 2)
    settings = {} if master is None else {"spark.master": master}
    spark: Any = SimpleNamespace(conf=settings)
    assert tasks_of_machine(spark) == found
