"""What is done where a log says less than usual, where it was cleaned up or damaged, and where others write meanwhile."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from backfill_assets.adapters.delta import maintenance
from backfill_assets.adapters.delta import output as outputs
from backfill_assets.adapters.delta.arrow_reader import ArrowReader
from backfill_assets.adapters.delta.commits import (
    committed_at,
    log_text,
    ours_in,
    read_commit,
    record_of,
    staged_folder_of,
)
from backfill_assets.adapters.delta.file_bounds import remove_inexact
from backfill_assets.adapters.delta.footers import fed_rows, held_rows
from backfill_assets.adapters.delta.layout import commit_layout, compact
from backfill_assets.adapters.delta.log_replay import DataFile, LogReplay
from backfill_assets.adapters.delta.logged_changes import Changed
from backfill_assets.adapters.delta.maintenance import put_commit, set_properties
from backfill_assets.adapters.delta.output import DeltaOutput
from backfill_assets.adapters.delta.staging import sweep, sweep_leftovers, sweep_merged
from backfill_assets.adapters.delta.touched_files import LoggedFile
from backfill_assets.adapters.delta.upstream import FEED, DeltaUpstream
from backfill_assets.adapters.storage.warehouse import TableLocation
from backfill_assets.core.epoch.bounds import BOUNDED_COLUMNS
from backfill_assets.core.epoch.records import CommitKind, TableState
from backfill_assets.core.progress.reads import ChangesRead
from backfill_assets.errors import ReadMismatchError, VersionsLostError
from tests.support.outputs import TARGET, commit, output_at, record, rows, stage

LIFE = "11111111"


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    made = output_at(tmp_path)
    commit(made, record(CommitKind.CREATE, LIFE, 0))
    commit(made, record(CommitKind.EPOCH, LIFE, 1), stage(made, LIFE, 1, [1, 2]))
    return made


@pytest.mark.parametrize("text", ["é€😀", 'a"b\\', "\ud83d"])
def test_a_text_of_the_log_is_utf_8_whatever_its_letters_are(text: str) -> None:
    told = log_text({"a": text})
    assert json.loads(told.encode()) == {"a": text}
    assert ("\\u" in told) == (text == "\ud83d")


def test_a_commit_that_says_no_time_was_made_when_its_entry_was_written(output: DeltaOutput) -> None:
    number = output.look().version + 1
    assert put_commit(output.location, number, "SET", [])
    entry = Path(output.location.uri, f"_delta_log/{number:020d}.json")
    os.utime(entry, (1_700_000_000.25, 1_700_000_000.25))
    assert committed_at(output.location, number, []) == 1_700_000_000_250


@pytest.mark.parametrize("said", ["", "no JSON", '"text"', "[1]", "3", '{"backfill": "text"}', '{"other": {}}'])
def test_what_others_write_into_a_commit_is_no_record(said: str) -> None:
    actions = [{"add": {"path": "a"}}, {"commitInfo": {"userMetadata": said}}]
    assert ours_in(actions) is None
    assert record_of(actions, TARGET, 3) is None
    assert staged_folder_of(actions, TARGET) is None


def test_a_record_without_an_attempt_has_no_staged_folder(output: DeltaOutput) -> None:
    actions = read_commit(output.location, output.look().version)
    assert actions is not None
    found = ours_in(actions)
    assert found is not None
    assert staged_folder_of(actions, TARGET) is not None
    for odd in ({"epoch": "1"}, {"attempt": None}, {"incarnation": 7}, {"target": "views/other"}):
        info = {"commitInfo": {"userMetadata": json.dumps({"backfill": {**found, **odd}})}}
        assert staged_folder_of([info], TARGET) is None


def test_bounds_of_a_table_that_asks_more_are_not_restated_but_no_longer_listed(output: DeltaOutput) -> None:
    location = output.location
    version = DeltaUpstream(name="t", location=location).version(output.look().version)
    (file,) = version.files
    said = {**file.stats, "minValues": {"id": 0}, "maxValues": {}}
    assert put_commit(
        location, output.look().version + 1, "STATS", [{"add": {**file.action, "stats": json.dumps(said)}}]
    )
    asks_more(output)
    assert remove_inexact(location)
    table = DeltaTable(location.uri)
    assert table.metadata().configuration[BOUNDED_COLUMNS] == ""
    (kept,) = DeltaUpstream(name="t", location=location).version(table.version()).files
    assert kept.stats["minValues"] == {"id": 0}
    assert not remove_inexact(location)


def asks_more(output: DeltaOutput) -> None:
    """A feature with which others than delta-rs must not write."""
    features = ["appendOnly", "changeDataFeed", "invariants", "timestampNtz", "generatedColumns"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": features,
    }
    assert put_commit(output.location, DeltaTable(output.location.uri).version() + 1, "SET", [{"protocol": protocol}])


def test_where_there_is_no_table_nothing_is_corrected_or_compacted(tmp_path: Path) -> None:
    nowhere = TableLocation(uri=str(tmp_path / "nowhere"))
    assert not remove_inexact(nowhere)
    assert not set_properties(nowhere, {"a": "b"})
    compact(nowhere, 5)
    assert not (tmp_path / "nowhere").exists()


def test_a_layout_gives_way_to_what_a_table_asks_of_its_writers(output: DeltaOutput) -> None:
    files = stage(output, LIFE, 2, [2, 1]).files
    asks_more(output)
    assert not commit_layout(output.location, DeltaTable(output.location.uri), files)
    assert output.look().version == DeltaTable(output.location.uri).version()


def test_a_layout_without_the_bounds_that_are_listed_is_not_committed(output: DeltaOutput) -> None:
    files = stage(output, LIFE, 2, [2, 1]).files
    silent = tuple(each.model_copy(update={"stats": '{"numRecords": 2, "nullCount": {"id": 0}}'}) for each in files)
    table = DeltaTable(output.location.uri)
    assert not commit_layout(output.location, table, silent)
    assert DeltaTable(output.location.uri).file_uris() == table.file_uris()


def test_properties_that_others_always_forestall_are_an_error(
    output: DeltaOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[object]()
    monkeypatch.setattr(maintenance, "put_properties", lambda *given: tries.append(given))
    with pytest.raises(CommitFailedError, match=f"other writers committed first, {maintenance.TRIES} times"):
        set_properties(output.location, {"delta.checkpointInterval": "7"})
    assert len(tries) == maintenance.TRIES


def test_a_checkpoint_that_cannot_be_written_stops_no_commit(
    output: DeltaOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(TableLocation, "make_checkpoint", fail)
    for epoch in range(2, 15):
        commit(output, record(CommitKind.EPOCH, LIFE, epoch), stage(output, LIFE, epoch, [epoch + 1]))
    assert rows(output) == list(range(1, 16))
    assert not list(Path(output.location.uri).glob("_delta_log/*.checkpoint*"))


def test_before_the_first_look_changes_are_merged_here(tmp_path: Path) -> None:
    made = output_at(tmp_path)
    staged = stage(made, LIFE, 1, [1]).model_copy(update={"key": ("id",), "rows_updated": 1})
    fresh = DeltaOutput(location=made.location, target=TARGET, schema=made.schema)
    assert outputs.DeltaOutput.engine(fresh, staged) == "arrow"


NOTHING = TableState(version=0)


@pytest.mark.parametrize("swept", [sweep, sweep_merged])
def test_of_a_table_without_a_record_nothing_is_swept(output: DeltaOutput, swept: Any) -> None:
    stage(output, LIFE, 1, [9], attempt="bbbbbbbb")
    before = sorted(Path(output.location.uri).rglob("*.parquet"))
    assert swept(output.location, lambda: NOTHING) == []
    assert sorted(Path(output.location.uri).rglob("*.parquet")) == before
    assert sweep_leftovers(output.location, lambda: NOTHING) == []


def test_staged_changes_are_not_swept_by_a_look_that_is_overtaken(output: DeltaOutput) -> None:
    folder = Path(output.location.uri, f"{LIFE}-1-bbbbbbbb", "rows", "__op=insert")
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"")
    look = output.look()

    def overtaken() -> TableState:
        commit(output, record(CommitKind.CREATE, "22222222", 0))
        return look

    assert sweep_merged(output.location, overtaken) == []
    assert (folder / "part.parquet").exists()


FILE: dict[str, Any] = {"path": "a.parquet", "size": 10, "stats": '{"numRecords": 9}'}
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "cardinality": 2}


@pytest.mark.parametrize(("restored", "fed"), [(False, 2), (True, None)])
def test_what_a_feed_holds_of_hidden_rows_is_known_unless_a_version_was_restored(
    tmp_path: Path, restored: bool, fed: int | None
) -> None:
    """A restored version may hide other rows, not only more of them."""
    hides = Changed(
        feed={},
        added=(DataFile({**FILE, "deletionVector": VECTOR}),),
        removed=(DataFile(FILE),),
        restored=restored,
    )
    assert fed_rows(TableLocation(uri=str(tmp_path)), [hides]) == fed


def test_a_file_that_is_read_several_times_has_its_rows_each_time(tmp_path: Path) -> None:
    table = DeltaTable(table_of(tmp_path / "table", 1))
    (path,) = pa.table(table.get_add_actions()).column("path").to_pylist()
    once, hiding = DataFile({"path": path}), DataFile({"path": path, "deletionVector": VECTOR | {"cardinality": 1}})
    assert held_rows(TableLocation(uri=table.table_uri), [once, once, hiding]) == 2


@pytest.mark.parametrize("expired", [[0], [0, 1]])
def test_columns_of_a_version_that_is_gone_are_not_taken_for_those_of_the_next(
    tmp_path: Path, expired: list[int]
) -> None:
    uri = table_of(tmp_path / "table", 2)
    write_deltalake(uri, pa.table({"id": [9], "more": [1]}), mode="append", schema_mode="merge")
    for number in expired:
        (Path(uri) / "_delta_log" / f"{number:020d}.json").unlink()
    with pytest.raises(VersionsLostError, match="version 1 can no longer be read"):
        DeltaUpstream(name="t", location=TableLocation(uri=uri)).commits(1, 2)


def test_a_deletion_vector_inside_of_the_log_is_no_file() -> None:
    file = DataFile({**FILE, "deletionVector": VECTOR})
    assert file.needed == ("a.parquet",)
    assert file.absolute("/lake")["deletionVector"] == VECTOR


def table_of(folder: Path, versions: int) -> str:
    for number in range(versions):
        write_deltalake(str(folder), pa.table({"id": [number]}), mode="append", configuration={FEED: "true"})
    return str(folder)


def test_files_of_a_version_can_be_taken_in_parts_whether_a_checkpoint_or_commits_name_them(tmp_path: Path) -> None:
    uri = table_of(tmp_path, 5)
    DeltaTable(uri).create_checkpoint()
    table_of(tmp_path, 2)
    files = LogReplay(TableLocation(uri=uri)).version(6).files
    paths = [each.path for each in files]
    assert [each.path for each in files[2:5]] == paths[2:5]
    assert len(paths) == 7


def test_a_version_whose_log_was_cut_meanwhile_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    uri = table_of(tmp_path, 2)
    replay = LogReplay(TableLocation(uri=uri))
    assert len(replay.version(1).files) == 2
    table_of(tmp_path, 3)
    DeltaTable(uri).create_checkpoint()
    Path(uri, f"_delta_log/{3:020d}.json").unlink()
    assert len(replay.version(4).files) == 5


def test_changes_of_a_table_that_delta_rs_cannot_load_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = DeltaUpstream(name="base", location=TableLocation(uri=table_of(tmp_path, 3)))
    read = ChangesRead(source="base", table_id="t", first=1, last=2, rows=1)
    assert upstream.change_files(read) is not None

    def fail(*_given: object, **_named: object) -> None:
        raise DeltaError("a feature of tomorrow")

    monkeypatch.setattr(TableLocation, "load", fail)
    assert upstream.change_files(read) is None
    with pytest.raises(VersionsLostError, match="version 1 can no longer be read: a feature of tomorrow"):
        DeltaUpstream(name="base", location=TableLocation(uri=str(tmp_path))).has_feed(1)
    monkeypatch.setattr(TableLocation, "load", lambda *_given, **_named: None)
    assert upstream.change_files(read) is None


class Elsewhere(TableLocation):
    """A table in a store of which one object is missing, and which fails for others."""

    @property
    def is_local(self) -> bool:
        return False

    def objects(self) -> Any:
        return self

    def get(self, _path: str) -> None:
        return None

    def files(self) -> Any:
        return self

    def open_input_file(self, _path: str) -> None:
        raise OSError("503 Slow Down")


def test_a_missing_object_is_told_of_a_file_and_a_failing_store_as_it_is() -> None:
    reader = ArrowReader(Elsewhere(uri="s3://bucket/t"), sized=True)
    with (
        pytest.raises(ReadMismatchError, match=r"its file a.parquet cannot be read"),
        reader.opened(LoggedFile(path="a.parquet", size=10, rows=1)),
    ):
        pass
    with pytest.raises(OSError, match="503 Slow Down"), reader.opened(LoggedFile(path="b.parquet", size=2**33, rows=1)):
        pass
