"""The commit of a merge that was computed elsewhere, on real Delta logs, without Spark."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.adapters.delta.maintenance import put_commit
from backfill_assets.adapters.delta.merged_files import Merged
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staged_files import collect
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS
from backfill_assets.core.epoch.records import CommitKind, CommitRecord, Staged, app_id
from backfill_assets.errors import ReadMismatchError, TableFeatureError
from tests.support.outputs import SCHEMA, TARGET, commit, output_at, record, rows, stage

LIFE = "11111111"


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    """A table that holds 1 and 2 in one file and 3 in another, and whose merges replace 1 by 7."""
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    for epoch, ids in ((1, [1, 2]), (2, [3])):
        commit(made, record(CommitKind.EPOCH, LIFE, epoch), stage(made, LIFE, epoch, ids))
    made.merge_memory = 0
    made.merge_large = merged
    return made


def merged(location: TableLocation, table: DeltaTable, staged: Staged) -> Merged:
    """The file with 1 goes; one with 2 and 7 comes."""
    folder = staged.files[0].path.partition("/")[0]
    write(location, f"{folder}/rows", pa.table({"id": [2, 7]}, schema=SCHEMA))
    feed = {"id": [1, 7], "_change_type": ["update_preimage", "update_postimage"]}
    write(location, f"{folder}/feed", pa.table(feed))
    first = f"{LIFE}-1-aaaaaaaa/part.parquet"
    assert first in pa.table(table.get_add_actions()).column("path").to_pylist()
    files, changes = (collect(location, f"{folder}/{part}") for part in ("rows", "feed"))
    return Merged(removed=frozenset({first}), files=files, feed=changes)


def write(location: TableLocation, folder: str, table: pa.Table) -> None:
    Path(location.child(folder)).mkdir()
    pq.write_table(table, location.child(f"{folder}/part.parquet"))


def staged(output: DeltaOutput, epoch: int = 3) -> tuple[CommitRecord, Staged]:
    changes = stage(output, LIFE, epoch, [7]).model_copy(update={"rows_updated": 1, "key": ("id",)})
    output.look()
    assert output.engine(changes) == "spark"
    return record(CommitKind.EPOCH, LIFE, epoch).model_copy(update={"engine": "spark"}), changes


def test_a_merge_is_one_commit_with_files_feed_number_and_positions(output: DeltaOutput) -> None:
    made, changes = staged(output)
    before = output.look().version
    output.commit(made, changes)
    found = output.look()
    assert (found.version, found.at, found.record, found.external) == (before + 1, before + 1, made, None)
    assert rows(output) == [2, 3, 7]
    table = DeltaTable(output.location.uri)
    assert table.transaction_version(app_id(TARGET, LIFE)) == 3
    feed = pa.table(table.load_cdf(starting_version=before + 1)).select(["id", "_change_type"]).to_pylist()
    assert sorted((row["id"], row["_change_type"]) for row in feed) == [(1, "update_preimage"), (7, "update_postimage")]
    stated = dict(
        zip(
            *pa.table(table.get_add_actions(flatten=True)).select(["path", "num_records"]).to_pydict().values(),
            strict=True,
        )
    )
    assert sorted(stated.values()) == [1, 2]


@pytest.mark.parametrize(
    "meddle",
    [
        lambda uri: write_deltalake(uri, pa.table({"id": [9]}, schema=SCHEMA), mode="append"),
        lambda uri: DeltaTable(uri).optimize.compact(),
    ],
    ids=["rows", "maintenance"],
)
def test_a_merge_is_committed_on_the_version_that_it_was_computed_on_or_not_at_all(
    output: DeltaOutput, meddle: Callable[[str], object]
) -> None:
    made, changes = staged(output)
    output.merge_large = lambda *given: (merged(*given), meddle(output.location.uri))[0]
    before = output.look().version
    output.commit(made, changes)
    found = output.look()
    assert (found.version, found.record and found.record.epoch) == (before + 1, 2)
    assert 1 in rows(output)


@pytest.mark.parametrize(
    ("kept", "fed", "said"),
    [
        ([7], ["update_preimage", "update_postimage"], "gave 1 rows and 2 in the change feed, expected 2 and 2"),
        ([2, 1, 7], ["insert"], "gave 3 rows and 1 in the change feed, expected 2 and 2"),
        ([2, 7], ["update_preimage"], "gave 2 rows and 1 in the change feed, expected 2 and 2"),
    ],
    ids=["a row was not read", "a row was not found", "a change is not in the feed"],
)
def test_a_merge_whose_rows_do_not_add_up_is_not_committed(
    output: DeltaOutput, kept: list[int], fed: list[str], said: str
) -> None:
    def wrong(location: TableLocation, table: DeltaTable, staged: Staged) -> Merged:
        right = merged(location, table, staged)
        folder = f"{LIFE}-3-aaaaaaaa/wrong"
        write(location, f"{folder}-rows", pa.table({"id": kept}, schema=SCHEMA))
        write(location, f"{folder}-feed", pa.table({"id": [7] * len(fed), "_change_type": fed}))
        files, feed = (collect(location, f"{folder}-{part}") for part in ("rows", "feed"))
        return Merged(removed=right.removed, files=files, feed=feed)

    made, changes = staged(output)
    output.merge_large = wrong
    before = output.look().version
    with pytest.raises(
        ReadMismatchError, match=f"0 inserts, 1 updates and 0 deletes into files of 2 rows, which {said}"
    ):
        output.commit(made, changes)
    assert output.look().version == before
    assert rows(output) == [1, 2, 3]


def test_a_merge_is_not_even_computed_where_another_commit_is_known_to_have_its_place(output: DeltaOutput) -> None:
    made, changes = staged(output)
    write_deltalake(output.location.uri, pa.table({"id": [9]}, schema=SCHEMA), mode="append")
    output.merge_large = lambda *_given: pytest.fail("it was computed")
    output.commit(made, changes)
    assert rows(output) == [1, 2, 3, 9]


def test_a_checkpoint_that_is_due_is_written_after_a_merge_too(output: DeltaOutput) -> None:
    while (output.look().version + 1) % 10:
        touch(output)
    made, changes = staged(output)
    output.commit(made, changes)
    last = json.loads((Path(output.location.uri) / "_delta_log" / "_last_checkpoint").read_text())
    assert last["version"] == output.look().version
    assert rows(output) == [2, 3, 7]


def touch(output: DeltaOutput) -> None:
    """A commit that changes no rows."""
    table = DeltaTable(output.location.uri)
    table.create_write_transaction([], "append", table.schema())


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"delta.appendOnly": "true"}, "appendOnly"),
        ({"delta.constraints.positive": "id > 0"}, "checkConstraints"),
        ({"delta.enableRowTracking": "true"}, "rowTracking"),
        ({"delta.enableInCommitTimestamps": "true"}, "inCommitTimestamp"),
        ({}, "somethingNew"),
    ],
)
def test_a_table_that_asks_more_of_its_writers_is_refused_by_name(
    output: DeltaOutput, properties: Mapping[str, str], named: str
) -> None:
    _, changes = staged(output)
    given(output, named, properties)
    output._log.forget()
    assert output.look().external is None
    with pytest.raises(TableFeatureError, match=f"the table has {named}") as found:
        output.verify(changes)
    assert found.value.facts["features"] == [named]
    assert rows(output) == [1, 2, 3]


@pytest.mark.parametrize("named", ["columnMapping", "checkConstraints", "rowTracking", "v2Checkpoint"])
def test_features_that_are_listed_and_not_used_forbid_nothing(output: DeltaOutput, named: str) -> None:
    _, changes = staged(output)
    given(output, named, {"delta.columnMapping.mode": "none"})
    output._log.forget()
    output.look()
    output.verify(changes)


def given(output: DeltaOutput, feature: str, properties: Mapping[str, str]) -> None:
    """Somebody gives the table a feature and sets properties, as Spark does."""
    log = Path(output.location.uri) / "_delta_log"
    entries = [json.loads(line) for entry in sorted(log.glob("*.json")) for line in entry.read_text().splitlines()]
    protocol = next(each["protocol"] for each in reversed(entries) if "protocol" in each)
    metadata = next(each["metaData"] for each in reversed(entries) if "metaData" in each)
    both = {"columnMapping", "v2Checkpoint"}
    protocol["writerFeatures"] = [*protocol["writerFeatures"], *({feature} - set(protocol["writerFeatures"]))]
    protocol["readerFeatures"] = [*protocol["readerFeatures"], *({feature} & both)]
    metadata["configuration"] |= properties
    made = [{"commitInfo": {"operation": "SET"}}, {"protocol": protocol}, {"metaData": metadata}]
    version = DeltaTable(output.location.uri).version() + 1
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, made)))


def test_an_output_that_delta_rs_cannot_read_is_refused_by_name(output: DeltaOutput) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]}
    put_commit(output.location, DeltaTable(output.location.uri).version() + 1, "SET", [{"protocol": protocol}])
    with pytest.raises(TableFeatureError, match=f"cannot read the log of {TARGET} at .*'new'") as found:
        output.look()
    assert "DROP FEATURE" in found.value.hint


def test_a_merge_into_files_without_bounds_is_not_committed_until_the_table_lists_none(output: DeltaOutput) -> None:
    def unbounded(location: TableLocation, table: DeltaTable, changes: Staged) -> Merged:
        made = merged(location, table, changes)
        stated = {"numRecords": 2, "nullCount": {"id": 0}}
        silent = tuple(each.model_copy(update={"stats": json.dumps(stated)}) for each in made.files)
        return replace(made, files=silent)

    output.merge_large = unbounded
    made, changes = staged(output)
    output.commit(made, changes)
    assert rows(output) == [1, 2, 3]
    assert DeltaTable(output.location.uri).metadata().configuration[BOUNDED_COLUMNS] == ""
    again, changes = (
        record(CommitKind.EPOCH, LIFE, 3, attempt="bbbbbbbb"),
        stage(output, LIFE, 3, [7], attempt="bbbbbbbb"),
    )
    output.look()
    output.commit(
        again.model_copy(update={"engine": "spark"}), changes.model_copy(update={"rows_updated": 1, "key": ("id",)})
    )
    assert rows(output) == [2, 3, 7]


def test_a_table_of_an_old_protocol_is_refused_by_its_version(output: DeltaOutput) -> None:
    _, changes = staged(output)
    version = DeltaTable(output.location.uri).version() + 1
    put_commit(output.location, version, "SET", [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}])
    output._log.forget()
    output.look()
    with pytest.raises(TableFeatureError, match="the table has writer version 2") as found:
        output.verify(changes)
    assert found.value.facts["features"] == ["writer version 2"]
