"""Commits that only lay rows out in other files: made on the version that was read, or not at all."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta.layout import commit_layout
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind
from tests.support.outputs import commit, output_at, record, rows, stage

LIFE = "11111111"


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch in (1, 2):
        commit(made, record(CommitKind.EPOCH, LIFE, epoch), stage(made, LIFE, epoch, [epoch]))
    return made


class Repeating(TableLocation):
    """A store whose client has repeated each put, and has found what its first attempt wrote."""

    def put_entry(self, version: int, content: bytes) -> bool:
        super().put_entry(version, content)
        return False


def test_a_layout_is_committed_whatever_a_repeated_request_says(output: DeltaOutput) -> None:
    files = stage(output, LIFE, 3, [2, 1]).files
    table = DeltaTable(output.location.uri)
    assert commit_layout(Repeating(uri=output.location.uri), table, files), "its files must not be deleted"
    assert rows(output) == [1, 2]
    assert [Path(each).parent.name for each in DeltaTable(output.location.uri).file_uris()] == [f"{LIFE}-3-aaaaaaaa"]


def test_a_layout_gives_way_to_another_writer(output: DeltaOutput) -> None:
    files = stage(output, LIFE, 3, [2, 1]).files
    table = DeltaTable(output.location.uri)
    commit(output, record(CommitKind.EPOCH, LIFE, 3), stage(output, LIFE, 3, [3], attempt="bbbbbbbb"))
    assert not commit_layout(output.location, table, files)
    assert rows(output) == [1, 2, 3]
