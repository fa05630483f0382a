"""Commits of maintenance: rows in other files and properties, on the version that was read, or where that changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from backfill_assets.adapters.delta.layout import commit_layout, compact
from backfill_assets.adapters.delta.maintenance import may_write, put_commit, put_properties, set_properties
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.storage.copied_log import CopiedTable
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.records import CommitKind
from tests.support.outputs import commit, output_at, record, rows, stage
from tests.support.stored_table import stored_at

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


def ask_more(output: DeltaOutput) -> None:
    """A feature with which delta-rs sets properties."""
    features = ["appendOnly", "changeDataFeed", "invariants", "timestampNtz"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": [*features, "generatedColumns"],
    }
    assert put_commit(
        output.location, DeltaTable(output.location.uri).version() + 1, "ADD FEATURE", [{"protocol": protocol}]
    )


def another_epoch(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.EPOCH, LIFE, 3), stage(output, LIFE, 3, [3]))


def another_life(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.CREATE, "22222222", 0))
    commit(output, record(CommitKind.EPOCH, "22222222", 1), stage(output, "22222222", 1, [7]))


def another_property(output: DeltaOutput) -> None:
    assert set_properties(output.location, {"delta.checkpointInterval": "7"})


def test_properties_are_set_on_the_version_that_was_loaded_or_not_at_all(output: DeltaOutput) -> None:
    ask_more(output)
    old = DeltaTable(output.location.uri)
    assert not may_write(old)
    another_epoch(output)
    version = DeltaTable(output.location.uri).version()
    assert not put_properties(output.location, old, {"a": "b"})
    assert DeltaTable(output.location.uri).version() == version
    assert set_properties(output.location, {"a": "b"})
    assert DeltaTable(output.location.uri).metadata().configuration["a"] == "b"
    assert not set_properties(output.location, {"a": "b"})


def test_properties_are_set_in_the_store_and_not_in_the_copy_of_a_log(output: DeltaOutput) -> None:
    ask_more(output)
    location = stored_at(output.location.uri)
    copied = location.followed.newest()
    assert isinstance(copied, CopiedTable)
    assert put_properties(location, copied, {"a": "b"})
    assert DeltaTable(output.location.uri).metadata().configuration["a"] == "b"


@dataclass(frozen=True, kw_only=True)
class Earlier(TableLocation):
    """A table that is read before others commit."""

    version: int

    def load(self, version: int | None = None) -> DeltaTable | None:
        return super().load(self.version if version is None else version)


@pytest.mark.parametrize(
    ("meanwhile", "left", "operation"),
    [
        (another_epoch, [1, 2, 3], "OPTIMIZE"),
        (another_life, [7], "WRITE"),
        (another_property, [1, 2], "SET TBLPROPERTIES"),
    ],
)
def test_a_compaction_changes_no_row_whatever_was_committed_meanwhile(
    output: DeltaOutput, meanwhile: Callable[[DeltaOutput], None], left: list[int], operation: str
) -> None:
    before = DeltaTable(output.location.uri).version()
    meanwhile(output)
    compact(Earlier(uri=output.location.uri, version=before), None)
    assert rows(output) == left
    assert DeltaTable(output.location.uri).history(1)[0]["operation"] == operation
