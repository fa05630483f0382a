"""What deletes files does not trust a store whose list of a log lags behind what was committed."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staging import delete_data, sweep
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind, TableState
from tests.support.outputs import commit, output_at, record, rows, stage

FIRST, SECOND = "11111111", "22222222"


@dataclass(frozen=True, kw_only=True)
class Lagging(TableLocation):
    """A table whose newest version is not listed yet; what is asked for by its name is there."""

    def load(self, version: int | None = None) -> DeltaTable | None:
        newest = DeltaTable(self.uri).version()
        return super().load(newest - 1 if version is None else version)


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, FIRST, 0))
    commit(made, record(CommitKind.EPOCH, FIRST, 1), stage(made, FIRST, 1, [1]))
    return made


def lagging(output: DeltaOutput) -> Lagging:
    return Lagging(uri=output.location.uri)


def begin_another_life(output: DeltaOutput) -> TableState:
    """The table as it was looked at before another life began, whose first epoch is committed."""
    look = output.look()
    commit(output, record(CommitKind.CREATE, SECOND, 0))
    commit(output, record(CommitKind.EPOCH, SECOND, 1), stage(output, SECOND, 1, [7]))
    return look


def test_files_of_the_newest_epoch_are_not_swept_though_its_commit_is_not_listed_yet(output: DeltaOutput) -> None:
    stage(output, FIRST, 1, [1], attempt="bbbbbbbb")
    assert sweep(lagging(output), output.look) == [f"{FIRST}-1-bbbbbbbb"]
    assert rows(output) == [1]


def test_nothing_is_swept_by_a_look_that_does_not_know_the_newest_life(output: DeltaOutput) -> None:
    look = begin_another_life(output)
    stage(output, FIRST, 1, [1], attempt="bbbbbbbb")
    stage(output, SECOND, 2, [8])
    assert sweep(output.location, lambda: look) == []
    assert rows(output) == [7]
    assert sweep(output.location, output.look) == [f"{FIRST}-1-bbbbbbbb"]


def test_a_drop_deletes_nothing_of_a_life_that_it_does_not_know(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.DROP, FIRST, 1))
    look = begin_another_life(output)
    assert not delete_data(output.location, lambda: look)
    assert rows(output) == [7]


def test_maintenance_that_is_not_listed_yet_hinders_nobody(output: DeltaOutput) -> None:
    stage(output, FIRST, 1, [1], attempt="bbbbbbbb")
    look = output.look()
    output.set_status("live")
    assert output.look().version > look.version
    assert sweep(output.location, lambda: look) == [f"{FIRST}-1-bbbbbbbb"]
