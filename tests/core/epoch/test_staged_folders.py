"""Names of staged folders, which of them may be deleted, and what is left behind in and beside them."""

from functools import partial

import pytest

from backfill_assets.core.epoch.staged_folders import SPOOL, StagedFolder, leftovers, sweepable

LIFE, EARLIER_LIFE = "0123456789ab", "ba9876543210"


def folder(epoch: int, incarnation: str = LIFE) -> StagedFolder:
    return StagedFolder(incarnation=incarnation, epoch=epoch, attempt="fedcba987654")


def test_a_name_is_read_back_as_the_folder_it_names() -> None:
    assert folder(7).name == f"{LIFE}-7-fedcba987654"
    assert StagedFolder.parse(folder(7).name) == folder(7)


@pytest.mark.parametrize(
    "name",
    [
        "_delta_log",
        "_change_data",
        "part-00000-2f6a.snappy.parquet",
        "date=2024-01-02",
        f"{LIFE}-7",
        f"{LIFE}-7-fedcba987654-1",
        f"{LIFE}--7-fedcba987654",
        f"{LIFE}-7-fedcba987654/part-0.parquet",
        f"{LIFE}-7-fedcba987654\n",
        f"{LIFE.upper()}-7-fedcba987654",
        "2024-01-02",
        "",
    ],
)
def test_no_other_folder_is_ever_taken_for_a_staged_one(name: str) -> None:
    assert StagedFolder.parse(name) is None


def test_folders_of_committed_epochs_and_of_earlier_lives_may_be_swept() -> None:
    assert sweepable(folder(1), incarnation=LIFE, epoch=3)
    assert sweepable(folder(3), incarnation=LIFE, epoch=3)
    assert sweepable(folder(9, EARLIER_LIFE), incarnation=LIFE, epoch=3)


def test_a_folder_of_an_epoch_that_may_be_in_progress_is_never_deleted() -> None:
    assert not sweepable(folder(4), incarnation=LIFE, epoch=3)
    assert not sweepable(folder(5), incarnation=LIFE, epoch=3)
    assert not sweepable(folder(1), incarnation=LIFE, epoch=0)


OVER = partial(sweepable, incarnation=LIFE, epoch=3)
COMMITTED, COMING = folder(3).name, folder(4).name


@pytest.mark.parametrize(
    ("sizes", "files", "markers"),
    [
        ({f"{COMMITTED}/part-0.parquet": 9, "_delta_log/00000000000000000000.json": 9}, (), ()),
        ({f"{COMMITTED}/_temporary/0": 0}, (f"{COMMITTED}/_temporary/0",), (f"{COMMITTED}/_temporary/0",)),
        ({f"{COMMITTED}/_temporary/0/task_1/part-0.parquet": 9}, (f"{COMMITTED}/_temporary/0/task_1/part-0.parquet",), ()),
        ({COMMITTED: 0, f"{COMMITTED}/rows": 0}, (), (COMMITTED, f"{COMMITTED}/rows")),
        ({f"{SPOOL}/{COMMITTED}/base/4/_temporary/0": 0, SPOOL: 0}, (f"{SPOOL}/{COMMITTED}/base/4/_temporary/0",),
         (f"{SPOOL}/{COMMITTED}/base/4/_temporary/0", SPOOL)),
        ({"": 0, "_change_data": 0, "day=1": 0}, (), ("", "_change_data", "day=1")),
        ({f"{COMMITTED}/_SUCCESS": 0, "_SUCCESS": 0}, (), ()),
        ({"_temporary/0/part-0.parquet": 9, "_temporary/0": 0}, (), ("_temporary/0",)),
        ({folder(9, EARLIER_LIFE).name: 0}, (), (folder(9, EARLIER_LIFE).name,)),
    ],
)  # fmt: skip
def test_what_jobs_left_behind_is_files_that_no_job_committed_and_marks_of_folders(
    sizes: dict[str, int], files: tuple[str, ...], markers: tuple[str, ...]
) -> None:
    found = leftovers(sizes, OVER)
    assert (found.files, found.markers) == (files, markers)


@pytest.mark.parametrize("place", ["", f"{SPOOL}/"])
def test_nothing_in_the_folder_of_an_epoch_that_may_be_in_progress_is_left_behind(place: str) -> None:
    held = {f"{place}{COMING}{path}": 0 for path in ("", "/_temporary/0", "/_temporary/0/task_1/part-0.parquet")}
    found = leftovers(held, OVER)
    assert (found.files, found.markers) == ((), ())
