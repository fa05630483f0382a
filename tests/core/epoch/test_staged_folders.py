"""Names of staged folders, and which of them may be deleted."""

import pytest

from backfill_assets.core.epoch.staged_folders import StagedFolder, sweepable

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
