"""What a commit of an output says and checks, on real Delta logs, without Spark."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from backfill_assets.backfill.epoch import CommitKind, Staged, app_id
from backfill_assets.errors import StagingError
from backfill_assets.resources.delta import NO_MORE_EPOCHS, DeltaOutput
from tests.support.outputs import SCHEMA, TARGET, commit, output_at, record, rows, stage

FIRST, SECOND = "11111111", "22222222"


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, FIRST, 0))
    return made


def number(output: DeltaOutput, incarnation: str) -> int | None:
    """The transaction number of a life, as any writer of the table sees it."""
    return DeltaTable(output.location.uri).transaction_version(app_id(TARGET, incarnation))


def test_each_commit_carries_the_number_of_its_epoch_and_a_new_life_uses_up_those_of_the_old(
    output: DeltaOutput,
) -> None:
    assert number(output, FIRST) == 0
    commit(output, record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1]))
    assert number(output, FIRST) == 1
    commit(output, record(CommitKind.CREATE, SECOND, 0))
    assert (number(output, FIRST), number(output, SECOND)) == (NO_MORE_EPOCHS, 0)
    commit(output, record(CommitKind.DROP, SECOND, 0))
    assert number(output, SECOND) == NO_MORE_EPOCHS


def test_a_commit_on_a_version_that_is_not_the_newest_any_more_fails_and_leaves_no_row(output: DeltaOutput) -> None:
    staged = stage(output, FIRST, 1, [1])
    output.look()
    write_deltalake(output.location.uri, pa.table({"id": [9]}, schema=SCHEMA), mode="append")
    with pytest.raises(CommitFailedError):
        output.commit(record(CommitKind.EPOCH, FIRST, 1), staged)
    assert rows(output) == [9]


def test_staged_files_must_hold_the_rows_that_were_counted_and_be_as_long_as_they_were(output: DeltaOutput) -> None:
    staged = stage(output, FIRST, 1, [1, 2])
    output.verify(staged)
    with pytest.raises(StagingError, match="reported 3 rows, but the staged files hold 2"):
        output.verify(staged.model_copy(update={"rows_written": 3}))
    place = Path(output.location.child(staged.files[0].path))
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(StagingError, match="1 of 1 staged files are gone or cut short"):
        output.verify(staged)
    place.unlink()
    with pytest.raises(StagingError, match="1 of 1 staged files are gone or cut short"):
        output.verify(staged)


def test_nothing_staged_is_nothing_to_verify(output: DeltaOutput) -> None:
    output.verify(Staged())
