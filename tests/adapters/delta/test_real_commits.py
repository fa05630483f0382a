"""What a commit of an output records and checks, on real Delta logs, without Spark."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

from backfill_assets.adapters.delta.commits import commit_timestamp, metadata_of
from backfill_assets.adapters.delta.output import MEMORY_OF_BYTE, NO_MORE_EPOCHS, DeltaOutput
from backfill_assets.core.epoch.records import CommitKind, Staged, app_id
from backfill_assets.errors import StagingError
from tests.support.outputs import SCHEMA, TARGET, commit, output_at, record, reopened, rows, stage

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


def test_rows_are_added_by_delta_rs_where_a_table_asks_more_of_its_writers(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1]))
    table = DeltaTable(output.location.uri)
    assert table.history(1)[0]["engineInfo"] == "backfill-assets"
    table.alter.add_constraint({"positive": "id > 0"})
    commit(output, record(CommitKind.EPOCH, FIRST, 2), stage(output, FIRST, 2, [2]))
    assert DeltaTable(output.location.uri).history(1)[0]["engineInfo"].startswith("delta-rs")
    assert rows(output) == [1, 2]


def test_a_commit_is_made_on_the_version_of_the_last_look_whoever_has_read_the_table_since(output: DeltaOutput) -> None:
    reader = DeltaOutput(location=output.location, target=TARGET, schema=output.schema)
    staged = stage(output, FIRST, 1, [1])
    look = output.look()
    assert reader.look() == look
    commit(reopened(output), record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [2], attempt="bbbbbbbb"))
    assert reader.look().version == look.version + 1
    with pytest.raises(CommitFailedError, match=f"version {look.version + 1} was read since version {look.version}"):
        output.commit(record(CommitKind.EPOCH, FIRST, 1), staged)
    assert rows(output) == [2]


def test_what_one_part_of_a_run_has_loaded_another_one_need_not_load(output: DeltaOutput) -> None:
    reader = DeltaOutput(location=output.location, target=TARGET, schema=output.schema)
    output.look()
    loaded = output.location.last()
    assert loaded is not None
    reader.look()
    assert output.location.last() is loaded is output.location.at(loaded.version())
    commit(reopened(output), record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1]))
    before = loaded.version()
    reader.look()
    assert output.location.last() is loaded
    assert loaded.version() == before + 1
    old = output.location.at(before)
    assert old is not None
    assert (old.version(), len(old.file_uris()), len(loaded.file_uris())) == (before, 0, 1)


@pytest.mark.parametrize("constraints", [{}, {"positive": "id > 0"}], ids=["by this project", "by delta-rs"])
def test_a_commit_on_a_version_that_is_not_the_newest_any_more_fails_and_leaves_no_row(
    output: DeltaOutput, constraints: dict[str, str]
) -> None:
    if constraints:
        DeltaTable(output.location.uri).alter.add_constraint(constraints)
    staged = stage(output, FIRST, 1, [1])
    output.look()
    write_deltalake(output.location.uri, pa.table({"id": [9]}, schema=SCHEMA), mode="append")
    with pytest.raises(CommitFailedError):
        output.commit(record(CommitKind.EPOCH, FIRST, 1), staged)
    assert rows(output) == [9]


def test_staged_files_must_hold_the_rows_that_were_counted_and_be_as_long_as_they_were(output: DeltaOutput) -> None:
    staged = stage(output, FIRST, 1, [1, 2])
    output.verify(staged)
    with pytest.raises(StagingError, match="reported 3 rows, but the staged files have 2"):
        output.verify(staged.model_copy(update={"rows_written": 3}))
    place = Path(output.location.child(staged.files[0].path))
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(StagingError, match="1 of 1 staged files are missing or truncated"):
        output.verify(staged)
    place.unlink()
    with pytest.raises(StagingError, match="1 of 1 staged files are missing or truncated"):
        output.verify(staged)


def test_without_staged_files_there_is_nothing_to_verify(output: DeltaOutput) -> None:
    output.verify(Staged())


def test_the_first_of_several_external_writes_is_named_and_a_delete_is_one(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1]))
    at = output.look().version
    DeltaTable(output.location.uri).delete()
    assert output.look().external == at + 1
    write_deltalake(output.location.uri, pa.table({"id": [9]}, schema=SCHEMA), mode="append")
    assert output.look().external == at + 1


def replaced(output: DeltaOutput, version: int) -> None:
    """The entry of a version as a writer leaves it who only looked whether there was one: Spark on S3, for example."""
    entry = Path(output.location.uri, "_delta_log", f"{version:020d}.json")
    entry.unlink()
    made = {"commitInfo": {"operation": "WRITE"}}
    added = {"add": {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}}
    entry.write_text("\n".join(map(json.dumps, (made, added))))


def test_a_commit_of_somebody_else_in_the_place_of_the_one_before_is_named(output: DeltaOutput) -> None:
    versions = []
    for epoch in (1, 2, 3):
        commit(output, record(CommitKind.EPOCH, FIRST, epoch), stage(output, FIRST, epoch, [epoch]))
        versions.append(output.look().version)
    assert output.look().external is None
    replaced(output, versions[1])
    assert reopened(output).look().external == versions[1]
    replaced(output, versions[2])
    assert reopened(output).look().external == versions[1]
    commit(output, record(CommitKind.CREATE, SECOND, 0))
    assert reopened(output).look().external is None, "a new life does not depend on it"


def test_an_entry_that_changed_no_data_in_the_place_of_an_epoch_is_named_as_well(output: DeltaOutput) -> None:
    for epoch in (1, 2):
        commit(output, record(CommitKind.EPOCH, FIRST, epoch), stage(output, FIRST, epoch, [epoch]))
    at = output.look().version
    Path(output.location.uri, "_delta_log", f"{at - 1:020d}.json").write_text('{"commitInfo": {"operation": "SET"}}')
    assert reopened(output).look().external == at - 1


def test_maintenance_between_two_epochs_is_no_external_write_nor_is_a_log_that_begins_later(
    output: DeltaOutput,
) -> None:
    for epoch in (1, 2):
        commit(output, record(CommitKind.EPOCH, FIRST, epoch), stage(output, FIRST, epoch, [epoch]))
    DeltaTable(output.location.uri).optimize.compact()
    for attempt in ("bbbbbbbb", "cccccccc"):
        commit(output, record(CommitKind.RESTATE, FIRST, 2, attempt=attempt))
        assert output.look().external is None
    commit(output, record(CommitKind.EPOCH, FIRST, 3), stage(output, FIRST, 3, [3]))
    assert output.look().external is None
    at = DeltaTable(output.location.uri).version()
    DeltaTable(output.location.uri).create_checkpoint()
    for version in range(at):
        Path(output.location.uri, "_delta_log", f"{version:020d}.json").unlink()
    assert reopened(output).look().external is None


def test_commits_for_another_table_are_not_ours(output: DeltaOutput) -> None:
    table = DeltaTable(output.location.uri)
    external = record(CommitKind.EPOCH, FIRST, 7).model_copy(update={"target": f"{TARGET}2"})
    table.create_write_transaction(
        [], "append", table.schema(), commit_properties=CommitProperties(custom_metadata=metadata_of(external))
    )
    found = output.look().record
    assert found is not None
    assert (found.target, found.epoch) == (TARGET, 0)


def test_a_time_of_commit_that_delta_vouches_for_is_taken_before_that_of_a_clients_clock() -> None:
    assert commit_timestamp([{"add": {}}, {"commitInfo": {"timestamp": 7, "inCommitTimestamp": 5}}]) == 5
    assert commit_timestamp([{"commitInfo": {"timestamp": 7}}]) == 7
    assert commit_timestamp([{"commitInfo": {}}]) is None


def test_the_life_of_a_table_is_its_newest_one_and_of_each_epoch_what_was_said_last(output: DeltaOutput) -> None:
    for epoch in (1, 2, 3):
        commit(output, record(CommitKind.EPOCH, FIRST, epoch), stage(output, FIRST, epoch, [epoch]))
    assert [each.epoch for each in output.life(since=0)] == [0, 1, 2, 3]
    assert [each.epoch for each in output.life(since=2)] == [2, 3]
    commit(output, record(CommitKind.RESTATE, FIRST, 3, attempt="bbbbbbbb"))
    assert [(each.epoch, each.attempt) for each in output.life(since=3)] == [(3, "bbbbbbbb")]
    commit(output, record(CommitKind.CREATE, SECOND, 0))
    commit(output, record(CommitKind.EPOCH, SECOND, 1), stage(output, SECOND, 1, [7]))
    assert [(each.incarnation, each.epoch) for each in output.life(since=0)] == [(SECOND, 0), (SECOND, 1)]


def test_a_merge_is_made_in_memory_as_far_as_table_and_changes_fit(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1, 2]))
    output.look()
    changes = stage(output, FIRST, 2, [1]).model_copy(update={"rows_updated": 1, "key": ("id",)})
    (held,) = pa.table(DeltaTable(output.location.uri).get_add_actions())["size_bytes"].to_pylist()
    output.merge_memory = MEMORY_OF_BYTE * (held + changes.files[0].size)
    assert output.engine(changes) == "arrow"
    output.merge_memory -= 1
    assert output.engine(changes) == "spark"


def test_a_comment_on_a_column_is_no_write_and_another_column_is(output: DeltaOutput) -> None:
    commit(output, record(CommitKind.EPOCH, FIRST, 1), stage(output, FIRST, 1, [1]))
    DeltaTable(output.location.uri).alter.set_column_metadata("id", {"comment": "who"})
    assert output.look().external is None
    DeltaTable(output.location.uri).alter.add_columns(Field("more", PrimitiveType("long")))
    assert output.look().external == output.look().version


def test_comments_on_columns_stay_when_an_epoch_brings_another_one_and_go_with_a_life(output: DeltaOutput) -> None:
    DeltaTable(output.location.uri).alter.set_column_metadata("id", {"comment": "who"})
    wider = pa.schema([*SCHEMA, pa.field("more", pa.int64())])
    schema = Schema.from_arrow(wider).to_json()
    rows_of = pa.table({"id": [1], "more": [2]}, schema=wider)
    staged = stage(output, FIRST, 1, rows_of).model_copy(update={"replaces": True, "delta_schema": schema})
    commit(output, record(CommitKind.EPOCH, FIRST, 1), staged)
    comments = {each.name: each.metadata for each in DeltaTable(output.location.uri).schema().fields}
    assert comments == {"id": {"comment": "who"}, "more": {}}
    output.schema = lambda: schema
    commit(output, record(CommitKind.CREATE, SECOND, 0))
    assert {each.name: each.metadata for each in DeltaTable(output.location.uri).schema().fields} == {
        "id": {},
        "more": {},
    }
